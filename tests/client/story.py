"""A server and its client as the tests meet them: both real, on loopback; and a cable between them that can be cut."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from farhand import Agent, scripted, tool
from farhand.asgi import App, create_app
from farhand.asgi.access.tokens import Tokens
from farhand.client import Client, Patience
from farhand.core.messages import ToolMessage, UserMessage
from farhand.durable import Timing
from farhand.models import Model, Request, Turn, Use
from farhand.testing.server import served

ANN = "ann-has-a-token-of-her-own"
BEN = "ben-has-a-token-of-his-own"
QUICK = Patience(total=5.0, first=0.01, most=0.05)
"""So that a test does not wait."""

pick = tool.define("pick", input={"type": "object"}, output={"type": "object"}, description="Pick something.")


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def by_word(request: Request) -> Any:
    """Calls the tools that the user names, `name` or `name:{…}`, and then says what came of it."""
    at = max(at for at, message in enumerate(request.messages) if isinstance(message, UserMessage))
    told = [message.text for message in request.messages[at + 1 :] if isinstance(message, ToolMessage)]
    said = request.messages[at]
    assert isinstance(said, UserMessage)
    words = said.text.split()
    if told:
        return "so: " + ", ".join(told)
    uses = [
        Use(name, arguments or "{}")
        for name, _, arguments in (word.partition(":") for word in words)
        if name in offered(request)
    ]
    return Turn("", *uses) if uses else f"you said: {said.text}"


def offered(request: Request) -> set[str]:
    return {definition.name for definition in request.tools}


def again(tool: str, times: int, arguments: Any = None) -> Callable[[Request], Any]:
    """Calls one tool again and again."""

    def reply(request: Request) -> Any:
        told = sum(isinstance(message, ToolMessage) for message in request.messages)
        return Use(tool, arguments) if told < times and request.tools else f"after {told}"

    return reply


def app_of(*agents: Agent[Any], script: Any = by_word, tools: Iterable[Any] = (pick, pay), **settings: Any) -> App:
    model: Model = script if hasattr(script, "stream") else scripted(script)
    usual = {"store": "memory:", "timing": Timing(drain=0.1), "authenticate": Tokens({ANN: "ann", BEN: "ben"})}
    return create_app(*(agents or (Agent(model, tools=tools),)), **(usual | settings))


@asynccontextmanager
async def office(
    *agents: Agent[Any],
    script: Any = by_word,
    tools: Iterable[Any] = (pick, pay),
    app: App | None = None,
    **settings: Any,
) -> AsyncGenerator[Client]:
    """A server and its client; within ten seconds."""
    served_app = app or app_of(*agents, script=script, tools=tools)
    async with served_by(served_app) as url, client_of(url, **settings) as client:
        yield client


@asynccontextmanager
async def served_by(app: App) -> AsyncGenerator[str]:
    """A server, for ten seconds at most."""
    async with asyncio.timeout(10), served(app) as url:
        yield url


def client_of(url: str, **settings: Any) -> Client:
    return Client(url, **({"token": ANN, "patience": QUICK} | settings))


class Heard:
    """Every event of a client, and what it takes to wait for one."""

    def __init__(self, client: Client, *names: Any) -> None:
        self.events: list[Any] = []
        self._news = asyncio.Event()
        for name in names:
            client.on(name, self._hear)

    def _hear(self, event: Any) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, condition: Callable[[list[Any]], object]) -> list[Any]:
        while not condition(self.events):
            self._news.clear()
            await self._news.wait()
        return self.events


class Cable:
    """What lies between a client and its server, and can be cut and mended."""

    def __init__(self, url: str) -> None:
        there = urlsplit(url)
        self._there = (there.hostname, there.port)
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.connections = 0
        self.bytes_until_cut: int | None = None
        """Cut by itself once so many bytes have come from the server."""

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for end in self._ends:
            end.transport.abort()
        await asyncio.gather(*self._tasks)
        await self._server.wait_closed()

    def drop(self) -> None:
        """All that is connected now; whoever connects again gets through."""
        for end in self._ends:
            end.transport.abort()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        with suppress(OSError):
            there_reader, there_writer = await asyncio.open_connection(*self._there)
            self._ends |= {writer, there_writer}
            try:
                await asyncio.gather(self._pass(reader, there_writer), self._pass(there_reader, writer, count=True))
            finally:
                self._ends -= {writer, there_writer}
                for end in (writer, there_writer):
                    end.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, count: bool = False) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if count and self.bytes_until_cut is not None:
                    kept = data[: self.bytes_until_cut]
                    self.bytes_until_cut -= len(kept)
                    if not self.bytes_until_cut:
                        self.bytes_until_cut = None
                        writer.write(kept)
                        await writer.drain()
                        self.drop()
                        return
                writer.write(data)
                await writer.drain()
        with suppress(OSError, RuntimeError):
            writer.write_eof()


@asynccontextmanager
async def cabled(app: App, **settings: Any) -> AsyncGenerator[tuple[Client, Cable]]:
    """A server and its client with a cable between them; within fifteen seconds."""
    async with asyncio.timeout(15), served(app) as url:
        cable = Cable(url)
        await cable.mend()
        async with client_of(cable.url, **settings) as client:
            yield client, cable
        await cable.cut()
