"""Who is there, in the SQLite file."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from sqlite3 import Cursor
from typing import Any, TypeVar

import msgspec

from farhand.stores import sqlite_queries as sql
from farhand.stores.presence import ClientRow, ProgressRow
from farhand.stores.sqlite_changes import Rung
from farhand.stores.sqlite_rows import Found, columns, named, read

T = TypeVar("T")
Argument = TypeVar("Argument")


class SqlitePresence(ABC):
    """That part of the store in SQLite."""

    @abstractmethod
    def _ask(self, what: Callable[[Cursor, Rung, Argument], T], argument: Argument) -> "asyncio.Future[T]": ...

    @abstractmethod
    def _all(self, statement: str, arguments: tuple[Any, ...]) -> list[Found]: ...

    async def attach(self, row: ClientRow) -> None:
        """A connection is open."""
        await self._ask(_attach, row)

    async def detach(self, connection: str) -> None:
        """Nothing is left of it."""
        await self._ask(_detach, connection)

    async def clients(self, principal: str, thread: str) -> Sequence[ClientRow]:
        """Who is there."""
        return [_read_client(found) for found in self._all(sql.CLIENTS, (principal, thread))]

    async def orphans(self, worker: str, limit: int) -> Sequence[ClientRow]:
        """Connections whose worker is gone; most of the time there are none, and nothing is written."""
        if not self._all(sql.ORPHANS, (worker, 1)):
            return []
        return await self._ask(_orphans, (worker, limit))

    async def tell(self, row: ProgressRow) -> None:
        """How far a call is."""
        await self._ask(_tell, row)

    async def told(self, run: str) -> Sequence[ProgressRow]:
        """How far the calls of a run are."""
        return [read(ProgressRow, found) for found in self._all(sql.TOLD, (run,))]


def _attach(cursor: Cursor, rung: Rung, row: ClientRow) -> None:
    cursor.execute(sql.ATTACH, _client(row))


def _detach(cursor: Cursor, rung: Rung, connection: str) -> None:
    cursor.execute(sql.DETACH, (connection,))


def _orphans(cursor: Cursor, rung: Rung, asked: tuple[str, int]) -> list[ClientRow]:
    worker, limit = asked
    lost = [_read_client(found) for found in cursor.execute(sql.ORPHANS, (worker, limit)).fetchall()]
    taken = [msgspec.structs.replace(row, worker=worker, closing=True) for row in lost]
    cursor.executemany(sql.ATTACH, map(_client, taken))
    return taken


def _tell(cursor: Cursor, rung: Rung, row: ProgressRow) -> None:
    found = cursor.execute(sql.OPEN_CALL, (row.call,)).fetchone()
    if found is not None:
        cursor.execute(sql.TELL, columns(row))
        rung.append(found)


LIGHT = (_attach, _detach, _tell)
"""When the power has failed nobody is connected any more. A call is taken up after its client came, and with care."""


def _client(row: ClientRow) -> tuple[Any, ...]:
    return columns(msgspec.structs.replace(row, offers=msgspec.json.encode(row.offers).decode()))


def _read_client(found: Found) -> ClientRow:
    fields = named(ClientRow, found)
    fields["offers"] = msgspec.json.decode(fields["offers"], type=tuple[str, ...])
    return ClientRow(**fields)
