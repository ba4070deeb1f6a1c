"""A PostgreSQL server for a proof that is run by itself: its own, on an empty folder, gone at the end."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from tests.stores.postgres import PostgresServer, binaries, owned_folder


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    """A server that lives as long as the block."""
    server = PostgresServer(binaries(), owned_folder())
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(server.folder, ignore_errors=True)
