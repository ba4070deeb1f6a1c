"""A client of a Farhand server: conversations with its agents, and tools that those agents may use here."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypedDict, Unpack, overload
from urllib.parse import parse_qs, urldefrag
from uuid import uuid4

import httpx2
from msgspec import structs

from farhand.client.approvals import Approvals
from farhand.client.credentials import Credentials, Token
from farhand.client.events import AutoRetry, EventName, Events, Handler
from farhand.client.hands import OnApproval
from farhand.client.kit import Kit
from farhand.client.patience import USUAL, Patience
from farhand.client.pool import CLOSING, Pool
from farhand.client.provider import Provider
from farhand.client.thread import Thread
from farhand.client.toolbox import AnyGroup, Toolbox
from farhand.client.verbs import Verbs
from farhand.client.wire import Wire, checked_id
from farhand.core.definition import Definition
from farhand.core.errors import UsageError
from farhand.plugins import Plugin
from farhand.plugins.plugin import AnyTool, Executor
from farhand.protocols.native import Receipt
from farhand.tool import FunctionTool, Out, P, Settings, Tool, ToolDecorator, tool

URL = "FARHAND_URL"
TOKEN = "FARHAND_TOKEN"  # noqa: S105  the name of a variable


NO_FUNCTIONS: Mapping[str, Executor] = {}
"""The tools of a group have theirs."""


class ClientSettings(TypedDict, total=False):
    """What can be said of a client besides its server and who it is."""

    id: str | None
    """What the client is called; made up if it is left out. Calls that it has taken up are known by it, so that two
    clients at the same time need two."""
    max_tool_rounds: int
    """Of each run: replies of the model whose calls are run here; 5. 0 is no limit."""
    max_parallel: int
    """Functions that run at the same time; 16. Further calls are left to other clients until there is room."""
    tool_timeout: float | None
    """Seconds that a function may take whose tool says nothing. Left out, only the server's deadline counts."""
    on_approval: OnApproval | None
    """Decides for the person: gets a `Call`, gives True, False, `Approve(…)` or `Deny(…)`."""
    show_errors: bool
    """Show the text of every exception to the model; for development."""
    patience: Patience
    """How long to put up with a server that cannot be reached; `Patience()`."""
    http: httpx2.AsyncClient | None
    """An `httpx2.AsyncClient` of your own, for proxies and certificates; you close it."""


class Client(Verbs):
    """`async with Client(url, token=…) as client`. It holds no conversation; `client.thread("name")` is one."""

    def __init__(self, url: str | None = None, *, token: Token = None, **settings: Unpack[ClientSettings]) -> None:
        where, given = _address(url, token)
        self._events = Events()
        wire = Wire(
            where,
            Credentials(given),
            patience=settings.get("patience", USUAL),
            on_retry=lambda attempt, delay, error: self._events.tell(AutoRetry(attempt, delay, error)),
            http=settings.get("http"),
        )
        super().__init__(wire, checked_id(settings.get("id") or f"client-{uuid4().hex}"))
        toolbox = Toolbox()
        self._kit = Kit(
            id=self.id,
            wire=wire,
            events=self._events,
            toolbox=toolbox,
            pool=Pool(
                wire,
                self._events,
                toolbox.plugins,
                client=self.id,
                parallel=settings.get("max_parallel", 16),
                timeout=settings.get("tool_timeout"),
                show_errors=settings.get("show_errors", False),
            ),
            approvals=Approvals(wire, self._events),
            on_approval=settings.get("on_approval"),
            max_tool_rounds=settings.get("max_tool_rounds", 5),
        )

    async def close(self) -> None:
        """Stop what runs here, tell the server of it, and close all connections. Runs go on at the server."""
        await self._kit.approvals.close()
        await self._kit.pool.close()
        await self._events.close(CLOSING)
        await self._wire.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Client {self.id!r} of {self._wire.url}>"

    # Conversations

    def thread(self, name: str | None = None) -> Thread:
        """A conversation, by a name of your own; a new one without."""
        return Thread(self._kit, name or uuid4().hex)

    # Tools

    @overload
    def tool(
        self, function: Callable[P, Coroutine[Any, Any, Out]], /
    ) -> FunctionTool[P, Out, Coroutine[Any, Any, Out]]: ...

    @overload
    def tool(self, function: Callable[P, Out], /) -> FunctionTool[P, Out, Out]: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        needs_approval: bool = False,
        output: Any = None,
        **settings: Unpack[Settings],
    ) -> ToolDecorator: ...

    def tool(self, function: Callable[..., Any] | None = None, /, **settings: Any) -> Any:
        """`@client.tool`, as `farhand.tool`: the signature is the definition, and the function runs here."""
        made: Any = tool(**settings)

        def make(function: Callable[..., Any]) -> Any:
            return self._kit.toolbox.add(made(function))

        return make if function is None else make(function)

    def register(self, given: AnyTool, function: Executor | None = None) -> Tool[Any, Any]:
        """A tool of this client's own, sent with every run. Without a function, `on_tool_call` answers its calls."""
        return self._kit.toolbox.add(given, function)

    def register_group(self, group: AnyGroup, functions: Mapping[str, Executor] = NO_FUNCTIONS) -> None:
        """A group of tools that run here, all of them or none. It is sent with every run; the model opens it."""
        self._kit.toolbox.add_group(group, functions)

    def implement(self, given: AnyTool | str, function: Executor | None = None) -> None:
        """Run a tool that the server defines, by its name or its definition. Nothing but its name is sent."""
        self._kit.toolbox.implement(given, function)

    def unregister(self, name: str) -> None:
        """Neither bring nor run a tool any more. Runs that have begun keep it."""
        self._kit.toolbox.remove(name)

    @property
    def tools_offered(self) -> tuple[Definition, ...]:
        """The definitions that are sent: the client's own, and those of its plugins."""
        return tuple([each.definition for each in self._kit.toolbox.brought.values()])

    @property
    def tools_implemented(self) -> tuple[str, ...]:
        """The server's tools that run here."""
        return tuple(self._kit.toolbox.implemented)

    # Plugins

    async def use(self, *plugins: Plugin) -> Self:
        """Register plugins, each of them whole or not at all."""
        for plugin in plugins:
            await self._kit.toolbox.use(plugin, self)
        return self

    async def unuse(self, name: str) -> None:
        """Remove a plugin with all it brought."""
        await self._kit.toolbox.unuse(name)

    def has_plugin(self, name: str) -> bool:
        """Whether a plugin of this name is registered."""
        return name in self._kit.toolbox.plugins

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """In the order of their registration."""
        return self._kit.toolbox.plugins.names

    # Calls

    async def release(self, call_id: str) -> Receipt:
        """Give back a call that this client has taken up: any other may take it up, this one only with `claim`."""
        self._kit.pool.leave_alone(call_id)
        return await super().release(call_id)

    # Events

    def on(self, event: EventName, handler: Handler) -> Callable[[], None]:
        """Call `handler` with each event of this name; gives the function that ends that."""
        return self._events.on(event, handler)

    # Providing

    async def provide(self) -> None:
        """Offer the tools to all threads of this principal while this runs. It never gives a lost server up."""
        await self._provider().run()

    @asynccontextmanager
    async def providing(self) -> AsyncGenerator[Self]:
        """`async with client.providing()`: the same meanwhile. The tools are offered when this is entered."""
        provider = self._provider()
        running = asyncio.create_task(provider.run())
        there = asyncio.create_task(provider.there.wait())
        try:
            await asyncio.wait((running, there), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            yield self
            if running.done():
                running.result()
        finally:
            there.cancel()
            running.cancel()
            await asyncio.wait((running, there))

    def _provider(self) -> Provider:
        return Provider(self._kit, structs.replace(self._wire.patience, total=None))


def _address(url: str | None, token: Token) -> tuple[str, Token]:
    """Where the server is and who one is there: what is given, what the URL says after `#`, and the environment."""
    given = url or os.environ.get(URL, "").strip()
    if not given:
        raise UsageError(f"there is no server: Client(url, token=…), or set {URL} and {TOKEN}")
    plain, fragment = urldefrag(given)
    named = parse_qs(fragment).get("token", [""])[0]
    if fragment and not named:
        raise UsageError("after # the URL of a server has nothing but token=…")
    return plain, token if token is not None else named or os.environ.get(TOKEN, "").strip() or None
