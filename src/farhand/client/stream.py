"""One run that is followed: its updates, and beside them the work on its calls. What it does ends when the run does."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing
from typing import Any

from msgspec import Struct

from farhand.calls import Call
from farhand.client.calls import Offer
from farhand.client.events import MissingTool, StreamEnd, StreamStart
from farhand.client.feed import Feed
from farhand.client.hands import Hands
from farhand.client.kit import Kit
from farhand.client.result import RunResult, is_with_others
from farhand.client.seen import Seen
from farhand.core.call import Call as Record
from farhand.core.call import CallState
from farhand.core.definition import Place
from farhand.core.errors import UsageError
from farhand.core.updates import (
    CallApproved,
    CallClaimed,
    CallEnded,
    CallExecuting,
    CallReleased,
    CallUnattended,
    CallWaiting,
    ReplyEnded,
    RunStarted,
    Update,
)
from farhand.protocols.native import CancelRequest

AHEAD = 10_000
"""Updates that may wait for whoever reads the stream; no more are taken from the server until they are read."""


class Followed(Struct, frozen=True):
    """What a stream begins with."""

    feed: Feed
    seen: Seen
    hands: Hands
    hold: bool | None
    """True: until the run has ended. False: until nobody here can go on. None: the same, but other clients can."""
    run_tools: bool


class Stream:
    """`async for update in stream`, or `await stream` for its result. It can be read once.

    Leaving the loop early leaves the run as it is: it is the server's. Calls that were taken up are finished.
    """

    def __init__(self, kit: Kit, prepare: Callable[[], Awaitable[Followed]], keep: Callable[[str], None]) -> None:
        self._kit = kit
        self._keep = keep
        self.position = ""
        """Of the last update that came in."""
        self._prepare = prepare
        self._followed: Followed | None = None
        self._ready: deque[Update] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._over = asyncio.Event()
        self._done = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._result: RunResult | None = None
        self._begun = asyncio.Event()
        self._ours: set[str] = set()
        """Calls that were taken up here, until it is seen what came of it."""

    @property
    def run_id(self) -> str:
        """Of the run; empty until it has begun."""
        return "" if self._followed is None else self._followed.seen.run_id or self._followed.feed.run_id

    def __aiter__(self) -> AsyncGenerator[Update, None]:
        if self._task is not None:
            raise UsageError("a stream is read once; begin another one with `thread.resume()` or `thread.watch()`")
        self._task = asyncio.create_task(self._follow())
        return self._updates()

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._until_done().__await__()

    async def cancel(self, reason: str = "") -> None:
        """Call the run off; the stream then tells of it."""
        if self._task is not None:
            begun, done = asyncio.create_task(self._begun.wait()), asyncio.create_task(self._done.wait())
            await asyncio.wait((begun, done), return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
            done.cancel()
        if not self.run_id:
            raise UsageError("the run has not begun")
        await self._kit.wire.ask("cancel-run", {"run": self.run_id}, body=CancelRequest(reason=reason))

    # For whoever reads

    async def _updates(self) -> AsyncGenerator[Update, None]:
        try:
            while True:
                while self._ready:
                    yield self._ready.popleft()
                self._room.set()
                if self._done.is_set():
                    break
                self._news.clear()
                await self._news.wait()
            if self._error is not None:
                raise self._error
        finally:
            await self._stop()

    async def _until_done(self) -> RunResult:
        if self._task is None:
            async with aclosing(self.__aiter__()) as updates:
                async for _ in updates:
                    pass
        await self._done.wait()
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise UsageError("the stream was left before its run had begun")
        return self._result

    async def _stop(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait((self._task,))

    # For the server

    async def _follow(self) -> None:
        try:
            self._followed = await self._prepare()
            reading = asyncio.create_task(self._read(self._followed))
            over = asyncio.create_task(self._over.wait())
            try:
                await asyncio.wait((reading, over), return_when=asyncio.FIRST_COMPLETED)
            finally:
                reading.cancel()
                over.cancel()
                await asyncio.wait((reading, over))
            if not reading.cancelled():
                reading.result()
        except Exception as error:  # noqa: BLE001  it is raised where the stream is read
            self._error = self._error or error
        finally:
            await self._finish()

    async def _read(self, followed: Followed) -> None:
        self._take_up(followed)
        async with aclosing(followed.feed.batches()) as batches:
            async for batch in batches:
                for update, self.position in batch:
                    if type(update) is ReplyEnded and (missed := followed.seen.missed(update)) is not None:
                        self._ready.append(missed)
                    self._take(followed, update)
                    self._ready.append(update)
                    if followed.seen.ended:
                        break  # what comes behind it is of other runs
                self._news.set()
                self._look()
                if self._over.is_set():
                    return
                if len(self._ready) > AHEAD:
                    self._room.clear()
                    await self._room.wait()

    async def _finish(self) -> None:
        followed = self._followed
        if followed is not None:
            seen = followed.seen
            if self._begun.is_set():
                self._kit.pool.unfollow(seen.run_id)
                self._keep(self.position)
                self._result = seen.result(followed.hands.tools, self.position)
                if seen.ended:
                    self._result = await self._kit.toolbox.plugins.after_response(self._result)
                self._kit.events.tell(StreamEnd(seen.thread_id, seen.run_id, seen.status))
        self._done.set()
        self._news.set()

    # What updates mean for the work

    def _take_up(self, followed: Followed) -> None:
        """A run that is under way: what waits in it, waits for this client too."""
        seen = followed.seen
        if not seen.run_id:
            return
        self._begin(seen)
        for record in seen.calls.values():
            if record.outcome is None and record.state is CallState.APPROVAL_REQUESTED:
                self._ask(followed, record)
            elif is_with_others(record) and record.held_by in ("", self._kit.id):
                self._work(followed, record)
        self._look()

    def _take(self, followed: Followed, update: Update) -> None:
        seen = followed.seen
        seen.take(update)
        match update:
            case RunStarted():
                self._begin(seen)
            case CallExecuting(place=Place.CLIENT) | CallWaiting() | CallUnattended():
                self._call_open(followed, update)
            case CallEnded() | CallReleased() | CallApproved() | CallClaimed():
                self._call_moved(update)
            case _:  # the others change what is seen, and nothing is done about them
                pass

    def _call_open(self, followed: Followed, update: CallExecuting | CallWaiting | CallUnattended) -> None:
        record = followed.seen.calls.get(update.call_id)
        if record is None:
            return
        match update:
            case CallExecuting():
                self._work(followed, record)
            case CallWaiting():
                self._ask(followed, record)
            case CallUnattended():
                if followed.run_tools and not followed.hands.takes(record.tool):
                    self._kit.events.tell(MissingTool(Call(record, None)))

    def _call_moved(self, update: CallEnded | CallReleased | CallApproved | CallClaimed) -> None:
        match update:
            case CallClaimed():
                if update.holder == self._kit.id:
                    return
                self._kit.pool.withdraw(update.call_id)
            case CallEnded():
                self._kit.pool.withdraw(update.call_id)
                self._kit.approvals.withdraw(update.call_id)
            case CallReleased():
                self._kit.pool.withdraw(update.call_id, update.attempt)
            case CallApproved():
                self._kit.approvals.withdraw(update.call_id)
        self._ours.discard(update.call_id)

    def _begin(self, seen: Seen) -> None:
        self._begun.set()
        self._kit.pool.follow(seen.run_id)
        self._kit.events.tell(StreamStart(seen.thread_id, seen.run_id))

    def _work(self, followed: Followed, record: Record) -> None:
        if followed.run_tools and followed.hands.takes(record.tool):
            self._ours.add(record.id)
            offer = Offer(record, followed.seen.run_id, followed.seen.thread_id)
            self._kit.pool.take(offer, followed.hands, self._look)

    def _ask(self, followed: Followed, record: Record) -> None:
        on_approval = followed.hands.on_approval
        if on_approval is None or not followed.run_tools:
            return

        def after(decided: bool) -> None:
            if not decided:
                self._ours.discard(record.id)
            self._look()

        self._ours.add(record.id)
        call = Call(record, followed.hands.tools.get(record.tool))
        self._kit.approvals.ask(call, on_approval, after, self._fail)

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._over.set()

    def _look(self) -> None:
        """Whether anything more can come of this."""
        if self._followed is not None and is_over(self._followed, self._ours):
            self._over.set()


def is_over(followed: Followed, ours: set[str]) -> bool:
    """Whether a run has ended, or waits for somebody who is not to be waited for."""
    seen = followed.seen
    if seen.ended or followed.hold or not seen.waiting or seen.waiting & ours:
        return seen.ended
    if followed.hold is False:
        return True
    return all(seen.calls[call_id].state is CallState.APPROVAL_REQUESTED for call_id in seen.waiting)
