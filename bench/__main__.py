"""`python -m bench`: measure Farhand beside its peers and print what came out. See README.md in this folder."""

import argparse
import json
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import cases, machine, table
from bench.durable import tables as durable_tables
from bench.durable.session import FULL, Session
from bench.environment import BARE, OURS, OURS_COUNTED, OURS_KEPT, OURS_SERVED, System, peers
from bench.passes import Pass, Results
from bench.served import tables as served_tables
from bench.served.session import ServedSession


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Farhand beside its peers, in one pass.")
    parser.add_argument("--quick", action="store_true", help="fewer repeats and two rounds")
    parser.add_argument("--rounds", type=int, help="how often each case is measured (default 3, quick 2)")
    known_cases = f"{', '.join(cases.NAMES)}; durable and served for all of those"
    parser.add_argument("case", nargs="*", type=names(cases.NAMES), help=f"which to measure: {known_cases}")
    parser.add_argument("--only", type=names(cases.NAMES), metavar="CASE,…", help="the same, separated by commas")
    known = tuple(peer.key for peer in peers())
    parser.add_argument("--peers", type=names(known), default=known, metavar="PEER,…", help=", ".join(known))
    parser.add_argument("--no-peers", action="store_true", help="Farhand and the floor only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append one JSON line a case and system")
    arguments = parser.parse_args()
    named = [*(name for given in arguments.case for name in given), *(arguments.only or ())]
    arguments.only = tuple(named) or cases.NAMES
    return arguments


def names(known: tuple[str, ...]) -> Any:
    """A comma-separated list of known names; a group stands for all of its."""

    def parse(text: str) -> tuple[str, ...]:
        groups = cases.GROUPS if known is cases.NAMES else {}
        given = tuple(each for name in text.split(",") if name for each in groups.get(name, (name,)))
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


def introduce(systems: list[System], record: Record) -> None:
    """Print what the figures depend on."""
    facts = machine.facts()
    for name, value in facts.items():
        print(f"{name:8} {value}")
    pins = dict.fromkeys(pin for system in systems for pin in (*system.requires, *system.beside))
    print(f"{'peers':8} " + (", ".join(pins) or "none"))
    record.add("pass", {**facts, "load": machine.load()})


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


def measure_tokens(session: Pass, record: Record) -> None:
    """Count what is sent to the model."""
    result = session.tokens()
    show("definitions sent with the first turn, tools in 10 groups, tokens (o200k_base)", table.tokens(result))
    record.add("tokens", result)


def measure_durable(session: Session, arguments: argparse.Namespace, record: Record) -> None:
    """The same for runs that are kept."""
    quick = arguments.quick
    disks = session.disks()
    print(f"\n{durable_tables.disks(disks)}", flush=True)
    record.add("disks", disks)
    if "trips" in arguments.only:
        seconds = cases.TRIP_SECONDS_QUICK if quick else cases.TRIP_SECONDS
        rounds = arguments.rounds or (1 if quick else 2)
        for clients, results in session.trips(cases.CLIENTS, seconds, rounds).items():
            title = f"durable round trip, {clients} at a time, ms ({seconds:.0f} s each, better of {rounds} rounds)"
            show(title, durable_tables.trips(clients, results))
            for row, result in results.items():
                record.add("trips", {"system": row.system.key, "store": row.store, "clients": clients, **result})
    if "replicas" in arguments.only:
        repeats = cases.REPLICAS_QUICK if quick else cases.REPLICAS
        results = session.replicas(repeats)
        title = f"two replicas on one PostgreSQL: answer until the model is asked again, ms (n = {repeats})"
        show(title, durable_tables.replicas(results, repeats))
        record.add("replicas", results)
    if "paused" in arguments.only:
        results = session.paused(cases.PAUSED)
        show(f"{cases.PAUSED:,} paused runs", durable_tables.paused(results))
        record.add("paused", results)
    record.add("versions", session.versions())


def measure_served(session: ServedSession, arguments: argparse.Namespace, record: Record) -> None:
    """The same for what is asked over HTTP."""
    quick = arguments.quick
    rounds = arguments.rounds or (1 if quick else 2)
    if "http" in arguments.only:
        seconds = cases.TRIP_SECONDS_QUICK if quick else cases.TRIP_SECONDS
        for clients, results in session.http(cases.AT_ONCE, seconds, rounds).items():
            how = f"{seconds:.0f} s each, better of {rounds} rounds"
            title = f"client-tool round trip over HTTP, {clients} at a time, ms ({how})"
            show(title, served_tables.http(clients, results))
            for row, result in results.items():
                record.add("http", {"row": row.title, "clients": clients, **result})
    if "streams" in arguments.only:
        bursts, paced = (cases.BURSTS_QUICK, cases.PACED_QUICK) if quick else (cases.BURSTS, cases.PACED)
        results = session.streams(bursts, paced, rounds)
        show("updates over HTTP", served_tables.streams(results))
        record.add("streams", results)
    if "idle" in arguments.only:
        result = session.idle(cases.IDLE_QUICK if quick else cases.IDLE)
        show("streams that have nothing to say", served_tables.idle(result))
        record.add("idle", result)
    if "hostile" in arguments.only:
        seconds = cases.HOSTILE_SECONDS_QUICK if quick else cases.HOSTILE_SECONDS
        results = session.hostile(cases.HOSTILE, seconds)
        show(f"round trips beside bad neighbours, ms ({seconds:.0f} s each)", served_tables.hostile(results))
        record.add("hostile", results)
    record.add("versions", session.versions())


def main() -> None:
    arguments = options()
    chosen = [peer for peer in peers() if peer.key in arguments.peers and not arguments.no_peers]
    durable = set(arguments.only) & set(cases.DURABLE)
    served = set(arguments.only) & set(cases.SERVED)
    counted = {"tokens"} & set(arguments.only)
    heart = set(arguments.only) - durable - served - counted
    systems = [BARE, OURS, *(peer for peer in chosen if not peer.stores)] if heart else []
    keepers = [OURS_KEPT, *(peer for peer in chosen if peer.stores)] if durable else []
    servers = [OURS_SERVED, *(peer for peer in chosen if FULL in peer.stores)] if served else []
    record = Record(arguments.json)
    with machine.lock():
        before = machine.load()
        introduce([*systems, *([OURS_COUNTED] if counted else []), *keepers, *servers], record)
        if heart:
            with closing(Pass(systems, with_workers=heart != {"import"})) as session:
                record.add("versions", session.versions())
                measure(session, arguments, record)
        if counted:
            with closing(Pass([OURS_COUNTED], with_workers=True)) as session:
                record.add("versions", session.versions())
                measure_tokens(session, record)
        if durable:
            with closing(Session(keepers)) as session:
                measure_durable(session, arguments, record)
        if served:
            with closing(ServedSession(servers)) as session:
                measure_served(session, arguments, record)
        after = machine.load()
    noisy = max(before, after) > machine.NOISY_LOAD
    print(f"\nload before {before:.2f}, after {after:.2f}" + (": NOISY, other work was running" if noisy else ""))
    print("x ours = peer ÷ ours; ~ = the rounds differ by more than half; compare figures of one pass only")
    record.add("load", {"before": before, "after": after, "noisy": noisy})


if __name__ == "__main__":
    main()
