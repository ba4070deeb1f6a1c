"""A server process: uvicorn with the settings that streams need, and an end that loses nothing."""

import asyncio
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

import uvicorn

from farhand.agent import Agent
from farhand.asgi.access.loopback import Loopback
from farhand.asgi.app import App, create_app
from farhand.asgi.connections import HEAD, KEEP_ALIVE, MOST, Connections, room
from farhand.core.errors import UsageError
from farhand.telemetry.logs import configure_logs

LOOPBACK = ("127.0.0.1", "::1", "localhost")
BACKLOG = 8192
"""Connections that wait to be accepted."""
DRAIN = 10
"""Seconds that requests have to come to their end when the server stops."""


class Server(uvicorn.Server):
    """Ends the streams first when it is told to stop: they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, app: App, *, signals: bool) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        """Set when it listens."""
        self._ours = app
        self._signals = signals

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """While it serves, SIGINT and SIGTERM stop it."""
        with super().capture_signals() if self._signals else nullcontext():
            yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the runner and listen."""
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, end the streams, let requests finish; the runner gives its runs back after that."""
        await self._ours.drain()
        await super().shutdown(sockets)


def make_server(
    app: App,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    signals: bool = True,
    head: float = HEAD,
    connections: int = MOST,
) -> Server:
    """A server for an application, to be run in an event loop of your own: `await make_server(app).serve()`.

    `head` is how many seconds the head of a request may take, `connections` how many there may be.
    """
    if host not in LOOPBACK and isinstance(app.authenticate, Loopback):
        raise UsageError(
            f"on {host} anybody could come in: say who may with authenticate=… (docs/access.md), or stay on 127.0.0.1"
        )
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Connections(stuck=app.streams.stuck, head=head, most=room(connections)).protocol(),
        lifespan="on",
        timeout_keep_alive=KEEP_ALIVE,
        log_config=None,
        log_level="info",  # below that it writes headers and whole frames
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws_max_size=app.door.max_body,
        timeout_graceful_shutdown=DRAIN,
        backlog=BACKLOG,
    )
    return Server(config, app, signals=signals)


def serve(
    *agents: Agent[Any],
    host: str = "127.0.0.1",
    port: int = 8000,
    log: Literal["plain", "json"] | None = None,
    **settings: Any,
) -> None:
    """Serve agents until the process is told to stop; 0 is any free port. Settings are those of `create_app`.

    With `log` it writes what happens to the standard error, one line each, with one for every request.
    """
    if log is not None:
        configure_logs(json=log == "json")
    app = create_app(*agents, **settings)
    server = make_server(app, host=host, port=port)
    with socket.create_server((host, port), backlog=BACKLOG) as listening:
        port = listening.getsockname()[1]
        where = f"http://{host}:{port}"
        if isinstance(app.authenticate, Loopback):
            where += f" with the token {app.authenticate.token}"
        sys.stdout.write(f"{where}\n")
        sys.stdout.flush()
        server.run([listening])
