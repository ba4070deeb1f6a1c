"""The tables of a store in PostgreSQL: which version they are of, and how they get to the one this build reads.

DDL is run only where the version differs, and under a lock: "create if not exists" at each start takes locks that
deadlock with live traffic.
"""

import re
import secrets
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from zlib import crc32

from farhand.core.errors import StoreError, StoreVersion
from farhand.stores.postgres_connection import Connection, told

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_VERSION = "select version from farhand.meta"
# Not `to_regclass`: that may still say what it found before the lock was waited for.
_IS_THERE = "select exists (select from pg_tables where schemaname = $1 and tablename = 'meta')"
_ALONE = "select pg_advisory_xact_lock($1)"
_CREATE = "create schema if not exists farhand;"
_FIRST = "insert into farhand.meta (version, store) values ($1, $2)"
_NEXT = "update farhand.meta set version = $1"


@cache
def in_schema(query: str, schema: str) -> str:
    """Statements are written for the schema `farhand`; this is one for another."""
    return query if schema == "farhand" else re.sub(r"\bfarhand\b(?=[.;])", schema, query)


def checked_name(schema: str) -> str:
    """Names of schemas go into statements as they are, so they have to be plain."""
    if not _NAME.fullmatch(schema) or schema.startswith("pg_"):
        raise StoreError(f"{schema!r} is no name for a schema: lower-case letters, digits and underscores")
    return schema


@cache
def migrations() -> Mapping[int, str]:
    """The steps of the schema, by number."""
    folder = files("farhand.stores") / "migrations" / "postgres"
    found = {int(file.name.partition("_")[0]): file for file in folder.iterdir() if file.name.endswith(".sql")}
    return {number: found[number].read_text(encoding="utf-8") for number in sorted(found)}


def newest() -> int:
    """The version that this build reads."""
    return max(migrations())


async def version(connection: Connection, schema: str) -> int:
    """Of the tables that are there; 0: there are none."""
    with told():
        if not await connection.fetchval(_IS_THERE, schema):
            return 0
        return await connection.fetchval(in_schema(_VERSION, schema)) or 0


async def check(connection: Connection, schema: str) -> None:
    """Set an empty database up; refuse one that this build does not read."""
    found = await version(connection, schema)
    if found == 0:
        await migrate(connection, schema)
        found = await version(connection, schema)
    if found > newest():
        raise StoreVersion(f"the store is of version {found}; this build reads {newest()}: take a newer build")
    if found < newest():
        raise StoreVersion(f"the store is of version {found}, not {newest()}: run farhand store migrate URL")


async def migrate(connection: Connection, schema: str) -> int:
    """Apply the steps that are missing, all or none; gives how many. Whoever comes second finds them done."""
    found = await version(connection, schema)
    if found >= newest():
        return 0
    with told():
        async with connection.transaction():
            await connection.execute(_ALONE, crc32(f"farhand {schema}".encode()))
            found = await version(connection, schema)
            missing = [number for number in migrations() if number > found]
            if found == 0:
                await connection.execute(in_schema(_CREATE, schema))
            for number in missing:
                await connection.execute(in_schema(migrations()[number], schema))
            if found == 0:
                await connection.execute(in_schema(_FIRST, schema), newest(), secrets.token_hex(8))
            elif missing:
                await connection.execute(in_schema(_NEXT, schema), newest())
    return len(missing)
