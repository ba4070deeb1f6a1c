"""A server process that the command line starts: who may come in, where it listens, what it says, how it stops."""

import asyncio
import errno
import logging
import os
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, json

from farhand import __version__
from farhand.agent import Agent
from farhand.asgi.access.base import Authenticate
from farhand.asgi.access.gate import FirstOf
from farhand.asgi.access.loopback import Loopback
from farhand.asgi.access.principal import EVERYTHING, Principal
from farhand.asgi.access.tokens import Tokens
from farhand.asgi.app import App, create_app
from farhand.asgi.serve import LOOPBACK, Server, make_server
from farhand.cli.opening import named, shown
from farhand.cli.output import write_json
from farhand.cli.remote import TOKEN, TOKEN_FILE, read_token
from farhand.cli.serve import Access, Style
from farhand.core.errors import FarhandError, UsageError
from farhand.stores import open_store
from farhand.stores.base import Store
from farhand.telemetry.logs import configure_logs

ANY: Final = ("0.0.0.0", "::")  # noqa: S104  told apart, not listened on
LOCAL: Final = "local"
MEMORY: Final = "memory:"


class Listening(Struct, frozen=True):
    """Where a server listens; it moves to any free port if it may."""

    host: str
    port: int
    moves: bool = False

    def open(self) -> socket.socket:
        """The socket, or in words why it cannot be had."""
        try:
            return _listen(self.host, self.port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and self.moves:
                return _listen(self.host, 0)
            raise _why(error, self) from error


class Ready(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `--json` says when the server takes requests."""

    url: str
    token: str = ""
    """One that was made up; one that was given is not repeated."""
    agents: tuple[str, ...] = ()
    store: str = ""


def serve(
    agents: Sequence[Agent[Any]],
    listening: Listening,
    *,
    store: str,
    access: Access,
    style: Style,
    as_json: bool,
    say: str,
) -> None:
    """Serve until SIGINT or SIGTERM; what is under way then is kept."""
    app, made_up = application(agents, listening.host, store=store, access=access)
    found = listening.open()
    host, port = found.getsockname()[:2]
    server = make_server(app, host=listening.host, port=port, signals=False)
    configure_logs(json=style.log == "json", level=logging.ERROR if style.quiet else logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # that it begins and ends is told here
    ready = Ready(
        url=_url(access.host_name, listening.host, host, port),
        token=made_up,
        agents=tuple(agent.name for agent in agents),
        store=shown(store),
    )

    def tell() -> None:
        if as_json:
            write_json(ready)
        elif not style.quiet:
            print("\n".join(_greeting(ready, say)))
        sys.stdout.flush()

    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(look_at(store))
        try:
            runner.run(_until_told(server, found, tell))
        except SystemExit as error:  # so uvicorn ends when the application does not begin
            raise FarhandError("the server could not begin; the log says why") from error
    if not style.quiet and not as_json:
        print("stopped" if store == MEMORY else "stopped; runs that are under way go on at the next start")


def application(agents: Sequence[Agent[Any]], host: str, *, store: str, access: Access) -> tuple[App, str]:
    """The application, and the token that was made up for it, if one was."""
    ways = _ways(host, access)
    hosts = _hosts(host, access.host_name)
    made_up = Loopback(hosts=hosts, origins=access.origin) if not ways else None
    authenticate = made_up or (ways[0] if len(ways) == 1 else FirstOf(*ways))
    app = create_app(*agents, store=store_of(store), authenticate=authenticate, hosts=hosts, origins=access.origin)
    return app, "" if made_up is None else made_up.token


def store_of(url: str) -> Store:
    """A store for a server; one in memory will do."""
    return open_store(url) if url == MEMORY else named(url)


def _ways(host: str, access: Access) -> list[Authenticate]:
    """The ways to be known that were asked for."""
    here = host in LOOPBACK
    ways: list[Authenticate] = []
    token = _token(access)
    if token and here:
        ways.append(Loopback(token, hosts=access.host_name, origins=access.origin))
    elif token:
        ways.append(Tokens({token: Principal(LOCAL, EVERYTHING)}))
    if access.tokens is not None:
        ways.append(Tokens(access.tokens))
    if access.jwks:
        ways.append(_jwt(access))
    elif access.issuer or access.audience:
        raise UsageError("--issuer and --audience are about JWTs; name the keys with --jwks")
    if not ways and not here:
        raise UsageError(
            f"on {host} anybody could come in: say who may with --token-file, --tokens or --jwks, or stay on 127.0.0.1"
        )
    return ways


def _token(access: Access) -> str:
    if access.token:
        return access.token
    if access.token_file is not None:
        return read_token(access.token_file)
    if os.environ.get(TOKEN):
        return os.environ[TOKEN]
    return read_token(Path(os.environ[TOKEN_FILE])) if os.environ.get(TOKEN_FILE) else ""


def _jwt(access: Access) -> Authenticate:
    if not (access.issuer and access.audience):
        raise UsageError("--jwks needs --issuer and --audience: whose JWTs, and for whom")
    from farhand.asgi.access import Jwt  # it has an extra of its own

    return Jwt(access.jwks, issuer=access.issuer, audience=access.audience)


def _hosts(host: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that requests may call it by; none are the names of this machine to itself."""
    if names or host in LOOPBACK:
        return names
    if host in ANY:
        raise UsageError(
            f"on {host} it is reached by a name, which has to be known: --host-name agents.example.com, "
            "or --host-name '*' if a proxy before it knows the names"
        )
    return (f"[{host}]" if ":" in host else host,)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=8192)


def _why(error: OSError, listening: Listening) -> FarhandError:
    host, port = listening.host, listening.port
    if error.errno == errno.EADDRINUSE:
        return FarhandError(f"port {port} of {host} is taken: stop what runs there, or choose another --port")
    if error.errno == errno.EACCES:
        return FarhandError(f"port {port} is not for everybody: choose a --port above 1023")
    return FarhandError(f"this machine cannot listen on {host}: {error.strerror or error}")


def _url(names: Sequence[str], wanted: str, host: str, port: int) -> str:
    name = next((name for name in names if name != "*"), wanted if wanted not in ANY else host)
    if ":" in name and not name.startswith("["):
        name = f"[{name}]" if name.count(":") > 1 else name
    return f"http://{name}" if ":" in name.rpartition("]")[2] else f"http://{name}:{port}"


def _greeting(ready: Ready, say: str) -> list[str]:
    lines = [f"farhand {__version__} serves {', '.join(ready.agents)} at {ready.url}"]
    lines.append(f"  runs are kept in {ready.store}")
    if ready.token:
        lines.append(f"  token for this start: {ready.token}")
    where = "in another terminal" if ready.token else f"in another terminal, with your token in ${TOKEN}"
    return [*lines, "", f"Try {where}:", *tips(ready, say), "", "Ctrl-C stops it.", ""]


def tips(ready: Ready, say: str) -> list[str]:
    """Commands that work as they are when they are pasted; with a token of one's own, where $FARHAND_TOKEN has it."""
    me = _command()
    where = f"{ready.url}/#token={ready.token}" if ready.token else ready.url
    token = ready.token or f"${TOKEN}"
    sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "text/event-stream"}
    headers = " ".join(f'-H "{name}: {value}"' for name, value in sent.items())
    body = json.encode({"input": say}).decode()
    return [
        f"  {me} chat {shlex.quote(where)}",
        f"  curl -N {ready.url}/v1/threads/hello/runs {headers} -d {shlex.quote(body)}",
        f"  {me} runs list {shlex.quote(where)}",
    ]


def _command() -> str:
    """How this program is called from anywhere."""
    mine = Path(sys.argv[0])
    if mine.name == "__main__.py" or not mine.exists():
        return f"{shlex.quote(sys.executable)} -m farhand"
    found = shutil.which("farhand")
    return "farhand" if found and Path(found).samefile(mine) else shlex.quote(str(mine.absolute()))


async def look_at(url: str) -> None:
    """Open the store once before the server does, so that what is wrong with it is told in a line."""
    if url != MEMORY:
        found = named(url)
        await found.open()
        await found.close()


@asynccontextmanager
async def begun(server: Server, found: socket.socket) -> AsyncGenerator["asyncio.Future[None]"]:
    """A server that takes requests, in this event loop; gives what is done when it has stopped. It stops with this."""
    serving = asyncio.ensure_future(server.serve([found]))
    ready = asyncio.ensure_future(server.ready.wait())
    try:
        await asyncio.wait((serving, ready), return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        yield serving
    finally:
        ready.cancel()
        server.should_exit = True
        await asyncio.wait((serving,))


async def _until_told(server: Server, found: socket.socket, tell: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    async with begun(server, found) as serving:
        tell()
        await serving
