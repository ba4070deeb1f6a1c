"""A model that follows a script: text, tool calls with streamed arguments, errors, usage, pauses. For tests and demos.

A script is a list of turns, one a reply, or a function from the request to a turn. `record` writes what any model said
as such a script, so that it can be replayed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from msgspec import DecodeError, json

from farhand.core.errors import InvalidInput, ModelError
from farhand.core.pieces import Done, Finish, Piece, ReasoningDelta, TextDelta, ToolArgsDelta, ToolEnd, ToolStart, Usage
from farhand.models.base import Model, Request


class Use:
    """One call of a tool in a script; arguments are a value, or the exact text the model shall write."""

    def __init__(self, tool: str, arguments: Any = None, *, label: str = "", chunk: int = 0) -> None:
        self.tool = tool
        self.text = arguments if isinstance(arguments, str) else _dumps({} if arguments is None else arguments)
        self.label = label
        self.chunk = chunk


class Turn:
    """One reply: reasoning, text and calls in this order; with `error` the stream breaks off before its end."""

    def __init__(
        self,
        text: str | Sequence[str] = (),
        *uses: Use,
        reasoning: str = "",
        usage: Usage | None = None,
        finish: Finish | None = None,
        error: ModelError | None = None,
        delay: float = 0.0,
    ) -> None:
        chunks = (text,) if isinstance(text, str) else text
        pieces = tuple(_pieces([chunk for chunk in chunks if chunk], uses, reasoning, usage, finish))
        self.pieces: tuple[Piece, ...] = pieces if error is None else pieces[:-1]
        self.error = error
        self.delay = delay


Script: TypeAlias = Iterable["Turn | Use | str | ModelError"] | Callable[[Request], "Turn | Use | str"]


class Scripted:
    """Replies as its script says; `requests` keeps what it was asked."""

    name = "scripted"

    def __init__(self, script: Script) -> None:
        self._choose: Callable[[Request], Turn | Use | str] | None = None
        self._turns: list[Turn] = []
        if callable(script):
            self._choose = script
        else:
            self._turns = [_turn(entry) for entry in script]
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """The script's next turn."""
        self.requests.append(request)
        if self._choose is not None:
            turn = _turn(self._choose(request))
        elif len(self.requests) <= len(self._turns):
            turn = self._turns[len(self.requests) - 1]
        else:
            raise ModelError(f"the script has {len(self._turns)} turns and was asked for one more", code="script_ended")
        for piece in turn.pieces:
            if turn.delay:
                await asyncio.sleep(turn.delay)
            yield piece
        if turn.error is not None:
            raise turn.error

    @classmethod
    def replay(cls, recording: bytes | str) -> "Scripted":
        """A model that repeats what `record` wrote."""
        try:
            replies = json.decode(recording, type=list[list[Piece]])
        except (DecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"this is not a recording of a model: {error}") from error
        model = cls([])
        for pieces in replies:
            turn = Turn()
            turn.pieces = tuple(pieces)
            model._turns.append(turn)
        return model


def scripted(script: Script) -> Scripted:
    """A model that follows `script`: strings are answers, `Use` and `Turn` say more, a function decides by request."""
    return Scripted(script)


class Recorder:
    """A model that passes everything on to another one and keeps what it said."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._replies: list[list[Piece]] = []
        self.name = model.name

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """The other model's reply."""
        reply: list[Piece] = []
        self._replies.append(reply)
        async for piece in self._model.stream(request):
            reply.append(piece)
            yield piece

    def recording(self) -> bytes:
        """All replies so far, for `Scripted.replay`."""
        return json.encode(self._replies)


def record(model: Model) -> Recorder:
    """The same model, with everything it says kept for a replay."""
    return Recorder(model)


def _turn(entry: "Turn | Use | str | ModelError") -> Turn:
    match entry:
        case Turn():
            return entry
        case Use():
            return Turn("", entry)
        case str():
            return Turn(entry)
        case ModelError():
            return Turn(error=entry)


def _pieces(
    chunks: Sequence[str], uses: Sequence[Use], reasoning: str, usage: Usage | None, finish: Finish | None
) -> Iterable[Piece]:
    if reasoning:
        yield ReasoningDelta(reasoning)
    for chunk in chunks:
        yield TextDelta(chunk)
    for index, use in enumerate(uses):
        yield ToolStart(index, use.tool, use.label or f"call_{index + 1}")
        size = use.chunk or len(use.text) or 1
        for start in range(0, len(use.text), size):
            yield ToolArgsDelta(index, use.text[start : start + size])
        yield ToolEnd(index, use.text)
    if usage is not None:
        yield usage
    yield Done(finish or (Finish.TOOLS if uses else Finish.STOP))


def _dumps(value: Any) -> str:
    return json.encode(value).decode()
