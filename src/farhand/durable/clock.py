"""The time that all who share a store go by, counted on here between two looks at the store's."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic_ns, time_ns

from farhand.runner.clock import SystemClock, Timer

logger = logging.getLogger("farhand.durable")

JUMP = 60_000
"""Milliseconds. A clock that is suddenly further off than this is believed only when it says so twice."""


class StoreClock(SystemClock):
    """Set it with `sync`; a jump of the machine's own wall clock does not move it."""

    def __init__(self, milliseconds: Callable[[], int] = lambda: monotonic_ns() // 1_000_000) -> None:
        self._milliseconds = milliseconds
        self._ahead = time_ns() // 1_000_000 - milliseconds()
        self._doubted: int | None = None

    def now(self) -> int:
        """The time."""
        return self._milliseconds() + self._ahead

    def sync(self, time: int, *, first: bool = False) -> int:
        """Go by what the store says; gives by how much this has moved it."""
        ahead = time - self._milliseconds()
        jumped = not first and abs(ahead - self._ahead) > JUMP
        if jumped and (self._doubted is None or abs(ahead - self._doubted) > JUMP):
            logger.warning("the store's clock has jumped by %d s; will it say so again?", (ahead - self._ahead) // 1000)
            self._doubted = ahead
            return 0
        moved, self._ahead, self._doubted = ahead - self._ahead, ahead, None
        return 0 if first else moved

    def call_at(self, due: int, callback: Callable[[], None]) -> Timer:
        """Call back at a time, on the event loop."""
        return asyncio.get_running_loop().call_later(max(0, due - self.now()) / 1000, callback)
