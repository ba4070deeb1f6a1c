"""What the runner knows, as the native protocol shows it."""

from farhand.core.call import Call, CallState
from farhand.core.run import Run
from farhand.protocols.native import CallView, RunView
from farhand.stores.base import RunRow


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
        arguments=call.arguments,
        arguments_hash=call.approval.arguments_hash if asked and call.approval is not None else "",
        deadline=call.deadline,
        held_by=call.held_by,
        outcome=call.outcome,
        result=call.result,
        failure=call.failure,
        created=call.created,
    )


def run_view(run: Run, *, agent: str, seq: int) -> RunView:
    """One run, with everything that came of it."""
    return RunView(
        id=run.id,
        thread_id=run.thread,
        agent=agent,
        state=run.status,
        seq=seq,
        created=run.created,
        updated=run.updated,
        output=run.output,
        failure=run.failure,
        usage=run.usage,
        calls=tuple(call_view(call, run=run.id, thread=run.thread) for call in run.calls.values()),
    )


def row_view(row: RunRow, thread: str) -> RunView:
    """One line of a list of runs."""
    return RunView(
        id=row.id,
        thread_id=thread,
        agent=row.agent,
        state=row.state,
        seq=row.seq,
        created=row.created,
        updated=row.updated,
        why=row.why,
    )
