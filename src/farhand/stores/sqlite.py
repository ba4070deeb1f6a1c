"""A store in one SQLite file, for one process or several on one machine. Needs nothing but the standard library.

One thread writes and commits what waits for it together; short reads are made at once, on a connection of their own.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import get_ident
from time import time_ns
from typing import Any, TypeVar

import msgspec

from farhand.core.errors import StoreAway, StoreError
from farhand.stores import sqlite_changes as change
from farhand.stores import sqlite_queries as sql
from farhand.stores import sqlite_reads as reads
from farhand.stores.base import (
    TABLES,
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
from farhand.stores.sqlite_bell import Doorbell
from farhand.stores.sqlite_changes import Rung
from farhand.stores.sqlite_locks import WorkerLocks
from farhand.stores.sqlite_presence import LIGHT, SqlitePresence
from farhand.stores.sqlite_rows import Found, named, read, read_call, read_memory
from farhand.stores.sqlite_schema import (
    MIGRATIONS,
    Synchronous,
    cannot_open,
    connect,
    connect_reader,
    connect_writer,
    create,
    migrate,
    version_there,
)
from farhand.stores.sqlite_writer import Writer, failure

LOOK = 1.0
"""Seconds between two looks for what a bell should have told."""
PRUNED = 20
"""Threads that are deleted in one transaction."""
EXPORTED = 200
"""Rows that are read in one go."""
NO_END = 2**62

T = TypeVar("T")
Argument = TypeVar("Argument")


class SqliteStore(SqlitePresence):
    """The contract in a file. `synchronous="normal"` is faster, and may lose the last writes when the power fails."""

    def __init__(
        self, path: str | os.PathLike[str], *, synchronous: Synchronous = "full", migrations: Path = MIGRATIONS
    ) -> None:
        if os.fspath(path) in {"", ":memory:"}:
            raise StoreError("this would be a database for one connection; MemoryStore (`memory:`) keeps all in memory")
        if synchronous not in {"full", "normal"}:
            raise StoreError(f"synchronous is 'full' or 'normal', not {synchronous!r}")
        self._path = Path(path).absolute()
        self._folder = self._path.with_name(self._path.name + "-workers")
        self._synchronous: Synchronous = synchronous
        self._migrations = migrations
        self._writer: Writer | None = None
        self._connection: sqlite3.Connection | None = None
        self._readers: dict[int, sqlite3.Connection] = {}
        self._bell: Doorbell | None = None
        self._locks = WorkerLocks(self._folder)
        self._watch: asyncio.Task[None] | None = None

    async def open(self, on_ring: OnRing | None = None) -> None:
        """Open the file, or set it up; from then on listen to what others write."""
        if self._writer is not None:
            raise StoreError("the store is open already")
        connection = await asyncio.to_thread(connect_writer, self._path, self._synchronous, self._migrations)
        try:
            seen: int = connection.execute(sql.CHANGES).fetchone()[0]
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._bell = Doorbell(self._folder)
        except (OSError, sqlite3.Error) as error:
            connection.close()
            raise StoreError(f"{str(self._path)!r} cannot be opened: {error}") from error
        self._connection = connection
        self._writer = Writer(connection, self._bell.ring, LIGHT)
        if on_ring is not None:
            self._bell.listen(on_ring)
            self._watch = asyncio.create_task(self._look(on_ring, seen))

    async def close(self) -> None:
        """Make what was asked for, and let go of the file; a worker that has not left is dead from now on."""
        writer, bell, connection = self._writer, self._bell, self._connection
        if writer is None or bell is None or connection is None:
            return
        self._writer = None
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.to_thread(writer.stop)
        bell.close()
        self._locks.close()
        readers = [*self._readers.values()]
        self._readers.clear()
        for each in (*readers, connection):  # the last one takes what is in the log over into the file
            await asyncio.to_thread(each.close)

    async def version(self) -> int:
        """Of the tables; 0 if there is no file, or an empty one."""
        return await asyncio.to_thread(version_there, self._path)

    async def migrate(self) -> int:
        """Bring the tables up to date, while nobody has the store open; gives how many steps that took."""
        return await asyncio.to_thread(self._migrate)

    def _migrate(self) -> int:
        create(self._path)
        with closing(connect(self._path)) as connection:
            try:
                return migrate(connection, self._path, self._migrations)
            except sqlite3.Error as error:
                raise cannot_open(self._path, error) from error

    async def time(self) -> int:
        """The machine's clock."""
        return time_ns() // 1_000_000

    async def _look(self, on_ring: OnRing, seen: int) -> None:
        """Now and then, see for oneself whether somebody has written."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK)
            try:
                now = await self._ask(change.changes, None)
            except StoreError:
                continue
            if now != seen:
                seen = now
                loop.call_soon(on_ring, Ring())

    def _ask(self, what: Callable[[sqlite3.Cursor, Rung, Argument], T], argument: Argument) -> "asyncio.Future[T]":
        writer = self._writer
        if writer is None:
            raise StoreAway("the store is not open")
        return writer.ask(what, argument)

    def _reader(self) -> sqlite3.Connection:
        """The connection of this thread."""
        reader = self._readers.get(get_ident())
        if reader is None:
            if self._writer is None:
                raise StoreAway("the store is not open")
            reader = self._readers[get_ident()] = connect_reader(self._path)
        return reader

    def _all(self, statement: str, arguments: tuple[Any, ...]) -> list[Found]:
        try:
            return self._reader().execute(statement, arguments).fetchall()
        except sqlite3.Error as error:
            raise failure(error) from error

    def _look_at(self, look: Callable[[sqlite3.Cursor], T]) -> T:
        """Several queries about one moment."""
        cursor = self._reader().cursor()
        try:
            cursor.execute(sql.LOOK)
            try:
                return look(cursor)
            finally:
                cursor.execute(sql.COMMIT)
        except sqlite3.Error as error:
            raise failure(error) from error

    def _one(self, statement: str, argument: str) -> Found | None:
        found = self._all(statement, (argument,))
        return found[0] if found else None

    # Runs

    def write(self, write: Write) -> "asyncio.Future[bool]":
        """Commit, if everything is as expected."""
        return self._ask(change.write, write)

    async def load(self, run: str) -> Stored | None:
        """The run, what came after its snapshot, and its conversation."""
        return self._look_at(lambda cursor: reads.load(cursor, run))

    async def run_of(self, call: str) -> str | None:
        """The run of a call."""
        found = self._one(sql.RUN_OF, call)
        return None if found is None else found[0]

    async def standing(self, call: str) -> tuple[CallRow, int] | None:
        """A call, and where its run is."""
        found = self._one(sql.STANDING, call)
        return None if found is None else (read_call(found[:-1]), found[-1])

    async def run_under(self, principal: str, key: str) -> RunRow | None:
        """The run that was started under a key."""
        found = self._all(sql.RUN_UNDER, (principal, key))
        return read(RunRow, found[0]) if found else None

    async def thread(self, thread: str) -> ThreadRow | None:
        """A conversation."""
        found = self._one(sql.THREAD, thread)
        return None if found is None else read(ThreadRow, found)

    async def messages(self, thread: str) -> Sequence[bytes]:
        """What was said."""
        return [found[0] for found in self._all(sql.MESSAGES, (thread, NO_END))]

    async def toolset(self, toolset: str) -> bytes | None:
        """Definitions by their hash."""
        found = self._one(sql.TOOLSET, toolset)
        return None if found is None else found[0]

    async def log(self, thread: str, after: int, limit: int) -> Sequence[LogRow]:
        """Rows that told something after a number."""
        return [read(LogRow, found) for found in self._all(sql.LOG, (thread, after, limit))]

    async def waiting(self, principal: str, thread: str, limit: int) -> Sequence[CallRow]:
        """Calls that wait for somebody."""
        if thread:
            found = self._all(sql.WAITING_IN, (principal, limit, thread))
        else:
            found = self._all(sql.WAITING, (principal, limit))
        return [read_call(row) for row in found]

    async def awaited(self) -> int:
        """How many calls wait for somebody. There may be many to count, which is done in another thread."""
        [(found,)] = await asyncio.to_thread(self._all, sql.AWAITED, ())
        return found

    async def runs(self, principal: str, state: str, limit: int) -> Sequence[RunRow]:
        """Newest first. It may have to look at many, and does so in another thread."""
        if principal:
            found = await asyncio.to_thread(self._all, sql.RUNS_OF, (state, limit, principal))
        else:
            found = await asyncio.to_thread(self._all, sql.RUNS, (state, limit))
        return [read(RunRow, row) for row in found]

    async def holdings(self, principal: str) -> Holdings:
        """How much somebody has."""
        [(threads, runs, calls)] = self._all(sql.HOLDINGS, (principal,))
        return Holdings(threads=threads, runs=runs, calls=calls)

    async def memories(self, principal: str) -> Sequence[MemoryRow]:
        """Lasting decisions, oldest first."""
        return [read_memory(found) for found in self._all(sql.MEMORIES, (principal,))]

    async def forget(self, principal: str) -> None:
        """Ask again about everything."""
        await self._ask(change.forget, principal)

    # Who works on what

    async def enter(self, worker: WorkerRow) -> None:
        """A worker begins, and holds a lock from now on."""
        self._locks.take(worker.id)
        await self._ask(change.enter, worker)

    async def beat(self, worker: str, now: int, expires: int) -> bool:
        """A worker lives."""
        return await self._ask(change.beat, (worker, now, expires))

    async def leave(self, worker: str) -> None:
        """A worker goes."""
        await self._ask(change.leave, worker)
        self._locks.drop(worker)

    async def expire(self, now: int) -> int:
        """Strike out the dead: those whose time is over, and at once those whose lock is free."""
        workers = [found[0] for found in self._all(sql.WORKERS, ())]
        dead = [worker for worker in workers if self._locks.is_dead(worker)]
        freed = await self._ask(change.expire, (now, dead))
        for worker in dead:
            self._locks.remove(worker)
        return freed

    async def claim(self, worker: str, agents: Sequence[str], now: int, limit: int) -> Sequence[Claim]:
        """Take up what is ready or due."""
        return await self._ask(change.claim, (worker, agents, now, limit))

    async def held(self, worker: str) -> Mapping[str, tuple[int, int]]:
        """What a worker holds."""
        return {run: (version, epoch) for run, version, epoch in self._all(sql.HELD, (worker,))}

    async def refuse(self, run: RunRow, why: str) -> bool:
        """Put a run aside."""
        return await self._ask(change.refuse, (run, why))

    async def readmit(self, run: RunRow) -> bool:
        """Have a run taken up again."""
        return await self._ask(change.readmit, run)

    # The reply that is under way

    async def stream(self, pieces: Sequence[PieceRow]) -> None:
        """Keep pieces."""
        await self._ask(change.stream, pieces)

    async def streamed(self, run: str) -> Sequence[PieceRow]:
        """The pieces of a run."""
        return [read(PieceRow, found) for found in self._all(sql.STREAMED, (run,))]

    # Housekeeping

    async def summary(self) -> Summary:
        """How much there is of everything. It looks at every row, in another thread."""
        return await asyncio.to_thread(self._look_at, reads.summary)

    async def prune(self, before: int, limit: int) -> int:
        """Delete what is over and old, some at a time."""
        gone = 0
        while gone < limit:
            wanted = min(PRUNED, limit - gone)
            some = await self._ask(change.prune, (before, wanted))
            gone += some
            if some < wanted:
                break
        return gone

    async def export(self) -> AsyncIterator[tuple[str, Row]]:
        """Every row, as of one moment. As long as it takes, the log next to the file cannot be cleared."""
        if self._writer is None:
            raise StoreAway("the store is not open")
        with closing(connect_reader(self._path)) as connection:
            try:
                connection.execute(sql.LOOK)
                for table, statement in sql.EXPORT.items():
                    cursor = connection.execute(statement)
                    names = tuple(column[0] for column in cursor.description)
                    while found := cursor.fetchmany(EXPORTED):
                        for row in found:
                            yield table, named(TABLES.get(table), row, names)
                        await asyncio.sleep(0)
            except sqlite3.Error as error:
                raise failure(error) from error

    async def take_in(self, rows: Iterable[tuple[str, Row]]) -> None:
        """Fill an empty store."""
        if self._writer is None:
            raise StoreAway("the store is not open")
        await asyncio.to_thread(self._take_in, rows)

    def _take_in(self, rows: Iterable[tuple[str, Row]]) -> None:
        with closing(connect(self._path)) as connection:
            try:
                cursor = connection.cursor()
                cursor.execute(sql.BEGIN)
                change.take_in(cursor, rows)
                cursor.execute(sql.COMMIT)
            except sqlite3.Error as error:
                raise failure(error) from error
            except (msgspec.ValidationError, KeyError) as error:
                raise StoreError(f"a row cannot be taken in: {error}") from error
