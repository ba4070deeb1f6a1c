"""Access by a header that a proxy sets for whoever has signed in. Believed only if the proxy itself sends it."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from farhand.asgi.access.base import Connection, because
from farhand.asgi.access.peer import peer_of
from farhand.asgi.access.principal import LONGEST, USUAL, Principal
from farhand.core.errors import InvalidInput

UNIX: Final = "unix"
"""As a network: whoever connects through a socket of this machine."""


class ProxyHeader:
    """Whoever the header names, sent by a peer in one of the trusted networks."""

    def __init__(self, header: str, *, trusted: Iterable[str], prefix: str = "", scopes: Iterable[str] = USUAL) -> None:
        if not header.isascii() or not header.replace("-", "").isalnum():
            raise InvalidInput(f"{header!r} is no header: write it with letters, digits and -, as in X-Forwarded-User")
        self._header = header.lower()
        self._networks, self._unix = _networks(trusted)
        self._prefix = prefix
        self._scopes = frozenset(scopes)
        Principal(f"{prefix}somebody", self._scopes)

    async def __call__(self, connection: Connection) -> Principal | None:
        """Whoever the proxy names."""
        found = [
            (name.decode("latin-1").lower(), value)
            for name, value in connection.headers.raw
            if name.decode("latin-1").lower().replace("_", "-") == self._header
        ]
        if not found:
            return None
        if not self._trusts(connection):
            return because(connection, f"{self._header} from a peer that is not trusted")
        if len(found) > 1 or found[0][0] != self._header:
            # A proxy that leaves what it was sent beside what it sets; servers take _ and - for the same in places.
            return because(connection, f"{self._header} more than once, or with _ in its name")
        name = _name(found[0][1])
        if not name or len(self._prefix + name) > LONGEST:
            return because(connection, f"{self._header} without a name that can be one")
        return Principal(self._prefix + name, self._scopes)

    def _trusts(self, connection: Connection) -> bool:
        if not connection.scope.get("client"):
            return self._unix
        peer = peer_of(connection)
        return peer is not None and any(peer in network for network in self._networks)


def _name(value: bytes) -> str:
    """The name, or nothing: spaces around it, a comma that joins two, what cannot be seen."""
    try:
        name = value.decode()
    except UnicodeDecodeError:
        return ""
    return name if name.isprintable() and name == name.strip() and "," not in name else ""


def _networks(trusted: Iterable[str]) -> tuple[list[IPv4Network | IPv6Network], bool]:
    entries = [trusted] if isinstance(trusted, str) else list(trusted)
    try:
        networks = [ip_network(entry) for entry in entries if entry != UNIX]
    except ValueError as error:
        raise InvalidInput(f"`trusted` takes networks, as in 10.1.0.0/16, or {UNIX!r}: {error}") from None
    if not entries or any(network.prefixlen == 0 for network in networks):
        raise InvalidInput("`trusted` names the networks of your proxies; with everybody in it, everybody is anybody")
    return networks, UNIX in entries
