"""A server as the tests meet it: real, on loopback, with an agent that plays a script, and a plain HTTP client."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from msgspec import json

from farhand import Agent, scripted, tool
from farhand.asgi import App, create_app
from farhand.asgi.access.principal import Principal
from farhand.asgi.access.tokens import Tokens
from farhand.core.messages import ToolMessage, UserMessage
from farhand.models import Model, Request, Turn, Use
from farhand.protocols.sse import Reader, ServerEvent
from farhand.testing.server import served
from farhand.tool import Tool

ANN = "ann-has-a-token-of-her-own"
BEN = "ben-has-a-token-of-his-own"
EVE = "eve-may-answer-and-nothing-else"
PEOPLE = {
    ANN: "ann",
    BEN: "ben",
    EVE: Principal("eve", frozenset({"answer"})),
}


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


pick = tool.define("pick", input={"type": "object", "properties": {"n": {"type": "integer"}}}, description="Pick one.")
TOOLS: tuple[Tool[Any, Any], ...] = (add, pay, pick)


def by_word(request: Request) -> Any:
    """Calls the tools that the user names, with the numbers behind them, and then says what came of it."""
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return f"so: {last.text}"
    assert isinstance(last, UserMessage)
    words = last.text.split()
    uses = {"add": {"a": 1, "b": 2}, "pay": {"amount": 5}, "pick": {"n": 3}}
    asked = [Use(word, uses.get(word, {})) for word in words if word in {known.name for known in request.tools}]
    return Turn("", *asked) if asked else f"you said: {last.text}"


class Office:
    """One server and one who asks it."""

    def __init__(self, app: App, http: httpx2.AsyncClient) -> None:
        self.app = app
        self.http = http

    async def ask(
        self, method: str, path: str, body: Any = None, *, token: str = ANN, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """One request."""
        return await self.http.request(method, path, json=body, headers=bearer(token) | dict(headers or {}))

    async def got(self, method: str, path: str, body: Any = None, *, token: str = ANN) -> Any:
        """The JSON that a request is answered with; it has to be a success."""
        response = await self.ask(method, path, body, token=token)
        assert response.is_success, response.text
        return response.json() if response.content else None

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Any = None, *, token: str = ANN, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator["Events"]:
        """An event stream."""
        asked = bearer(token) | {"accept": "text/event-stream"} | dict(headers or {})
        async with self.http.stream(method, path, json=body, headers=asked, timeout=20) as response:
            if not response.is_success:
                await response.aread()
            assert response.is_success, response.text
            yield Events(response)


class Events:
    """The events of a stream, one after another."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.last = ""
        """Id of the last one."""
        self._events = self._read()

    async def _read(self) -> AsyncIterator[ServerEvent]:
        reader = Reader()
        async for chunk in self.response.aiter_bytes():
            for event in reader.feed(chunk):
                yield event

    async def next(self, kind: str = "") -> dict[str, Any]:
        """The next one, or the next of a kind."""
        async for event in self._events:
            self.last = event.id
            value = json.decode(event.data)
            if not kind or value["type"] == kind:
                return value
        raise EOFError(kind)

    async def rest(self) -> list[dict[str, Any]]:
        """All that come until the stream ends."""
        return [json.decode(event.data) async for event in self._events]


def bearer(token: str) -> dict[str, str]:
    """The header that a token is sent in."""
    return {"authorization": f"Bearer {token}"} if token else {}


@asynccontextmanager
async def office(
    reply: Callable[[Request], Any] = by_word,
    *,
    model: Model | None = None,
    tools: tuple[Tool[Any, Any], ...] = TOOLS,
    store: str = "memory:",
    agent: Mapping[str, Any] | None = None,
    server: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncGenerator[Office]:
    """A server for as long as this is entered."""
    settings = {"authenticate": Tokens(PEOPLE)} | settings
    app = create_app(
        Agent(model or scripted(reply), tools=tools, **(agent or {})),
        store=store,
        **settings,
    )
    async with served(app, **(server or {})) as url, httpx2.AsyncClient(base_url=f"{url}/v1") as http:
        yield Office(app, http)
