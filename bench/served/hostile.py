"""Bad neighbours: one process, one kind at a time, until the time is over. Standard library only.

Each tells how many requests it has made, and what came of them where anything did.
"""

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from bench import story
from bench.served import people
from bench.served.client import SEEN, thread
from bench.served.wire import Line

BOMB = b"[" * (1 << 20)
SILENT, UNREAD, HALF, FLOODING, BOMBING = 1_000, 200, 500, 32, 8
WRITERS = 10
"""Runs whose text they share."""
FIRST_WRITER, FIRST_FLOODING, FIRST_BOMBING = 1000, 1010, 1020
"""Of the principals: each kind has used up its own share only."""
SMALL = 4096
"""Bytes that whoever reads nothing has room for."""
TOGETHER = 50

Kind = Callable[[int, float, "Counter[str]"], Awaitable[None]]


async def silent(port: int, until: float, seen: Counter[str]) -> None:
    """Begin runs that call a client's tool, and never answer."""
    lines: list[Line] = []

    async def one(number: int) -> None:
        line = await Line.open(port, name(number))
        lines.append(line)
        line.send("POST", thread(), {"input": story.PROMPT, "client": "mute", "offers": ["sel"]}, stream=True)
        await line.until(SEEN)
        seen["calls left alone"] += 1

    await in_groups(one, SILENT)
    await sleep_until(until)
    close(lines)


async def flood(port: int, until: float, seen: Counter[str]) -> None:
    """Ask as fast as the server answers; some for what is cheap, others for runs."""

    async def one(number: int) -> None:
        line = await Line.open(port, name(FIRST_FLOODING + number % 4))
        while time.perf_counter() < until:
            if number % 2:
                line.send("GET", "/threads/flood")
            else:
                line.send("POST", thread(), {"input": story.PROMPT, "wait": "turn"})
            status, _ = await line.answer()
            seen[str(status)] += 1
        line.close()

    await asyncio.gather(*[leaving(one, number, seen) for number in range(FLOODING)])


async def bombs(port: int, until: float, seen: Counter[str]) -> None:
    """Send a megabyte of opening brackets, again and again."""

    async def one(number: int) -> None:
        while time.perf_counter() < until:
            line = await Line.open(port, name(FIRST_BOMBING + number))
            line.writer.write(line.head("POST", thread(), len(BOMB)) + BOMB)
            status, _ = await line.answer()
            seen[str(status)] += 1
            line.close()

    await asyncio.gather(*[leaving(one, number, seen) for number in range(BOMBING)])


async def unread(port: int, until: float, seen: Counter[str]) -> None:
    """Have a long text streamed, megabytes to each, and read nothing of it."""
    sockets: list[socket.socket] = []
    for number in range(WRITERS):
        line = await Line.open(port, name(FIRST_WRITER + number))
        tenths = round((until - time.perf_counter()) * 10)
        await line.ask("POST", "/threads/bulky/runs", {"input": str(tenths), "agent": "bulky"})
        line.close()

    async def one(number: int) -> None:
        listening = socket.socket()
        sockets.append(listening)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        listening.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(listening, ("127.0.0.1", port))
        line = Line(None, None, name(FIRST_WRITER + number % WRITERS))  # type: ignore[arg-type]
        await loop.sock_sendall(listening, line.head("GET", "/threads/bulky/updates", 0, stream=True))
        seen["streams left unread"] += 1

    await in_groups(one, UNREAD)
    await sleep_until(until)
    for each in sockets:
        each.close()


async def slow(port: int, until: float, seen: Counter[str]) -> None:
    """Send half of a head, or half of a body, and from then on a byte now and then."""
    lines: list[Line] = []

    async def one(number: int) -> None:
        line = await Line.open(port, name(number))
        lines.append(line)
        head = line.head("POST", thread(), 1000)
        line.writer.write(head[:60] if number % 2 else head + b'{"input":"')
        seen["requests never ended"] += 1

    await in_groups(one, HALF)
    while time.perf_counter() < until:
        await asyncio.sleep(1)
        for line in lines:
            if not line.writer.is_closing():
                line.writer.write(b"a")
    seen["cut off by the server"] = sum(line.writer.is_closing() or line.reader.at_eof() for line in lines)
    close(lines)


KINDS: dict[str, Kind] = {"silent": silent, "flood": flood, "bombs": bombs, "unread": unread, "slow": slow}


async def hostile(port: int, kind: str, seconds: float) -> dict[str, Any]:
    """One kind for so long, or all of them. In life they have machines of their own: here they step back for others."""
    os.nice(15)
    seen: Counter[str] = Counter()
    until = time.perf_counter() + seconds
    await asyncio.gather(*[each(port, until, seen) for name, each in KINDS.items() if kind in {name, "all"}])
    return {"seen": dict(seen)}


def name(number: int) -> str:
    return f"bad{number % people.BAD}"


async def leaving(one: Callable[[int], Awaitable[None]], number: int, seen: Counter[str]) -> None:
    """It may be thrown out."""
    try:
        await one(number)
    except (OSError, asyncio.IncompleteReadError) as error:
        seen[type(error).__name__] += 1


async def in_groups(one: Callable[[int], Awaitable[None]], count: int) -> None:
    for first in range(0, count, TOGETHER):
        await asyncio.gather(*[one(number) for number in range(first, min(first + TOGETHER, count))])


async def sleep_until(when: float) -> None:
    await asyncio.sleep(max(0.0, when - time.perf_counter()))


def close(lines: list[Line]) -> None:
    for line in lines:
        line.close()
