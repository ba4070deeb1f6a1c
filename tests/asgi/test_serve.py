"""A server process: it says where it is, stops without losing anything, and goes on where it was killed."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from farhand import Agent, scripted
from farhand.asgi import create_app
from farhand.asgi.access import Tokens
from farhand.asgi.serve import make_server
from farhand.core.errors import UsageError
from tests.asgi.story import ANN, Office

PROGRAM = """
import sys
from farhand import Agent, scripted, serve
from farhand.asgi.access import Loopback
from tests.asgi.story import ANN, TOOLS, by_word
serve(Agent(scripted(by_word), tools=TOOLS), port=0, store=sys.argv[1], authenticate=Loopback(ANN))
"""


class Process:
    """One life of a server."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, said: str) -> None:
        self.process = process
        self.url = url
        self.said = said


@asynccontextmanager
async def process(store: Path) -> AsyncGenerator[Process]:
    running = await asyncio.create_subprocess_exec(
        *[sys.executable, "-c", PROGRAM, f"sqlite:{store}"], stdout=asyncio.subprocess.PIPE
    )
    assert running.stdout is not None
    try:
        said = (await running.stdout.readline()).decode()
        [url] = re.findall(r"http://\S+", said)
        yield Process(running, url, said)
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()


@asynccontextmanager
async def at(server: Process) -> AsyncGenerator[Office]:
    async with httpx2.AsyncClient(base_url=f"{server.url}/v1") as http:
        yield Office(create_app(Agent(scripted([])), store="memory:"), http)


async def test_it_says_where_it_is_and_what_its_token_is(tmp_path: Path) -> None:
    async with asyncio.timeout(30), process(tmp_path / "runs.db") as server, at(server) as office:
        assert ANN in server.said
        assert (await office.got("GET", "/server"))["principal"] == "local"


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda ends: ends.name)
async def test_a_run_that_waits_goes_on_after_the_server_was_stopped_or_killed(
    tmp_path: Path, ends: signal.Signals
) -> None:
    async with asyncio.timeout(60):
        async with process(tmp_path / "runs.db") as server, at(server) as office:
            begin = {"input": "pick", "wait": "turn"}
            async with office.stream("POST", "/threads/t/runs", begin) as events:
                call = (await events.rest())[-1]["call_ids"][0]
            async with office.stream("GET", "/threads/t/updates?after=99") as watching:
                server.process.send_signal(ends)
                if ends is not signal.SIGKILL:
                    assert await watching.rest() == []  # ended in an orderly way
                    assert await server.process.wait() in (0, -ends)
                else:
                    assert await server.process.wait() == -ends
        async with process(tmp_path / "runs.db") as server, at(server) as office:
            await office.got("POST", f"/calls/{call}/result", {"result": 4})
            async with office.stream("GET", "/threads/t/updates") as events:
                assert (await events.next("run-ended"))["output"] == "so: 4"


async def test_it_does_not_listen_to_everybody_unless_it_is_told_who_may_come_in() -> None:
    agent = Agent(scripted([]))
    with pytest.raises(UsageError, match="authenticate"):
        make_server(create_app(agent, store="memory:"), host="0.0.0.0")
    make_server(create_app(agent, store="memory:", authenticate=Tokens({ANN: "ann"})), host="0.0.0.0")
