"""Which clients are there.

Whoever writes first and looks then misses nothing: a client says in the store that it is there, or that it goes, and
then calls are looked for; a call is dispatched, and then clients are looked for.
"""

import asyncio
import logging
from collections.abc import Sequence

from msgspec import structs

from farhand.core.call import Call
from farhand.core.errors import StoreError
from farhand.core.run import Run
from farhand.durable.attachment import Attachment, serves
from farhand.durable.lookout import Home, Lookout
from farhand.durable.offers import Feeds
from farhand.stores.presence import ClientRow

logger = logging.getLogger("farhand.durable")

ORPHANS = 100
"""So many connections of dead processes are taken over at once."""
DOUBT = 60.0
"""Seconds in which a write that nobody knows of may yet arrive."""


class Presence:
    """The clients of one process, and a look at those of the others."""

    def __init__(self, home: Home, *, check: float) -> None:
        self._home = home
        self._lookout = Lookout(home)
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
        if not await self._lookout.came(attachment.row):  # left to a process that has the agent
            row = structs.replace(attachment.row, connection=home.clock.new_id(), worker="", closing=True)
            await home.store.attach(row)
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

    def look_for(self, run: str, principal: str, thread: str, call: str) -> "asyncio.Task[None]":
        """A call was dispatched to clients, and none is known here."""
        return self._home.errands.run(self._lookout.look_for(run, principal, thread, call))

    def look_after(self, run: str, principal: str, thread: str, call: str, client: str) -> None:
        """A client that was there has taken a call up; it may have gone meanwhile, and nobody would miss it."""
        if not any(attachment.client == client for attachment in self._at(principal, thread)):
            self.look_for(run, principal, thread, call)

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
            if await self._lookout.gone(row):
                await store.detach(connection)
            else:
                await store.attach(structs.replace(row, closing=True, worker=""))
            self._leaving.pop(connection, None)
        except StoreError as error:
            logger.warning("a client went and nobody could be told (%s); trying again", type(error).__name__)
        finally:
            self._seeing.discard(connection)
