"""Clients who answer nothing, ask for too much, send too much, read nothing or say nothing: the others are served, and
nothing of the bad ones is left when they are gone. What that costs the others, the bench measures.
"""

import asyncio
import gc
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx2

from farhand import tool
from farhand.asgi.access.quota import REFUSALS, Quota
from farhand.asgi.connections import Connection, room
from farhand.models import Turn
from tests.asgi.story import ANN, BEN, Office, office

SOME = 20
DESCRIPTORS = Path("/proc/self/fd")
MEGABYTE = 1 << 20
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


async def be_served(at: Office) -> None:
    """Somebody who does as he should gets what he asks for."""
    async with at.stream("POST", f"/threads/{os.urandom(4).hex()}/runs", {"input": "hello"}, token=BEN) as events:
        assert (await events.rest())[-1]["output"] == "you said: hello"


def there() -> tuple[int, int]:
    """Tasks and descriptors of this process, in which the server is."""
    return len(asyncio.all_tasks()), len(os.listdir(DESCRIPTORS)) if DESCRIPTORS.exists() else 0


@asynccontextmanager
async def nothing_left(at: Office) -> AsyncGenerator[None]:
    """Afterwards there is no more than there was before."""
    await be_served(at)
    tasks, descriptors = there()
    yield
    await be_served(at)
    while there()[0] > tasks or there()[1] > descriptors:
        await be_served(at)


@asynccontextmanager
async def apart(at: Office) -> AsyncGenerator[Office]:
    """The same with connections of its own, which end with it."""
    async with httpx2.AsyncClient(base_url=at.http.base_url) as http:
        yield Office(at.app, http)


class Raw:
    """A connection on which anything may be sent, or nothing."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def begin(self, request: str, *, size: int = 0) -> None:
        """The head of a request."""
        head = f"{request} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ANN}\r\n"
        head += f"Content-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: {size}\r\n\r\n"
        self.writer.write(head.encode())

    async def answer(self) -> bytes:
        """All that comes until the connection ends, or the head and some more of an answer."""
        try:
            return await self.reader.read(65_536)
        except ConnectionError:
            return b""


@asynccontextmanager
async def raw(at: Office) -> AsyncGenerator[Raw]:
    """One such connection."""
    reader, writer = await asyncio.open_connection(at.http.base_url.host, at.http.base_url.port)
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()


async def test_clients_that_never_answer_keep_nobody_from_being_served_and_every_call_has_an_outcome() -> None:
    mute = tool.define("pick", input=SCHEMA, description="Pick one.", timeout=0.3)
    async with (
        asyncio.timeout(30),
        office(tools=(mute,)) as at,
        nothing_left(at),
        apart(at) as bad,
        AsyncExitStack() as stack,
    ):
        streams: list[Any] = []
        for number in range(SOME):
            body = {"input": "pick", "client": f"c{number}", "offers": ["pick"]}
            streams.append(await stack.enter_async_context(bad.stream("POST", f"/threads/{number}/runs", body)))
        calls = [(await events.next("call-executing"))["call_id"] for events in streams]
        await be_served(at)
        for events in streams:
            assert (await events.rest())[-1]["type"] == "run-ended"
        found = [await at.got("GET", f"/calls/{call}") for call in calls]
        assert {call["outcome"] for call in found} == {"timed_out"}


async def test_a_flood_is_refused_and_the_others_are_served() -> None:
    async with asyncio.timeout(30), office(quota=Quota(requests=60)) as at, nothing_left(at), apart(at) as bad:
        asked = [asyncio.ensure_future(bad.ask("GET", "/server")) for _ in range(100)]
        await be_served(at)
        statuses = [(await each).status_code for each in asked]
        assert (statuses.count(200), statuses.count(429)) == (60, 40)


async def test_whoever_insists_on_being_refused_is_told_so_after_the_others_are_served() -> None:
    async with asyncio.timeout(30), office(quota=Quota(requests=1)) as at:
        for _ in range(REFUSALS + 1):
            await at.ask("GET", "/server")
        insisting = asyncio.ensure_future(at.ask("GET", "/server"))
        assert (await at.ask("GET", "/server", token=BEN)).status_code == 200
        assert not insisting.done()
        assert (await insisting).status_code == 429


async def test_a_bomb_is_refused_and_one_too_many_before_it_is_sent() -> None:
    async with asyncio.timeout(30), office(quota=Quota(bytes=2 * MEGABYTE)) as at, nothing_left(at):
        for _ in range(2):
            async with raw(at) as bomber:
                bomber.begin("POST /v1/threads/t/runs", size=MEGABYTE)
                bomber.writer.write(b"[" * MEGABYTE)
                assert (await bomber.answer()).startswith(b"HTTP/1.1 422")
        async with raw(at) as bomber:
            bomber.begin("POST /v1/threads/t/runs", size=MEGABYTE)
            assert (await bomber.answer()).startswith(b"HTTP/1.1 429")


async def test_who_reads_nothing_is_cut_off_and_what_waits_for_him_has_an_end() -> None:
    long = office(lambda _: Turn(["x" * MEGABYTE] * 3), stuck=0.2)
    async with asyncio.timeout(30), long as at, AsyncExitStack() as stack:
        address = (at.http.base_url.host, at.http.base_url.port)
        deaf = [stack.enter_context(closing(socket.socket())) for _ in range(5)]
        for each in deaf:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.setblocking(False)
            await asyncio.get_running_loop().sock_connect(each, address)
            head = f"GET /v1/threads/t/updates HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ANN}\r\n"
            await asyncio.get_running_loop().sock_sendall(each, f"{head}Accept: text/event-stream\r\n\r\n".encode())
        while len(at.app.streams) < len(deaf):
            await at.got("GET", "/server")
        tasks = len(asyncio.all_tasks())
        run = 0
        while len(at.app.streams):
            run += 1
            async with at.stream("POST", "/threads/t/runs", {"input": "go", "key": str(run)}) as events:
                await events.rest()
            assert unsent() < len(deaf) * 4 * MEGABYTE
        while unsent() or len(asyncio.all_tasks()) > tasks - len(deaf):
            await at.got("GET", "/server")


def unsent() -> int:
    """Bytes that the server keeps for connections which do not take them."""
    found = [each for each in gc.get_objects() if type(each) is Connection]  # others may answer for their class
    return sum(each.unsent for each in found if not each.transport.is_closing())


async def test_half_a_head_is_not_waited_for_even_if_it_grows() -> None:
    async with asyncio.timeout(30), office(server={"head": 0.2}) as at, nothing_left(at), AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(raw(at)) for _ in range(SOME)]
        for each in slow[:-1]:
            each.writer.write(b"GET /v1/server HTTP/1.1\r\nX-Slow: ")
        await be_served(at)
        ends = [asyncio.ensure_future(each.answer()) for each in slow]
        while not all(end.done() for end in ends):
            for each in slow[1:-1]:
                each.writer.write(b"a")
            await asyncio.sleep(0.02)
        assert {end.result() for end in ends} == {b""}


async def test_half_a_body_is_not_waited_for() -> None:
    async with asyncio.timeout(30), office(stuck=0.2) as at, nothing_left(at), AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(raw(at)) for _ in range(SOME)]
        for each in slow:
            each.begin("POST /v1/threads/t/runs", size=1000)
            each.writer.write(b'{"input":"')
        await be_served(at)
        for each in slow:
            answer = await each.answer()
            assert answer.startswith(b"HTTP/1.1 422")


async def test_where_there_are_too_many_those_go_who_have_asked_for_nothing() -> None:
    async with asyncio.timeout(30), office(server={"connections": 5}) as at, AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(raw(at)) for _ in range(SOME)]
        await be_served(at)
        for each in idle[: SOME - 5]:
            assert await each.answer() == b""
        async with at.stream("GET", "/threads/t/updates"), at.stream("GET", "/threads/t/updates"):
            await be_served(at)


async def test_whoever_is_being_served_has_to_make_room_for_nobody() -> None:
    async with (
        asyncio.timeout(30),
        office(server={"connections": 1}) as at,
        at.stream("GET", "/threads/t/updates") as events,
        raw(at) as newcomer,
    ):
        assert await newcomer.answer() == b""
        await at.app.drain()
        assert await events.rest() == []


def test_there_is_room_for_as_many_connections_as_there_are_descriptors() -> None:
    assert room(10) == 10
    assert 1 <= room(1 << 40) < 1 << 40
