"""The contract of access: a function from a connection to whoever is behind it.

Write your own where the built-in ones do not fit: give the principal, or None for whoever is not known, whatever the
reason. `because` keeps the reason for the log; the connection is told nothing but that it did not do.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from starlette.requests import HTTPConnection

from farhand.asgi.access.principal import Principal

Connection: TypeAlias = HTTPConnection
"""A request, or the opening of a WebSocket: headers and peer, no body."""

Authenticate: TypeAlias = Callable[[Connection], Awaitable[Principal | None]]

_REASONS: Final = "farhand.access.reasons"


def because(connection: Connection, reason: str) -> None:
    """Say why somebody is not known. Never the credential itself: this goes to the log."""
    connection.scope.setdefault(_REASONS, []).append(reason)


def forget(connection: Connection) -> None:
    """Begin anew: a socket is looked at for every one of its requests."""
    connection.scope.pop(_REASONS, None)


def reasons(connection: Connection) -> str:
    """All that was said."""
    return "; ".join(connection.scope.get(_REASONS, [])) or "no credentials"
