"""One call as a program sees it: typed input and output around the core's record."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from msgspec import DecodeError, json

from farhand.core.call import Call as Record
from farhand.core.call import CallState, Outcome
from farhand.core.definition import Place
from farhand.core.failure import Failure
from farhand.core.messages import decode_parts

if TYPE_CHECKING:
    from farhand.tool import Tool

In = TypeVar("In")
Out = TypeVar("Out")


class Call(Generic[In, Out]):
    """A call of a `Tool[In, Out]`, as it stood when you asked for it."""

    __slots__ = ("_tool", "record")

    def __init__(self, record: Record, tool: "Tool[In, Out] | None") -> None:
        self.record = record
        self._tool = tool

    @property
    def id(self) -> str:
        """Ours; answers and decisions name it."""
        return self.record.id

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.record.tool

    @property
    def state(self) -> CallState:
        """Where it stands."""
        return self.record.state

    @property
    def place(self) -> Place:
        """Where it runs."""
        return self.record.place

    @property
    def outcome(self) -> Outcome | None:
        """How it ended, or None."""
        return self.record.outcome

    @property
    def failure(self) -> Failure | None:
        """Why it did not end well."""
        return self.record.failure

    @property
    def needs_approval(self) -> bool:
        """Whether it waits for a person."""
        return self.record.state is CallState.APPROVAL_REQUESTED

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as JSON values; empty if the model wrote something that is none."""
        return _object(self.record.arguments)

    @property
    def preview(self) -> dict[str, Any]:
        """The arguments as anybody may be shown them, with a mask for what the tool says is secret."""
        return self.arguments if not self.record.preview else _object(self.record.preview)

    @property
    def input(self) -> In:
        """The arguments as the tool's input type."""
        return cast("In", self.arguments) if self._tool is None else self._tool.load(self.arguments)

    @property
    def output(self) -> Out:
        """The result as the tool's output type; only a call that ended `ok` has one."""
        record, background = self.record, self.record.background
        outcome = record.outcome if background is None else background.outcome
        if outcome is not Outcome.OK:
            raise ValueError(f"call {self.id!r} has no output: {outcome or record.state}")
        if record.multipart:
            return cast("Out", decode_parts(record.result))
        value = json.decode(record.result if background is None else background.result)
        return cast("Out", value) if self._tool is None else self._tool.read(value)

    def __repr__(self) -> str:
        return f"<Call {self.id} of {self.tool!r}: {self.outcome or self.state}>"


def _object(text: str) -> dict[str, Any]:
    try:
        value: Any = json.decode(text)
    except (DecodeError, UnicodeDecodeError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
