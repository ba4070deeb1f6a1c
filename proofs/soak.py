"""Kills workers with SIGKILL, and freezes some, while runs are started, answered, approved and called off; then counts.

Run it with `python -m proofs.soak --cycles 500 --store sqlite` (or `postgres`, which starts a server of its own). A
cycle is one kill. It ends with a table, and with 1 if a promise was broken. `soak_check` says what the promises are.
"""

import argparse
import asyncio
import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from farhand.stores import open_store
from proofs.server import postgres
from proofs.soak_bugs import BUGS
from proofs.soak_check import Report, Said, Story, check
from proofs.soak_worker import HURRY, LEASE

ROOT = Path(__file__).parents[1]
OWNERS = ("ann", "ben")
STRANGER = "eve"
FINAL = {"done", "limit", "stopped", "failed", "cancelled"}
PATIENCE = 60.0
"""Seconds that anything may take before the soak gives up."""
NOBODY = "f" * 32
"""The id of a call that does not exist."""


class Settings(Struct, frozen=True, kw_only=True):
    """One soak."""

    cycles: int
    store: str
    """URL of the store."""
    folder: Path
    """For the effects and the log of the workers."""
    seed: int = 0
    open_runs: int = 30
    freezes: float = 0.06
    """Share of cycles in which a worker is stopped for longer than its lease instead of being killed."""
    bug: str = ""


class Gone(Exception):
    """The worker did not answer: nobody knows whether it did what it was asked for."""


class Worker:
    """One process, and the connection to it."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid = pid
        self.port = port
        self.frozen = False
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count()
        self._connecting = asyncio.Lock()
        self._gone = False

    async def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What it says to a request."""
        async with self._connecting:
            if self._writer is None and not self._gone:
                try:
                    reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
                except OSError as error:
                    raise Gone from error
                self._reading = asyncio.create_task(self._read(reader))
        if self._gone or self._writer is None:
            raise Gone
        number = next(self._numbers)
        answered = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(json.dumps(asked | {"id": number}).encode() + b"\n")
            return await answered
        finally:
            self._asked.pop(number, None)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while line := await reader.readline():
                answered = json.loads(line)
                waiting = self._asked.get(answered.pop("id"))
                if waiting is not None and not waiting.done():
                    waiting.set_result(answered)
        self.bury()

    def bury(self) -> None:
        """It will not answer any more."""
        self._gone = True
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(Gone())
        if self._writer is not None:
            self._writer.close()

    async def end(self) -> None:
        """Hang up."""
        self.bury()
        if self._reading is not None:
            await asyncio.wait((self._reading,))


class Nursery:
    """The process that forks workers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process

    async def __aenter__(self) -> "Nursery":
        settings = self._settings
        told = {
            "store": settings.store,
            "effects": str(settings.folder / "effects"),
            "log": str(settings.folder / "log"),
            "bug": settings.bug,
        }
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "proofs.soak_worker", json.dumps(told)),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def order(self, what: str, pid: int = 0) -> dict[str, Any]:
        """Have something done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._turn:
            self._process.stdin.write(json.dumps({"do": what, "pid": pid}).encode() + b"\n")
            line = await self._process.stdout.readline()
        return json.loads(line)

    async def fork(self) -> Worker:
        """A new worker."""
        born = await self.order("fork")
        return Worker(born["pid"], born["port"])


class Soak:
    """One soak: whoever starts, answers, kills, and what they saw."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.story = Story()
        self._random = random.Random(settings.seed)  # noqa: S311 - no secret
        self._store = open_store(settings.store)
        self._workers: list[Worker] = []
        self._survivor: Worker | None = None
        self._nursery: Nursery
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._seen: set[tuple[str, bool]] = set()
        self._threads: list[tuple[str, str]] = []
        self._first: dict[str, int] = {}

    async def drive(self) -> Report:
        """All of it; gives what was found."""
        began = time.monotonic()
        await self._store.open()
        async with Nursery(self.settings) as self._nursery:
            self._workers = [await self._nursery.fork() for _ in range(2)]
            await self._until_one_answers()
            others = [asyncio.create_task(work) for work in (self._start_runs(), self._look_for_calls())]
            try:
                await self._kill()
                self._stop.set()
                await self._until_all_ended(others)
                await self._weigh_survivor()
            finally:
                for task in (*others, *self._tasks):
                    task.cancel()
                await asyncio.gather(*others, *self._tasks, return_exceptions=True)
                for worker in self._living():
                    self.story.ended.append((worker.pid, (await self._nursery.order("kill", worker.pid))["status"]))
                    await worker.end()
        rows = [entry async for entry in self._store.export()]
        await self._store.close()
        effects = (self.settings.folder / "effects").read_text(encoding="utf-8").splitlines()
        log = (self.settings.folder / "log").read_text(encoding="utf-8", errors="replace")
        report = await check(self.story, rows, [json.loads(line) for line in effects], log)
        return structs.replace(report, seconds=time.monotonic() - began)

    def _living(self) -> list[Worker]:
        return [*self._workers, *([self._survivor] if self._survivor is not None else [])]

    # Who kills

    async def _kill(self) -> None:
        survivor_at = self.settings.cycles // 2
        for cycle in range(self.settings.cycles):
            await asyncio.sleep(self._random.uniform(0.05, 0.5))
            if cycle == survivor_at:
                self._survivor = await self._nursery.fork()
            if cycle == survivor_at + self.settings.cycles // 10 and self._survivor is not None:
                self._first = await self._survivor.ask({"do": "stats"})
            slot = self._random.randrange(len(self._workers))
            if self._workers[slot].frozen:
                slot = 1 - slot
            if self._workers[slot].frozen:
                await asyncio.sleep(LEASE)
            elif self._random.random() < self.settings.freezes:
                self._begin(self._freeze(self._workers[slot]))
            else:
                await self._replace(slot)
        for task in [task for task in self._tasks if task.get_name() == "freeze"]:
            await task

    async def _replace(self, slot: int) -> None:
        worker = self._workers[slot]
        status = (await self._nursery.order("kill", worker.pid))["status"]
        self.story.killed.append(worker.pid)
        self.story.ended.append((worker.pid, status))
        self._workers[slot] = await self._nursery.fork()
        await worker.end()

    async def _freeze(self, worker: Worker) -> None:
        """It is taken for dead, and then goes on as if nothing had been."""
        asyncio.current_task().set_name("freeze")  # type: ignore[union-attr]
        worker.frozen = True
        self.story.frozen.append(worker.pid)
        await self._nursery.order("stop", worker.pid)
        await asyncio.sleep(LEASE + 0.6)
        await self._nursery.order("cont", worker.pid)
        worker.frozen = False

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Who asks

    async def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Ask one worker after the other until one has answered."""
        async with asyncio.timeout(PATIENCE):
            while True:
                worker = self._random.choice([each for each in self._living() if not each.frozen] or self._living())
                try:
                    said = await worker.ask(asked)
                except Gone:
                    await asyncio.sleep(0.005)
                    continue
                if "away" not in said:
                    return said | {"pid": worker.pid} if "repeated" in said else said
                await asyncio.sleep(0.02)

    async def _until_one_answers(self) -> None:
        await self._ask({"do": "pending"})

    async def _say(self, what: str, call: str, principal: str, **more: Any) -> None:
        said = await self._ask({"do": what, "call": call, "principal": principal, **more})
        self.story.said.append(Said(what, call, principal, more.get("value"), said))

    async def _start_runs(self) -> None:
        number = 0
        while not self._stop.is_set():
            rows = await self._store.runs("", "", self.settings.open_runs * 4)
            if sum(row.state not in FINAL for row in rows) < self.settings.open_runs:
                number += 1
                self._begin(self._start(number))
            await asyncio.sleep(0.03)

    async def _start(self, number: int) -> None:
        """Twice, under one key; now and then in a thread that may have an open run, whose place it takes."""
        if self._threads and self._random.random() < 0.15:
            thread, owner = self._random.choice(self._threads)
        else:
            thread, owner = f"thread-{number}", OWNERS[number % 2]
            self._threads = [*self._threads[-20:], (thread, owner)]
        key = f"key-{number}"
        asked = {"do": "start", "plan": self._plan(), "thread": thread, "key": key, "principal": owner}
        said = await asyncio.gather(self._ask(asked), self._ask(asked))
        self.story.starts.append((key, [*said]))

    def _plan(self) -> list[list[str]]:
        kinds = (["charge", "keep", "weigh"], ["ask"], ["ask", "charge"], ["sign", "weigh"], ["pay"], ["hurry"])
        return [self._random.choice(kinds) for _ in range(self._random.randint(1, 4))]

    async def _look_for_calls(self) -> None:
        while True:
            for owner in OWNERS:
                for call, tool, approval in (await self._ask({"do": "pending", "principal": owner})).get("calls", ()):
                    if (call, approval) not in self._seen:
                        self._seen.add((call, approval))
                        self._begin(self._decide(call, owner) if approval else self._answer(call, tool, owner))
            await asyncio.sleep(0.02)

    async def _decide(self, call: str, owner: str) -> None:
        """Approve, deny, or both at once; and a stranger tries as well."""
        first, second = self._random.choice((("approve", "approve"),) * 3 + (("deny", "deny"), ("approve", "deny")))
        stranger = self._say("approve", call, STRANGER)
        await asyncio.gather(stranger, self._say(first, call, owner), self._say(second, call, owner))

    async def _answer(self, call: str, tool: str, owner: str) -> None:
        """Mostly twice; sometimes something else as well, at once, or at the last moment, or never."""
        value, other = f"{call}-one", f"{call}-two"
        chance = self._random.random()
        if tool == "hurry":
            if chance < 0.6:
                return
            await asyncio.sleep(HURRY - 0.1 + self._random.uniform(0, 0.2))
        posts: list[Coroutine[Any, Any, None]] = [self._say("answer", call, owner, value=value) for _ in range(2)]
        if chance > 0.95:
            posts.append(self._say("cancel_call", call, owner))
        elif chance > 0.9:
            posts.append(self._say("cancel", call, owner))
        elif chance > 0.75:
            posts.append(self._say("answer", call, owner, value=other))
        elif chance > 0.65:
            posts = [self._say("answer", each, STRANGER, value=value) for each in (call, NOBODY)] + posts
        if chance > 0.2:
            self._random.shuffle(posts)
            await asyncio.gather(*posts)
            return
        for post in posts:
            await post

    # The end

    async def _until_all_ended(self, others: list[asyncio.Task[None]]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while self._tasks or not others[0].done() or await self._open_runs():
                    await asyncio.sleep(0.05)
                    for task in others:
                        if task.done() and task.exception() is not None:
                            await task
        except TimeoutError:
            self.story.never_ended = [repr(row) for row in await self._open_runs()]
            self.story.unanswered = len(self._tasks)

    async def _open_runs(self) -> list[Any]:
        return [row for row in await self._store.runs("", "", 1_000_000) if row.state not in FINAL]

    async def _weigh_survivor(self) -> None:
        if self._survivor is not None and self._first:
            self.story.stats = (self._first, await self._survivor.ask({"do": "stats"}))


async def soak(settings: Settings) -> Report:
    """One soak."""
    return await Soak(settings).drive()


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m proofs.soak", description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--freezes", type=float, default=0.06, help="share of workers that are stopped, not killed")
    parser.add_argument("--keep", type=Path, help="leave the file, the effects and the log of the workers here")
    parser.add_argument("--bug", default="", choices=("", *BUGS))
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="farhand-soak-") as gone:
        folder = given.keep or gone
        settings = Settings(
            cycles=given.cycles,
            store=f"sqlite:{folder}/runs.db",
            folder=Path(folder),
            seed=given.seed,
            freezes=given.freezes,
            bug=given.bug,
        )
        if given.store == "sqlite":
            report = asyncio.run(soak(settings))
        else:
            report = on_server(settings, lambda here: asyncio.run(soak(here)))
        print(report.table(given.store))  # noqa: T201
        return 1 if report.broken else 0


def on_server(settings: Settings, run: Callable[[Settings], Report]) -> Report:
    """The same on a PostgreSQL server that lives as long as this takes; what its log says counts too."""
    with postgres() as server:
        report = run(structs.replace(settings, store=server.url()))
        return report.with_server_log(server.log())


if __name__ == "__main__":
    sys.exit(main())
