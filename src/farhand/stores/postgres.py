"""A store in PostgreSQL: for several processes that share their runs. Needs the extra `postgres`.

A process keeps one connection for writes, one for wake-ups, a few for everything else, and one more for each loop that
gives signs of life. Connections that are lost come back by themselves; until then everything raises `StoreAway`.

Behind a proxy that pools transactions, LISTEN gets lost: give `direct` an address that leads to the server itself. Such
a proxy must also know prepared statements (PgBouncer from 1.21 on).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import aclosing

import msgspec

from farhand.core.errors import StoreAway
from farhand.stores import postgres_queries as sql
from farhand.stores import postgres_schema, postgres_transfer
from farhand.stores.base import (
    FORMAT,
    CallRow,
    Claim,
    Holdings,
    LogRow,
    MemoryRow,
    OnRing,
    PieceRow,
    Ring,
    Row,
    RunRow,
    Stored,
    Summary,
    ThreadRow,
    WorkerRow,
    Write,
)
from farhand.stores.postgres_beat import Heart
from farhand.stores.postgres_bell import Bell
from farhand.stores.postgres_connection import Pool, connect, hang_up
from farhand.stores.postgres_presence import PostgresPresence
from farhand.stores.postgres_prune import prune
from farhand.stores.postgres_writer import Writer

_PRUNED_AT_ONCE = 50


class PostgresStore(PostgresPresence):
    """The contract in PostgreSQL 13 or newer. The address of the server is never logged: it may hold a password."""

    def __init__(
        self, dsn: str, *, schema: str = "farhand", readers: int = 4, poll: float = 1.0, direct: str = ""
    ) -> None:
        self._dsn = dsn
        self._direct = direct or dsn
        self._schema = postgres_schema.checked_name(schema)
        self._readers = readers
        self._poll = poll
        self._heart = Heart(dsn)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: Pool | None = None
        self._writer: Writer | None = None
        self._bell: Bell | None = None

    async def open(self, on_ring: OnRing | None = None) -> None:
        """Check the schema, or set an empty database up, and begin."""
        connection = await connect(self._dsn, "schema")
        try:
            await postgres_schema.check(connection, self._schema)
        finally:
            await hang_up(connection)
        self._loop = asyncio.get_running_loop()
        self._bell = Bell(self._direct, self._schema, on_ring, self._poll)
        self._pool = Pool(self._dsn, self._readers)
        self._writer = Writer(self._dsn, self._in_schema(sql.WRITE), self._bell.ring)
        try:
            await self._pool.open()
            await self._bell.open()
            await self._writer.open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what was queued, then hang up. The loop of the heartbeat must still be running, or none is there."""
        writer, self._writer = self._writer, None
        bell, self._bell = self._bell, None
        pool, self._pool = self._pool, None
        if writer is not None:
            await writer.close()
        if bell is not None:
            await bell.close()
        if pool is not None:
            await pool.close()
        await self._heart.close()

    async def version(self) -> int:
        """Of the tables; 0: there are none."""
        connection = await connect(self._dsn, "schema")
        try:
            return await postgres_schema.version(connection, self._schema)
        finally:
            await hang_up(connection)

    async def migrate(self) -> int:
        """Bring the tables to the version that this build reads; gives how many steps it took. Need not be open."""
        connection = await connect(self._dsn, "schema")
        try:
            return await postgres_schema.migrate(connection, self._schema)
        finally:
            await hang_up(connection)

    async def time(self) -> int:
        """The clock of the database."""
        return await self._pooled.value(sql.TIME)

    # Runs

    def write(self, write: Write) -> Awaitable[bool]:
        """Commit, together with whatever else is queued."""
        if self._writer is None or (write.was is None and write.begins is None):
            return self._not_written()
        return self._writer.write(write)

    async def load(self, run: str) -> Stored | None:
        """The run, what came after its snapshot, and its conversation, in one round trip."""
        found = await self._pooled.row(self._in_schema(sql.LOAD), run)
        if found is None:
            return None
        return Stored(
            run=RunRow(**found["run"]),
            thread=ThreadRow(**found["thread"]),
            snapshot=found["snapshot"],
            tail=[LogRow(**entry) for entry in found["tail"]],
            messages=found["messages"],
        )

    async def run_of(self, call: str) -> str | None:
        """The run of a call."""
        return await self._pooled.value(self._in_schema(sql.RUN_OF), call)

    async def standing(self, call: str) -> tuple[CallRow, int] | None:
        """A call, and where its run is."""
        found = await self._pooled.row(self._in_schema(sql.STANDING), call)
        return None if found is None else (CallRow(**found["call"]), found["seq"])

    async def run_under(self, principal: str, key: str) -> RunRow | None:
        """The run that was started under a key."""
        found = await self._pooled.row(self._in_schema(sql.RUN_UNDER), principal, key)
        return None if found is None else RunRow(**found)

    async def thread(self, thread: str) -> ThreadRow | None:
        """A conversation."""
        found = await self._pooled.row(self._in_schema(sql.THREAD), thread)
        return None if found is None else ThreadRow(**found)

    async def messages(self, thread: str) -> Sequence[bytes]:
        """What was said."""
        return await self._pooled.value(self._in_schema(sql.MESSAGES), thread)

    async def toolset(self, toolset: str) -> bytes | None:
        """Definitions by their hash."""
        return await self._pooled.value(self._in_schema(sql.TOOLSET), toolset)

    async def log(self, thread: str, after: int, limit: int) -> Sequence[LogRow]:
        """Rows that told something after a number."""
        return [LogRow(**row) for row in await self._pooled.rows(self._in_schema(sql.LOG), thread, after, limit)]

    async def waiting(self, principal: str, thread: str, limit: int) -> Sequence[CallRow]:
        """Calls that wait for somebody."""
        if thread:
            found = await self._pooled.rows(self._in_schema(sql.WAITING_IN), principal, limit, thread)
        else:
            found = await self._pooled.rows(self._in_schema(sql.WAITING), principal, limit)
        return [CallRow(**row) for row in found]

    async def awaited(self) -> int:
        """How many calls wait for somebody."""
        return await self._pooled.value(self._in_schema(sql.AWAITED))

    async def runs(self, principal: str, state: str, limit: int) -> Sequence[RunRow]:
        """Newest first."""
        found = await self._pooled.rows(self._in_schema(sql.RUNS), principal, state, limit)
        return [RunRow(**row) for row in found]

    async def holdings(self, principal: str) -> Holdings:
        """How much somebody has."""
        [found] = await self._pooled.rows(self._in_schema(sql.HOLDINGS), principal)
        return Holdings(**found)

    async def memories(self, principal: str) -> Sequence[MemoryRow]:
        """Lasting decisions, oldest first."""
        return [MemoryRow(**row) for row in await self._pooled.rows(self._in_schema(sql.MEMORIES), principal)]

    async def forget(self, principal: str) -> None:
        """Ask again about everything."""
        await self._pooled.rows(self._in_schema(sql.FORGET), principal)

    # Who works on what

    async def enter(self, worker: WorkerRow) -> None:
        """A worker begins."""
        fields = (worker.id, worker.host, worker.build, worker.formats, worker.started, worker.beat, worker.expires)
        await self._pooled.rows(self._in_schema(sql.ENTER), *fields)

    async def beat(self, worker: str, now: int, expires: int) -> bool:
        """A worker lives. From another loop than the one that opened the store: on a connection kept for that loop."""
        source = self._pooled if asyncio.get_running_loop() is self._loop else self._heart
        return bool(await source.value(self._in_schema(sql.BEAT), worker, now, expires))

    async def leave(self, worker: str) -> None:
        """A worker goes. If it breaks between the two steps, `expire` does the second."""
        await self._pooled.rows(self._in_schema(sql.LEAVE), worker)
        self._tell_of_free(await self._pooled.value_after_races(self._in_schema(sql.FREE), worker))

    async def expire(self, now: int) -> int:
        """Strike out the dead. Their runs are those whose holder is gone, whoever struck it out."""
        await self._pooled.rows(self._in_schema(sql.EXPIRE), now)
        await self._pooled.rows(self._in_schema(sql.FORGET_PROGRESS))
        return self._tell_of_free(await self._pooled.value_after_races(self._in_schema(sql.FREE_LOST)))

    def _tell_of_free(self, freed: int) -> int:
        if freed:
            self._tell(Ring())
        return freed

    def _tell(self, ring: Ring) -> None:
        if self._bell is not None:
            self._bell.ring([ring])

    async def claim(self, worker: str, agents: Sequence[str], now: int, limit: int) -> Sequence[Claim]:
        """Take up what is ready or due, past whatever others are just taking."""
        found = await self._pooled.rows(self._in_schema(sql.CLAIM), worker, list(agents), now, limit, FORMAT)
        return [Claim(row["id"], row["lost"]) for row in found]

    async def held(self, worker: str) -> Mapping[str, tuple[int, int]]:
        """What a worker holds."""
        found = await self._pooled.rows(self._in_schema(sql.HELD), worker)
        return {row["id"]: (row["version"], row["epoch"]) for row in found}

    async def refuse(self, run: RunRow, why: str) -> bool:
        """Put a run aside."""
        return bool(await self._pooled.value(self._in_schema(sql.REFUSE), run.id, run.version, run.epoch, why))

    async def readmit(self, run: RunRow) -> bool:
        """Have a run taken up again."""
        again = bool(await self._pooled.value(self._in_schema(sql.READMIT), run.id, run.version, run.epoch))
        self._tell_of_free(int(again))
        return again

    # The reply that is under way

    async def stream(self, pieces: Sequence[PieceRow]) -> None:
        """Keep pieces, all in one statement."""
        fields = ([getattr(piece, field) for piece in pieces] for field in PieceRow.__struct_fields__)
        kept = await self._pooled.rows(self._in_schema(sql.STREAM), *fields)
        if self._bell is not None:
            self._bell.ring(Ring(row["thread"], row["run"]) for row in kept)

    async def streamed(self, run: str) -> Sequence[PieceRow]:
        """The pieces of a run."""
        return [PieceRow(**row) for row in await self._pooled.rows(self._in_schema(sql.STREAMED), run)]

    # Housekeeping

    async def summary(self) -> Summary:
        """How much there is of everything, at one moment."""
        found = await self._pooled.row(self._in_schema(sql.SUMMARY))
        assert found is not None
        return msgspec.convert({**found, "runs": dict(found["runs"])}, Summary)

    async def prune(self, before: int, limit: int) -> int:
        """Delete what is over and old, in small transactions, and the definitions that nobody refers to any more."""
        pruned = 0
        while pruned < limit:
            async with self._pooled.connection() as connection:
                gone = await prune(connection, self._schema, before, min(limit - pruned, _PRUNED_AT_ONCE))
            pruned += gone
            if not gone:
                break
        return pruned

    async def export(self) -> AsyncIterator[tuple[str, Row]]:
        """Every row, as all of them are at one moment."""
        async with aclosing(postgres_transfer.export(self._dsn, self._schema)) as rows:
            async for row in rows:
                yield row

    async def take_in(self, rows: Iterable[tuple[str, Row]]) -> None:
        """Fill an empty store."""
        async with self._pooled.connection() as connection:
            await postgres_transfer.take_in(connection, self._schema, rows)

    async def _not_written(self) -> bool:
        if self._writer is None:
            raise StoreAway("the store is not open")
        return False  # a new run without a thread

    @property
    def _pooled(self) -> Pool:
        if self._pool is None:
            raise StoreAway("the store is not open")
        return self._pool

    def _in_schema(self, query: str) -> str:
        return postgres_schema.in_schema(query, self._schema)
