"""The load generator of the served cases: one process that talks to a server's port. Standard library only.

Round trips, bursts of updates, updates at the pace of a model, idle streams, and clients who do what they should while
others do not. Those others are in `hostile.py`, and in a process of their own.
"""

import asyncio
import itertools
import json
import os
import random
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import story
from bench.durable import trips as clock
from bench.served import people
from bench.served.wire import END, PIECE, Line

SEEN = b'"type":"call-executing"'
ENDED = b'"type":"run-ended"'
TEXT = b'"type":"text-streamed"'
THREADS = itertools.count()
PATIENCE = 60.0
WARM_UPS = 2_000
"""Updates."""
TOGETHER = 200
"""Streams that are opened at a time."""


def thread() -> str:
    return f"/threads/{os.getpid()}-{next(THREADS)}/runs"


class Client:
    """Somebody with a client tool: a connection for the stream of a run, another one for everything else.

    There are two of the first kind, in turns: a stream says a little later that it has ended than that the run has.
    """

    def __init__(self, streams: Sequence[Line], asking: Line, name: str) -> None:
        self.streams, self.asking, self.name = deque(streams), asking, name

    @classmethod
    async def open(cls, port: int, number: int) -> "Client":
        name = f"good{number % people.GOOD}"
        streams = [await Line.open(port, name) for _ in range(2)]
        return cls(streams, await Line.open(port, name), f"{name}-{number}")

    async def trip(self, *, claim: bool) -> int:
        """One run with one call; gives the time at which the call was seen."""
        watching, asking = self.streams[0], self.asking
        self.streams.rotate()
        if watching.unread:
            await watching.until(END)
        watching.send("POST", thread(), {"input": story.PROMPT, "client": self.name, "offers": ["sel"]}, stream=True)
        told = await watching.until(SEEN)
        seen = time.perf_counter_ns()
        call = told.partition(SEEN)[2].partition(b'"call_id":"')[2].partition(b'"')[0].decode()
        if claim:
            await asking.ask("POST", f"/calls/{call}/claim", {"client": self.name})
        await asking.ask("POST", f"/calls/{call}/result", {"result": story.CLIENT_RESULT})
        told = await watching.until(ENDED)
        assert story.PAUSE_ANSWER.encode() in told.partition(SEEN)[2]
        return seen

    def close(self) -> None:
        for line in (*self.streams, self.asking):
            line.close()


async def http(port: int, server: int, clients: int, seconds: float, claim: bool) -> dict[str, Any]:
    """Client-tool round trips, so many at a time."""
    idle = [await Client.open(port, number) for number in range(clients)]

    async def trip() -> int:
        client = idle.pop()
        try:
            return await client.trip(claim=claim)
        finally:
            idle.append(client)

    try:
        async with asyncio.timeout(PATIENCE + 2 * seconds):
            return await clock.measure(trip, clients, seconds, server)
    finally:
        for client in idle:
            client.close()


async def begin(port: int, number: int, body: dict[str, Any]) -> Line:
    """A run whose stream is to be read."""
    line = await Line.open(port, f"good{number % people.GOOD}")
    line.send("POST", thread(), body, stream=True)
    return line


async def burst(port: int, server: int, streams: int, updates: int) -> dict[str, Any]:
    """Updates a second on so many streams at once, and what an update costs the server."""
    await read_all(port, 0, WARM_UPS)
    cpu, start = clock.cpu_of(server), time.perf_counter()
    found = await asyncio.gather(*[read_all(port, number, updates) for number in range(streams)])
    wall, cpu = time.perf_counter() - start, clock.cpu_of(server) - cpu
    count = sum(count for count, _ in found)
    return {
        "count": count,
        "merged": streams * updates - count,
        "rate": count / wall,
        "cpu": cpu / count * 1e6,
        "reads": sum(reads for _, reads in found),
    }


async def read_all(port: int, number: int, updates: int) -> tuple[int, int]:
    """The updates of one stream that brought text, and how many reads they came in. All of the text has to be there."""
    line = await begin(port, number, {"input": str(updates), "agent": "burst"})
    pieces: list[bytes] = []
    last = b""
    while last != END:
        piece = await line.reader.read(PIECE)
        assert piece, "the stream broke off"
        pieces.append(piece)
        last = (last + piece)[-len(END) :]
    line.close()
    told = b"".join(pieces)
    written = sum(len(story.DELTAS[at % len(story.DELTAS)]) for at in range(updates))
    ending = json.loads(told.rpartition(b"data: ")[2].partition(b"\n")[0])
    assert (ending["type"], len(ending["output"])) == ("run-ended", written)
    return told.count(TEXT), len(pieces)


async def paced(port: int, server: int, streams: int, updates: int) -> dict[str, Any]:
    """Milliseconds from where an update is made to whoever reads it, when they come at the pace of a model."""
    found: list[int] = []

    async def read(number: int) -> None:
        await asyncio.sleep(random.random() / 2)  # so that they do not all speak at the same moment
        line = await begin(port, number, {"input": str(updates), "agent": "paced"})
        rest = b""
        while not rest.endswith(END):
            piece = await line.reader.read(PIECE)
            now = time.perf_counter_ns()
            assert piece, "the stream broke off"
            *events, rest = (rest + piece).split(b"\n\n")
            for event in events:
                if TEXT in event:
                    stamp = event.partition(b'"text":"')[2].partition(b'"')[0]
                    found.extend(now - int(each) for each in stamp.split())
        line.close()

    cpu, start = clock.cpu_of(server), time.perf_counter()
    await asyncio.gather(*[read(number) for number in range(streams)])
    wall, cpu = time.perf_counter() - start, clock.cpu_of(server) - cpu
    assert len(found) == streams * updates
    return {"count": len(found), "rate": len(found) / wall, "cpu": cpu / len(found) * 1e6, "late": clock.spread(found)}


async def idle(port: int, server: int, streams: int) -> dict[str, Any]:
    """Kilobytes of the server for each stream that has nothing to say, and what they cost it meanwhile."""

    async def watch(number: int) -> Line:
        line = await Line.open(port, f"good{number % people.GOOD}")
        line.send("GET", f"/threads/idle{number}/updates", stream=True)
        await line.until(b":\n\n")
        return line

    warm = [await watch(streams + number) for number in range(TOGETHER)]
    before = resident(server)
    lines: list[Line] = []
    for first in range(0, streams, TOGETHER):
        lines += await asyncio.gather(*[watch(number) for number in range(first, min(first + TOGETHER, streams))])
    await asyncio.sleep(1)
    full, cpu = resident(server), clock.cpu_of(server)
    await asyncio.sleep(5)
    cpu = (clock.cpu_of(server) - cpu) / 5
    for line in (*warm, *lines):
        line.close()
    await asyncio.sleep(2)
    return {"streams": streams, "each": (full - before) / streams, "cpu": cpu, "before": before, "full": full} | {
        "after": resident(server)
    }


def resident(server: int) -> float:
    """Kilobytes of a process in memory."""
    [line] = [line for line in Path(f"/proc/{server}/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return float(line.split()[1])


async def others(port: int, clients: int, pace: float, seconds: float) -> dict[str, Any]:
    """Round trips of clients who do as they should. They begin at a pace and wait for nobody: who is kept waiting
    begins late, and that counts."""
    taken: list[int] = []
    begun = time.perf_counter()

    async def client(number: int) -> None:
        one = await Client.open(port, number)
        due = begun + number * pace / clients
        while due < begun + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await one.trip(claim=True)
            taken.append(round((time.perf_counter() - due) * 1e9))
            due += pace
        one.close()

    async with asyncio.timeout(PATIENCE + 2 * seconds):
        await asyncio.gather(*[client(number) for number in range(clients)])
    return {"count": len(taken), "trip": clock.spread(taken)}
