"""Who is there, in PostgreSQL."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from msgspec.structs import astuple

from farhand.stores import postgres_queries as sql
from farhand.stores.base import Ring
from farhand.stores.postgres_connection import Pool, Record
from farhand.stores.presence import ClientRow, ProgressRow


class PostgresPresence(ABC):
    """That part of the store in PostgreSQL."""

    @property
    @abstractmethod
    def _pooled(self) -> Pool: ...

    @abstractmethod
    def _in_schema(self, query: str) -> str: ...

    @abstractmethod
    def _tell(self, ring: Ring) -> None: ...

    async def attach(self, row: ClientRow) -> None:
        """A connection is open."""
        await self._pooled.rows(self._in_schema(sql.ATTACH), *astuple(row))

    async def detach(self, connection: str) -> None:
        """Nothing is left of it."""
        await self._pooled.rows(self._in_schema(sql.DETACH), connection)

    async def clients(self, principal: str, thread: str) -> Sequence[ClientRow]:
        """Who is there."""
        return _read(await self._pooled.rows(self._in_schema(sql.CLIENTS), principal, thread))

    async def orphans(self, worker: str, limit: int) -> Sequence[ClientRow]:
        """Connections whose worker is gone, past whatever others are just taking."""
        found = _read(await self._pooled.rows(self._in_schema(sql.ORPHANS), worker, limit))
        return sorted(found, key=lambda row: (row.since, row.connection))

    async def tell(self, row: ProgressRow) -> None:
        """How far a call is."""
        found = await self._pooled.row(self._in_schema(sql.TELL), *astuple(row))
        if found is not None:
            self._tell(Ring(found["thread"], found["run"]))

    async def told(self, run: str) -> Sequence[ProgressRow]:
        """How far the calls of a run are."""
        return [ProgressRow(**row) for row in await self._pooled.rows(self._in_schema(sql.TOLD), run)]


def _read(found: Sequence[Record]) -> list[ClientRow]:
    rows: list[ClientRow] = []
    for record in found:
        fields = dict(record.items())
        fields["offers"] = tuple(fields["offers"])
        rows.append(ClientRow(**fields))
    return rows
