"""One pass: every system that can take part, its worker kept alive, the cases interleaved in rounds."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench import cases, imports
from bench.cases import Case
from bench.environment import OURS, OURS_COUNTED, System, UnavailableError, prepare
from bench.process import Worker

Results = dict[System, dict[str, Any]]


class Pass:
    """The systems of one pass. Whoever cannot take part stays in it, with the reason as each of its results."""

    def __init__(self, systems: Iterable[System], with_workers: bool) -> None:
        self.pythons: dict[System, Path] = {}
        self.workers: dict[System, Worker] = {}
        self.reasons: dict[System, str] = {}
        self.with_workers = with_workers
        for system in systems:
            try:
                self.pythons[system] = prepare(system)
                if with_workers:
                    self.workers[system] = Worker(system, self.pythons[system])
            except UnavailableError as error:
                self.reasons[system] = str(error)

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()

    def timed(self, selected: list[Case], quick: bool, rounds: int) -> dict[Case, Results]:
        """Round by round, case by case, system by system; of each the better round, and the medians of all."""
        measured: dict[Case, dict[System, list[dict[str, Any]]]] = {case: {} for case in selected}
        for _ in range(rounds):
            for case in selected:
                for system in self.workers:
                    measured[case].setdefault(system, []).append(self.ask(system, case, quick))
        return {case: self.complete({s: better(r) for s, r in found.items()}) for case, found in measured.items()}

    def duplicates(self) -> Results:
        """Once is enough: it is a count."""
        asked = {s: w.ask("duplicates") for s, w in self.workers.items() if s.key != "bare"}
        return self.complete(asked)

    def definitions(self, quick: bool) -> Results:
        """Farhand's alone; no peer validates the definitions it is sent."""
        if OURS not in self.workers:
            return {OURS: {"error": self.reasons.get(OURS, "Farhand takes no part in this pass")}}
        return {OURS: self.ask(OURS, cases.DEFINITIONS, quick)}

    def tokens(self) -> dict[str, Any]:
        """Farhand's alone, and a count: nobody else sends fewer definitions than there are."""
        if OURS_COUNTED not in self.workers:
            return {"error": self.reasons[OURS_COUNTED]}
        return self.workers[OURS_COUNTED].ask("tokens")

    def imports(self, quick: bool) -> Results:
        """Needs the environments only, not the workers; so a peer file that fails does not hide its import."""
        rounds = cases.IMPORT_ROUNDS_QUICK if quick else cases.IMPORT_ROUNDS
        systems = {system: python for system, python in self.pythons.items() if system.statement}
        uninstallable = {s: {"error": reason} for s, reason in self.reasons.items() if s not in self.pythons}
        return imports.measure(systems, rounds) | uninstallable

    def versions(self) -> dict[str, dict[str, str]]:
        return {system.key: worker.versions for system, worker in self.workers.items()}

    def ask(self, system: System, case: Case, quick: bool) -> dict[str, Any]:
        return self.workers[system].ask(case.name, repeats=case.count(quick), warmups=case.warmups, per=case.per)

    def complete(self, results: Results) -> Results:
        """Add whoever could not take part; nobody is dropped in silence."""
        return results | {system: {"error": reason} for system, reason in self.reasons.items()}


def better(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The round with the lower median; an error in any round is the result."""
    for result in rounds:
        if "error" in result:
            return result
    best = min(rounds, key=lambda result: result["median"])
    return best | {"rounds": [result["median"] for result in rounds]}
