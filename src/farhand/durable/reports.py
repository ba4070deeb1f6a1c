"""How far clients are with their calls: told at once to whoever watches here, and through the store to the others."""

import asyncio
import logging

from farhand.core.errors import StoreError
from farhand.durable.errands import Errands
from farhand.stores.base import Store
from farhand.stores.presence import ProgressRow

logger = logging.getLogger("farhand.durable")

EVERY = 0.25
"""Seconds between two writes about one call. What is said meanwhile gives way to what is said last."""


class Reports:
    """The last that was said of each call."""

    def __init__(self, store: Store, errands: Errands) -> None:
        self._store = store
        self._errands = errands
        self._waiting: dict[str, ProgressRow | None] = {}
        """Calls that were written a moment ago, with what was said since."""
        self._said: dict[str, int] = {}
        """When the last of it was said."""

    def time(self, call: str, now: int) -> int:
        """When something was said: later than whatever was said before it, also in the same millisecond."""
        return max(now, self._said.get(call, 0) + 1)

    def put(self, row: ProgressRow) -> None:
        """Something was said."""
        self._said[row.call] = row.at
        if row.call in self._waiting:
            self._waiting[row.call] = row
        else:
            self._write(row)

    def _write(self, row: ProgressRow) -> None:
        self._waiting[row.call] = None
        asyncio.get_running_loop().call_later(EVERY, self._go_on, row.call)
        self._errands.run(self._tell(row))

    def _go_on(self, call: str) -> None:
        row = self._waiting.pop(call)
        if row is not None:
            self._write(row)
        else:
            del self._said[call]

    async def _tell(self, row: ProgressRow) -> None:
        try:
            await self._store.tell(row)
        except StoreError as error:  # the next one may come through
            logger.info("progress of call %s was not stored (%s)", row.call, type(error).__name__)
