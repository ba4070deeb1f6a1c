"""A real PostgreSQL server for tests: a cluster of its own for each process of the test run, stopped at its end."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest

# What a server writes is to be as safe as where it counts; what is not written is time.
SETTINGS = {
    "listen_addresses": "''",
    "fsync": "on",
    "max_connections": "120",
    "shared_buffers": "64MB",
    "logging_collector": "off",
    "log_lock_waits": "off",
}
OWNER = "postgres"


class PostgresServer:
    """One cluster, reached through a socket in its own folder, so that no port has to be free."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.binaries = binaries
        self.folder = folder
        self.data = folder / "data"

    def url(self, database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://{OWNER}@/{database}?host={quote(str(self.folder), safe='')}"

    def create(self) -> None:
        """Make the files of the cluster."""
        self._run("initdb", "--pgdata", self.data, "--username", OWNER, "--auth", "trust", "--no-sync", "--no-locale")
        with (self.data / "postgresql.auto.conf").open("a", encoding="utf-8") as settings:
            settings.writelines(f"{name} = {value}\n" for name, value in SETTINGS.items())
            settings.write(f"unix_socket_directories = '{self.folder}'\n")

    def start(self) -> None:
        """Take connections."""
        self._control("start")

    def stop(self) -> None:
        """Break off, as a crash does."""
        self._control("stop", "--mode", "immediate")

    def restart(self) -> None:
        """Break off and recover, as after a crash."""
        self._control("restart", "--mode", "immediate")

    def log(self) -> str:
        """What the server has said so far."""
        path = self.folder / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _control(self, *arguments: str) -> None:
        options = ("--pgdata", self.data, "--log", self.folder / "log", "--timeout", "60", "--wait", "--silent")
        self._run("pg_ctl", *arguments, *options)

    def _run(self, program: str, *arguments: str | Path) -> None:
        # The server refuses to run as root; then it runs as the user that its package made.
        as_owner = ["runuser", "-u", OWNER, "--"] if os.geteuid() == 0 else []
        command = [*as_owner, str(self.binaries / program), *map(str, arguments)]
        # Not a pipe: the server would inherit it, and nobody would see its end.
        with (self.folder / "output").open("w+", encoding="utf-8") as output:
            ran = subprocess.run(command, cwd=self.folder, stdout=output, stderr=output, check=False, timeout=90)
            output.seek(0)
            said = output.read()
        assert ran.returncode == 0, f"{program} failed: {said}\n{self.log()[-2_000:]}"


def binaries() -> Path:
    """Where the programs of the server are; the newest version, if there are several."""
    on_path = shutil.which("pg_ctl")
    packaged = Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")
    found = sorted(packaged, key=lambda path: [int(part) for part in path.parts[-3].split(".")])
    if found:
        return found[-1].parent
    if on_path is not None:
        return Path(on_path).resolve().parent
    pytest.fail("these tests need a PostgreSQL server: apt-get install postgresql", pytrace=False)


def owned_folder() -> Path:
    """A folder that the server may write to. Not below pytest's, which only root may enter."""
    folder = Path(tempfile.mkdtemp(prefix="farhand-pg-"))
    if os.geteuid() == 0:
        try:
            owner = pwd.getpwnam(OWNER)
        except KeyError:
            pytest.fail(f"there is no user {OWNER!r} to run as: apt-get install postgresql", pytrace=False)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server of this process's own."""
    programs = binaries()
    folder = owned_folder()
    server = PostgresServer(programs, folder)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def postgres_url(postgres_server: PostgresServer) -> AsyncIterator[str]:
    """An empty database. It is the same for all tests: emptying it afterwards is cheaper than making one."""
    url = postgres_server.url()
    yield url
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()"
        )
        schemas = await connection.fetchval(
            "select array(select nspname::text from pg_namespace where nspname !~ '^pg_|^information_schema$|^public$')"
        )
        for schema in schemas:
            await connection.execute(f'drop schema "{schema}" cascade')
    finally:
        await connection.close()
