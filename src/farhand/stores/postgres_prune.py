"""How old threads go from a store in PostgreSQL, with all they have."""

from farhand.stores import postgres_queries as sql
from farhand.stores.postgres_connection import Connection
from farhand.stores.postgres_schema import in_schema


async def prune(connection: Connection, schema: str, before: int, limit: int) -> int:
    """Delete some threads, and the definitions that nobody refers to any more, in one short transaction.

    A thread may get a run between the look and the lock, so it is looked at again.
    """
    async with connection.transaction():
        found = await connection.fetchval(in_schema(sql.OLD, schema), before, limit)
        await connection.fetch(in_schema(sql.LOCK_RUNS_OF, schema), found)
        old = [row["id"] for row in await connection.fetch(in_schema(sql.LOCK_OLD, schema), found, before)]
        for query in (sql.PRUNE_PIECES, sql.PRUNE_PROGRESS, sql.PRUNE_SNAPSHOTS, sql.PRUNE_CALLS):
            await connection.execute(in_schema(query, schema), old)
        toolsets = await connection.fetchval(in_schema(sql.PRUNE_LOG, schema), old)
        await connection.execute(in_schema(sql.PRUNE_RUNS, schema), old)
        await connection.execute(in_schema(sql.PRUNE_THREADS, schema), old)
        if toolsets:
            await connection.fetch(in_schema(sql.LOCK_TOOLSETS, schema), toolsets)
            await connection.execute(in_schema(sql.PRUNE_TOOLSETS, schema), toolsets)
    return len(old)
