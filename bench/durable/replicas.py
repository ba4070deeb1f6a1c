"""Two replicas on one PostgreSQL beside one: from an answer until the model is asked again, wherever that happens."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from bench.durable.trips import spread
from bench.environment import CACHE, ROOT

WARM_UPS = 10
PATIENCE = 30.0
STORIES = {"waits": False, "held": True}
"""Of a run: nobody holds it, or the process that it was started at still does."""


class Asked:
    """Where and when the model was asked again, by run."""

    def __init__(self) -> None:
        self._futures: dict[str, asyncio.Future[tuple[Process, int]]] = {}

    def note(self, run: str, where: "Process", at: int) -> None:
        self._future(run).set_result((where, at))

    async def take(self, run: str) -> tuple["Process", int]:
        asked = await self._future(run)
        del self._futures[run]
        return asked

    def _future(self, run: str) -> "asyncio.Future[tuple[Process, int]]":
        if run not in self._futures:
            self._futures[run] = asyncio.get_running_loop().create_future()
        return self._futures[run]


class Process:
    """One replica."""

    def __init__(self, process: asyncio.subprocess.Process, asked: Asked) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._orders, self._lines = process.stdin, process.stdout
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._asked = asked
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for line in self._lines:
            said = json.loads(line)
            if "asked" in said:
                self._asked.note(said["asked"], self, said["at"])
            else:
                self._answers.put_nowait(said)
        self._answers.put_nowait({"error": "a replica has ended"})

    async def answer(self) -> dict[str, Any]:
        said = await self._answers.get()
        if "error" in said:
            raise RuntimeError(said["error"])
        return said

    async def ask(self, order: str, **how: Any) -> dict[str, Any]:
        self._orders.write(json.dumps({"order": order, **how}).encode() + b"\n")
        return await self.answer()


@asynccontextmanager
async def replica(python: Path, url: str, asked: Asked) -> AsyncIterator[Process]:
    """A process that takes part until the block ends."""
    with (CACHE / "replicas.log").open("a") as log:
        started = await asyncio.create_subprocess_exec(
            *(str(python), "-I", str(ROOT / "bench" / "durable" / "replica.py"), url),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=CACHE,
        )
    try:
        process = Process(started, asked)
        async with asyncio.timeout(PATIENCE):
            await process.answer()
        yield process
        assert started.stdin is not None
        started.stdin.close()
        async with asyncio.timeout(PATIENCE):
            await started.wait()
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()


async def measure(python: Path, databases: Sequence[str], repeats: int) -> dict[str, Any]:
    """For each story, with one replica and with two: milliseconds, and at which of two the model was asked again."""
    asked = Asked()
    alone, shared = databases
    async with AsyncExitStack() as stack:
        single = await stack.enter_async_context(replica(python, alone, asked))
        first = await stack.enter_async_context(replica(python, shared, asked))
        second = await stack.enter_async_context(replica(python, shared, asked))
        results: dict[str, Any] = {}
        for story, held in STORIES.items():
            taken: dict[str, list[int]] = {"one": [], "two": []}
            at_second = 0
            for number in range(WARM_UPS + repeats):
                async with asyncio.timeout(PATIENCE):
                    one, _ = await trip(single, single, held, asked)
                    two, where = await trip(first, second, held, asked)
                if number >= WARM_UPS:
                    taken["one"].append(one)
                    taken["two"].append(two)
                    at_second += where is second
            results[story] = {name: spread(durations) for name, durations in taken.items()}
            results[story]["at_second"] = at_second
    return results


async def trip(starter: Process, answerer: Process, held: bool, asked: Asked) -> tuple[int, Process]:
    """One run. Its beginning and its end are not timed."""
    run = await starter.ask("start", held=held)
    posted = await answerer.ask("answer", call=run["call"])
    ended = await starter.ask("rest", run=run["run"])
    assert ended["output"] == "done"
    where, at = await asked.take(run["run"])
    return at - posted["posted"], where
