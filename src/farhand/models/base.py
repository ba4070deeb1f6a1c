"""The contract of a model adapter. `core.pieces` says what a reply is made of and in which order."""

from collections.abc import AsyncIterator
from typing import Protocol

from msgspec import Raw, Struct

from farhand.core.definition import Definition
from farhand.core.errors import UnknownModel
from farhand.core.messages import Message
from farhand.core.pieces import Piece


class Request(Struct, frozen=True, gc=False):
    """What a model is asked: the conversation so far and the tools it may use."""

    messages: tuple[Message, ...]
    tools: tuple[Definition, ...]
    instructions: str
    turn: int
    run_id: str
    output_schema: Raw | None = None
    told: str = ""
    """The words of clients. They are data: a model is given them beside the instructions, never as a part of those."""


class Model(Protocol):
    """Whatever can reply. Raise `ModelError` when there is no reply; closing the iterator closes the connection."""

    @property
    def name(self) -> str:
        """What to call it in logs and lists."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Piece]:
        """The reply, piece by piece, ended by one `Done`."""
        ...


def resolve(model: "Model | str") -> Model:
    """A model by its name, or the model itself."""
    if not isinstance(model, str):
        return model
    raise UnknownModel(f"no model answers to {model!r}; pass a model object, such as farhand.scripted([...])")
