"""`farhand serve`: a server for agents, from the command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from farhand.cli.extras import needing
from farhand.cli.objects import load_agent
from farhand.cli.options import Json
from farhand.core.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may come in, and under which names the server is reached."""

    token: str = ""
    """The one token, for you. Others on this machine can see it here; better in $FARHAND_TOKEN or in a file."""

    token_file: Path | None = None
    """A file with that token and nothing else, or $FARHAND_TOKEN_FILE."""

    tokens: Path | None = None
    """A file of tokens for several principals, TOML or JSON."""

    jwks: str = ""
    """JWTs are let in that were signed with one of these keys: the URL or the file of a JWK set."""

    issuer: str = ""
    """Who signs the JWTs."""

    audience: str = ""
    """For whom the JWTs are: the name of this server at their issuer."""

    host_name: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """A name by which the server is reached; needed where it is not on 127.0.0.1. `*` if a proxy knows the names."""

    origin: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """An origin whose pages may talk to the server, as in https://app.example.com."""


@dataclass(frozen=True, kw_only=True)
class Style:
    """How the server tells what it does."""

    log: Literal["plain", "json"] = "plain"
    """How the log is written, on the standard error."""

    quiet: Annotated[bool, Parameter(negative="")] = False
    """Say nothing but what is wrong."""


EVERYBODY = Access()
PLAIN = Style()


def serve(
    *agents: Annotated[str, Parameter(help="Where an agent is, or a function that makes it: `module:name`.")],
    host: str = "127.0.0.1",
    port: int = 8000,
    store: Annotated[str, Parameter(env_var="FARHAND_STORE")] = "sqlite:farhand.db",
    access: Annotated[Access, Parameter(name="*")] = EVERYBODY,
    style: Annotated[Style, Parameter(name="*")] = PLAIN,
    as_json: Json = False,
) -> None:
    """Serve agents until the process is told to stop.

    Parameters
    ----------
    host
        The address to listen on.
    port
        The port to listen on; 0 is any free one.
    store
        Where runs are kept.
    """
    if not agents:
        raise UsageError("serve what? name an agent as `module:name`; `farhand demo` has one of its own")
    serving = needing("server", "farhand.cli.serving")
    loaded = [load_agent(where) for where in agents]
    listening = serving.Listening(host, port)
    serving.serve(loaded, listening, store=store, access=access, style=style, as_json=as_json, say="hello")
