"""`farhand store check`: what is in a store, and whether its runs can still be taken up."""

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec import Struct

from farhand.agent import Agent, tools_of_today
from farhand.cli.opening import Url, finish, opened, rows_of, shown
from farhand.cli.tools import load_agent
from farhand.core.call import CallState
from farhand.core.errors import FarhandError, StoreAway
from farhand.core.run import Run
from farhand.durable.record import Revived, Toolsets, revive
from farhand.stores.base import Store

OPEN = {"running", "ready", "waiting", "refused"}
"""States of a run that has not ended."""


class Tally(Struct):
    """What became of the runs that were read."""

    fit: int = 0
    unfit: int = 0


def check(
    url: Url,
    /,
    *,
    agent: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    every: Annotated[bool, Parameter(name="--all", negative="")] = False,
    retry: Annotated[bool, Parameter(negative="")] = False,
) -> None:
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
    finish(_check(url, {each.name: each for each in agents}, every=every, retry=retry))


async def _check(url: str, agents: Mapping[str, Agent[Any]], *, every: bool, retry: bool) -> bool:
    async with opened(url) as found:
        print(f"{shown(url)}: version {await found.version()}")
        await _count(found)
        tally = await _read_runs(found, agents, every=every, retry=retry)
    read = tally.fit + tally.unfit
    print(f"{read} {'runs' if every else 'open runs'} read, {tally.unfit or 'none'} of them in vain")
    return not tally.unfit


async def _count(found: Store) -> None:
    there = await found.summary()
    runs = ", ".join(f"{number} {state}" for state, number in sorted(there.runs.items()))
    print(f"store:   {there.id}")
    print(f"threads: {there.threads}")
    print(f"runs:    {runs or 'none'}")
    print(f"calls:   {there.open_calls} open, {there.awaited_calls} of them wait for a client or a person")


async def _read_runs(found: Store, agents: Mapping[str, Agent[Any]], *, every: bool, retry: bool) -> Tally:
    async with aclosing(rows_of(found, "runs")) as rows:
        runs = [row["id"] async for row in rows if every or row["state"] in OPEN]
    tally, toolsets = Tally(), Toolsets()
    for run in runs:
        try:
            revived = await _read(found, run, toolsets)
        except StoreAway:
            raise
        except Exception as error:  # noqa: BLE001  whatever keeps a run from being read is what is looked for
            tally.unfit += 1
            why = str(error) if isinstance(error, FarhandError) else f"cannot be read: {error!r}"
            print(f"run {run}: {why.removeprefix(f'run {run} ')}")
            continue
        tally.fit += 1
        if revived.row.state == "refused":
            await _tell_refused(found, revived, retry=retry)
        if (agent := agents.get(revived.row.agent)) is not None:
            for change in changes(revived.run, agent):
                print(f"run {run}: {change}")
    return tally


async def _read(found: Store, run: str, toolsets: Toolsets) -> Revived:
    stored = await found.load(run)
    if stored is None:
        raise LookupError("its rows are gone, or not complete")
    return await revive(stored, toolsets, found.toolset)


async def _tell_refused(found: Store, revived: Revived, *, retry: bool) -> None:
    row = revived.row
    if not retry:
        why = row.why.removeprefix(f"run {row.id} ")
        print(f"run {row.id}: refused ({why}), and it can be read now; --retry has it taken up")
    elif await found.readmit(row):
        print(f"run {row.id}: was refused, and is ready again")
    else:
        print(f"run {row.id}: has changed meanwhile; look again")


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
