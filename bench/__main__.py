"""`python -m bench`: measure Farhand beside its peers and print what came out. See README.md in this folder."""

import argparse
import json
from pathlib import Path
from typing import Any

from bench import cases, machine, table
from bench.environment import BARE, OURS, System, peers
from bench.passes import Pass, Results


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Farhand beside its peers, in one pass.")
    parser.add_argument("--quick", action="store_true", help="fewer repeats and two rounds")
    parser.add_argument("--rounds", type=int, help="how often each case is measured (default 3, quick 2)")
    parser.add_argument(
        "--only", type=names(cases.NAMES), default=cases.NAMES, metavar="CASE,…", help=", ".join(cases.NAMES)
    )
    known = tuple(peer.key for peer in peers())
    parser.add_argument("--peers", type=names(known), default=known, metavar="PEER,…", help=", ".join(known))
    parser.add_argument("--no-peers", action="store_true", help="Farhand and the floor only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append one JSON line a case and system")
    return parser.parse_args()


def names(known: tuple[str, ...]) -> Any:
    """A comma-separated list of known names."""

    def parse(text: str) -> tuple[str, ...]:
        given = tuple(name for name in text.split(",") if name)
        unknown = [name for name in given if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return given

    return parse


class Record:
    """The lines of the JSON file, if there is one."""

    def __init__(self, file: Path | None) -> None:
        self.file = file

    def add(self, case: str, facts: dict[str, Any]) -> None:
        if self.file:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as lines:
                lines.write(json.dumps({"case": case, **facts}) + "\n")

    def add_results(self, case: str, results: Results, **facts: Any) -> None:
        for system, result in results.items():
            self.add(case, {"system": system.key, **facts, **result})


def show(title: str, text: str) -> None:
    print(f"\n{title}\n{'-' * len(title)}\n{text}", flush=True)


def introduce(session: Pass, systems: list[System], record: Record) -> None:
    """Print what the figures depend on."""
    facts = machine.facts()
    for name, value in facts.items():
        print(f"{name:8} {value}")
    print(f"{'peers':8} " + (", ".join(pin for system in systems for pin in system.requires) or "none"))
    record.add("pass", {**facts, "load": machine.load(), "versions": session.versions()})


def measure(session: Pass, arguments: argparse.Namespace, record: Record) -> None:
    """Run the selected cases and print a table for each."""
    quick = arguments.quick
    rounds = arguments.rounds or (2 if quick else 3)
    selected = [case for case in cases.TIMED if case.name in arguments.only]
    for case, results in session.timed(selected, quick, rounds).items():
        show(f"{case.title} (n = {case.count(quick)}, better of {rounds} rounds)", table.timed(case, results))
        record.add_results(case.name, results, n=case.count(quick))
    if "duplicates" in arguments.only:
        results = session.duplicates()
        show("one client result delivered twice at once: counts after the pause", table.duplicates(results))
        record.add_results("duplicates", results)
    if "definitions" in arguments.only:
        results = session.definitions(quick)
        show(cases.DEFINITIONS.title, table.definitions(results[OURS]))
        record.add_results("definitions", results)
    if "import" in arguments.only:
        results = session.imports(quick)
        show("import in a fresh process, best, less a bare interpreter; size on disk", table.imports(results))
        record.add_results("import", results)


def main() -> None:
    arguments = options()
    systems = [BARE, OURS, *(peer for peer in peers() if peer.key in arguments.peers and not arguments.no_peers)]
    with machine.lock():
        before = machine.load()
        session = Pass(systems, with_workers=set(arguments.only) != {"import"})
        try:
            record = Record(arguments.json)
            introduce(session, systems, record)
            measure(session, arguments, record)
        finally:
            session.close()
        after = machine.load()
    noisy = max(before, after) > machine.NOISY_LOAD
    print(f"\nload before {before:.2f}, after {after:.2f}" + (": NOISY, other work was running" if noisy else ""))
    print("x ours = peer ÷ ours; ~ = the rounds differ by more than half; compare figures of one pass only")
    record.add("load", {"before": before, "after": after, "noisy": noisy})


if __name__ == "__main__":
    main()
