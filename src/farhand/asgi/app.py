"""The application: a runner, the doors to it, and who may come in. It mounts in any ASGI server or application."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from farhand.agent import Agent
from farhand.asgi.access.base import Authenticate
from farhand.asgi.access.gate import Gate
from farhand.asgi.access.loopback import Loopback
from farhand.asgi.access.origins import Origins
from farhand.asgi.access.quota import Quota, Quotas
from farhand.asgi.board import Board
from farhand.asgi.bodies import MAX_BODY
from farhand.asgi.desk import ClientTools, Desk
from farhand.asgi.door import Door, path_of
from farhand.asgi.sighting import Sightings
from farhand.asgi.socket import Socket
from farhand.asgi.streams import HEARTBEAT, STUCK, Streams
from farhand.durable import Runner, Timing
from farhand.protocols.native import PREFIX
from farhand.runner.observer import Observer, Onlookers
from farhand.stores.base import Store
from farhand.telemetry.access_log import AccessLog
from farhand.telemetry.metrics import Metrics
from farhand.telemetry.subject import Subjects


class App:
    """An ASGI application for one runner. Its lifespan opens and closes the runner.

    In an application of your own, mount it and enter `app.lifespan()` in yours.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        authenticate: Authenticate,
        hosts: Sequence[str] = (),
        origins: Sequence[str] = (),
        quota: Quota | None = None,
        client_tools: ClientTools = "accept",
        max_body: int = MAX_BODY,
        heartbeat: float = HEARTBEAT,
        stuck: float = STUCK,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.runner = runner
        self.metrics = Metrics(version("farhand"))
        observers = (Subjects(), *observers, self.metrics, AccessLog())
        runner.observe(*observers)
        onlookers = Onlookers(observers)
        self.authenticate = authenticate
        self.streams = Streams(heartbeat, stuck)
        self.quotas = Quotas(quota or Quota(), runner.now)
        board = partial(Board, runner, self.metrics, self.streams)
        self.desk = Desk(runner, self.quotas, board, version=version("farhand"), client_tools=client_tools)
        self.door = Door(
            self.desk, Gate(authenticate), self.quotas, self.streams, onlookers=onlookers, max_body=max_body
        )
        self._socket = Socket(self.door)
        self._living = Starlette(lifespan=lambda _: self.lifespan())
        self._app = Sightings(Origins(self._route, hosts=hosts, origins=origins), onlookers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        await self._app(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._living(scope, receive, send)
            return
        path = path_of(scope)
        # Of any other path nothing is left, and there nothing is found.
        below = PREFIX if path == PREFIX or path.startswith(f"{PREFIX}/") else path
        await self._socket({**scope, "root_path": scope.get("root_path", "") + below}, receive, send)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """The runner is open in here."""
        async with self.runner:
            try:
                yield
            finally:
                await self.drain()

    async def drain(self) -> None:
        """Take no more work and end all streams; whoever reads them goes on elsewhere or after the restart."""
        self.desk.draining = True
        await self.streams.close()


def create_app(
    *agents: Agent[Any],
    store: Store | str = "sqlite:farhand.db",
    timing: Timing | None = None,
    authenticate: Authenticate | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    quota: Quota | None = None,
    client_tools: ClientTools = "accept",
    max_body: int = MAX_BODY,
    heartbeat: float = HEARTBEAT,
    stuck: float = STUCK,
    observers: Sequence[Observer] = (),
) -> App:
    """An application for agents. Without `authenticate` only this machine is let in, with a token that is made up."""
    return App(
        Runner(*agents, store=store, timing=timing or Timing()),
        authenticate=authenticate or Loopback(hosts=hosts, origins=origins),
        hosts=hosts,
        origins=origins,
        quota=quota,
        client_tools=client_tools,
        max_body=max_body,
        heartbeat=heartbeat,
        stuck=stuck,
        observers=observers,
    )
