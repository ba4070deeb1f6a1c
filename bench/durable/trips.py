"""Durable round trips: so many clients at once, for so long. Runs inside a system's worker; standard library only.

A trip starts a run, sees its call, posts the result and sees the final answer. It gives the time at which it saw the
call, which is also the time at which it posts.
"""

import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

Trip = Callable[[], Awaitable[int]]

WARM_UP = 0.2  # of the measured time; whatever a system caches is there afterwards


async def measure(trip: Trip, clients: int, seconds: float, server: int | None) -> dict[str, Any]:
    """Milliseconds of the whole and of both halves, round trips a second, and CPU milliseconds a trip: of this process,
    and of a database server whose first process is `server`.
    """
    await run(trip, clients, seconds * WARM_UP)
    gc.collect()
    server_cpu, cpu, begin = cpu_of(server), time.process_time(), time.perf_counter()
    taken = await run(trip, clients, seconds)
    wall, cpu, server_cpu = time.perf_counter() - begin, time.process_time() - cpu, cpu_of(server) - server_cpu
    return {
        "count": len(taken),
        "wall": wall,
        "rate": len(taken) / wall,
        "cpu": cpu / len(taken) * 1000,
        "server": server_cpu / len(taken) * 1000,
        "trip": spread([end - start for start, _, end in taken]),
        "call": spread([seen - start for start, seen, _ in taken]),
        "answer": spread([end - seen for _, seen, end in taken]),
    }


async def run(trip: Trip, clients: int, seconds: float) -> list[tuple[int, int, int]]:
    """Each client makes one trip after the other, at least one; trips that have begun are counted to their end."""
    taken: list[tuple[int, int, int]] = []
    until = time.perf_counter() + seconds

    async def client() -> None:
        while True:
            start = time.perf_counter_ns()
            seen = await trip()
            taken.append((start, seen, time.perf_counter_ns()))
            if time.perf_counter() >= until:
                return

    try:
        async with asyncio.TaskGroup() as at_once:
            for _ in range(clients):
                at_once.create_task(client())
    except ExceptionGroup as group:  # one is as good as all, and can be read
        raise group.exceptions[0] from None
    return taken


def spread(nanoseconds: Sequence[int]) -> dict[str, float]:
    """Of some durations, in milliseconds."""
    ordered = sorted(nanoseconds)
    last = len(ordered) - 1
    return {name: ordered[round(part * last)] / 1e6 for name, part in PARTS.items()}


PARTS = {"p10": 0.1, "p50": 0.5, "p90": 0.9, "p99": 0.99}


def cpu_of(server: int | None) -> float:
    """Seconds that a process and those that it has started have used so far, those that are gone included."""
    if server is None:
        return 0.0
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    ticks = sum(times(server)) + sum(sum(times(int(child))[:2]) for child in children)
    return ticks / os.sysconf("SC_CLK_TCK")


def times(process: int) -> list[int]:
    """In ticks: user, system, and the same of children that have ended. Zero for a process that is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return [0, 0, 0, 0]
    return [int(field) for field in text.rpartition(")")[2].split()[11:15]]
