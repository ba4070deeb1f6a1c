"""A connection of a client to this process: what it offers, and which calls it may run."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol

from farhand.core.admission import OWNER
from farhand.core.call import Call
from farhand.core.content_cache import ContentCache
from farhand.core.definition import Definition, safe_validate_tool_definitions
from farhand.core.presence import is_with_clients
from farhand.core.run import Run
from farhand.protocols.native import ProviderUpdate
from farhand.stores.presence import ClientRow

ALL = "*"
"""In place of a name: every tool."""


class Offers(Protocol):
    """The calls that a client may run, as they come and go."""

    def batches(self) -> AsyncGenerator[list[ProviderUpdate], None]: ...
    def end(self) -> None: ...


class Attachment:
    """Made by `Runner.attach`; `await close()` when the connection ends, however it does."""

    def __init__(
        self, row: ClientRow, close: "Callable[[Attachment], Awaitable[None]]", offers: "Callable[[Attachment], Offers]"
    ) -> None:
        self.row = row
        self.closed = False
        self.told = False
        """Whether every call knows that it is there."""
        self.moving = asyncio.Lock()
        """Held while it is said under which name its process is there."""
        self._close = close
        self._offers = offers

    @property
    def connection(self) -> str:
        """Its id."""
        return self.row.connection

    @property
    def client(self) -> str:
        """Whose it is, by a name of his own."""
        return self.row.client

    async def calls(self) -> AsyncGenerator[list[ProviderUpdate], None]:
        """The open calls that it may take up, then what changes about them, until it is closed.

        What is known together comes together. No attempt is offered twice, and whatever was offered and is gone (it
        has ended, is another attempt by now, or another client has it) is withdrawn.
        """
        offers = self._offers(self)
        try:
            async for batch in offers.batches():
                yield batch
        finally:
            offers.end()

    async def close(self) -> None:
        """The client is gone. Whoever misses it is told, also if this is cancelled."""
        await self._close(self)


def definitions_of(row: ClientRow) -> tuple[Definition, ...]:
    """A provider's own. They passed the limits of their process when it was attached."""
    if not row.tools:
        return ()
    known = _known.get(row.tools)
    if known is None:
        known = safe_validate_tool_definitions(row.tools, OWNER).data or ()
        _known.put(row.tools, known, len(row.tools))
    return known


_known: ContentCache[tuple[Definition, ...]] = ContentCache(8 << 20)


def offers(row: ClientRow, call: Call) -> bool:
    """Whether a client runs the tool of a call: by its name, or because the definition is its own."""
    if call.tool in row.offers or ALL in row.offers:
        return True
    return any(definition.pin == call.pin for definition in definitions_of(row))


def serves(row: ClientRow, call: Call, target: str = "") -> bool:
    """Whether a client has a call, or may take it up."""
    if not is_with_clients(call):
        return False
    if call.held_by:
        return call.held_by == row.client
    return target in ("", row.client) and offers(row, call)


def is_there(rows: "list[ClientRow]", run: Run, call: Call) -> bool:
    """Whether one of those who are connected runs a call."""
    return any(serves(row, call, run.target) for row in rows)
