"""`farhand store check`: what is in a store, and whether its runs can still be taken up."""

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec import Struct, field

from farhand.agent import Agent, tools_of_today
from farhand.cli.exits import Exit
from farhand.cli.objects import load_agent
from farhand.cli.opening import Url, finish, opened, rows_of, shown
from farhand.cli.options import Json
from farhand.cli.output import write_json
from farhand.core.call import CallState
from farhand.core.errors import FarhandError, StoreAway
from farhand.core.run import Run
from farhand.durable.record import Revived, Toolsets, revive
from farhand.stores.base import Store

OPEN = {"running", "ready", "waiting", "refused"}
"""States of a run that has not ended."""


class Remark(Struct, frozen=True):
    """Something about one run."""

    run: str
    text: str


class Report(Struct, kw_only=True):
    """What was found, as `--json` writes it."""

    store: str
    version: int
    id: str = ""
    threads: int = 0
    runs: Mapping[str, int] = field(default_factory=dict[str, int])
    open_calls: int = 0
    awaited_calls: int = 0
    read: int = 0
    """Runs that were read, in vain or not."""
    unfit: int = 0
    """Those of them that cannot be taken up."""
    remarks: list[Remark] = field(default_factory=list[Remark])
    _loud: bool = True

    def tell(self, run: str, text: str) -> None:
        """A remark; people read it at once."""
        self.remarks.append(Remark(run, text))
        if self._loud:
            print(f"run {run}: {text}")


def check(
    url: Url,
    /,
    *,
    agent: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    every: Annotated[bool, Parameter(name="--all", negative="")] = False,
    retry: Annotated[bool, Parameter(negative="")] = False,
    as_json: Json = False,
) -> Exit:
    """Count what is in a store, and read every open run as a process does that takes it up.

    It ends with 1 when there is a run that cannot be read.

    Parameters
    ----------
    url
        The store.
    agent
        Compare open calls with the tools of this agent, `module:name`; may be given several times.
    every
        Read the runs that have ended, too.
    retry
        Have refused runs taken up again that can be read now.
    """
    agents = [load_agent(where) for where in agent]
    look = Look(every=every, retry=retry, as_json=as_json)
    return finish(_check(url, {each.name: each for each in agents}, look))


class Look(Struct, frozen=True, kw_only=True):
    """What is asked for."""

    every: bool
    retry: bool
    as_json: bool


async def _check(url: str, agents: Mapping[str, Agent[Any]], look: Look) -> bool:
    async with opened(url) as found:
        there = await found.summary()
        report = Report(
            store=shown(url),
            version=await found.version(),
            id=there.id,
            threads=there.threads,
            runs=dict(sorted(there.runs.items())),
            open_calls=there.open_calls,
            awaited_calls=there.awaited_calls,
            _loud=not look.as_json,
        )
        if not look.as_json:
            _count(report)
        await _read_runs(found, agents, look, report)
    if look.as_json:
        write_json({name: getattr(report, name) for name in report.__struct_fields__ if not name.startswith("_")})
    else:
        print(f"{report.read} {'runs' if look.every else 'open runs'} read, {report.unfit or 'none'} of them in vain")
    return not report.unfit


def _count(report: Report) -> None:
    runs = ", ".join(f"{number} {state}" for state, number in report.runs.items())
    print(f"{report.store}: version {report.version}")
    print(f"store:   {report.id}")
    print(f"threads: {report.threads}")
    print(f"runs:    {runs or 'none'}")
    print(f"calls:   {report.open_calls} open, {report.awaited_calls} of them wait for a client or a person")


async def _read_runs(found: Store, agents: Mapping[str, Agent[Any]], look: Look, report: Report) -> None:
    async with aclosing(rows_of(found, "runs")) as rows:
        runs = [row["id"] async for row in rows if look.every or row["state"] in OPEN]
    toolsets = Toolsets()
    for run in runs:
        report.read += 1
        try:
            revived = await _read(found, run, toolsets)
        except StoreAway:
            raise
        except Exception as error:  # noqa: BLE001  whatever keeps a run from being read is what is looked for
            report.unfit += 1
            why = str(error) if isinstance(error, FarhandError) else f"cannot be read: {error!r}"
            report.tell(run, why.removeprefix(f"run {run} "))
            continue
        if revived.row.state == "refused":
            await _tell_refused(found, revived, look, report)
        if (agent := agents.get(revived.row.agent)) is not None:
            for change in changes(revived.run, agent):
                report.tell(run, change)


async def _read(found: Store, run: str, toolsets: Toolsets) -> Revived:
    stored = await found.load(run)
    if stored is None:
        raise LookupError("its rows are gone, or not complete")
    return await revive(stored, toolsets, found.toolset)


async def _tell_refused(found: Store, revived: Revived, look: Look, report: Report) -> None:
    row = revived.row
    if not look.retry:
        why = row.why.removeprefix(f"run {row.id} ")
        report.tell(row.id, f"refused ({why}), and it can be read now; --retry has it taken up")
    elif await found.readmit(row):
        report.tell(row.id, "was refused, and is ready again")
    else:
        report.tell(row.id, "has changed meanwhile; look again")


def changes(run: Run, agent: Agent[Any]) -> Iterator[str]:
    """What becomes of open calls of a run that were made under definitions which its agent does not have today."""
    tools, _ = tools_of_today(agent.definitions, run.tools.values())
    today = {tool.name: tool.pin for tool in tools}
    for call in run.open_calls:
        if today.get(call.tool) == call.pin:
            continue
        what = "has changed" if call.tool in today else "is gone"
        if call.state is CallState.EXECUTING:
            then = "a result still counts, under the definition that it was made under"
        else:
            then = "it ends `unavailable` when the run is taken up"
        yield f"call {call.id}: tool {call.tool!r} {what}; {then}"
