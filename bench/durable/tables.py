"""The tables of the durable cases for people: Farhand first, then the peers, fastest first, then the bars."""

from collections.abc import Mapping
from typing import Any

from bench import cases
from bench.durable.session import FULL, POSTGRES, Kept
from bench.table import DRIFT, grid, verdict

Results = Mapping[Kept, Mapping[str, Any]]
COMMITS = 4
"""Of a round trip: the start, the call, the answer, the end. Each waits for the disk at least once."""


def disks(times: Mapping[str, float | str]) -> str:
    """The time of the disk beside which all other figures have to be read."""
    told = [f"{kind} {time:.2f} ms" if isinstance(time, float) else f"{kind}: {time}" for kind, time in times.items()]
    return f"fdatasync of 4 KiB appended, median of 200: {'; '.join(told)}"


def trips(clients: int, results: Results) -> str:
    """Rate, latency and CPU of each system on each store."""
    working = {row: result for row, result in results.items() if "rate" in result}
    order = sorted(working, key=lambda row: (row.system.is_peer, -working[row]["rate"] if row.system.is_peer else 0))
    rows: list[list[str]] = []
    for row in order:
        result = working[row]
        drifted = " ~" if max(result["rounds"]) > DRIFT * min(result["rounds"]) else ""
        base = next((ours for kept, ours in working.items() if is_base(kept, row)), None)
        rows.append(
            [
                row.title + drifted,
                f"{result['rate']:,.0f}",
                *(f"{result['trip'][part]:.2f}" for part in ("p50", "p10", "p90")),
                *(f"{result[half][part]:.2f}" for half in ("call", "answer") for part in ("p50", "p99")),
                f"{result['cpu']:.2f}",
                f"{result['server']:.2f}",
                f"{result['disk']:.2f}",
                "-" if base is None else f"{base['rate'] / result['rate']:.1f}",
            ]
        )
    header = ["system", "rt/s", "median", "p10", "p90", "to call", "p99", "to answer", "p99"]
    header += ["cpu", "server", "disk", "x ours"]
    missing = [f"{row.title}: not available: {result['error']}" for row, result in results.items() if "error" in result]
    note = "x ours: our rate ÷ its rate, each on the same kind of database; disk: an fdatasync beside it"
    return "\n".join([grid(header, rows), note, *missing, *bars(clients, working)])


def is_base(kept: Kept, row: Kept) -> bool:
    """Whether it is what a row is compared with: Farhand at its safest on the same kind of database."""
    return not kept.system.is_peer and kept.store == (POSTGRES if row.store == POSTGRES else FULL)


def bars(clients: int, working: Results) -> list[str]:
    """What this number of clients has to reach."""
    ours = {row.store: result for row, result in working.items() if not row.system.is_peer}
    lines: list[str] = []
    if clients == 1 and FULL in ours:
        lines.append(trip_bar(ours[FULL]["trip"]["p50"], ours[FULL]["disk"]))
    if clients == cases.MANY_CLIENTS and FULL in ours:
        rate = ours[FULL]["rate"]
        lines.append(f"bar: {FULL} >= {cases.RATE_BAR:,} rt/s; {rate:,.0f}: {verdict(rate >= cases.RATE_BAR)}")
    if FULL in ours and POSTGRES in ours:
        factor = ours[FULL]["rate"] / ours[POSTGRES]["rate"]
        bar = cases.POSTGRES_BAR
        lines.append(f"bar: {POSTGRES} within {bar:.0f}x of {FULL}; {factor:.1f}x: {verdict(factor <= bar)}")
    return lines


def trip_bar(taken: float, disk: float) -> str:
    """The bar is for a certain disk; on another one, the difference of the four waits is not counted."""
    bar, norm = cases.TRIP_MS_BAR, cases.DISK_MS
    waits = COMMITS * disk
    line = (
        f"bar: {FULL} <= {bar:.1f} ms a round trip where an fdatasync takes {norm} ms; "
        f"{taken:.2f} ms, of which {COMMITS} of {disk:.2f} ms are {waits:.2f} ms"
    )
    if taken <= bar or disk <= norm:
        return f"{line}: {verdict(taken <= bar)}"
    if taken <= waits:
        return f"{line}: the disk was too unsteady to tell"
    there = taken - waits + COMMITS * norm
    return f"{line}; there it would be {there:.2f} ms: {verdict(there <= bar)}"


def replicas(results: Mapping[str, Any], repeats: int) -> str:
    """From an answer until the model is asked again."""
    if "error" in results:
        return f"Farhand: not available: {results['error']}"
    titles = {
        ("waits", "one"): "the run waits; one replica",
        ("waits", "two"): "the run waits; answered at the other replica",
        ("held", "one"): "a server tool is running; one replica",
        ("held", "two"): "a server tool is running; answered at the other",
    }
    rows = [
        [title, *(f"{results[story][number][part]:.2f}" for part in ("p50", "p10", "p90", "p99"))]
        for (story, number), title in titles.items()
    ]
    lines = [grid(["Farhand, PostgreSQL", "median", "p10", "p90", "p99"], rows)]
    expected = {"waits": repeats, "held": 0}
    for story, result in results.items():
        more = result["two"]["p50"] - result["one"]["p50"]
        reached = more <= cases.REPLICAS_MS_BAR and result["at_second"] == expected[story]
        where = f"asked at the other replica {result['at_second']} of {repeats} times, expected {expected[story]}"
        bar = f"bar: {story}: two <= one + {cases.REPLICAS_MS_BAR:.0f} ms; {more:+.2f} ms; {where}: "
        lines.append(bar + verdict(reached))
    return "\n".join(lines)


def paused(results: Mapping[str, Any]) -> str:
    """Before the kill, and after it."""
    if "error" in results:
        return f"Farhand: not available: {results['error']}"
    before, after = results["paused"], results["answered"]
    grown = before["after"] - before["before"]
    rows = [
        ["all paused, s", f"{before['seconds']:.2f}"],
        ["resident before, MB", f"{before['before']:.1f}"],
        ["resident after, MB", f"{before['after']:.1f}"],
        ["idle CPU, % of a core", f"{before['idle'] * 100:.2f}"],
        ["kill -9; process start to open store, s", f"{after['ready']:.3f}"],
        ["… to an answer accepted, s", f"{after['accepted']:.3f}"],
        ["… to its final answer, s", f"{after['first']:.3f}"],
        ["… to the last final answer, s", f"{after['all']:.2f}"],
        ["resident when all are answered, MB", f"{after['after']:.1f}"],
    ]
    whole = before["count"] == after["count"]
    return "\n".join(
        [
            grid([f"Farhand, {FULL}", ""], rows),
            f"bar: < {cases.GROWTH_MB_BAR:.0f} MB growth; {grown:+.1f} MB: {verdict(grown < cases.GROWTH_MB_BAR)}",
            f"bar: final answer within {cases.FIRST_REPLY_S_BAR:.0f} s of the process's start; {after['first']:.3f} s: "
            + verdict(after["first"] <= cases.FIRST_REPLY_S_BAR),
            f"bar: every run answered; {after['count']:,} of {before['count']:,}: {verdict(whole)}",
        ]
    )
