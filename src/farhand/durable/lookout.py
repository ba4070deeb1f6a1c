"""What calls of attended runs are told of who is there.

That depends on who is there at the moment and not on what has happened, so that it can be looked at any number of
times, by any process. It is looked at again until there was nothing more to say.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import json

from farhand.core.call import Call
from farhand.core.errors import RunRefused, StoreError, UnknownCall, UsageError
from farhand.core.events import Event
from farhand.core.presence import attend
from farhand.core.run import Run
from farhand.core.step import step
from farhand.durable.attachment import is_there, offers, serves
from farhand.durable.offers import EVERY_CALL
from farhand.durable.offers import Home as FeedHome
from farhand.runner.clock import Clock
from farhand.stores.base import CallRow
from farhand.stores.presence import ClientRow

logger = logging.getLogger("farhand.durable")

AGAIN = (0.05, 0.2, 0.5, 1.0)
"""Seconds between tries to reach a store that is away."""


class Home(FeedHome, Protocol):
    """The process, as far as it matters to who is there."""

    @property
    def worker(self) -> str: ...
    @property
    def clock(self) -> Clock: ...
    async def until_entered(self) -> None: ...
    async def say(self, run: str, decide: Callable[[Run, int], Sequence[Event | None]]) -> Sequence[bool]: ...


class Lookout:
    """Looks who is there, and says so."""

    def __init__(self, home: Home) -> None:
        self._home = home

    async def look_for(self, run: str, principal: str, thread: str, call_id: str) -> None:
        """See to it that a call is told if nobody is there for it, however long that takes."""
        tries = 0
        while True:
            try:
                await self.look(run, principal, thread, lambda call: call.id == call_id)
            except StoreError as error:
                logger.warning("nobody knows who is there for run %s (%s)", run, type(error).__name__)
                await asyncio.sleep(AGAIN[min(tries, len(AGAIN) - 1)])
                tries += 1
            except (UnknownCall, RunRefused, UsageError):
                return
            else:
                return

    async def look(self, run: str, principal: str, thread: str, about: Callable[[Call], bool]) -> None:
        """Tell calls of a run whether somebody is there for them, until that is so."""
        spoken: Counter[str] = Counter()
        # Calls that were told something by what was known then. It may have been over by the time that it was stored,
        # even if saying it again, to the run as it was by then, came to nothing.
        said_before = -1
        while spoken.total() != said_before:
            said_before = spoken.total()
            rows = list(await self._home.store.clients(principal, thread))

            def decide(run: Run, now: int, rows: list[ClientRow] = rows) -> Sequence[Event | None]:
                said: list[Event | None] = []
                for call_id in [call.id for call in run.open_calls if call.id in spoken or about(call)]:
                    event = attend(run, call_id, there=is_there(rows, run, run.calls[call_id]), at=now)
                    said.append(event)
                    if event is not None:
                        spoken[call_id] += 1
                        run, _ = step(run, event)
                return said

            await self._home.say(run, decide)

    async def came(self, row: ClientRow) -> bool:
        """A client is there: calls miss it no more. False if this process cannot tell all of them."""
        return await self._tell(await self._concerned(row, missing=True), lambda call: call.grace is not None)

    async def gone(self, row: ClientRow) -> bool:
        """One is not: calls are told that it had, or that it may have been the only one for."""

        def about(call: Call) -> bool:
            return call.held_by == row.client if call.held_by else offers(row, call)

        return await self._tell(await self._concerned(row, missing=False), about)

    async def _tell(self, calls: Sequence[CallRow], about: Callable[[Call], bool]) -> bool:
        everybody = True
        for row in calls:
            with suppress(UnknownCall, RunRefused):
                try:
                    await self.look(row.run, row.principal, row.thread, about)
                except UsageError:  # there is no such agent here
                    everybody = False
        return everybody

    async def _concerned(self, row: ClientRow, *, missing: bool) -> Sequence[CallRow]:
        """One waiting call of each run that a connection may matter to."""
        others = () if missing else await self._home.store.clients(row.principal, row.thread)
        again = [other for other in others if other.client == row.client]
        found: dict[str, CallRow] = {}
        for call_row in await self._home.store.waiting(row.principal, row.thread, EVERY_CALL):
            call = json.decode(call_row.record, type=Call)
            # Who only has loaded its page anew is still there, unless somebody misses it.
            still_there = missing or any(serves(other, call) for other in again)
            if serves(row, call) and (call.grace is not None or not still_there):
                found[call_row.run] = call_row
        return list(found.values())
