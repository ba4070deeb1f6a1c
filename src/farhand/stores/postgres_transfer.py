"""Everything that is in a store in PostgreSQL, row by row, out and in."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from itertools import groupby, islice
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from farhand.core.errors import StoreError
from farhand.stores import postgres_queries as sql
from farhand.stores.base import TABLES, Row
from farhand.stores.postgres_connection import Connection, connect, hang_up, told
from farhand.stores.postgres_schema import in_schema

_AT_ONCE = 500


class _Toolset(Struct):
    id: str
    body: bytes


class _Snapshot(Struct):
    run: str
    version: int
    body: bytes


_ROWS: Mapping[str, type[Struct]] = {**TABLES, "toolsets": _Toolset, "snapshots": _Snapshot}


async def export(dsn: str, schema: str) -> AsyncGenerator[tuple[str, Row]]:
    """All rows as they are at one moment. On a connection of its own: it may take long."""
    connection = await connect(dsn, "export")
    try:
        with told():
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                for table, query in sql.EXPORT.items():
                    async for record in connection.cursor(in_schema(query, schema), prefetch=_AT_ONCE):
                        yield table, dict(record.items())
    finally:
        await hang_up(connection)


async def take_in(connection: Connection, schema: str, rows: Iterable[tuple[str, Row]]) -> None:
    """Fill an empty store; all rows or none."""
    with told():
        async with connection.transaction():
            await connection.execute(in_schema(sql.ALONE, schema))
            if not await connection.fetchval(in_schema(sql.IS_EMPTY, schema)):
                raise StoreError("rows can be taken in by an empty store only")
            for table, found in groupby(rows, key=lambda row: row[0]):
                if table not in _ROWS:
                    raise StoreError(f"there is no table {table!r}")
                records = (_checked(_ROWS[table], row) for _, row in found)
                while batch := list(islice(records, _AT_ONCE)):
                    columns = _ROWS[table].__struct_fields__
                    await connection.copy_records_to_table(table, records=batch, columns=columns, schema_name=schema)


def _checked(row: type[Struct], fields: Row) -> Sequence[Any]:
    try:
        return astuple(msgspec.convert(fields, row, builtin_types=(bytes,)))
    except msgspec.ValidationError as error:
        raise StoreError(f"a row cannot be taken in: {error}") from None
