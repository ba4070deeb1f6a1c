"""`farhand runs`: the runs of one's own at a server, and the calls in them that wait for somebody."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from cyclopts import App

from farhand.cli.exits import Exit
from farhand.cli.options import NOBODY, Json, Login, Server, Who
from farhand.cli.output import moment, write, write_json, write_table
from farhand.cli.printable import printable_line
from farhand.cli.remote import reached
from farhand.core.call import CallState
from farhand.protocols.native import CallView, Cancelled, RunList, RunView

if TYPE_CHECKING:
    from farhand.client import Client

runs = App(name="runs", help="Runs at a server: look, watch, decide, answer, cancel.")
runs.command(
    "farhand.cli.runs_watch:watch",
    name="watch",
    help="Watch a run from its beginning until it ends.\n\nIt ends with 1 unless the run ends well.",
)
runs.command("farhand.cli.runs_settle:approve", name="approve", help="Say yes to a call that waits for a person.")
runs.command("farhand.cli.runs_settle:deny", name="deny", help="Say no to a call that waits for a person.")
runs.command("farhand.cli.runs_settle:answer", name="answer", help="Give the result of a call that a client is to run.")


@runs.command(name="list")
def list_(server: Server, /, *, state: str = "", limit: int = 100, who: Who = NOBODY, as_json: Json = False) -> None:
    """List your runs, newest first.

    Parameters
    ----------
    state
        Only `running`, `ready`, `waiting` or `refused` ones, or those that ended `done`, `failed`, `cancelled`, ….
    limit
        At most so many, 1000 in all.
    """
    found = _ask(server, who, lambda client: client.runs(state, limit=limit))
    if as_json:
        write_json(RunList(runs=found))
        return
    rows = [(run.id, run.thread_id, run.agent, run.state, moment(run.updated), run.why) for run in found]
    write_table(("run", "thread", "agent", "state", "changed", ""), rows)


@runs.command
def show(server: Server, run: str, /, *, who: Who = NOBODY, as_json: Json = False) -> None:
    """Show a run as it stands, with its calls.

    Parameters
    ----------
    run
        The id of the run.
    """
    found = _ask(server, who, lambda client: client.get_run(run))
    if as_json:
        write_json(found)
    else:
        _show(found)


@runs.command
def cancel(server: Server, run: str, /, *, reason: str = "", who: Who = NOBODY, as_json: Json = False) -> Exit:
    """Call a run off. It ends with 1 if the run had ended before.

    Parameters
    ----------
    run
        The id of the run.
    reason
        Why; the model is told in the next run.
    """
    first = _ask(server, who, lambda client: client.cancel(run, reason))
    if as_json:
        write_json(Cancelled(repeated=not first))
    else:
        write("called off" if first else "it had ended before")
    return Exit.OK if first else Exit.NO


def _ask(server: str, who: Login, what: "Callable[[Client], Awaitable[Any]]") -> Any:
    async def ask() -> Any:
        async with reached(server, who) as client:
            return await what(client)

    return asyncio.run(ask())


def _show(run: RunView) -> None:
    write(f"run {run.id} of {run.agent} in thread {run.thread_id}: {run.state}")
    write(f"begun {moment(run.created)}, changed {moment(run.updated)}, updates up to {run.seq}")
    if run.usage is not None and (run.usage.input or run.usage.output):
        write(f"tokens: {run.usage.input} in, {run.usage.output} out")
    for call in run.calls:
        write(f"call {call.id} {_standing(call)}")
    for label, text in (("failure", run.failure.message if run.failure else ""), ("why", run.why)):
        if text:
            write(f"{label}: {text}")
    if run.output:
        write(f"output: {run.output}")


def _standing(call: CallView) -> str:
    head = f"{call.tool} at the {call.place} {printable_line(call.arguments, 200)}"
    if call.outcome is not None:
        said = call.failure.message if call.failure is not None else bytes(call.result).decode()
        return f"{head}: {call.outcome}: {printable_line(said, 200)}"
    if call.state is CallState.APPROVAL_REQUESTED:
        return f"{head}: waits for a person: approve or deny it"
    held = f", taken up by {call.held_by}" if call.held_by else ""
    until = f", until {moment(call.deadline)}" if call.deadline else ""
    return f"{head}: {call.state}{held}{until}"
