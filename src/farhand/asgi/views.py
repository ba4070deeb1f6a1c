"""What the runner knows, as the native protocol shows it."""

from farhand.core.run import Run
from farhand.protocols.native import RunView
from farhand.protocols.views import call_view
from farhand.stores.base import RunRow


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
