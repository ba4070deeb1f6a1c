"""Opening a SQLite file: its place, its settings, and the version of its tables."""

import os
import secrets
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeAlias

from farhand.core.errors import StoreAway, StoreError, StoreVersion
from farhand.stores import sqlite_queries as sql

MIGRATIONS = Path(__file__).parent / "migrations" / "sqlite"

Synchronous: TypeAlias = Literal["full", "normal"]

BUSY = 5.0
"""Seconds to wait for another process."""
OLDEST = (3, 24)
CACHE = (1024, 1024)
"""KiB for the writer and for a reader. The system has the same pages in memory, so that more is not faster here."""
SETTINGS = (
    "PRAGMA wal_autocheckpoint = 2000",
    "PRAGMA journal_size_limit = 67108864",
    f"PRAGMA cache_size = -{CACHE[0]}",
    "PRAGMA secure_delete = FAST",
    "PRAGMA foreign_keys = OFF",
)
FAR = {"9p", "afs", "cifs", "fuse.sshfs", "nfs", "nfs4", "smb", "smb2", "smb3", "smbfs"}
"""File systems of another machine: SQLite can rely on neither their locks nor their shared memory."""


def connect_writer(path: Path, synchronous: Synchronous, migrations: Path) -> sqlite3.Connection:
    """The connection that writes, on tables of the right version; a new file is set up."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; 3.24 or newer is needed")
    create(path)
    connection = connect(path)
    try:
        version = version_of(connection, path)
        if version is not None:
            check(version, newest(migrations), path)
        use_log_ahead(connection, path)
        for setting in (*SETTINGS, f"PRAGMA synchronous = {synchronous}"):
            connection.execute(setting)
        if version is None:
            migrate(connection, path, migrations)
    except sqlite3.Error as error:
        connection.close()
        raise cannot_open(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads."""
    connection = connect(path)
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{CACHE[1]}")
    return connection


def connect(path: Path) -> sqlite3.Connection:
    """A bare connection, without Python's own transactions."""
    try:
        return sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False, cached_statements=128)
    except sqlite3.Error as error:
        raise cannot_open(path, error) from error


def create(path: Path) -> None:
    """An empty file for nobody else's eyes, unless there is one; on this machine's own disk."""
    if system := far_system(path):
        raise StoreError(
            f"{str(path)!r} is on a network file system ({system}), where SQLite can lose data; "
            "use a path on a disk of this machine, or PostgreSQL"
        )
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be opened for writing: {error.strerror}") from error


def far_system(path: Path, mounts: str | None = None) -> str:
    """The name of the network file system that a path is on; empty if it is on none, or nobody can tell."""
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
    resolved = os.path.realpath(path)
    best, kind = "", ""
    for line in mounts.splitlines():
        _, place, system, *_ = [*line.split(" "), "", "", ""]
        place = place.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        inside = place == "/" or resolved == place or resolved.startswith(place + "/")
        if place and inside and len(place) >= len(best):  # of two on one place, the later one is seen
            best, kind = place, system
    return kind if kind in FAR else ""


def use_log_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """Readers beside the writer, and one sync for each commit. Two who begin at once are in each other's way."""
    waited, pause = 0.0, threading.Event()
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or waited >= BUSY:
                raise
            waited += 0.02
            pause.wait(0.02)
        else:
            if mode != "wal":
                raise StoreError(f"SQLite cannot keep a write-ahead log for {str(path)!r} (journal mode {mode!r})")
            return


def version_of(connection: sqlite3.Connection, path: Path) -> int | None:
    """The version of the tables; None if there are none."""
    tables = {name for (name,) in connection.execute(sql.TABLES)}
    if not tables:
        return None
    found = connection.execute(sql.READ_META, ("version",)).fetchone() if "meta" in tables else None
    if found is None:
        raise StoreError(f"{str(path)!r} holds something else")
    return int(found[0])


def version_there(path: Path) -> int:
    """The version of the tables in a file, whoever else has it open; 0 if there is no file, or an empty one."""
    if not path.exists():
        return 0
    with closing(connect(path)) as connection:
        try:
            return version_of(connection, path) or 0
        except sqlite3.Error as error:
            raise cannot_open(path, error) from error


def check(version: int, wanted: int, path: Path) -> None:
    """Refuse what this build does not read."""
    if version > wanted:
        raise StoreVersion(
            f"the tables of {str(path)!r} are of version {version}, and this build reads {wanted}: use a newer Farhand"
        )
    if version < wanted:
        raise StoreVersion(
            f"the tables of {str(path)!r} are of version {version}, and this build needs {wanted}: "
            f"run `farhand store migrate sqlite:{path}`"
        )


def newest(migrations: Path) -> int:
    """The version that the migrations lead to."""
    return max(steps(migrations))


def steps(migrations: Path) -> dict[int, str]:
    """The text of each migration, by its number."""
    return {int(path.name[:4]): path.read_text(encoding="utf-8") for path in sorted(migrations.glob("[0-9]*.sql"))}


def migrate(connection: sqlite3.Connection, path: Path, migrations: Path) -> int:
    """Apply what is missing, all of it or nothing; gives how many steps that took."""
    connection.execute("BEGIN EXCLUSIVE")
    try:
        version = version_of(connection, path)  # somebody may have been faster
        missing = [(number, text) for number, text in steps(migrations).items() if number > (version or 0)]
        for _, text in missing:
            for statement in statements(text):
                connection.execute(statement)
        if missing:
            connection.execute(sql.PUT_META, ("version", str(missing[-1][0])))
        if version is None:
            connection.execute(sql.PUT_META, ("store", secrets.token_hex(16)))
        connection.execute(sql.COMMIT)
    except BaseException:
        if connection.in_transaction:
            connection.execute(sql.ROLLBACK)
        raise
    return len(missing)


def statements(text: str) -> list[str]:
    """The statements of a file, one by one: executed as a script they would end the transaction around them."""
    found: list[str] = []
    gathered = ""
    for line in text.splitlines(keepends=True):
        gathered += line
        if sqlite3.complete_statement(gathered):
            found.append(gathered)
            gathered = ""
    if gathered.strip():
        raise StoreError(f"a migration ends in the middle of a statement: {gathered.strip()!r}")
    return found


def cannot_open(path: Path, error: sqlite3.Error) -> StoreError:
    """Why a file cannot be opened: another process is at it, or it is not what it should be."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreAway(f"{str(path)!r} is being used by another process")
    return StoreError(f"{str(path)!r} cannot be opened: {error}")
