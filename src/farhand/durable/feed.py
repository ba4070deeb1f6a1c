"""Who watches a thread: what it missed from the store, then what happens now, without gap or repeat.

Each watcher has a queue with an end. One that is too slow loses what is in it and reads on in the store; neither the
run nor any other watcher waits for it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from farhand.core.updates import (
    CallEnded,
    CallNamed,
    CallProgress,
    CallStreamed,
    ReasoningStreamed,
    TextStreamed,
    Update,
)
from farhand.durable.position import LIVE, Position

QUEUE = 256
"""So many updates may wait for a watcher."""
CHARACTERS = 1 << 20
"""And so much text."""
PAGE = 100

Read = Callable[[int, int], Awaitable[Sequence[Update]]]
"""Stored updates above a number, so many rows at most; empty when there are no more."""
Unfinished = Callable[[int], Awaitable[Sequence[Update]]]
"""What was told, after the update of a number, of what is under way: the text so far, the last progress of calls."""


class Watcher:
    """One queue of one who watches."""

    __slots__ = ("_news", "_room", "behind", "queue")

    def __init__(self) -> None:
        self.queue: deque[Update] = deque()
        self.behind = True
        """Whether there may be more in the store than in the queue."""
        self._room = CHARACTERS
        self._news: asyncio.Future[None] | None = None

    def put(self, update: Update) -> None:
        """Something happened."""
        size = len(update.text) if isinstance(update, TextStreamed | ReasoningStreamed | CallStreamed) else 100
        if len(self.queue) >= QUEUE or self._room < size:
            self.look()
            return
        self._room -= size
        self.queue.append(update)
        self._wake()

    def look(self) -> None:
        """Whatever is in the queue, the store has more."""
        self.queue.clear()
        self._room = CHARACTERS
        self.behind = True
        self._wake()

    def take(self) -> list[Update]:
        """Everything in the queue."""
        taken = list(self.queue)
        self.queue.clear()
        self._room = CHARACTERS
        return taken

    def take_from(self, place: "Place") -> list[Update]:
        """What is in the queue and goes on from a place; if something is missing before it, the store has it."""
        taken: list[Update] = []
        for update in self.take():
            if place.is_ahead(update):
                self.look()
                break
            if place.passes(update):
                taken.append(update)
        return taken

    async def wait(self) -> None:
        """Until there is something in the queue or in the store."""
        if not self.queue and not self.behind:
            self._news = asyncio.get_running_loop().create_future()
            await self._news

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class Feeds:
    """The watchers of every thread."""

    def __init__(self) -> None:
        self._watchers: dict[str, list[Watcher]] = {}

    def teller(self, thread: str) -> Callable[[Update], None]:
        """What a driver tells its updates to."""

        def tell(update: Update) -> None:
            for watcher in self._watchers.get(thread, ()):
                watcher.put(update)

        return tell

    def is_watched(self, thread: str) -> bool:
        """Whether anybody in this process watches."""
        return thread in self._watchers

    def look(self, thread: str) -> None:
        """Somebody else has written; with an empty thread, perhaps about any."""
        for watched in [thread] if thread else list(self._watchers):
            for watcher in self._watchers.get(watched, ()):
                watcher.look()

    async def watch(
        self, thread: str, after: Position, read: Read, unfinished: Unfinished
    ) -> AsyncGenerator[list[Update], None]:
        """Every update of a thread after a position, without end; what is ready together comes together."""
        watcher = Watcher()
        self._watchers.setdefault(thread, []).append(watcher)
        try:
            place = Place(after)
            while True:
                await watcher.wait()
                ready: list[Update] = []
                if watcher.behind:
                    watcher.behind = False
                    watcher.take()  # from here on it holds only what came after the look into the store
                    while page := await read(place.seq, PAGE):
                        if batch := [update for update in page if place.passes(update)]:
                            yield batch
                    told = await unfinished(place.seq)
                    ready += [rest for update in told if (rest := place.rest(update)) is not None]
                ready += watcher.take_from(place)
                if ready:
                    yield ready
        finally:
            self._leave(thread, watcher)

    async def change(self, thread: str, seconds: float) -> None:
        """Until something happens in a thread, or for so long."""
        watcher = Watcher()
        watcher.behind = False
        self._watchers.setdefault(thread, []).append(watcher)
        try:
            async with asyncio.timeout(seconds):
                await watcher.wait()
        except TimeoutError:
            pass
        finally:
            self._leave(thread, watcher)

    def _leave(self, thread: str, watcher: Watcher) -> None:
        rest = [other for other in self._watchers[thread] if other is not watcher]
        if rest:
            self._watchers[thread] = rest
        else:
            del self._watchers[thread]


class Place:
    """How far one watcher is."""

    __slots__ = ("_heard", "_length", "_named", "_turn", "seq")

    def __init__(self, after: Position) -> None:
        self.seq = after.seq
        self._turn = after.turn
        self._length = after.length
        self._named: set[str] = set()
        self._heard: dict[str, int] = {}
        """When something was last said of calls that are under way."""

    def is_ahead(self, update: Update) -> bool:
        """Whether something is missing between here and there."""
        if type(update) is TextStreamed and update.seq == self.seq:
            return update.offset > self._known(update)
        return update.seq > self.seq + (type(update) not in LIVE)

    def passes(self, update: Update) -> bool:
        """Whether the watcher has yet to see it; then it counts as seen."""
        if type(update) is TextStreamed:
            if update.seq != self.seq or update.offset != self._known(update):
                return False
            self._turn, self._length = update.turn, update.offset + len(update.text)
            return True
        if type(update) in LIVE:
            if type(update) is CallNamed:
                self._named.add(update.call_id)
            elif type(update) is CallProgress:
                self._heard[update.call_id] = update.at
            return update.seq == self.seq
        if update.seq <= self.seq:
            # A reply that broke off takes the calls with it that it had named; that is live as well.
            return type(update) is CallEnded and update.seq == self.seq and update.call_id in self._named
        self.seq = update.seq
        self._length = 0
        self._named.clear()
        if type(update) is CallEnded:
            self._heard.pop(update.call_id, None)
        return True

    def rest(self, told: Update) -> Update | None:
        """What the watcher has not seen of what was told already: of a text from its beginning, or of a call."""
        if type(told) is TextStreamed:
            return self._rest_of(told)
        if type(told) is not CallProgress or self._heard.get(told.call_id, -1) >= told.at:
            return None
        self._heard[told.call_id] = told.at
        return told

    def _rest_of(self, text: TextStreamed) -> TextStreamed | None:
        known = self._known(text)
        if text.seq != self.seq or len(text.text) <= known:
            return None
        self._turn, self._length = text.turn, len(text.text)
        return TextStreamed(text.seq, text.at, text.turn, known, text.text[known:])

    def _known(self, update: TextStreamed) -> int:
        return self._length if self._turn == update.turn else 0
