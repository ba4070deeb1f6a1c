"""The served cases of one pass: servers, load generators in processes of their own, and what each case gave."""

import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from bench import cases
from bench.durable.session import FULL, Session, better
from bench.durable.trips import cpu_of
from bench.environment import ROOT, System, UnavailableError
from bench.process import Worker
from bench.served.process import Server

HERE = ROOT / "bench" / "served"
CLIENT = System("served_client", "clients", HERE / "client.py")
HOSTILE = System("served_hostile", "bad neighbours", HERE / "hostile.py")
MEMORY = "memory"
RAMP = 4.0
"""Seconds that bad neighbours have to take up their places."""
REST = 8.0
"""Seconds after which everything that they left behind should be gone."""
LOOK = 0.2


@dataclass(frozen=True)
class Trips:
    """A system on a store, and how its clients go about a call."""

    system: System
    store: str
    claim: bool = False

    @property
    def title(self) -> str:
        if self.system.is_peer:
            return f"{self.system.title}, {self.store}, in process"
        return f"{self.system.title}, {self.store}{', claimed' if self.claim else ''}"


Results = dict[Trips, dict[str, Any]]


class ServedSession(Session):
    """Keeps the load generator of a pass, besides what a session keeps. The first system is the one that serves."""

    def __init__(self, systems: Iterable[System]) -> None:
        super().__init__(systems)
        self._client = Worker(CLIENT, Path(sys.executable))

    def close(self) -> None:
        self._client.close()
        super().close()

    def server(self, store: str, patience: float | None = None) -> Server:
        """A new one, on a new store."""
        url = "memory:" if store == MEMORY else self._store(store)
        return Server(self._python(self.ours), url, patience)

    # Round trips

    def http(self, clients: tuple[int, ...], seconds: float, rounds: int) -> dict[int, Results]:
        """Round by round, number by number, row by row; of each the round with the higher rate."""
        ours = [Trips(self.ours, store, claim) for store in self.ours.stores for claim in (False, True)]
        rows = [*ours, *(Trips(system, FULL) for system in self.systems[1:])]
        found: dict[int, dict[Trips, list[dict[str, Any]]]] = {number: {row: [] for row in rows} for number in clients}
        for _ in range(rounds):
            for number in clients:
                for row in rows:
                    found[number][row].append(self._trips(row, number, seconds))
        return {number: {row: better(results) for row, results in by_row.items()} for number, by_row in found.items()}

    def _trips(self, row: Trips, clients: int, seconds: float) -> dict[str, Any]:
        how = {"clients": clients, "seconds": seconds}
        try:
            disk = self._disk(row.store)
            if row.system.is_peer:
                result = self._worker(row.system).ask("trips", url=self._store(row.store), server=None, **how)
            else:
                with closing(self.server(row.store)) as server:
                    result = self._client.ask("http", port=server.port, server=server.pid, claim=row.claim, **how)
            return result | {"disk": (disk + self._disk(row.store)) / 2}
        except UnavailableError as error:
            return {"error": str(error)}

    # Streams

    def streams(self, bursts: dict[int, int], paced: tuple[int, int], rounds: int) -> dict[str, Any]:
        """Bursts on so many streams, the better of some rounds; then the pace of a model."""
        found: dict[str, Any] = {}
        for streams, updates in bursts.items():
            tried = [self._ask("burst", MEMORY, streams=streams, updates=updates) for _ in range(rounds)]
            found[str(streams)] = better(tried)
        streams, updates = paced
        found["paced"] = self._ask("paced", MEMORY, streams=streams, updates=updates)
        return found

    def idle(self, streams: int) -> dict[str, Any]:
        """So many that have nothing to say."""
        return self._ask("idle", FULL, streams=streams)

    def _ask(self, case: str, store: str, **how: Any) -> dict[str, Any]:
        try:
            with closing(self.server(store)) as server:
                return self._client.ask(case, port=server.port, server=server.pid, **how)
        except UnavailableError as error:
            return {"error": str(error)}

    # Bad neighbours

    def hostile(self, kinds: Iterable[str], seconds: float) -> dict[str, dict[str, Any]]:
        """Each kind beside clients who do as they should; the same clients alone, before and after.

        And the same clients while that kind is at another server of the machine: what it costs them then is not ours.
        """
        return {kind: self._beside(kind, seconds) for kind in kinds}

    def _beside(self, kind: str, seconds: float) -> dict[str, Any]:
        try:
            with closing(self.server(FULL, cases.HOSTILE_PATIENCE)) as server:
                return self._alone_and_beside(server, kind, seconds)
        except UnavailableError as error:
            return {"error": str(error)}

    def _alone_and_beside(self, server: Server, kind: str, seconds: float) -> dict[str, Any]:
        def good() -> dict[str, Any]:
            how = {"clients": cases.GOOD_CLIENTS, "pace": cases.GOOD_PACE, "seconds": seconds}
            return self._client.ask("others", port=server.port, **how)

        def with_them(at: Server) -> tuple[dict[str, float], dict[str, Any], dict[str, float], dict[str, Any]]:
            bad = Worker(HOSTILE, Path(sys.executable))
            with closing(bad), ThreadPoolExecutor(1) as pool:
                asked = pool.submit(bad.ask, "hostile", port=at.port, kind=kind, seconds=RAMP + seconds)
                wait([asked], timeout=RAMP)
                return facts(server), good(), facts(server), asked.result()

        good()  # whatever is made once is there after this
        alone, before = good(), facts(server)
        begun, beside, ended, neighbours = with_them(server)
        until_gone(server, before["files"])
        after, again = facts(server), good()
        with closing(self.server(FULL, cases.HOSTILE_PATIENCE)) as other:
            _, elsewhere, _, _ = with_them(other)
        found = {
            "alone": alone,
            "beside": beside,
            "again": again,
            "elsewhere": elsewhere,
            "neighbours": neighbours,
        }
        for result in found.values():
            if "error" in result:
                return result
        return found | {"before": before, "begun": begun, "ended": ended, "after": after}


def until_gone(server: Server, files: float) -> None:
    """Until nothing of the bad neighbours is left, or the time for that is over."""
    over, quiet = time.monotonic() + REST, Event()
    while server.files > files and time.monotonic() < over:
        quiet.wait(LOOK)


def facts(server: Server) -> dict[str, float]:
    return {
        "memory": server.memory,
        "files": server.files,
        "sockets": server.sockets,
        "cpu": cpu_of(server.pid),
        "at": time.perf_counter(),
    }
