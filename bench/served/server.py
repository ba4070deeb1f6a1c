"""The server of the served cases: Farhand on loopback, on a free port. Runs in Farhand's environment.

`server.py <store> [<seconds>]` prints one JSON line with its port, and stops when its standard input ends. With seconds
it has no longer patience than that: with those who say nothing and those who take nothing.
"""

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench import story
from bench.ours import Fake, client_tool
from bench.served import people
from farhand import Agent, tool
from farhand.asgi import App, create_app
from farhand.asgi.access.quota import Quota
from farhand.asgi.access.tokens import Tokens
from farhand.asgi.connections import HEAD
from farhand.asgi.serve import make_server
from farhand.core.messages import UserMessage
from farhand.core.pieces import Done, Piece, TextDelta
from farhand.models import Request

PACE = 0.02
"""Seconds between two pieces of a reply that comes at the pace of a model."""
BULK = "x" * 16_000
ANSWER = 30.0
"""Seconds that a client has for its call, where some never answer."""
NO_LIMIT = Quota(streams=None, runs=None, threads=None, calls=None, registrations=None, requests=None, bytes=None)


class Burst:
    """A model that says as many words as it is told, all at once."""

    name = "burst"

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        for number in range(int(said(request))):
            yield TextDelta(story.DELTAS[number % len(story.DELTAS)])
        yield Done()


class Bulky:
    """A model that says a lot at a time, for as many tenths of a second as it is told."""

    name = "bulky"

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        for _ in range(int(said(request))):
            yield TextDelta(BULK)
            await asyncio.sleep(0.1)
        yield Done()


class Paced:
    """A model that says what time it is, as often as it is told. It does not wait for whoever is late."""

    name = "paced"

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        for due in every(PACE, int(said(request))):
            await asyncio.sleep(due - time.perf_counter())
            yield TextDelta(f"{time.perf_counter_ns()} ")
        yield Done()


def said(request: Request) -> str:
    last = request.messages[-1]
    assert isinstance(last, UserMessage)
    return last.text


def every(seconds: float, times: int) -> Iterator[float]:
    begin = time.perf_counter()
    return (begin + seconds * number for number in range(times))


def agents(patience: float | None) -> list[Agent[Any]]:
    """The one that calls the client's tool is asked unless another one is named."""
    settings: dict[str, Any] = {} if patience is None else {"timeout": ANSWER}
    asked = tool.define(
        "sel", input=story.SCHEMA, output=story.RESULT_SCHEMA, description="Ask the client.", **settings
    )
    return [
        Agent(Fake(story.pause), tools=[client_tool() if patience is None else asked], name="pause"),
        Agent(Burst(), name="burst"),
        Agent(Paced(), name="paced"),
        Agent(Bulky(), name="bulky"),
    ]


def application(store: str, patience: float | None) -> App:
    """Limits are those that every server has by itself where bad clients are about, and else none."""
    settings: dict[str, Any] = {"quota": NO_LIMIT} if patience is None else {"stuck": patience}
    return create_app(*agents(patience), store=store, authenticate=Tokens(people.TOKENS), **settings)


async def main(store: str, patience: float | None) -> None:
    server = make_server(application(store, patience), port=0, signals=False, head=patience or HEAD)
    with socket.create_server(("127.0.0.1", 0), backlog=8192) as listening:
        serving = asyncio.create_task(server.serve([listening]))
        ready = asyncio.create_task(server.ready.wait())
        await asyncio.wait((serving, ready), return_when=asyncio.FIRST_COMPLETED)
        print(json.dumps({"port": listening.getsockname()[1]}), flush=True)
        await asyncio.to_thread(sys.stdin.read)
        server.should_exit = True
        await serving


if __name__ == "__main__":
    from uvicorn import Config

    given = sys.argv[2:]
    loop = Config(app="").get_loop_factory()
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main(sys.argv[1], float(given[0]) if given else None))
