"""The bearer token of a connection: from its one place in the headers, never from the URL, which is written to logs.

Pages cannot set headers when they open a WebSocket. They offer the token as a subprotocol, `farhand.bearer.<token>`,
beside the one that they want to speak.
"""

import re
from typing import Final

from farhand.asgi.access.base import Connection, because

SUBPROTOCOL: Final = "farhand.bearer."
LONGEST: Final = 8192

# RFC 6750, section 2.1; the scheme in any case, RFC 9110, section 11.1
_BEARER = re.compile(r"bearer +([A-Za-z0-9\-._~+/]+=*) *", re.IGNORECASE)


def bearer_of(connection: Connection) -> str | None:
    """The token, or None if there is not exactly one."""
    given = connection.headers.getlist("authorization")
    offered: list[str] = connection.scope.get("subprotocols", [])
    given += [f"Bearer {each.removeprefix(SUBPROTOCOL)}" for each in offered if each.startswith(SUBPROTOCOL)]
    if not given:
        return None
    if len(given) > 1:
        return because(connection, "more than one credential")
    found = _BEARER.fullmatch(given[0])
    if found is None:
        return because(connection, "credentials that are no bearer token")
    if len(found[1]) > LONGEST:
        return because(connection, f"a token of more than {LONGEST} characters")
    return found[1]
