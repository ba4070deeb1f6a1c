"""The part of the contract that says who is there: rows for connections that are open, and how far clients are.

None of it is kept: an export leaves it out, and it means nothing once its process is dead.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class ClientRow(Struct, frozen=True, kw_only=True):
    """A connection of a client, for as long as it is open."""

    connection: str
    client: str
    principal: str
    thread: str = ""
    """The one that it is there for; empty: a provider, which is there for any of its principal's."""
    worker: str
    """The process that it is connected to."""
    offers: tuple[str, ...] = ()
    """Names of tools that it runs; `*` is all."""
    tools: bytes = b""
    """Definitions of its own, as a JSON array; or nothing."""
    closing: bool = False
    """It has ended, and what it leaves behind is yet to be seen to, by its worker."""
    since: int


class ProgressRow(Struct, frozen=True, kw_only=True):
    """The last that a client has said of how far its call is."""

    call: str
    run: str
    name: str
    value: bytes
    """JSON."""
    at: int


class PresenceStore(Protocol):
    """Who is there."""

    async def attach(self, row: ClientRow) -> None:
        """A connection is open, or as it is now if it is known."""
        ...

    async def detach(self, connection: str) -> None:
        """Nothing is left of a connection."""
        ...

    async def clients(self, principal: str, thread: str) -> Sequence[ClientRow]:
        """Who is there for a thread, providers too, oldest first; with an empty thread only these.

        None that is closing, and none whose worker is gone.
        """
        ...

    async def orphans(self, worker: str, limit: int) -> Sequence[ClientRow]:
        """Connections whose worker is gone: they are closing from now on, and the worker's that is given.

        With them come those of his that are closing already, so that none is forgotten whose reply was lost.
        """
        ...

    async def tell(self, row: ProgressRow) -> None:
        """How far an open call is, in place of what was said of it before. Other processes are told where to look."""
        ...

    async def told(self, run: str) -> Sequence[ProgressRow]:
        """How far the open calls of a run are, as far as something was said since they last changed."""
        ...
