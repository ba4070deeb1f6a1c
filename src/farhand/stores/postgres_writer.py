"""Writes to PostgreSQL: whatever is queued goes out in one statement and one commit. Nobody waits for a timer."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import astuple

from farhand.core.errors import StoreAway, StoreError
from farhand.stores.base import Ring, Write
from farhand.stores.postgres_connection import Connection, Line, RaceLost, told_of_races

logger = logging.getLogger("farhand.stores")

GROUP = 256
"""Writes of one commit, at most."""
_ATTEMPTS = 5


class _Queued(NamedTuple):
    write: Write
    done: asyncio.Future[bool]


class Writer:
    """One connection for all writes of the process. A write that was sent when it broke is in doubt: `StoreAway`."""

    def __init__(self, dsn: str, statement: str, ring: Callable[[Iterable[Ring]], None]) -> None:
        self._line = Line("writes", dsn)
        self._statement = statement
        self._ring = ring
        self._queue: deque[_Queued] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._closed = True

    async def open(self) -> None:
        """Connect."""
        await self._line.open()
        self._closed = False

    async def close(self) -> None:
        """Take nothing more, finish what is queued, hang up."""
        self._closed = True
        if self._draining is not None:
            await self._draining
        await self._line.close()

    def write(self, write: Write) -> asyncio.Future[bool]:
        """Commit, together with whatever else is queued; in the order of the calls."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._closed or self._line.connection is None:
            done.set_exception(StoreAway("the connection for writes is away"))
            return done
        self._queue.append(_Queued(write, done))
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return done

    async def _drain(self) -> None:
        try:
            while self._queue:
                group = self._next_group()
                try:
                    await self._commit(group)
                finally:
                    _settle(group, StoreAway("the write was given up"))
        finally:
            self._draining = None

    def _next_group(self) -> Sequence[_Queued]:
        """At most one of a thread and of a key: in one statement, none could see what another did."""
        group: list[_Queued] = []
        later: list[_Queued] = []
        taken: set[Hashable] = set()
        while self._queue and len(group) < GROUP:
            queued = self._queue.popleft()
            if queued.done.done():
                continue  # nobody waits for it any more, and it was not sent
            run = queued.write.run
            names = {run.thread, (run.principal, run.key)} if queued.write.was is None and run.key else {run.thread}
            (group if taken.isdisjoint(names) else later).append(queued)
            taken |= names  # also of those that wait, so that they stay in order
        self._queue.extendleft(reversed(later))
        return group

    async def _commit(self, group: Sequence[_Queued]) -> None:
        try:
            good = await self._attempt(group)
        except StoreAway as error:
            logger.warning("%d writes did not come through or are in doubt", len(group))
            _settle(group, error)
        except StoreError as error:
            if len(group) == 1:
                _settle(group, error)
                return
            logger.warning("one of %d writes was refused: they are written one by one", len(group))
            for queued in group:
                await self._commit([queued])
        else:
            self._ring(Ring(each.write.run.thread, each.write.run.id) for each in group if each.write.run.id in good)
            for queued in group:
                if not queued.done.done():
                    queued.done.set_result(queued.write.run.id in good)

    async def _attempt(self, group: Sequence[_Queued]) -> set[str]:
        arguments = _arguments([queued.write for queued in group])
        attempts = 0
        while True:
            connection = self._line.connection
            if connection is None:
                raise StoreAway("the connection for writes is away")
            attempts += 1
            try:
                return await self._send(connection, arguments)
            except RaceLost as lost:
                if attempts == _ATTEMPTS:
                    raise StoreAway(str(lost)) from None

    async def _send(self, connection: Connection, arguments: Sequence[object]) -> set[str]:
        try:
            with told_of_races():
                return set(await connection.fetchval(self._statement, *arguments))
        except StoreAway:
            self._line.drop(connection)
            raise


def _settle(group: Iterable[_Queued], error: StoreError) -> None:
    for queued in group:
        if not queued.done.done():
            queued.done.set_exception(type(error)(*error.args))  # each its own: they gather tracebacks


def _arguments(writes: Sequence[Write]) -> Sequence[object]:
    """What `write_1` takes: the rows of the whole group, table by table."""
    changes = [write for write in writes if write.was is not None]
    begins = [write for write in writes if write.was is None]
    return (
        [astuple(write.run) for write in changes],
        [write.was and write.was[0] for write in changes],
        [write.was and write.was[1] for write in changes],
        [astuple(write.run) for write in begins],
        [astuple(write.begins) for write in begins if write.begins is not None],
        [write.run.id for write in writes if write.ends],
        [write.run.id for write in writes if write.ends and write.scene],
        [write.run.thread for write in writes if write.ends or write.was is None],
        [astuple(write.log) for write in writes if write.log is not None],
        [astuple(call) for write in writes for call in {call.id: call for call in write.calls}.values()],
        [(write.run.id, write.run.version, write.snapshot) for write in writes if write.snapshot],
        [(write.run.id, *write.toolset) for write in writes if write.toolset is not None],
        [memory for write in writes for memory in _memories(write)],
        [write.run.id for write in writes if write.streamed],
    )


def _memories(write: Write) -> Sequence[tuple[object, ...]]:
    last = {(memory.principal, memory.pin, memory.arguments_hash): memory for memory in write.memories}
    return [(write.run.id, *astuple(memory)) for memory in last.values()]
