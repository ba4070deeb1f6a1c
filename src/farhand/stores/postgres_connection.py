"""Connections to PostgreSQL: what they raise, and how they come back. The one place that knows asyncpg."""

import asyncio
import importlib
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any, Protocol, TypeAlias, cast

from farhand.core.errors import StoreAway, StoreError

logger = logging.getLogger("farhand.stores")

Record: TypeAlias = Mapping[str, Any]

# Connection, resources, operator's intervention and the machine itself: nothing is wrong with what was asked.
_AWAY = ("08", "53", "57", "58")
_READ_ONLY = "25006"
_RACES = {"40001", "40P01"}
_LOCKED = "55P03"
_TAKEN = "23505"
# Of what two processes may begin at the same moment: the second one finds it when it looks again.
_BEGUN = {"runs_pkey", "runs_key", "threads_pkey"}

_CALM = 30.0
"""Seconds after which a statement without an answer is given up."""
_PAUSES = (0.02, 2.0)
"""First and longest pause between two attempts to connect."""


class RaceLost(Exception):
    """Another write was first, and everything was rolled back: the same may be asked again at once.

    It stays between the modules of this store: whoever does not ask again tells of a `StoreAway`.
    """


class Connection(Protocol):
    """What is used of asyncpg's connection, which has no types of its own."""

    async def execute(self, query: str, *args: object) -> str: ...
    async def fetch(self, query: str, *args: object) -> Sequence[Record]: ...
    async def fetchrow(self, query: str, *args: object) -> Record | None: ...
    async def fetchval(self, query: str, *args: object) -> Any: ...
    def cursor(self, query: str, *args: object, prefetch: int) -> AsyncIterator[Record]: ...
    def transaction(self, *, isolation: str = ..., readonly: bool = ...) -> AbstractAsyncContextManager[object]: ...
    async def copy_records_to_table(
        self, table_name: str, *, records: Iterable[object], columns: Sequence[str], schema_name: str
    ) -> str: ...
    async def add_listener(self, channel: str, callback: Callable[["Connection", int, str, str], None]) -> None: ...
    def add_termination_listener(self, callback: Callable[["Connection"], None]) -> None: ...
    def is_closed(self) -> bool: ...
    def terminate(self) -> None: ...
    async def close(self, *, timeout: float) -> None: ...  # noqa: ASYNC109 - asyncpg's name


class _Pool(Protocol):
    def acquire(self) -> AbstractAsyncContextManager[Connection]: ...
    async def close(self) -> None: ...
    def terminate(self) -> None: ...


_asyncpg: Any = importlib.import_module("asyncpg")


@contextmanager
def told() -> Generator[None]:
    """Raise what the contract of a store names. Details are left out: they may hold what was to be written."""
    try:
        with told_of_races():
            yield
    except RaceLost as error:
        raise StoreAway(str(error)) from None


@contextmanager
def told_of_races() -> Generator[None]:
    """The same, for those who ask again when they have lost a race."""
    try:
        yield
    except _asyncpg.PostgresError as error:
        raise _named(error) from None
    except (_asyncpg.DataError, _asyncpg.ClientConfigurationError) as error:
        raise StoreError(f"PostgreSQL cannot be asked this ({type(error).__name__})") from None
    except (_asyncpg.InterfaceError, _asyncpg.InternalClientError, OSError, TimeoutError) as error:
        raise StoreAway(f"PostgreSQL is away ({type(error).__name__})") from None


def _named(error: Any) -> StoreError | RaceLost:
    state = str(error.sqlstate)
    about = f"({state}, {type(error).__name__})"
    if state in _RACES or (state == _TAKEN and error.constraint_name in _BEGUN):
        return RaceLost(f"another write was first {about}")
    if state.startswith(_AWAY) or state in {_READ_ONLY, _LOCKED}:
        return StoreAway(f"PostgreSQL is away {about}")
    return StoreError(f"PostgreSQL refused {about}")


def _settings(purpose: str) -> Mapping[str, Any]:
    """Statements are few and constant: they stay prepared. A proxy would refuse other startup parameters than this."""
    named = {"application_name": f"farhand {purpose}"}
    return {"timeout": 10.0, "command_timeout": _CALM, "max_cached_statement_lifetime": 0, "server_settings": named}


async def connect(dsn: str, purpose: str) -> Connection:
    """A connection of its own, for whoever needs one."""
    with told():
        return cast("Connection", await _asyncpg.connect(dsn, **_settings(purpose)))


async def hang_up(connection: Connection) -> None:
    """Close, politely if that is possible."""
    try:
        with told():
            await connection.close(timeout=2.0)
    except StoreError:
        connection.terminate()


class Pool:
    """A few connections for whatever must not wait behind the writer. Those that were lost are replaced when used."""

    def __init__(self, dsn: str, size: int) -> None:
        limits = {"min_size": 0, "max_size": size, "max_inactive_connection_lifetime": 0}
        self._pool: _Pool = _asyncpg.create_pool(dsn, **limits, reset=_leave_as_it_is, **_settings("reads"))

    async def open(self) -> None:
        """Get ready; connections are made when they are needed."""
        with told():
            await cast("Awaitable[object]", self._pool)

    async def close(self) -> None:
        """Wait a moment for what is under way, then close."""
        try:
            with told():
                async with asyncio.timeout(2.0):
                    await self._pool.close()
        except StoreError:
            self._pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        """One of the connections, for as long as the block lasts."""
        with told():
            async with self._pool.acquire() as connection:
                yield connection

    async def rows(self, query: str, *args: object) -> Sequence[Record]:
        """All that a statement gives."""
        async with self.connection() as connection:
            return await connection.fetch(query, *args)

    async def row(self, query: str, *args: object) -> Record | None:
        """The one row that a statement gives, if any."""
        async with self.connection() as connection:
            return await connection.fetchrow(query, *args)

    async def value(self, query: str, *args: object) -> Any:
        """The one value that a statement gives, or None."""
        async with self.connection() as connection:
            return await connection.fetchval(query, *args)

    async def value_after_races(self, query: str, *args: object) -> Any:
        """The one value of a statement that may lose a race; then it is asked once more."""
        try:
            with told_of_races():
                async with self._pool.acquire() as connection:
                    return await connection.fetchval(query, *args)
        except RaceLost:
            return await self.value(query, *args)


async def _leave_as_it_is(_: Connection) -> None:
    """Nothing is set on a connection of the pool, so nothing has to be reset: that saves a round trip a statement."""


class Line:
    """One connection that is made again, with growing pauses, whenever it is lost."""

    def __init__(self, purpose: str, dsn: str, greet: Callable[[Connection], Awaitable[None]] | None = None) -> None:
        self._purpose = purpose
        self._dsn = dsn
        self._greet = greet
        self._lost = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        self.connection: Connection | None = None
        """None while it is away."""

    async def open(self) -> None:
        """Connect; raises if that is not possible now. From then on it comes back by itself."""
        await self._dial()
        self._keeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Hang up for good."""
        keeping, self._keeping = self._keeping, None
        if keeping is not None:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
        connection, self.connection = self.connection, None
        if connection is not None:
            await hang_up(connection)

    def drop(self, connection: Connection) -> None:
        """Nobody knows what state it is in: make another."""
        connection.terminate()
        self._on_lost(connection)

    async def _dial(self) -> None:
        connection = await connect(self._dsn, self._purpose)
        try:
            with told():
                connection.add_termination_listener(self._on_lost)
                self.connection = connection
                if self._greet is not None:
                    await self._greet(connection)
        except BaseException:
            self.connection = None
            connection.terminate()
            raise

    def _on_lost(self, connection: Connection) -> None:
        if connection is self.connection:
            self.connection = None
            self._lost.set()

    async def _keep(self) -> None:
        while True:
            await self._lost.wait()
            self._lost.clear()
            logger.warning("the connection for %s was lost", self._purpose)
            attempts = await self._redial()
            logger.warning("the connection for %s is back after %d attempts", self._purpose, attempts)

    async def _redial(self) -> int:
        pause, longest = _PAUSES
        attempts = 1
        while True:
            try:
                await self._dial()
            except StoreError:
                # Spread, so that replicas do not come back all at once.
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
                pause = min(2 * pause, longest)
                attempts += 1
            else:
                return attempts
