"""Connections for signs of life. A thread with a loop of its own gives them, and a connection belongs to one loop."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from farhand.stores.postgres_connection import Connection, connect, hang_up, told


class _Kept(NamedTuple):
    connection: Connection
    keeping: asyncio.Task[None]


class Heart:
    """One connection for each loop that asks, made when it is first needed; lost ones are made again.

    A task in that loop keeps it. Whoever ends the loop as `asyncio.run` does cancels the task, which hangs up.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._kept: dict[asyncio.AbstractEventLoop, _Kept] = {}

    async def value(self, query: str, *args: object) -> object:
        """The one value that a statement gives, or None."""
        loop = asyncio.get_running_loop()
        kept = self._kept.get(loop)
        if kept is None or kept.connection.is_closed():
            if kept is not None:
                kept.keeping.cancel()
            connection = await connect(self._dsn, "beats")
            kept = self._kept[loop] = _Kept(connection, loop.create_task(self._keep(connection)))
            kept.keeping.add_done_callback(partial(_hung_up, connection))
        with told():
            return await kept.connection.fetchval(query, *args)

    async def close(self) -> None:
        """Hang up, each in its own loop."""
        kept, self._kept = self._kept, {}
        here = asyncio.get_running_loop()
        for loop, (_, keeping) in kept.items():
            if loop is here:
                await _ended(keeping)
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_ended(keeping), loop))

    async def _keep(self, connection: Connection) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            loop = asyncio.get_running_loop()
            if (kept := self._kept.get(loop)) is not None and kept.connection is connection:
                del self._kept[loop]
            await hang_up(connection)


async def _ended(keeping: asyncio.Task[None]) -> None:
    keeping.cancel()
    with suppress(asyncio.CancelledError):
        await keeping


def _hung_up(connection: Connection, _: asyncio.Task[None]) -> None:
    """A task that is cancelled before it has begun does nothing, not even what it would do in the end."""
    if not connection.is_closed():
        connection.terminate()
