"""The one way in: who is it, and may they do this? Every endpoint asks here and nowhere else."""

import logging

from farhand.asgi.access.base import Authenticate, Connection, because, forget, reasons
from farhand.asgi.access.principal import PUBLIC, TELL, Principal, authorise
from farhand.core.errors import NotAllowed, NotAuthenticated

logger = logging.getLogger("farhand.access")


class FirstOf:
    """Several ways to be known: the first that knows somebody counts."""

    def __init__(self, *ways: Authenticate) -> None:
        self._ways = ways

    async def __call__(self, connection: Connection) -> Principal | None:
        """Whoever the first way knows."""
        for way in self._ways:
            principal = await way(connection)
            if principal is not None:
                return principal
        return None


class Gate:
    """Lets a connection in for an action, or raises."""

    def __init__(self, authenticate: Authenticate) -> None:
        self._authenticate = authenticate

    async def admit(self, connection: Connection, action: str) -> Principal | None:
        """Who is asking, if they may do this; None where everybody may. Raises `NotAuthenticated` and `NotAllowed`.

        What is raised says the same whatever was wrong with the credentials. The reason is in the log.
        """
        if action == PUBLIC:
            return None
        forget(connection)
        try:
            principal = await self._authenticate(connection)
        except NotAuthenticated as error:
            principal = because(connection, str(error))
        if principal is None:
            logger.info("refused %r to somebody unknown: %s", action, reasons(connection))
            raise NotAuthenticated(TELL)
        try:
            authorise(principal, action)
        except NotAllowed as error:
            logger.info("refused %r to %r: %s", action, principal.id, error)
            raise
        return principal
