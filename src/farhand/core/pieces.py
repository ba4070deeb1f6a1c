"""What a model adapter yields while a reply arrives. One reply is a sequence of these, closed by exactly one `Done`.

Rules for adapters: every `ToolStart` has exactly one `ToolEnd`; calls are told apart by `index`, never by `label`;
`ToolEnd.arguments` is the whole text as the model wrote it, never repaired; `Done` is last and comes once.
"""

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct


class Finish(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    TOOLS = "tools"
    LENGTH = "length"
    FILTERED = "filtered"
    REFUSED = "refused"
    PAUSED = "paused"


class TextDelta(Struct, frozen=True, gc=False, tag="text"):
    """More of the answer's text."""

    text: str


class ReasoningDelta(Struct, frozen=True, gc=False, tag="reasoning", omit_defaults=True):
    """More of the model's thinking; `opaque` goes back to the same provider unchanged."""

    text: str = ""
    opaque: str = ""


class ToolStart(Struct, frozen=True, gc=False, tag="tool-start", omit_defaults=True):
    """The model has named a tool."""

    index: int
    name: str
    label: str = ""


class ToolArgsDelta(Struct, frozen=True, gc=False, tag="tool-args"):
    """More of one call's arguments."""

    index: int
    text: str


class ToolEnd(Struct, frozen=True, gc=False, tag="tool-end"):
    """One call's arguments are whole."""

    index: int
    arguments: str


class Usage(Struct, frozen=True, gc=False, tag="usage", omit_defaults=True):
    """Tokens. Several of one reply add up."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input + self.output

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.cache_written + other.cache_written,
            self.reasoning + other.reasoning,
        )


class Done(Struct, frozen=True, gc=False, tag="done", omit_defaults=True):
    """The reply is whole."""

    finish: Finish = Finish.STOP


Piece: TypeAlias = TextDelta | ReasoningDelta | ToolStart | ToolArgsDelta | ToolEnd | Usage | Done
