"""A reply that is still arriving: takes a model's pieces, gives live updates, and in the end the whole `Replied`.

It is not part of a run and not stored: a crash in mid-reply drops it and the model is asked again. Its calls move by
the same table as all others. Text is kept in pieces and joined once.
"""

from farhand.core.call import Call, Change, move
from farhand.core.errors import ModelBroke
from farhand.core.events import Replied
from farhand.core.messages import CallRequest, Reasoning
from farhand.core.pieces import (
    Done,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolArgsDelta,
    ToolEnd,
    ToolStart,
    Usage,
)
from farhand.core.updates import CallNamed, CallStreamed, ReasoningStreamed, TextStreamed, Update


class Draft:
    """Feed it pieces in order; `reply` is there once `Done` was fed."""

    def __init__(self, turn: int, seq: int, most: int = 1 << 22) -> None:
        self._room = most
        self._turn = turn
        self._seq = seq
        self._text: list[str] = []
        self._text_length = 0
        self._reasoning: list[ReasoningDelta] = []
        self._reasoning_length = 0
        self._calls: dict[int, Call] = {}
        self._streamed: dict[int, int] = {}
        self._requests: dict[int, CallRequest] = {}
        self._usage = Usage()
        self._finish: Finish | None = None

    def feed(self, piece: object, at: int, call_id: str = "") -> Update | None:
        """Take one piece; a `ToolStart` comes with the new call's id. Raises `ModelBroke`."""
        if self._finish is not None:
            raise ModelBroke(f"{type(piece).__name__} came after Done")
        match piece:
            case TextDelta():
                return self._add_text(piece, at)
            case ToolArgsDelta():
                return self._more(self._running(piece.index), piece.index, self._text_of(piece.text), at)
            case ToolStart():
                return self._start(piece, at, call_id)
            case ToolEnd():
                return self._end(piece, at)
            case ReasoningDelta():
                return self._add_reasoning(piece, at)
            case Usage():
                self._usage += piece
            case Done():
                self._close(piece)
            case _:
                raise ModelBroke(f"{type(piece).__name__} is no piece of a reply")
        return None

    def reply(self, at: int) -> Replied:
        """The whole reply. Raises `ModelBroke` when the stream ended before `Done`."""
        if self._finish is None:
            raise ModelBroke("the model's stream ended before its reply was whole")
        calls = tuple(self._requests[index] for index in self._calls)
        return Replied(at, "".join(self._text), self._thoughts(), calls, self._usage, self._finish)

    def _text_of(self, text: object) -> str:
        """Text from an adapter: a string, of characters that can be written, and not without end."""
        if not isinstance(text, str):
            raise ModelBroke(f"a piece holds {type(text).__name__} where text belongs")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise ModelBroke("a piece holds half a character") from None
        self._room -= len(text)
        if self._room < 0:
            raise ModelBroke("the reply is longer than a reply may be")
        return text

    def _add_text(self, piece: TextDelta, at: int) -> Update:
        self._text_of(piece.text)
        offset = self._text_length
        self._text.append(piece.text)
        self._text_length = offset + len(piece.text)
        return TextStreamed(self._seq, at, self._turn, offset, piece.text)

    def _add_reasoning(self, piece: ReasoningDelta, at: int) -> Update:
        self._text_of(piece.text)
        self._text_of(piece.opaque)
        offset = self._reasoning_length
        self._reasoning.append(piece)
        self._reasoning_length = offset + len(piece.text)
        return ReasoningStreamed(self._seq, at, self._turn, offset, piece.text)

    def _start(self, piece: ToolStart, at: int, call_id: str) -> Update:
        if piece.index in self._calls:
            raise ModelBroke(f"two calls have index {piece.index}")
        self._text_of(piece.name)
        self._text_of(piece.label)
        self._calls[piece.index] = Call(call_id, piece.label, piece.name, self._turn, created=at)
        self._streamed[piece.index] = 0
        return CallNamed(self._seq, at, call_id, piece.name, self._turn)

    def _end(self, piece: ToolEnd, at: int) -> Update | None:
        """Arguments that came in one piece pass through `input-streaming` as well."""
        call = self._running(piece.index)
        self._text_of(piece.arguments)
        self._requests[piece.index] = CallRequest(call.id, call.label, call.tool, piece.arguments)
        if self._streamed[piece.index] or not piece.arguments:
            return None
        return self._more(call, piece.index, piece.arguments, at)

    def _more(self, call: Call, index: int, text: str, at: int) -> Update:
        self._calls[index] = move(call, Change.STREAM)
        offset = self._streamed[index]
        self._streamed[index] = offset + len(text)
        return CallStreamed(self._seq, at, call.id, offset, text)

    def _close(self, piece: Done) -> None:
        if piece.finish not in tuple(Finish):
            raise ModelBroke(f"{piece.finish!r} is no reason to finish")
        unfinished = [call.tool for index, call in self._calls.items() if index not in self._requests]
        if unfinished:
            raise ModelBroke(f"the calls of {', '.join(unfinished)} were never ended")
        self._finish = Finish(piece.finish)

    def _running(self, index: int) -> Call:
        call = self._calls.get(index)
        if call is None or index in self._requests:
            raise ModelBroke(f"no call with index {index} is open")
        return call

    def _thoughts(self) -> tuple[Reasoning, ...]:
        """Reasoning joined up to each opaque part, which closes its block."""
        blocks: list[Reasoning] = []
        words: list[str] = []
        for delta in self._reasoning:
            words.append(delta.text)
            if delta.opaque:
                blocks.append(Reasoning("".join(words), delta.opaque))
                words = []
        if any(words):
            blocks.append(Reasoning("".join(words)))
        return tuple(blocks)
