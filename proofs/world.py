"""A world in which everything goes wrong, told from a seed; at its end, every promise is held against the books.

`python -m proofs.world --seed 7` tells one story again; `--seeds 1000` or `--seconds 600` tells many. Ends with 1 at
the first problem. What a story is made of: `stage` (agent, tools, model), `crowd` (clients), `verdict` (promises).
"""

import argparse
import asyncio
import gc
import itertools
import logging
import sys
import time
from collections.abc import Coroutine, Iterable, Iterator
from random import Random
from typing import Any

from msgspec import Struct

from farhand.stores.memory import MemoryStore
from farhand.testing.audit import books
from farhand.testing.faulty import Faults
from farhand.testing.world import World
from proofs.crowd import Crowd, Watched
from proofs.stage import ON, Stage
from proofs.verdict import verdict

THREADS = (("ann", "one"), ("ann", "two"), ("ben", "one"))
LONGEST = 600.0
"""Virtual seconds after which a story has no end."""


class Told(Struct):
    """How a story ended."""

    seed: int
    problems: list[str]
    runs: int = 0
    said: int = 0
    deaths: int = 0
    digest: str = ""


def tell(seed: int, store: MemoryStore | None = None) -> Told:
    """Tell one story."""
    random = Random(f"weather {seed}")  # noqa: S311
    faults = Faults(
        slow=random.choice((0.002, 0.02, 0.1)),
        away=random.choice((0.0, 0.02, 0.1)),
        doubt=random.choice((0.0, 0.02, 0.1)),
        late=random.choice((0.0, 0.02)),
        deaf=random.choice((0.0, 0.2, 0.8)),
    )
    stage = ON.stage = Stage(seed)
    world = World(
        seed,
        stage.agents,
        processes=random.choice((2, 2, 3)),
        faults=faults,
        mute=random.choice((0.0, 0.05)),
        store=store,
    )
    told = Told(seed, [])
    was = gc.isenabled()
    gc.disable()  # when it comes by is not up to the seed
    try:
        world.run(lambda world: _in_time(_tell(world, stage, told)))
    except Exception as error:  # noqa: BLE001  a story that cannot be told to its end is a problem as well
        told.problems.append(f"{type(error).__name__}: {error}")
    finally:
        if was:
            gc.enable()
    return told


async def _in_time(story: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(LONGEST):
        await story


async def _tell(world: World, stage: Stage, told: Told) -> None:
    crowd = Crowd(world, told.seed)
    for principal, thread in THREADS:
        crowd.beside(crowd.converse(principal, thread))
        for _ in range(2):
            crowd.beside(crowd.watch(Watched(principal, thread)))
    for principal in ("ann", "ben"):
        crowd.beside(crowd.decide(principal))
    told.deaths = await _chaos(world, told.seed)
    crowd.over = True
    world.faults.end()
    for process in world.processes:
        process.thaw()
        await process.start()
    await crowd.leave()
    connections = [crowd.connect(watched)[0] for watched in crowd.watched]
    await world.rest(seconds=120)
    for connection in connections:
        connection.open = False
    told.problems += await _stuck(world)
    await crowd.finale(THREADS)
    await world.rest(seconds=120)
    told.problems += await world.problems()
    read = await books(world.store)
    told.problems += verdict(read, crowd, stage)
    told.runs, told.said = len(read.runs), len(crowd.said)
    told.digest = f"{world.loop.time():.6f}/{sum(len(rows) for rows in read.log.values())}/{told.said}"


async def _stuck(world: World) -> list[str]:
    """Runs that should have come to rest long ago; the finale would take their place."""
    rows = [row for state in ("ready", "running") for row in await world.store.runs("", state, 1000)]
    return [f"run {row.id} is {row.state}, and nothing happens any more" for row in rows]


async def _chaos(world: World, seed: int) -> int:
    """Kill, freeze and start processes again, for a while."""
    random = Random(f"chaos {seed}")  # noqa: S311
    pace = random.choice((1.0, 3.0, 6.0))
    end = world.loop.time() + random.uniform(8.0, 25.0)
    deaths = 0
    while world.loop.time() < end:
        await asyncio.sleep(random.uniform(0.1, pace))
        process = random.choice(world.processes)
        if not process.up:
            await process.start()
        elif process.frozen:
            process.thaw()
        elif random.random() < 0.6:
            process.kill()
            deaths += 1
        elif random.random() < 0.6:
            process.freeze()
        else:
            await process.stop()
    return deaths


def search(seeds: Iterable[int], seconds: float = 1e9) -> tuple[int, Told | None]:
    """Tell stories until one has a problem; gives how many were told, and that one."""
    end = time.monotonic() + seconds
    told = 0
    for seed in seeds:
        found = tell(seed)
        told += 1
        if found.problems:
            return told, found
        if time.monotonic() > end:
            break
    return told, None


def main() -> int:
    """Tell stories as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m proofs.world", description=__doc__)
    parser.add_argument("--seed", type=int, help="tell this one only")
    parser.add_argument("--seeds", type=int, help="tell so many")
    parser.add_argument("--seconds", type=float, default=1e9, help="for so long")
    parser.add_argument("--first", type=int, default=0, help="begin with this one")
    parser.add_argument("--log", action="store_true", help="show what the runner logs")
    chosen = parser.parse_args()
    logging.getLogger("farhand").setLevel(logging.INFO if chosen.log else logging.CRITICAL)
    began = time.monotonic()
    seeds: Iterator[int] | range = itertools.count(chosen.first)
    if chosen.seed is not None:
        seeds = range(chosen.seed, chosen.seed + 1)
    elif chosen.seeds is not None:
        seeds = range(chosen.first, chosen.first + chosen.seeds)
    told, broken = search(seeds, chosen.seconds)
    took = time.monotonic() - began
    if broken is not None:
        sys.stdout.write("\n".join((*broken.problems, f"python -m proofs.world --seed {broken.seed}", "")))
    sys.stdout.write(f"{told} stories in {took:.1f} s ({told / took:.1f} a second); {bool(broken):d} with problems\n")
    return int(broken is not None)


if __name__ == "__main__":
    sys.exit(main())
