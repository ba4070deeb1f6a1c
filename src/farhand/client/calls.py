"""A call as a client has it: to be run here, or to be decided on by its person. `farhand.calls.Call` with more."""

from typing import Any

from msgspec import Struct

from farhand.calls import Call, In, Out
from farhand.core.call import ApprovalRecord, CallState
from farhand.core.call import Call as Record
from farhand.core.errors import ToolError
from farhand.core.reasons import unknown_tool
from farhand.core.updates import CallWaiting
from farhand.places.running import CallContext
from farhand.protocols.native import CallView
from farhand.tool import Tool


class ClientCall(Call[In, Out]):
    """A call that was taken up here. `on_tool_call` gets it, and so do the hooks of plugins."""

    __slots__ = ("_function", "context")

    def __init__(self, record: Record, tool: Tool[In, Out] | None, context: CallContext) -> None:
        super().__init__(record, tool)
        self.context = context
        """What its function may know: ids, whether it was cancelled, and how to report progress."""
        self._function = None if tool is None else tool.function

    @property
    def has_executor(self) -> bool:
        """Whether a function here runs this tool."""
        return self._function is not None

    async def run(self, arguments: Any = None) -> Any:
        """Run the tool's own function, with other arguments if some are given; what it raises comes out of here."""
        if self._function is None:
            unknown = unknown_tool(self.tool)
            raise ToolError(unknown.message, code=unknown.code, retryable=False)
        return await self._function.begin(self.arguments if arguments is None else arguments, self.context)


class Offer(Struct, frozen=True):
    """A call that may be taken up: what was told of it, whichever stream told it."""

    record: Record
    run_id: str
    thread_id: str

    @classmethod
    def of_view(cls, view: CallView) -> "Offer":
        """As the stream of a provider tells it, or the state of a run."""
        return cls(record_of(view), view.run_id, view.thread_id)


def record_of(view: CallView) -> Record:
    """What the server shows of a call, as the record that a `Call` is made of."""
    asked = ApprovalRecord(view.arguments_hash, "", view.created) if view.arguments_hash else None
    return Record(
        id=view.id,
        label="",
        tool=view.tool,
        turn=view.turn,
        state=view.state,
        arguments=view.arguments,
        place=view.place,
        approval=asked,
        attempt=view.attempt,
        held_by=view.held_by,
        deadline=view.deadline,
        outcome=view.outcome,
        result=view.result,
        failure=view.failure,
        created=view.created,
    )


def asked_of(update: CallWaiting, turn: int) -> Record:
    """A call that a person has to decide on."""
    return Record(
        id=update.call_id,
        label="",
        tool=update.tool,
        turn=turn,
        state=CallState.APPROVAL_REQUESTED,
        arguments=update.arguments,
        approval=ApprovalRecord(update.arguments_hash, "", update.at, update.expires),
        created=update.at,
    )
