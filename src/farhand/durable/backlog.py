"""What a watcher is told who was not there when it happened: from the store, and from runs that are held here."""

from collections.abc import Callable, Sequence

from msgspec import json

from farhand.core.updates import CallProgress, TextStreamed, Update
from farhand.durable.held import Held
from farhand.durable.record import read_updates
from farhand.runner.clock import Clock
from farhand.stores.base import Store


class Backlog:
    """The past of threads."""

    def __init__(self, store: Store, clock: Clock, held: Callable[[str], Held | None]) -> None:
        self._store = store
        self._clock = clock
        self._held = held

    async def updates(self, thread: str, after: int, rows: int) -> Sequence[Update]:
        """Stored updates."""
        found = await self._store.log(thread, after, rows)
        return [update for row in found for update in read_updates(row)]

    async def unfinished(self, thread: str, seq: int) -> Sequence[Update]:
        """What is under way: the text of a reply so far, and how far clients are with their calls."""
        held = self._held(thread)
        if held is not None:
            run, text = held.row.id, held.reply.whole()
        else:
            row = await self._store.thread(thread)
            if row is None or not row.run:
                return ()
            run, text = row.run, await self._text(row.run, seq)
        progress = [
            CallProgress(seq, told.at, told.call, json.decode(told.value), told.name)
            for told in await self._store.told(run)
        ]
        return progress if text is None else [text, *progress]

    async def _text(self, run: str, seq: int) -> TextStreamed | None:
        """Of a reply that a model is giving elsewhere."""
        pieces = await self._store.streamed(run)
        if not pieces:
            return None
        text = ""
        for piece in pieces:
            if piece.offset > len(text):
                break  # the one before it was not stored
            text = text[: piece.offset] + piece.text
        return TextStreamed(seq, self._clock.now(), pieces[0].turn, 0, text)
