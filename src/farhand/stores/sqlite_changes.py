"""What the SQLite store changes, each within a transaction that somebody else has begun.

A change first asks whether everything is as expected; one that is not has written nothing. Whatever others should look
at is added to `rung`, which counts once the transaction is committed.
"""

from collections.abc import Iterable, Sequence
from sqlite3 import Cursor
from typing import TypeAlias

import msgspec
from msgspec import structs

from farhand.core.errors import StoreError
from farhand.stores import sqlite_queries as sql
from farhand.stores.base import FORMAT, TABLES, Claim, PieceRow, Row, RunRow, ThreadRow, WorkerRow, Write
from farhand.stores.sqlite_rows import columns

Rung: TypeAlias = list[tuple[str, str]]
"""Threads and runs that were changed; two empty names stand for everything."""
EVERYTHING = ("", "")


def write(cursor: Cursor, rung: Rung, write: Write) -> bool:
    """One commit of one run, if it is as expected."""
    run = write.run
    if not (_begin(cursor, run, write.begins) if write.was is None else _advance(cursor, run, write.was)):
        return False
    if write.log is not None:
        cursor.execute(sql.INSERT_LOG, columns(write.log))
    for call in write.calls:
        cursor.execute(sql.PUT_CALL, columns(call))
    if write.snapshot:
        cursor.execute(sql.PUT_SNAPSHOT, (run.id, run.version, write.snapshot))
    if write.toolset is not None:
        cursor.execute(sql.PUT_TOOLSET, write.toolset)
    for memory in write.memories:
        cursor.execute(sql.PUT_MEMORY, columns(memory))
    if write.ends:
        cursor.execute(sql.END_THREAD, (run.seq, run.said, run.id if write.scene else "", run.updated, run.thread))
    if write.streamed:
        cursor.execute(sql.DELETE_PIECES, (run.id,))
    rung.append((run.thread, run.id))
    return True


def _begin(cursor: Cursor, run: RunRow, begins: ThreadRow | None) -> bool:
    if begins is None:
        return False
    known = cursor.execute(sql.THREAD_PLACE, (begins.id,)).fetchone()
    if begins.seq != 0 if known is None else known != ("", begins.seq):
        return False
    if cursor.execute(sql.INSERT_RUN, columns(run)).rowcount != 1:
        return False
    cursor.execute(sql.INSERT_THREAD, columns(begins))
    return True


def _advance(cursor: Cursor, run: RunRow, was: tuple[int, int]) -> bool:
    row = (
        *(run.state, run.version, run.epoch, run.holder, run.due, run.seq, run.said, run.format, run.why, run.updated),
        *(run.id, *was),
    )
    return cursor.execute(sql.UPDATE_RUN, row).rowcount == 1


def forget(cursor: Cursor, rung: Rung, principal: str) -> None:
    """Delete a person's lasting decisions."""
    cursor.execute(sql.FORGET, (principal,))


def enter(cursor: Cursor, rung: Rung, worker: WorkerRow) -> None:
    """A worker begins."""
    cursor.execute(sql.ENTER, columns(worker))


def beat(cursor: Cursor, rung: Rung, said: tuple[str, int, int]) -> bool:
    """A worker lives; false if it was struck out."""
    worker, now, expires = said
    return cursor.execute(sql.BEAT, (now, expires, worker)).rowcount == 1


def leave(cursor: Cursor, rung: Rung, worker: str) -> None:
    """A worker goes, and what it held is ready."""
    cursor.execute(sql.LEAVE, (worker,))
    if cursor.execute(sql.FREE, (worker,)).rowcount:
        rung.append(EVERYTHING)


def expire(cursor: Cursor, rung: Rung, found: tuple[int, Sequence[str]]) -> int:
    """Strike out workers whose time is over and those known to be dead; gives how many runs are ready for it."""
    now, dead = found
    cursor.execute(sql.EXPIRE, (now,))
    for worker in dead:
        cursor.execute(sql.LEAVE, (worker,))
    cursor.execute(sql.FORGET_PROGRESS)
    freed = cursor.execute(sql.FREE_LOST).rowcount
    if freed:
        rung.append(EVERYTHING)
    return freed


def claim(cursor: Cursor, rung: Rung, wanted: tuple[str, Sequence[str], int, int]) -> list[Claim]:
    """Take up runs: those that became ready or due first come first."""
    worker, agents, now, limit = wanted
    names = msgspec.json.encode(agents).decode()
    found: list[tuple[int, str, str]] = cursor.execute(sql.READY, (FORMAT, names, limit)).fetchall()
    found += cursor.execute(sql.DUE, (now, FORMAT, names, limit)).fetchall()
    found.sort()
    return [
        Claim(run, state == "ready")
        for _, run, state in found[:limit]
        if cursor.execute(sql.TAKE_UP, (worker, run, state)).rowcount == 1
    ]


def refuse(cursor: Cursor, rung: Rung, refused: tuple[RunRow, str]) -> bool:
    """Put a run aside, if it is as it was read."""
    run, why = refused
    if cursor.execute(sql.REFUSE, (why, run.id, run.version, run.epoch)).rowcount != 1:
        return False
    rung.append((run.thread, run.id))
    return True


def readmit(cursor: Cursor, rung: Rung, run: RunRow) -> bool:
    """Have a run taken up again that was put aside."""
    if cursor.execute(sql.READMIT, (run.id, run.version, run.epoch)).rowcount != 1:
        return False
    rung.append(EVERYTHING)
    return True


def stream(cursor: Cursor, rung: Rung, pieces: Sequence[PieceRow]) -> None:
    """Keep pieces of runs that nobody else has taken up since."""
    for piece in pieces:
        found = cursor.execute(sql.RUN_AT, (piece.run, piece.epoch)).fetchone()
        if found is not None:
            cursor.execute(sql.PUT_PIECE, structs.astuple(piece))
            rung.append((found[0], piece.run))


def prune(cursor: Cursor, rung: Rung, old: tuple[int, int]) -> int:
    """Delete threads that are over and old, and the definitions that nothing else names."""
    threads: list[tuple[str]] = cursor.execute(sql.OLD, old).fetchall()
    toolsets: set[tuple[str]] = set()
    for thread in threads:
        toolsets.update(cursor.execute(sql.TOOLSETS_OF, thread).fetchall())
        for statement in sql.DELETE_THREAD:
            cursor.execute(statement, thread)
    cursor.executemany(sql.DELETE_TOOLSET, toolsets)
    return len(threads)


def changes(cursor: Cursor, rung: Rung, nothing: None) -> int:
    """A number that is another one whenever another connection has written."""
    return cursor.execute(sql.CHANGES).fetchone()[0]


TAKE_IN = {
    "threads": sql.INSERT_THREAD,
    "runs": sql.INSERT_RUN,
    "log": sql.INSERT_LOG,
    "calls": sql.PUT_CALL,
    "memories": sql.PUT_MEMORY,
}


def take_in(cursor: Cursor, rows: Iterable[tuple[str, Row]]) -> None:
    """Fill an empty store; whoever has begun the transaction takes everything back if a row is refused."""
    if cursor.execute(sql.FILLED).fetchone()[0]:
        raise StoreError("rows can be taken in by an empty store only")
    for table, fields in rows:
        if table == "toolsets":
            cursor.execute(sql.PUT_TOOLSET, (fields["id"], fields["body"]))
        elif table == "snapshots":
            cursor.execute(sql.PUT_SNAPSHOT, (fields["run"], fields["version"], fields["body"]))
        elif table not in TABLES:
            raise StoreError(f"there is no table {table!r}")
        else:
            row = msgspec.convert(fields, TABLES[table], builtin_types=(bytes,))
            if cursor.execute(TAKE_IN[table], columns(row)).rowcount != 1:
                raise StoreError(f"there are two rows of {fields['id']!r} in {table!r}")
