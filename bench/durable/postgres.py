"""The PostgreSQL of a pass: the server that the tests use, with a new database for each measurement."""

import asyncio
import itertools
import shutil
from pathlib import Path
from typing import Any

from bench.environment import UnavailableError


class Postgres:
    """Started when it is first needed; if that does not work, it says so each time."""

    def __init__(self) -> None:
        self._server: Any = None
        self._reason = ""
        self._numbers = itertools.count(1)

    @property
    def folder(self) -> Path:
        """Where it keeps its files."""
        return self._running().folder

    def database(self) -> str:
        """The address of a new database."""
        server = self._running()
        name = f"bench{next(self._numbers)}"
        asyncio.run(create(server.url(), name))
        return server.url(name)

    @property
    def process(self) -> int:
        """The server's first process, which has started all the others."""
        return int((self._running().data / "postmaster.pid").read_text().split()[0])

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop()
            shutil.rmtree(server.folder, ignore_errors=True)

    def _running(self) -> Any:
        if self._server is None and not self._reason:
            try:
                self._server = start()
            except Exception as error:
                self._reason = f"no PostgreSQL: {error}".splitlines()[0]
        if self._reason:
            raise UnavailableError(self._reason)
        return self._server


def start() -> Any:
    """A server of our own, made and configured as for the tests."""
    try:
        import pytest

        from tests.stores import postgres as tested
    except ModuleNotFoundError as error:
        raise UnavailableError(f"the environment that runs the bench has no {error.name}") from error
    try:
        server = tested.PostgresServer(tested.binaries(), tested.owned_folder())
    except pytest.fail.Exception as missing:
        raise UnavailableError(str(missing)) from missing
    try:
        server.create()
        server.start()
    except BaseException:
        shutil.rmtree(server.folder, ignore_errors=True)
        raise
    return server


async def create(url: str, name: str) -> None:
    import asyncpg

    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute(f"create database {name} encoding 'UTF8' template template0")
    finally:
        await connection.close()
