"""The text of a reply that is under way: what a watcher who comes now has to be told, and what is yet to be stored.

It is lost with its process; the model is then asked again.
"""

from farhand.core.updates import ReplyEnded, RunEnded, TextStreamed, TurnStarted, Update
from farhand.stores.base import PieceRow

YOUNG = 1000
"""Milliseconds. Most replies are whole sooner; nothing of a younger one is stored."""


class Reply:
    """Hears what a driver tells, and keeps the text since the turn began."""

    __slots__ = ("_began", "_length", "_stored", "_text")

    def __init__(self) -> None:
        self._began: TextStreamed | None = None
        self._text: list[str] = []
        self._length = 0
        self._stored = 0

    def hear(self, update: Update) -> None:
        """Take the pieces; a whole reply, or one that is begun again, ends them."""
        if type(update) is TextStreamed:
            if update.offset == 0:
                self.clear()
                self._began = update
            self._text.append(update.text)
            self._length += len(update.text)
        elif type(update) in _ENDS:
            self.clear()

    def clear(self) -> None:
        """There is no reply under way."""
        self._began = None
        self._text.clear()
        self._length = self._stored = 0

    def whole(self) -> TextStreamed | None:
        """The text so far, as one update."""
        began = self._began
        if began is None:
            return None
        return TextStreamed(began.seq, began.at, began.turn, 0, "".join(self._text))

    def piece(self, run: str, epoch: int, now: int) -> PieceRow | None:
        """What the store does not have yet; it counts as stored."""
        began = self._began
        if began is None or now - began.at < YOUNG or self._stored == self._length:
            return None
        text = "".join(self._text)
        offset, self._stored = self._stored, self._length
        self._text = [text]
        return PieceRow(run=run, epoch=epoch, turn=began.turn, offset=offset, text=text[offset:])


_ENDS = frozenset({ReplyEnded, TurnStarted, RunEnded})
