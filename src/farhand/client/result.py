"""What came of a run, as far as its client has seen it."""

from typing import Any, TypeVar

from msgspec import Struct

from farhand.calls import Call, In, Out
from farhand.core.call import Call as Record
from farhand.core.call import CallState
from farhand.core.definition import Place
from farhand.core.errors import RunFailed
from farhand.core.failure import Failure
from farhand.core.final import output_value
from farhand.core.messages import Message
from farhand.core.pieces import Usage
from farhand.core.strict_json import BadJson
from farhand.places.values import codec
from farhand.tool import Tool

T = TypeVar("T")


class RunResult(Struct, frozen=True, kw_only=True):
    """A run as it stood when its stream ended. A plugin may change it in `after_response`."""

    id: str
    thread_id: str
    status: str
    """`done`, `limit`, `stopped`, `failed`, `cancelled`; `waiting` for a person or another client; `running`."""
    text: str
    """The answer; at a limit or while it waits, whatever the model said last."""
    failure: Failure | None
    limit: str
    """Which limit has ended it."""
    usage: Usage
    """Tokens of all its turns."""
    calls: tuple[Call[Any, Any], ...]
    """Every call that was seen, oldest first."""
    messages: tuple[Message, ...]
    """What was said in this run: the input, replies and results. `thread.state()` has the whole conversation."""
    position: str
    """Where it stopped; `thread.watch(after=…)` goes on from here."""

    @property
    def output(self) -> str:
        """The answer. Raises `RunFailed` when there is none."""
        if self.status in ("failed", "cancelled"):
            why = "it was cancelled" if self.failure is None else self.failure.message
            raise RunFailed(f"the run ended without a result: {why}", self.failure)
        if self.status in ("waiting", "running"):
            waits = ", ".join(call.tool for call in self.pending)
            raise RunFailed(f"the run has no result yet; it is {self.status}" + (f" for {waits}" if waits else ""))
        return self.text

    def output_as(self, kind: type[T]) -> T:
        """The answer of an agent with structured output, as a type. Raises `RunFailed` if it does not fit."""
        try:
            return codec(kind).load(output_value(self.output))
        except (ValueError, BadJson) as error:
            raise RunFailed(f"the answer is not what was asked for: {error}", self.failure) from error

    @property
    def pending(self) -> tuple[Call[Any, Any], ...]:
        """Calls that wait for a client or a person."""
        return tuple([call for call in self.calls if is_with_others(call.record)])

    def calls_of(self, tool: Tool[In, Out]) -> tuple[Call[In, Out], ...]:
        """The calls of one tool, with its types."""
        return tuple([Call(call.record, tool) for call in self.calls if call.tool == tool.name])


def is_with_others(record: Record) -> bool:
    """Whether a call waits for a client or a person."""
    if record.outcome is not None:
        return False
    executing = record.state is CallState.EXECUTING and record.place is Place.CLIENT
    return executing or record.state is CallState.APPROVAL_REQUESTED
