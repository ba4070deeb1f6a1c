"""Many paused runs in one SQLite file: pause them, be killed, come back, answer them all. Farhand's environment.

`paused.py pause <url> <count>` prints one JSON line and then waits to be killed. `paused.py answer <url> <begin>` is
told when it was started, on the clock that all processes of a machine share, and prints one line as well.
"""

import asyncio
import gc
import itertools
import json
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench import story
from bench.ours import Fake, client_tool
from farhand import Agent
from farhand.durable import Runner

WARM_UPS = 200
CLIENTS = 50
IDLE = 2.0
PAGE = 500


def runner(url: str) -> Runner:
    return Runner(Agent(Fake(story.pause), tools=[client_tool()]), store=url)


def resident() -> float:
    """Megabytes of this process in memory."""
    gc.collect()
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


async def pause(url: str, count: int) -> None:
    """Say what it took; then wait to be killed. The first few make what every process keeps, and count as well."""
    async with runner(url) as running:
        await start(running, WARM_UPS)
        before = resident()
        begin, cpu = time.perf_counter(), time.process_time()
        await start(running, count - WARM_UPS)
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        after = resident()
        idle = time.process_time()
        await asyncio.sleep(IDLE)
        idle = (time.process_time() - idle) / IDLE
        say(count=count, seconds=wall, cpu=cpu, before=before, after=after, idle=idle)
        await asyncio.Event().wait()


async def start(running: Runner, count: int) -> None:
    left = itertools.repeat(None, count)

    async def client() -> None:
        for _ in left:
            run = await running.start(story.PROMPT)
            assert (await run.wait()).status == "waiting"

    await together(client)


async def answer(url: str, begin: int) -> None:
    """Answer one, then all the others, each to its final answer."""
    async with runner(url) as running:
        [call] = await running.pending(limit=1)
        ready = since(begin)
        await running.answer(call.id, story.CLIENT_RESULT)
        accepted = since(begin)
        await end(running, call.id)
        first = since(begin)
        count = 1
        while calls := await running.pending(limit=PAGE):
            count += len(calls)
            left = iter(calls)

            async def client(left: Iterator[Any] = left) -> None:
                for call in left:
                    await running.answer(call.id, story.CLIENT_RESULT)
                    await end(running, call.id)

            await together(client)
        say(count=count, ready=ready, accepted=accepted, first=first, all=since(begin), after=resident())


async def end(running: Runner, call: str) -> None:
    run = await running.find(await running.store.run_of(call) or "")
    assert story.PAUSE_ANSWER in (await run.wait()).output


async def together(client: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as clients:
        for _ in range(CLIENTS):
            clients.create_task(client())


def since(begin: int) -> float:
    """Seconds."""
    return (time.perf_counter_ns() - begin) / 1e9


def say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    asyncio.run({"pause": pause, "answer": answer}[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
