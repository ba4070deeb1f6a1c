"""Access for programs and pages of this machine, by one token. What a server on 127.0.0.1 has unless told otherwise."""

import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from farhand.asgi.access.base import Connection, because
from farhand.asgi.access.bearer import bearer_of
from farhand.asgi.access.peer import peer_of
from farhand.asgi.access.principal import EVERYTHING, Principal
from farhand.asgi.access.site import Site
from farhand.core.errors import InvalidInput, NotAllowed, NotJson

SHORTEST: Final = 20
"""Characters of a token; 120 random bits take so many."""
RANDOM_BYTES: Final = 32


class Loopback:
    """Whoever has the token, connects from this machine, and is no page of somebody else."""

    def __init__(
        self,
        token: str | None = None,
        *,
        principal: str = "local",
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
    ) -> None:
        self.token = secrets.token_urlsafe(RANDOM_BYTES) if token is None else checked(token)
        self.site = Site(hosts, origins)
        self._digest = sha256(self.token.encode()).digest()
        self._principal = Principal(principal, EVERYTHING)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    async def __call__(self, connection: Connection) -> Principal | None:
        """The one principal, for its one token."""
        peer = peer_of(connection)
        if peer is None or not peer.is_loopback:
            return because(connection, "not from this machine")
        try:
            self.site.judge(connection.scope)
        except (NotAllowed, NotJson) as error:
            return because(connection, str(error))
        token = bearer_of(connection)
        if token is None:
            return None
        # Digests are compared, so that the time tells nothing of the length either.
        if not hmac.compare_digest(sha256(token.encode()).digest(), self._digest):
            return because(connection, "not the token of this server")
        return self._principal


def checked(token: str) -> str:
    """A token that somebody has chosen, if it can be sent and is long enough not to be guessed."""
    if len(token) < SHORTEST or not token.isascii() or not token.replace("-", "").replace("_", "").isalnum():
        raise InvalidInput(
            f"a token has at least {SHORTEST} letters, digits, - and _, drawn at random: "
            'python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    return token
