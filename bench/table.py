"""The tables for people: one a case, the floor first, then Farhand, then the peers, fastest first, then the bar."""

from collections.abc import Mapping
from typing import Any

from bench import cases
from bench.cases import Case
from bench.environment import BARE, OURS, System

Results = Mapping[System, Mapping[str, Any]]
DRIFT = 1.5  # a worse round this many times the better one is marked


def verdict(reached: bool) -> str:
    return "pass" if reached else "MISS"


def grid(header: list[str], rows: list[list[str]]) -> str:
    """Columns padded to their widest cell: the first to the left, the others to the right."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = []
    for row in table:
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)


def missing(results: Results) -> list[str]:
    return [
        f"{system.title}: not available: {result['error']}" for system, result in results.items() if "error" in result
    ]


def fastest_peer(results: Results, figure: str) -> Mapping[str, Any] | None:
    found = [result for system, result in results.items() if system.is_peer and figure in result]
    return min(found, key=lambda result: result[figure], default=None)


def ratio(value: float, base: Mapping[str, Any] | None, figure: str = "median") -> str:
    if not base or not base.get(figure):
        return "-"
    factor = value / base[figure]
    return f"{factor:.1f}" if factor >= 1 else f"{factor:.2f}"


def timed(case: Case, results: Results) -> str:
    """Median, best and CPU of each system, against the floor and against Farhand."""
    working = {system: result for system, result in results.items() if "median" in result}
    bare, ours = working.get(BARE), working.get(OURS)
    order = sorted(working, key=lambda system: (system is not BARE, system is not OURS, working[system]["median"]))
    rows = []
    for system in order:
        result = working[system]
        drifted = " ~" if max(result["rounds"]) > DRIFT * min(result["rounds"]) else ""
        figures = [f"{result[name]:.{2 if case.per > 1 else 1}f}" for name in ("median", "p10", "p90", "best", "cpu")]
        rows.append(
            [system.title + drifted, *figures, ratio(result["median"], bare), ratio(result["median"], ours)],
        )
    header = ["system", "median", "p10", "p90", "best", "cpu", "x bare", "x ours"]
    lines = [grid(header, rows), *missing(results)]
    peer = fastest_peer(working, "median")
    if case.bar and ours and peer:
        factor = peer["median"] / ours["median"]
        lines.append(f"bar: >= {case.bar}x faster than the fastest peer; {factor:.1f}x: {verdict(factor >= case.bar)}")
    if bare:
        lines += [
            f"{system.title} is below the floor: the bench is wrong"
            for system in order
            if working[system]["median"] < bare["median"]
        ]
    return "\n".join(lines)


def duplicates(results: Results) -> str:
    """Model calls and side effects after one client result was delivered twice at once."""
    rows = []
    for system, result in results.items():
        if "error" not in result:
            counts = {name: result[name] for name in cases.DUPLICATES_EXPECTED}
            reached = verdict(counts == cases.DUPLICATES_EXPECTED)
            rows.append([system.title, *map(str, counts.values()), ", ".join(result["deliveries"]), reached])
    rows.append(["expected", *map(str, cases.DUPLICATES_EXPECTED.values()), "", ""])
    header = ["system", "model calls", "effects", "the deliveries ended with", ""]
    texts = [f"{system.title}: {text}" for system, result in results.items() for text in result.get("texts", ())]
    return "\n".join([grid(header, rows), *missing(results), *texts])


def definitions(result: Mapping[str, Any]) -> str:
    """Validating a list that was seen before, against parsing it and against seeing it first."""
    if "parts" not in result:
        return f"{OURS.title}: not available: {result['error']}"
    parts = result["parts"]
    parsed = parts["parsed"]["median"]
    rows = [
        [name, f"{part['median']:.1f}", f"{part['best']:.1f}", f"{part['median'] / parsed:.2f}"]
        for name, part in parts.items()
    ]
    factor = parts["cached"]["median"] / parsed
    part_of_cold = parts["cached"]["median"] / parts["cold"]["median"]
    bar = f"bar: cached <= {cases.DEFINITIONS_BAR}x parsing; {factor:.2f}x: {verdict(factor <= cases.DEFINITIONS_BAR)}"
    return "\n".join(
        [grid(["Farhand", "median", "best", "x parsing"], rows), f"cached is {part_of_cold:.3f} of cold", bar],
    )


def tokens(result: Mapping[str, Any]) -> str:
    """What is sent of so many tools in ten groups, against all of them."""
    if "rows" not in result:
        return f"{OURS.title}: not available: {result['error']}"
    counted = {(row["mode"], row["tools"]): row for row in result["rows"]}
    rows: list[list[str]] = []
    for row in result["rows"]:
        flat = counted["flat", row["tools"]]
        cells = [row["mode"], f"{row['tools']:,}", f"{row['definitions']:,}"]
        for what in ("tokens", "conversation"):
            cells += [f"{row[what]:,}", f"{row[what] / flat[what]:.2%}"]
        rows.append(cells)
    head = ["Farhand", "tools", "definitions", "tokens", "of flat", "20 turns", "of flat"]
    share = counted["collapsed", cases.TOKENS_OF]["tokens"] / counted["flat", cases.TOKENS_OF]["tokens"]
    told = f"bar: {cases.TOKENS_OF:,} tools collapsed <= {cases.TOKENS_BAR:.0%} of flat; {share:.2%}"
    return "\n".join([grid(head, rows), f"{told}: {verdict(share <= cases.TOKENS_BAR)}"])


def imports(results: Results) -> str:
    """Milliseconds, modules, distributions and megabytes of each system."""
    working = {system: result for system, result in results.items() if "ms" in result}
    ours = working.get(OURS)
    order = sorted(working, key=lambda system: (system is not OURS, working[system]["ms"]))
    rows = [
        [
            system.title,
            f"{working[system]['ms']:.0f}",
            f"{working[system]['empty_ms']:.0f}",
            str(working[system]["modules"]),
            str(working[system]["distributions"]),
            f"{working[system]['mb']:.0f}",
            ratio(working[system]["ms"], ours, "ms"),
        ]
        for system in order
    ]
    header = ["system", "import ms", "empty ms", "modules", "dists", "MB", "x ours"]
    lines = [grid(header, rows), *missing(results)]
    if ours:
        peer = fastest_peer(working, "ms")
        dists, limit = ours["distributions"], cases.IMPORT_DISTRIBUTIONS_BAR
        lines.append(f"bar: <= {cases.IMPORT_MS_BAR:.0f} ms: {verdict(ours['ms'] <= cases.IMPORT_MS_BAR)}")
        lines.append(f"bar: <= {limit} distributions: {verdict(dists <= limit)}")
        if peer:
            lines.append(f"bar: less than the best peer: {verdict(ours['ms'] < peer['ms'])}")
    return "\n".join(lines)
