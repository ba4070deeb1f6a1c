"""Where times and ids come from, so that a test can hold both in its hand (`farhand.testing.VirtualClock`)."""

import asyncio
import os
from collections.abc import Callable
from time import time_ns
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


_ids: list[str] = []
"""Ids for later: randomness is fetched for many at once, and anew after a fork, so that no two processes share any."""
os.register_at_fork(after_in_child=_ids.clear)


class SystemClock:
    """The machine's clock and randomness."""

    def now(self) -> int:
        """The time."""
        return time_ns() // 1_000_000

    def new_id(self) -> str:
        """An id that nobody can guess."""
        try:
            return _ids.pop()
        except IndexError:  # never looked at before: another thread could take the last one in between
            bits = os.urandom(16 * 64).hex()
            _ids.extend(bits[start : start + 32] for start in range(32, len(bits), 32))
            return bits[:32]

    def call_at(self, due: int, callback: Callable[[], None]) -> Timer:
        """Call back at a time, on the event loop."""
        return asyncio.get_running_loop().call_later(max(0, due - self.now()) / 1000, callback)
