"""Many runs that wait: what they cost while they do, and how soon the first goes on after their process was killed.

Run it with `python -m proofs.paused --runs 10000`. One process pauses them all on a SQLite file and is killed with
SIGKILL; another one answers them all. It ends with 1 if a bar was missed.
"""

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from farhand import Agent, scripted, tool
from farhand.core.messages import ToolMessage
from farhand.durable import Runner, Timing
from farhand.models import Use
from farhand.models.base import Request

ROOT = Path(__file__).parents[1]
WARM = 200
"""So many runs are paused before anything is measured: everything was used once then."""
AT_ONCE = 50
PATIENCE = 300.0
PATIENCE_FOR_CALM = 5.0
RUNNERS_TASKS = 3
"""This program, the round in which a runner looks after its runs, the look for what other processes wrote."""
RUNNERS_TIMERS = 2
"""Until the next round, and until the next look."""
GROWTH = 10_000_000
"""Bytes by which the process may grow, however many runs wait: SQLite's caches fill, and the heap finds its size."""
BLOCKS = 0.5
"""Of memory that Python has given out, for one waiting run: less than one means that nothing is kept for it."""
SOON = 1.0
"""Seconds from the start of a process to the first reply to an answer."""


class Figures(Struct, frozen=True, kw_only=True):
    """What was measured; sizes in bytes, times in seconds."""

    runs: int
    pausing: float
    before: int
    """Memory of the process that paused the runs."""
    after: int
    blocks: int
    """Of memory that Python has given out because of the runs."""
    tasks: int
    """Tasks that are there because of the runs."""
    timers: int
    first_receipt: float
    """From the start of the new process until its first answer was accepted."""
    first_reply: float
    """And until the run that it belonged to had ended."""
    resuming: float
    """For all of them."""
    resumed: int
    file: int

    @property
    def missed(self) -> Sequence[str]:
        """The bars that were missed."""
        missed: list[str] = []
        if self.after - self.before > GROWTH:
            missed.append(f"memory grew by {self.after - self.before} bytes")
        if self.blocks > BLOCKS * self.runs:
            missed.append(f"{self.blocks} blocks of Python's memory are held")
        if self.tasks or self.timers:
            missed.append(f"{self.tasks} tasks and {self.timers} timers are held")
        if self.first_reply > SOON:
            missed.append(f"the first reply took {self.first_reply:.2f} s")
        if self.resumed != self.runs:
            missed.append(f"only {self.resumed} of {self.runs} runs went on")
        return missed

    def short(self) -> str:
        """For one line."""
        grown = f"{(self.after - self.before) / 1e6:+.1f} MB ({self.before / 1e6:.1f} -> {self.after / 1e6:.1f})"
        return (
            f"{self.runs} runs paused in {self.pausing:.1f} s, {grown}, {self.blocks} blocks, {self.tasks} tasks, "
            f"{self.timers} timers; file {self.file / 1e6:.1f} MB; after kill -9: first receipt "
            f"{self.first_receipt:.2f} s, first reply {self.first_reply:.2f} s, all {self.resumed} in "
            f"{self.resuming:.1f} s"
        )


def make_agent() -> Agent[str]:
    """It asks the client for one thing, and then is done. Nothing of what it was asked is kept."""

    def reply(request: Request) -> Use | str:
        model.requests.clear()
        return "done" if isinstance(request.messages[-1], ToolMessage) else Use("pick", {})

    model = scripted(reply)
    pick = tool.define("pick", input={"type": "object"}, description="Pick something.")
    return Agent(model, tools=[pick], name="paused")


async def measure(runs: int, folder: Path) -> Figures:
    """Pause, kill, answer."""
    database = folder / "runs.db"
    process, _ = await _spawn("pause", database, runs)
    try:
        paused = await _told(process)
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    size = _size(folder)
    process, began = await _spawn("answer", database, runs)
    try:
        first = await _told(process)
        rest = await _told(process)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()
    return Figures(
        runs=runs,
        **paused,
        first_receipt=first["receipt"] - began,
        first_reply=first["reply"] - began,
        **rest,
        file=size,
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("runs.db*") if path.is_file())


async def _spawn(what: str, database: Path, runs: int) -> tuple[asyncio.subprocess.Process, float]:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proofs.paused", "--runs", str(runs), "--be", what, "--database", str(database)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    return process, began


async def _told(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        return json.loads(await process.stdout.readline())


def _tell(**figures: float) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


# The processes that are measured.


async def _pause(database: Path, runs: int) -> None:
    async with Runner(make_agent(), store=f"sqlite:{database}") as runner:
        await _start(runner, [f"warm {n}" for n in range(WARM)], principal="warm")
        await _calm()
        before, blocks, began = _resident(), sys.getallocatedblocks(), time.monotonic()
        await _start(runner, [f"run {n}" for n in range(runs)], principal="local")
        pausing = time.monotonic() - began
        tasks, timers = await _calm()
        _tell(
            pausing=pausing,
            before=before,
            after=_resident(),
            blocks=sys.getallocatedblocks() - blocks,
            tasks=tasks,
            timers=timers,
        )
        await asyncio.Event().wait()  # until killed


async def _calm() -> tuple[int, int]:
    """Until nothing is under way any more but what a runner without runs has; else, what still is."""
    deadline = time.monotonic() + PATIENCE_FOR_CALM
    while True:
        tasks, timers = max(0, len(asyncio.all_tasks()) - RUNNERS_TASKS), max(0, _timers() - RUNNERS_TIMERS)
        if not (tasks or timers) or time.monotonic() > deadline:
            return tasks, timers
        await asyncio.sleep(0)


async def _start(runner: Runner, threads: Sequence[str], *, principal: str) -> None:
    for some in _chunks(threads):
        started = [runner.start("Hello", thread=thread, principal=principal) for thread in some]
        views = [await run.wait() for run in await asyncio.gather(*started)]
        assert {view.status for view in views} == {"waiting"}


async def _answer(database: Path, runs: int) -> None:
    async with Runner(make_agent(), store=f"sqlite:{database}", timing=Timing(check=0.2)) as runner:
        [first] = await runner.pending(limit=1)
        await runner.answer(first.id, 0)
        receipt = time.monotonic()
        await _end(runner, first.id)
        _tell(receipt=receipt, reply=time.monotonic())
        began = time.monotonic()
        for some in _chunks([call.id for call in await runner.pending(limit=runs)]):
            await asyncio.gather(*(_bring_to_end(runner, call) for call in some))
        resumed = len(await runner.store.runs("local", "done", runs + 1))
        _tell(resuming=time.monotonic() - began, resumed=resumed)


async def _bring_to_end(runner: Runner, call: str) -> None:
    await runner.answer(call, 1)
    await _end(runner, call)


async def _end(runner: Runner, call: str) -> None:
    run = await runner.store.run_of(call)
    assert run is not None
    assert (await (await runner.find(run)).wait()).output == "done"


def _chunks(all_of: Sequence[str]) -> Iterator[Sequence[str]]:
    return (all_of[start : start + AT_ONCE] for start in range(0, len(all_of), AT_ONCE))


def _timers() -> int:
    """What the event loop has yet to do at some time."""
    scheduled: Sequence[asyncio.TimerHandle] = getattr(asyncio.get_running_loop(), "_scheduled")  # noqa: B009
    return sum(not handle.cancelled() for handle in scheduled)


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m proofs.paused", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--be", choices=("pause", "answer"), help=argparse.SUPPRESS)
    parser.add_argument("--database", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.be:
        asyncio.run((_pause if given.be == "pause" else _answer)(given.database, given.runs))
        return 0
    with tempfile.TemporaryDirectory(prefix="farhand-paused-") as folder:
        figures = asyncio.run(measure(given.runs, Path(folder)))
    print(figures.short(), *(f"MISSED: {each}" for each in figures.missed), sep="\n")  # noqa: T201
    return 1 if figures.missed else 0


if __name__ == "__main__":
    sys.exit(main())
