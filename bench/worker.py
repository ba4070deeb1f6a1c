"""Runs one system's cases inside that system's own interpreter; knows nothing of the others. Standard library only.

Started as `python -I bench/worker.py <peer file>`. One JSON object a line: `{"case", "repeats", "warmups", "per"}` in,
a summary in microseconds, or `{"error": …}`, out. A peer file has one `async def` without arguments per case, which
asserts its own answer. A case that is a dict of such functions is measured part by part; `duplicates` returns counts.
What is named in `WHOLE` measures itself: it gets whatever else was asked, and returns its summary.
"""

import asyncio
import gc
import importlib.metadata
import importlib.util
import json
import logging
import os
import statistics
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

Body = Callable[[], Awaitable[object]]
WHOLE = ("duplicates", "tokens", "trips", "http", "burst", "paced", "idle", "others", "hostile")


async def measure(body: Body, repeats: int, warmups: int, per: int) -> dict[str, float]:
    """Time `body`, in microseconds of wall and CPU time for each of the `per` units it contains."""
    for _ in range(warmups):
        await body()
    gc.collect()
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(repeats):
        cpu = time.process_time_ns()
        wall = time.perf_counter_ns()
        await body()
        walls.append((time.perf_counter_ns() - wall) / per / 1000)
        cpus.append((time.process_time_ns() - cpu) / per / 1000)
    walls.sort()
    return {
        "median": statistics.median(walls),
        "p10": walls[int(0.1 * (repeats - 1))],
        "p90": walls[int(0.9 * (repeats - 1))],
        "best": walls[0],
        "cpu": statistics.median(cpus),
    }


async def run_case(module: ModuleType, case: str, **how: Any) -> dict[str, Any]:
    """Run one case of a peer file."""
    body = getattr(module, case, None)
    if body is None:
        return {"error": getattr(module, "MISSING", {}).get(case, "no such case in this peer's file")}
    if case in WHOLE:
        return await body(**how)
    if isinstance(body, dict):
        return {"parts": {name: await measure(part, **how) for name, part in body.items()}}
    return await measure(body, **how)


def load(path: Path) -> ModuleType:
    """Import a peer file under a name that cannot hide the package it measures."""
    root = Path(__file__).resolve().parent.parent
    sys.path.append(str(root))  # for `bench.story`; last, so that nothing is shadowed
    spec = importlib.util.spec_from_file_location(f"bench_peer_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def describe(error: BaseException) -> str:
    """One line about an error: its type and the first line of its text."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def main() -> None:
    """Answer requests until standard input ends."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a peer prints goes to the log, not into the protocol
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    try:
        module = load(Path(sys.argv[1]).resolve())
    except Exception as error:
        replies.write(json.dumps({"error": describe(error)}) + "\n")
        return
    installed = {dist.metadata["Name"]: dist.version for dist in importlib.metadata.distributions()}
    replies.write(json.dumps({"versions": installed}) + "\n")
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            try:
                answer = runner.run(run_case(module, **json.loads(line)))
            except Exception as error:
                answer = {"error": describe(error)}
            replies.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
