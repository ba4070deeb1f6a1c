"""A reply that is still arriving: takes a model's pieces, gives live updates, and in the end the whole `Replied`.

It is not part of a run and not stored: a crash in mid-reply drops it and the model is asked again. Its calls move by
the same table as all others. Text is kept in pieces and joined once.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

from msgspec import structs

from farhand.core.call import Call, Change, Outcome, move, settle
from farhand.core.compiled import parameters_of
from farhand.core.definition import Definition
from farhand.core.errors import ModelBroke
from farhand.core.events import Replied
from farhand.core.failure import Failure
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
from farhand.core.updates import CallEnded, CallNamed, CallStreamed, ReasoningStreamed, TextStreamed, Update

_NO_USAGE = Usage()
_NO_TOOLS: Mapping[str, Definition] = {}
_NONE: frozenset[int] = frozenset()


class Draft:
    """Feed it pieces in order; `reply` is there once `Done` was fed."""

    __slots__ = (
        "_calls",
        "_finish",
        "_hidden",
        "_reasoning",
        "_reasoning_length",
        "_requests",
        "_room",
        "_seq",
        "_streamed",
        "_text",
        "_text_length",
        "_tools",
        "_turn",
        "_usage",
        "text_at",
    )

    def __init__(self, turn: int, seq: int, most: int = 1 << 22, tools: Mapping[str, Definition] = _NO_TOOLS) -> None:
        self._room = most
        self._tools = tools
        self._hidden: frozenset[int] = _NONE
        """The calls whose arguments nobody sees arrive, because something in them may be secret."""
        self._turn = turn
        self._seq = seq
        self._text: list[str] = []
        self._text_length = 0
        self.text_at: int | None = None
        """When the first of the text came."""
        self._reasoning: list[ReasoningDelta] = []
        self._reasoning_length = 0
        self._calls: dict[int, tuple[str, str, str]] = {}
        """Of each call its id, the model's own id for it, and its tool."""
        self._streamed: dict[int, int] = {}
        self._requests: dict[int, CallRequest] = {}
        self._usage = _NO_USAGE
        self._finish: Finish | None = None

    def feed(self, piece: object, at: int, call_id: str = "") -> Update | None:
        """Take one piece; a `ToolStart` comes with the new call's id. Raises `ModelBroke`."""
        if self._finish is not None:
            raise ModelBroke(f"{type(piece).__name__} came after Done")
        take = self._takes.get(type(piece)) or self._take_of(piece)
        try:
            return take(self, piece, at, call_id)
        except (AttributeError, TypeError) as error:  # what should be text has no text's methods
            raise ModelBroke(f"{type(piece).__name__} does not hold what it should") from error

    def reply(self, at: int) -> Replied:
        """The whole reply. Raises `ModelBroke` when the stream ended before `Done`."""
        if self._finish is None:
            raise ModelBroke("the model's stream ended before its reply was whole")
        calls = tuple(map(self._requests.__getitem__, self._calls))
        thoughts = self._thoughts() if self._reasoning else ()
        return Replied(at, "".join(self._text), thoughts, calls, self._usage, self._finish)

    def abandon(self, at: int) -> list[Update]:
        """The reply came to nothing: every call that was named has its end, for those who watched it."""
        failure = Failure("reply_lost", "The model's reply broke off, so this call was never made.")
        named = [self._named(index, at) for index in self._calls]
        ended = [settle(call, Outcome.CANCELLED, at, failure) for call in named]
        self._calls = {}
        return [
            CallEnded(self._seq, at, call.id, call.tool, call.state, Outcome.CANCELLED, call.result, failure, 0)
            for call in ended
        ]

    def _named(self, index: int, at: int) -> Call:
        """A call as far as it has come."""
        call_id, label, tool = self._calls[index]
        call = Call(call_id, label, tool, self._turn, created=at)
        return move(call, Change.STREAM) if self._streamed[index] else call

    def _check(self, text: str) -> None:
        """Half a character could not be written down."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ModelBroke("a piece holds half a character") from None

    def _count(self, text: str) -> int:
        """How long the text is; a reply has an end."""
        length = len(text)
        self._room -= length
        if self._room < 0:
            self._overflow()
        return length

    def _overflow(self) -> NoReturn:
        raise ModelBroke("the reply is longer than a reply may be")

    def _add_text(self, piece: TextDelta, at: int, _: str) -> Update:
        text = piece.text
        if not text.isascii():
            self._check(text)
        offset, length = self._text_length, len(text)
        if not offset:
            self.text_at = at
        self._text.append(text)
        self._text_length = offset + length
        self._room -= length
        if self._room < 0:
            self._overflow()
        return TextStreamed(self._seq, at, self._turn, offset, text)

    def _add_reasoning(self, piece: ReasoningDelta, at: int, _: str) -> Update:
        if not (piece.text.isascii() and piece.opaque.isascii()):
            self._check(piece.text + piece.opaque)
        offset = self._reasoning_length
        self._reasoning.append(piece)
        self._reasoning_length = offset + self._count(piece.text)
        self._count(piece.opaque)
        return ReasoningStreamed(self._seq, at, self._turn, offset, piece.text)

    def _add_usage(self, piece: Usage, _at: int, _: str) -> None:
        """Tokens are counted up: a number below zero would put a limit of tokens off."""
        for used in structs.astuple(piece):
            if type(used) is not int or used < 0:
                raise ModelBroke(f"{used!r} is no number of tokens")
        self._usage += piece

    def _start(self, piece: ToolStart, at: int, call_id: str) -> Update:
        index, name, label = piece.index, piece.name, piece.label
        if index in self._calls:
            raise ModelBroke(f"two calls have index {index}")
        if not (name.isascii() and label.isascii()):
            self._check(name + label)
        self._room -= len(name) + len(label) + 1  # a call without any name takes room as well
        if self._room < 0:
            self._overflow()
        self._calls[index] = call_id, label, name
        self._streamed[index] = 0
        definition = self._tools.get(name) or self._tools.get(name.rpartition(".")[2])
        if definition is not None and parameters_of(definition).marks is not None:
            self._hidden |= {index}
        return CallNamed(self._seq, at, call_id, name, self._turn)

    def _end(self, piece: ToolEnd, at: int, _: str) -> Update | None:
        """Arguments that came in one piece pass through `input-streaming` as well."""
        index, arguments = piece.index, piece.arguments
        call = self._calls.get(index)
        if call is None or index in self._requests:
            raise ModelBroke(f"no call with index {index} is open")
        call_id, label, tool = call
        if not arguments.isascii():
            self._check(arguments)
        self._requests[index] = CallRequest(call_id, label, tool, arguments)
        streamed = self._streamed[index]
        if streamed or not arguments:
            self._room -= max(0, len(arguments) - streamed)
            return None if self._room >= 0 else self._overflow()
        return self._more(call_id, index, arguments, at)

    def _stream(self, piece: ToolArgsDelta, at: int, _: str) -> Update | None:
        index = piece.index
        call = self._calls.get(index)
        if call is None or index in self._requests:
            raise ModelBroke(f"no call with index {index} is open")
        return self._more(call[0], index, piece.text, at)

    def _more(self, call_id: str, index: int, text: str, at: int) -> Update | None:
        if not text.isascii():
            self._check(text)
        offset, length = self._streamed[index], len(text)
        self._streamed[index] = offset + length
        self._room -= length
        if self._room < 0:
            self._overflow()
        return None if index in self._hidden else CallStreamed(self._seq, at, call_id, offset, text)

    def _close(self, piece: Done, _at: int, _: str) -> None:
        if type(piece.finish) is not Finish:
            raise ModelBroke(f"{piece.finish!r} is no reason to finish")
        if len(self._requests) < len(self._calls):
            unfinished = [tool for index, (_, _, tool) in self._calls.items() if index not in self._requests]
            raise ModelBroke(f"the calls of {', '.join(unfinished)} were never ended")
        self._finish = piece.finish

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

    # By the type itself: a chain of `match` costs a piece that comes late in it as much as all the rest of its way.
    _takes: ClassVar[Mapping[type, Callable[[Any, Any, int, str], Update | None]]] = {
        TextDelta: _add_text,
        ToolArgsDelta: _stream,
        ToolStart: _start,
        ToolEnd: _end,
        ReasoningDelta: _add_reasoning,
        Usage: _add_usage,
        Done: _close,
    }

    @classmethod
    def _take_of(cls, piece: object) -> Callable[[Any, Any, int, str], Update | None]:
        """How to take a piece whose type is derived from one that is known."""
        for kind, take in cls._takes.items():
            if isinstance(piece, kind):
                return take
        raise ModelBroke(f"{type(piece).__name__} is no piece of a reply")
