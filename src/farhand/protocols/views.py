"""What the core knows, as the native protocol shows it."""

from farhand.core.call import Call, CallState
from farhand.core.secrets import told_arguments, told_result
from farhand.protocols.native import CallView


def call_view(call: Call, *, run: str, thread: str) -> CallView:
    """One call. `thread` is the name that its principal gave it."""
    asked = call.state is CallState.APPROVAL_REQUESTED and call.approval is not None
    return CallView(
        id=call.id,
        run_id=run,
        thread_id=thread,
        tool=call.tool,
        state=call.state,
        place=call.place,
        turn=call.turn,
        attempt=call.attempt,
        arguments=told_arguments(call),
        arguments_hash=call.approval.arguments_hash if asked and call.approval is not None else "",
        deadline=call.deadline,
        held_by=call.held_by,
        outcome=call.outcome,
        result=told_result(call),
        failure=call.failure,
        created=call.created,
    )
