"""Who is asking, and what they may do. `authorise` is the only place where that is decided."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from farhand.core.errors import InvalidInput, NotAllowed, NotAuthenticated

PUBLIC: Final = "public"
"""The action of endpoints that are open to everybody."""

SCOPES: Final[Mapping[str, str]] = {
    "chat": "Start and cancel runs; read one's own threads, runs and calls.",
    "answer": "Take on and answer one's own calls; offer tools.",
    "approve": "Decide about one's own calls.",
    "operate": "Read metrics and the details of readiness.",
}
"""What there is to be allowed. Every action but `public` is the name of one of them."""

EVERYTHING: Final = frozenset(SCOPES)
USUAL: Final = EVERYTHING - {"operate"}
"""For principals of whom nothing else is said."""

LONGEST: Final = 256
TELL: Final = "send a valid token: `Authorization: Bearer …`"
"""All that anybody is told whose credentials do not count. What exactly was wrong is in the log."""


class Principal(Struct, frozen=True):
    """Somebody who is known. Threads, runs and calls belong to the id."""

    id: str
    scopes: frozenset[str] = USUAL

    def __post_init__(self) -> None:
        if not 0 < len(self.id) <= LONGEST or not self.id.isprintable():
            raise InvalidInput(f"the id of a principal has 1 to {LONGEST} printable characters")
        if strange := self.scopes - EVERYTHING:
            raise InvalidInput(f"there is no scope {min(strange)!r}; there are {', '.join(SCOPES)}")


def authorise(principal: Principal | None, action: str) -> None:
    """Raise unless this principal may do this. What is not known to be allowed is refused."""
    if action == PUBLIC:
        return
    if principal is None:
        raise NotAuthenticated(TELL)
    if action not in SCOPES:
        raise NotAllowed("nobody may do this")
    if action not in principal.scopes:
        raise NotAllowed(f"this needs the scope {action!r}")
