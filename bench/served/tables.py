"""The tables of the served cases for people: Farhand first, then the peers, then the bars."""

from collections.abc import Mapping
from typing import Any

from bench import cases
from bench.durable.session import FULL
from bench.served.session import Trips
from bench.table import DRIFT, grid, verdict

COMMITS = 6
"""That a claimed round trip waits for: client there, start, call, claim, answer, end. Two more follow on it."""
Results = Mapping[Trips, Mapping[str, Any]]


def http(clients: int, results: Results) -> str:
    """Latency, rate and CPU of each system on each store."""
    working = {row: result for row, result in results.items() if "rate" in result}
    ours = next((working[row] for row in working if is_base(row)), None)
    rows: list[list[str]] = []
    for row, result in working.items():
        drifted = " ~" if max(result["rounds"]) > DRIFT * min(result["rounds"]) else ""
        cpu = (result["cpu"], None) if row.system.is_peer else (result["server"], result["cpu"])
        rows.append(
            [
                row.title + drifted,
                *(f"{result['trip'][part]:.2f}" for part in ("p50", "p10", "p90", "p99")),
                *(f"{result[half]['p50']:.2f}" for half in ("call", "answer")),
                f"{result['rate']:,.0f}",
                *("-" if value is None else f"{value:.2f}" for value in cpu),
                f"{result['disk']:.2f}",
                "-" if ours is None else f"{result['trip']['p50'] / ours['trip']['p50']:.2f}",
            ]
        )
    header = [
        "system",
        "median",
        "p10",
        "p90",
        "p99",
        "to call",
        "to end",
        "rt/s",
        "cpu",
        "client cpu",
        "disk",
        "x ours",
    ]
    missing = [f"{row.title}: not available: {result['error']}" for row, result in results.items() if "error" in result]
    return "\n".join([grid(header, rows), *missing, *http_bars(clients, working)])


def is_base(row: Trips) -> bool:
    """What the bars are about: everything is kept, and clients take a call up before they work on it."""
    return not row.system.is_peer and row.store == FULL and row.claim


def http_bars(clients: int, working: Results) -> list[str]:
    ours = next((working[row]["trip"]["p50"] for row in working if is_base(row)), None)
    peers = [working[row]["trip"]["p50"] for row in working if row.system.is_peer]
    if clients != 1 or ours is None:
        return []
    lines = [http_bar(ours, next(working[row]["disk"] for row in working if is_base(row)))]
    if peers:
        factor, least = min(peers) / ours, cases.HTTP_PEER_BAR
        lines.append(f"bar: >= {least:.0f}x faster than the best peer that keeps its state; {factor:.1f}x: ")
        lines[-1] += verdict(factor >= least)
    return lines


def http_bar(taken: float, disk: float) -> str:
    """The bar is for a certain disk; on another one, the difference of what is waited for it is not counted."""
    bar, norm = cases.HTTP_MS_BAR, cases.DISK_MS
    waits = COMMITS * disk
    line = f"bar: {FULL}, claimed, median <= {bar:.1f} ms where an fdatasync takes {norm} ms; {taken:.2f} ms, of which "
    line += f"{COMMITS} of {disk:.2f} ms are {waits:.2f} ms"
    if taken <= bar or disk <= norm:
        return f"{line}: {verdict(taken <= bar)}"
    if taken <= waits:
        return f"{line}: the disk was too unsteady to tell"
    there = taken - waits + COMMITS * norm
    return f"{line}; there it would be {there:.2f} ms: {verdict(there <= bar)}"


def streams(results: Mapping[str, Any]) -> str:
    """Updates a second in bursts, and how late they are at the pace of a model."""
    rows, lines = [], []
    for name, result in results.items():
        if "error" in result:
            lines.append(f"{name}: not available: {result['error']}")
            continue
        late = [f"{result['late'][part]:.2f}" for part in ("p50", "p90", "p99")] if "late" in result else ["-"] * 3
        title = f"{cases.PACED[0]} at the pace of a model" if name == "paced" else f"burst, at once: {name}"
        each = f"{result['count'] / result['reads']:.0f}" if "reads" in result else "-"
        count = f"{result['count']:,}"
        rows.append([title, count, f"{result['rate']:,.0f}", f"{result['cpu']:.1f}", each, *late])
        bar = cases.BURST_BARS.get(int(name)) if name.isdigit() else None
        if bar is not None:
            rate = result["rate"]
            merged = f", {result['merged']:,} merged into others" if result["merged"] else ""
            lines.append(f"bar: {name} at once >= {bar:,}/s in all; {rate:,.0f}{merged}: {verdict(rate >= bar)}")
    header = ["Farhand, memory", "updates", "a second", "cpu µs each", "a read", "late ms", "p90", "p99"]
    return "\n".join([grid(header, rows), *lines])


def idle(result: Mapping[str, Any]) -> str:
    """What a stream holds that has nothing to say."""
    if "error" in result:
        return f"Farhand: not available: {result['error']}"
    rows = [
        ["KB each", f"{result['each']:.1f}"],
        ["resident before, MB", f"{result['before'] / 1024:.1f}"],
        ["resident with all of them, MB", f"{result['full'] / 1024:.1f}"],
        ["resident when they are gone, MB", f"{result['after'] / 1024:.1f}"],
        ["CPU, % of a core", f"{result['cpu'] * 100:.2f}"],
    ]
    bar = cases.IDLE_KB_BAR
    reached = verdict(result["each"] <= bar)
    return "\n".join([grid([f"Farhand, {FULL}", ""], rows), f"bar: <= {bar:.0f} KB; {result['each']:.1f}: {reached}"])


def hostile(results: Mapping[str, Mapping[str, Any]]) -> str:
    """How those who do as they should fare beside those who do not."""
    rows, lines = [], []
    for kind, result in results.items():
        if "error" in result:
            lines.append(f"{kind}: not available: {result['error']}")
            continue
        drifted = " ~" if drift(result) > DRIFT else ""
        rows.append(
            [
                kind + drifted,
                *(f"{result[when]['trip'][part]:.1f}" for part in ("p50", "p99") for when in ("alone", "beside")),
                f"{result['again']['trip']['p99']:.1f}",
                f"{result['elsewhere']['trip']['p99']:.1f}",
                *(f"{result[when]['memory']:.0f}" for when in ("before", "begun", "ended", "after")),
                *(f"{result[when]['files']:.0f}" for when in ("before", "begun", "ended", "after")),
                f"{result['ended']['sockets']:.0f}",
                f"{busy(result):.0f}",
            ]
        )
        lines.append(
            f"{kind}: " + ", ".join(f"{count:,} {what}" for what, count in result["neighbours"]["seen"].items())
        )
        lines += hostile_bars(kind, result)
    header = [
        "beside",
        "p50 alone",
        "beside",
        "p99 alone",
        "beside",
        "again",
        "elsewhere",
        "MB before",
        "begun",
        "ended",
        "after",
    ]
    return "\n".join([grid([*header, "files", "begun", "ended", "after", "tcp MB", "cpu %"], rows), *lines])


def drift(result: Mapping[str, Any]) -> float:
    """Of two measurements without bad neighbours: the worse one ÷ the better one."""
    found = [result[when]["trip"]["p99"] for when in ("alone", "again")]
    return max(found) / min(found)


def busy(result: Mapping[str, Any]) -> float:
    """How much of a core the server used beside them."""
    begun, ended = result["begun"], result["ended"]
    return (ended["cpu"] - begun["cpu"]) / (ended["at"] - begun["at"]) * 100


def hostile_bars(kind: str, result: Mapping[str, Any]) -> list[str]:
    alone = min(result["alone"]["trip"]["p99"], result["again"]["trip"]["p99"])
    factor = result["beside"]["trip"]["p99"] / alone
    ours = result["beside"]["trip"]["p99"] / max(alone, result["elsewhere"]["trip"]["p99"])
    grown = result["ended"]["memory"] - result["begun"]["memory"]
    bar, most = cases.HOSTILE_BAR, cases.HOSTILE_MB_BAR
    return [
        f"bar: {kind}: p99 <= {bar:.0f}x of what it is while they are at another server of the machine; {ours:.1f}x, "
        f"and {factor:.1f}x of what it is without them: {verdict(ours <= bar)}",
        f"bar: {kind}: <= {most:.0f} MB more while they are at it; {grown:+.1f} MB: {verdict(grown <= most)}",
    ]
