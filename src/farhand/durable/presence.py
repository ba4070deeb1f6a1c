"""Which clients are there, and what calls are told of it.

Whoever writes first and looks then misses nothing: a client says in the store that it is there, or that it goes, and
then looks for calls; a call is dispatched, and then somebody looks for clients. What a call is told depends on who is
there at that moment and not on what has happened, so that it can be looked at any number of times.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import json, structs

from farhand.core.call import Call
from farhand.core.errors import RunRefused, StoreError, UnknownCall, UsageError
from farhand.core.events import Event
from farhand.core.presence import attend
from farhand.core.run import Run
from farhand.core.step import step
from farhand.durable.attachment import Attachment, is_there, offers, serves
from farhand.durable.offers import EVERY_CALL, Feeds
from farhand.durable.offers import Home as FeedHome
from farhand.runner.clock import Clock
from farhand.stores.base import CallRow
from farhand.stores.presence import ClientRow

logger = logging.getLogger("farhand.durable")

ORPHANS = 100
"""So many connections of dead processes are taken over at once."""
DOUBT = 60.0
"""Seconds in which a write that nobody knows of may yet arrive."""
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


class Presence:
    """The clients of one process, and a look at those of the others."""

    def __init__(self, home: Home, *, check: float) -> None:
        self._home = home
        self._here: dict[tuple[str, str], list[Attachment]] = {}
        self._leaving: dict[str, ClientRow] = {}
        """Connections that have ended, until everything is seen to that they leave behind."""
        self._doubted: dict[str, tuple[ClientRow, float]] = {}
        """Those that came to nothing because the store was away, and until when it may yet come to know of them."""
        self._seeing: set[str] = set()
        self._latest = 0
        self._sweeping = False
        self.retired = False
        """The process is going: nobody is missed who goes with it. Whoever takes over finds out who is there then."""
        self.feeds = Feeds(home, check=check)

    # Coming and going

    async def attach(
        self, client: str, offers: Sequence[str], *, principal: str, thread: str, tools: bytes
    ) -> Attachment:
        """A client is there; with an empty thread for all of its principal's."""
        home = self._home
        await home.until_entered()
        self._latest = max(home.clock.now(), self._latest + 1)  # of two, one is the older
        row = ClientRow(
            connection=home.clock.new_id(),
            client=client,
            principal=principal,
            thread=thread,
            worker=home.worker,
            offers=tuple(offers),
            tools=tools,
            since=self._latest,
        )
        attachment = Attachment(row, self._close, self.feeds.of)
        if not row.offers and not row.tools:
            return attachment  # somebody who only looks on
        await self._put(attachment, row)
        self._here.setdefault((principal, thread), []).append(attachment)
        try:
            await self._come(attachment)
        except BaseException:
            home.errands.run(self._close(attachment))
            raise
        return attachment

    async def _come(self, attachment: Attachment) -> None:
        """Be there under the name that the process has now, and have every call know."""
        home = self._home
        attachment.told = False
        async with attachment.moving:
            while attachment.row.worker != home.worker and not attachment.closed:
                await home.until_entered()  # what it was under another name is an orphan
                new = structs.replace(attachment.row, connection=home.clock.new_id(), worker=home.worker)
                await self._put(attachment, new)
        row = attachment.row
        for call_row in await self._concerned(row, missing=True):
            with suppress(UnknownCall, RunRefused, UsageError):
                await self.look(call_row.run, row.principal, call_row.thread, lambda call: call.grace is not None)
        attachment.told = True

    async def _put(self, attachment: Attachment, row: ClientRow) -> None:
        try:
            await self._home.store.attach(row)
        except BaseException:  # it may have arrived all the same, or may yet arrive
            self._doubted[row.connection] = (row, asyncio.get_running_loop().time() + DOUBT)
            self._leave(row)
            raise
        if attachment.closed:
            self._leave(row)
        else:
            attachment.row = row

    async def _close(self, attachment: Attachment) -> None:
        row = attachment.row
        place = self._here.get((row.principal, row.thread), [])
        attachment.closed = True
        self.feeds.end(attachment)
        if attachment not in place:
            return
        place.remove(attachment)
        if not place:
            del self._here[row.principal, row.thread]
        if not self.retired:
            await asyncio.wait((self._leave(row),))

    def _leave(self, row: ClientRow) -> "asyncio.Task[None]":
        self._leaving[row.connection] = row
        return self._home.errands.run(self._see_to(row.connection))

    def retire(self) -> None:
        """The process is going."""
        self.retired = True

    # Who is there

    def _at(self, principal: str, thread: str) -> list[Attachment]:
        """Who is connected to this process for a thread, providers too."""
        providers = self._here.get((principal, ""), ()) if thread else ()
        return [*self._here.get((principal, thread), ()), *providers]

    async def knows(self, principal: str, thread: str, client: str) -> bool:
        """Whether a client is connected anywhere."""
        if any(attachment.client == client for attachment in self._at(principal, thread)):
            return True
        return any(row.client == client for row in await self._home.store.clients(principal, thread))

    def is_here(self, thread: str, run: Run, call: Call) -> bool:
        """Whether a client that is connected to this process runs a call, and will be missed when it goes."""
        worker = self._home.worker
        return any(
            attachment.row.worker == worker and serves(attachment.row, call, run.target)
            for attachment in self._at(run.principal, thread)
        )

    async def providers(self, principal: str) -> list[ClientRow]:
        """Who brings tools for all threads of a principal, oldest first; of each client its newest connection."""
        rows = await self._home.store.clients(principal, "")
        newest = {row.client: row for row in rows}
        return [row for row in rows if row.tools and newest[row.client] is row]

    # What calls are told

    async def look_for(self, run: str, principal: str, thread: str, call_id: str) -> None:
        """A call was dispatched to clients, and none is known here."""
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

    def look_after(self, run: str, principal: str, thread: str, call: str, client: str) -> None:
        """A client that was there has taken a call up; it may have gone meanwhile, and nobody would miss it."""
        if not any(attachment.client == client for attachment in self._at(principal, thread)):
            self._home.errands.run(self.look_for(run, principal, thread, call))

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

    async def _gone(self, row: ClientRow) -> None:
        """Calls that it had, or that it may have been the only one for, are told."""

        def about(call: Call) -> bool:
            return call.held_by == row.client if call.held_by else offers(row, call)

        others = await self._home.store.clients(row.principal, row.thread)
        again = [other for other in others if other.client == row.client]  # a page that was loaded anew
        for call_row in await self._concerned(row, missing=False, but_for=again):
            with suppress(UnknownCall, RunRefused):
                await self.look(call_row.run, row.principal, call_row.thread, about)

    async def _concerned(
        self, row: ClientRow, *, missing: bool, but_for: Sequence[ClientRow] = ()
    ) -> Sequence[CallRow]:
        """One waiting call of each run that a connection may matter to."""
        found: dict[str, CallRow] = {}
        for call_row in await self._home.store.waiting(row.principal, row.thread, EVERY_CALL):
            call = json.decode(call_row.record, type=Call)
            if missing and call.grace is None:
                continue
            if serves(row, call) and not any(serves(other, call) for other in but_for):
                found[call_row.run] = call_row
        return list(found.values())

    # What is left behind

    def sweep(self) -> None:
        """See to connections that have ended, of this process and of dead ones; to be done now and then."""
        if not self._sweeping:
            self._sweeping = True
            self._home.errands.run(self._sweep())

    async def _sweep(self) -> None:
        try:
            for attachment in [attachment for place in self._here.values() for attachment in place]:
                if not attachment.told or attachment.row.worker != self._home.worker:  # it was taken for dead meanwhile
                    await self._come(attachment)
            now = asyncio.get_running_loop().time()
            self._doubted = {name: doubt for name, doubt in self._doubted.items() if doubt[1] > now}
            self._leaving.update((name, row) for name, (row, _) in self._doubted.items())
            taken = ORPHANS
            while taken == ORPHANS and self._home.worker:
                rows = await self._home.store.orphans(self._home.worker, ORPHANS)
                taken = len(rows)
                self._leaving.update((row.connection, row) for row in rows)
                for connection in list(self._leaving):
                    await self._see_to(connection)
        except StoreError as error:
            logger.warning("who is there cannot be seen to (%s); trying again", type(error).__name__)
        finally:
            self._sweeping = False

    async def _see_to(self, connection: str) -> None:
        """First it is not there, then calls are told, at last it is forgotten: each step can be done again."""
        row = self._leaving.get(connection)
        if row is None or connection in self._seeing:
            return
        self._seeing.add(connection)
        store = self._home.store
        try:
            if not row.closing:
                await store.attach(structs.replace(row, closing=True))
            try:
                await self._gone(row)
            except UsageError:  # there is no such agent here: left to a process that has it
                await store.attach(structs.replace(row, closing=True, worker=""))
            else:
                await store.detach(connection)
            self._leaving.pop(connection, None)
        except StoreError as error:
            logger.warning("a client went and nobody could be told (%s); trying again", type(error).__name__)
        finally:
            self._seeing.discard(connection)
