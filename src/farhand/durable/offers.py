"""The calls that a client may take up, told to it while it is attached, wherever their runs are worked on.

A feed compares what waits in the store with what it has told. News only say where to look, and any of them may be lost.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from typing import Protocol

from msgspec import Struct, json

from farhand.core.call import Call
from farhand.core.errors import RunRefused, StoreError
from farhand.durable.attachment import Attachment, serves
from farhand.durable.errands import Errands
from farhand.durable.names import ThreadNames
from farhand.durable.record import Revived
from farhand.protocols.native import CallOffered, CallWithdrawn, ProviderUpdate
from farhand.protocols.views import call_view
from farhand.stores.base import CallRow, Store

logger = logging.getLogger("farhand.durable")

EVERY_CALL = 1_000_000
"""So many waiting calls of one principal are looked at, at most."""
LOOK = 0.004
"""Seconds for each feed of a process between two looks of one of them at everything."""


class Home(Protocol):
    """The process, as far as a feed needs it."""

    @property
    def store(self) -> Store: ...
    @property
    def errands(self) -> Errands: ...
    @property
    def names(self) -> ThreadNames: ...
    async def read(self, run: str) -> Revived | None: ...


class _Known(Struct, frozen=True):
    attempt: int
    given_back: int
    thread: str
    offered: bool
    """Otherwise it is for another client."""

    def is_before(self, call: Call) -> bool:
        """Whether the call has to be told of again."""
        return (self.attempt, self.given_back) != (call.attempt, call.given_back)


class Feed:
    """What one client has been told."""

    def __init__(
        self, home: Home, attachment: Attachment, pause: Callable[[], float], leave: "Callable[[Feed], None]"
    ) -> None:
        self.attachment = attachment
        self._home = home
        self._pause = pause
        self._leave = leave
        self._known: dict[str, _Known] = {}
        self._batch: list[ProviderUpdate] = []
        """What is known to the feed and not told yet."""
        self._news = asyncio.Event()
        self._threads: set[str] = set()
        self._everywhere = True
        self._looked = float("-inf")
        self._later: asyncio.TimerHandle | None = None
        self._news.set()

    def look(self, thread: str) -> None:
        """Something may have happened in a thread; with an empty one, perhaps in any."""
        if not thread:
            self._everywhere = True
        elif self.attachment.row.thread in ("", thread):
            self._threads.add(thread)
        self._news.set()

    def end(self) -> None:
        """Tell nothing more."""
        self._leave(self)
        if self._later is not None:
            self._later.cancel()
        self._news.set()

    async def batches(self) -> AsyncGenerator[list[ProviderUpdate], None]:
        """What is known together."""
        while True:
            await self._news.wait()
            self._news.clear()
            if self.attachment.closed:
                return
            try:
                await self._compare()
            except StoreError as error:
                logger.warning("calls cannot be offered (%s); trying again", type(error).__name__)
                self._everywhere = True
                self._look_again(asyncio.get_running_loop().time() + self._pause())
            if self._batch:
                batch, self._batch = self._batch, []
                yield batch

    async def _compare(self) -> None:
        threads, everywhere = self._places()
        waiting = await self._waiting([self.attachment.row.thread] if everywhere else threads)
        for call_id, known in list(self._known.items()):
            here = waiting.get(call_id)
            if (everywhere or known.thread in threads) and (here is None or known.is_before(here[1])):
                del self._known[call_id]
                if known.offered:
                    self._batch.append(CallWithdrawn(call_id=call_id, attempt=known.attempt))
        for row, call in waiting.values():
            if row.id not in self._known and (offered := await self._offered(row, call)) is not None:
                self._known[row.id] = _Known(call.attempt, call.given_back, row.thread, bool(offered))
                self._batch += offered

    def _places(self) -> tuple[set[str], bool]:
        """Where to look: in some threads, or everywhere. There may be many: that is done now and then only."""
        threads, self._threads = self._threads, set()
        now = asyncio.get_running_loop().time()
        if not self._everywhere:
            return threads, False
        if now < (next_look := self._looked + self._pause()):
            self._look_again(next_look)
            return threads, False
        self._everywhere, self._looked = False, now
        return threads, True

    async def _waiting(self, threads: Iterable[str]) -> dict[str, tuple[CallRow, Call]]:
        """Calls that wait for this client or for anybody."""
        mine = self.attachment.row
        found: dict[str, tuple[CallRow, Call]] = {}
        for thread in threads:
            for row in await self._home.store.waiting(mine.principal, thread, EVERY_CALL):
                call = json.decode(row.record, type=Call)
                if serves(mine, call):
                    found[row.id] = (row, call)
        return found

    async def _offered(self, row: CallRow, call: Call) -> list[CallOffered] | None:
        """The call as its run has it: nothing if it is for another client, None if it has moved on."""
        revived: Revived | None = None
        with suppress(RunRefused):
            revived = await self._home.read(row.run)
        now = None if revived is None else revived.run.calls.get(row.id)
        if revived is None or now is None or now.attempt != call.attempt or not serves(self.attachment.row, now):
            return None
        if not serves(self.attachment.row, now, revived.run.target):
            return []
        definition = revived.run.definition_of(now)
        return [
            CallOffered(
                call=call_view(now, run=row.run, thread=revived.thread.name),
                description="" if definition is None else definition.description,
            )
        ]

    def _look_again(self, when: float) -> None:
        if self._later is not None:
            self._later.cancel()
        self._later = asyncio.get_running_loop().call_at(when, self._news.set)


class Feeds:
    """The feeds of a process."""

    def __init__(self, home: Home, *, check: float) -> None:
        self._home = home
        self._check = check
        self._open: dict[str, list[Feed]] = {}
        self._rung: set[str] = set()
        """Threads that others have rung for, and nobody knows whose they are."""

    def of(self, attachment: Attachment) -> Feed:
        """A feed for whoever is attached."""
        feed = Feed(self._home, attachment, self._pause, self._leave)
        self._open.setdefault(attachment.row.principal, []).append(feed)
        return feed

    def end(self, attachment: Attachment) -> None:
        """The client is gone."""
        for feed in [feed for feed in self._of(attachment.row.principal) if feed.attachment is attachment]:
            feed.end()

    def hear(self, principal: str, thread: str) -> None:
        """Calls of a thread have changed."""
        for feed in self._of(principal):
            feed.look(thread)

    def ring(self, thread: str) -> None:
        """Another process has written."""
        if not self._open:
            return
        if not thread:
            for principal in self._open:
                self.hear(principal, "")
            return
        self._rung.add(thread)
        if len(self._rung) == 1:
            self._home.errands.run(self._hear_all())

    def _pause(self) -> float:
        """Seconds between two looks of one feed at everything: many feeds share what looking may cost."""
        return max(self._check, LOOK * sum(map(len, self._open.values())))

    async def _hear_all(self) -> None:
        """Find out whose threads they are."""
        while self._rung:
            thread = next(iter(self._rung))
            try:
                name = await self._home.names.of(thread)
            except StoreError:
                self._rung.clear()
                self.ring("")
                return
            self._rung.discard(thread)
            if name is not None:
                self.hear(name.owner, thread)

    def _of(self, principal: str) -> Iterable[Feed]:
        return tuple(self._open.get(principal, ()))

    def _leave(self, feed: Feed) -> None:
        principal = feed.attachment.row.principal
        rest = [other for other in self._of(principal) if other is not feed]
        if rest:
            self._open[principal] = rest
        else:
            self._open.pop(principal, None)
