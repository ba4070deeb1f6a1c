"""The durable cases of one pass: who takes part, on which stores, and what each case gave."""

import asyncio
import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.durable import replicas
from bench.durable.disk import sync_time
from bench.durable.postgres import Postgres
from bench.environment import CACHE, ROOT, System, UnavailableError, prepare
from bench.process import Worker

FULL, NORMAL, POSTGRES = "SQLite FULL", "SQLite NORMAL", "PostgreSQL"
PAUSED = ROOT / "bench" / "durable" / "paused.py"
PATIENCE = 600.0


@dataclass(frozen=True)
class Kept:
    """A system on a store."""

    system: System
    store: str

    @property
    def title(self) -> str:
        return f"{self.system.title}, {self.store}"


Results = dict[Kept, dict[str, Any]]


class Session:
    """Keeps the workers, the folder for SQLite files and the PostgreSQL server of a pass; a new store every time."""

    def __init__(self, systems: Iterable[System]) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        self.ours, *_ = self.systems = tuple(systems)
        self.postgres = Postgres()
        self._folder = tempfile.TemporaryDirectory(prefix="durable-", dir=CACHE)
        self._files = 0
        self._pythons: dict[System, Path] = {}
        self._workers: dict[System, Worker] = {}
        self._reasons: dict[System, str] = {}

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()
        self.postgres.close()
        self._folder.cleanup()

    def disks(self) -> dict[str, float | str]:
        """Milliseconds until something is kept, where each kind of store has its files."""
        times: dict[str, float | str] = {"SQLite": self._disk(FULL)}
        try:
            times[POSTGRES] = self._disk(POSTGRES)
        except UnavailableError as error:
            times[POSTGRES] = str(error)
        return times

    def _disk(self, store: str) -> float:
        return sync_time(self.postgres.folder if store == POSTGRES else Path(self._folder.name))

    def versions(self) -> dict[str, dict[str, str]]:
        return {system.key: worker.versions for system, worker in self._workers.items()}

    # Round trips

    def trips(self, clients: tuple[int, ...], seconds: float, rounds: int) -> dict[int, Results]:
        """Round by round, number by number, row by row; of each the round with the higher rate."""
        rows = [Kept(system, store) for system in self.systems for store in system.stores]
        found: dict[int, dict[Kept, list[dict[str, Any]]]] = {number: {row: [] for row in rows} for number in clients}
        for _ in range(rounds):
            for number in clients:
                for row in rows:
                    found[number][row].append(self._cell(row, number, seconds))
        return {number: {row: better(results) for row, results in by_row.items()} for number, by_row in found.items()}

    def _cell(self, row: Kept, clients: int, seconds: float) -> dict[str, Any]:
        try:
            worker = self._worker(row.system)
            server = self.postgres.process if row.store == POSTGRES else None
            disk = self._disk(row.store)
            result = worker.ask("trips", url=self._store(row.store), clients=clients, seconds=seconds, server=server)
            return result | {"disk": (disk + self._disk(row.store)) / 2}
        except UnavailableError as error:
            return {"error": str(error)}

    # Two replicas

    def replicas(self, repeats: int) -> dict[str, Any]:
        """Farhand's alone."""
        try:
            python = self._python(self.ours)
            databases = [self.postgres.database() for _ in range(2)]
        except UnavailableError as error:
            return {"error": str(error)}
        try:
            return asyncio.run(replicas.measure(python, databases, repeats))
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}, see .cache/bench/replicas.log"}

    # Paused runs

    def paused(self, count: int) -> dict[str, Any]:
        """Farhand's alone, on SQLite FULL: what the process that paused them says, and the one after its death."""
        try:
            python = self._python(self.ours)
            url = self._store(FULL)
            with (CACHE / "paused.log").open("w") as log:
                first = self._start(python, log, "pause", url, count)
                try:
                    paused = said_by(first)
                finally:
                    first.kill()  # SIGKILL: it can do nothing more
                    first.wait()
                second = self._start(python, log, "answer", url, time.perf_counter_ns())
                try:
                    answered = said_by(second)
                    second.wait(timeout=30)
                finally:
                    second.kill()
                    second.wait()
        except UnavailableError as error:
            return {"error": str(error)}
        return {"paused": paused, "answered": answered}

    def _start(self, python: Path, log: Any, *arguments: object) -> subprocess.Popen[str]:
        command = [str(python), "-I", str(PAUSED), *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=CACHE)

    # What they need

    def _python(self, system: System) -> Path:
        if system in self._reasons:
            raise UnavailableError(self._reasons[system])
        if system not in self._pythons:
            try:
                self._pythons[system] = prepare(system)
            except UnavailableError as error:
                self._reasons[system] = str(error)
                raise
        return self._pythons[system]

    def _worker(self, system: System) -> Worker:
        python = self._python(system)
        if system not in self._workers:
            try:
                self._workers[system] = Worker(system, python)
            except UnavailableError as error:
                self._reasons[system] = str(error)
                raise
        return self._workers[system]

    def _store(self, kind: str) -> str:
        if kind == POSTGRES:
            return self.postgres.database()
        self._files += 1
        url = f"sqlite:{self._folder.name}/{self._files}.db"
        return url + "?synchronous=normal" if kind == NORMAL else url


def better(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The round with the higher rate; an error in any round is the result."""
    for result in rounds:
        if "error" in result:
            return result
    best = max(rounds, key=lambda result: result["rate"])
    return best | {"rounds": [result["rate"] for result in rounds]}


def said_by(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The one line of a process, or that it has ended without."""
    assert process.stdout is not None
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    if not line:
        raise UnavailableError("a process ended without an answer, see .cache/bench/paused.log")
    return json.loads(line)
