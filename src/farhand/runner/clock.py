"""Where times and ids come from, so that a test can hold both in its hand (`farhand.testing.VirtualClock`)."""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Something that can be called off."""

    def cancel(self) -> None:
        """Never fire."""
        ...


class Clock(Protocol):
    """Milliseconds since 1970, ids of 128 random bits, and calls at a given time."""

    def now(self) -> int:
        """The time."""
        ...

    def new_id(self) -> str:
        """An id that nobody can guess."""
        ...

    def call_at(self, due: int, callback: Callable[[], None]) -> Timer:
        """Call back at a time, on the event loop."""
        ...


class SystemClock:
    """The machine's clock and randomness. Randomness is fetched for many ids at once, and anew after a fork."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        os.register_at_fork(after_in_child=self._ids.clear)

    def now(self) -> int:
        """The time."""
        return time.time_ns() // 1_000_000

    def new_id(self) -> str:
        """An id that nobody can guess."""
        if not self._ids:
            bits = os.urandom(16 * 64).hex()
            self._ids += [bits[start : start + 32] for start in range(0, len(bits), 32)]
        return self._ids.pop()

    def call_at(self, due: int, callback: Callable[[], None]) -> Timer:
        """Call back at a time, on the event loop."""
        return asyncio.get_running_loop().call_later(max(0, due - self.now()) / 1000, callback)
