"""What the SQLite store reads with more than one query: all in one transaction, so that it fits together."""

import sqlite3

from farhand.stores import sqlite_queries as sql
from farhand.stores.base import LogRow, RunRow, Stored, Summary, ThreadRow
from farhand.stores.sqlite_rows import read


def load(cursor: sqlite3.Cursor, run: str) -> Stored | None:
    """A run, what came after its snapshot, and its conversation; within a transaction."""
    found = cursor.execute(sql.RUN, (run,)).fetchone()
    if found is None:
        return None
    row = read(RunRow, found)
    thread = cursor.execute(sql.THREAD, (row.thread,)).fetchone()
    version, snapshot = cursor.execute(sql.SNAPSHOT, (run,)).fetchone() or (0, b"")
    tail = _tail(cursor, row, version)
    messages = cursor.execute(sql.MESSAGES, (row.thread, row.said)).fetchall()
    return Stored(
        run=row,
        thread=read(ThreadRow, thread),
        snapshot=snapshot,
        tail=tail,
        messages=[message for (message,) in messages],
    )


def _tail(cursor: sqlite3.Cursor, run: RunRow, version: int) -> list[LogRow]:
    """From the run's end backwards until its snapshot, or its beginning, is reached."""
    tail: list[LogRow] = []
    for found in cursor.execute(sql.TAIL, (run.thread, run.seq)):
        if found[1] != run.id:  # another run of the thread that told nothing at first, or at last
            continue
        row = read(LogRow, found)
        if row.version > version:
            tail.append(row)
        if row.version - row.count <= version:
            break
    tail.reverse()
    return tail


def summary(cursor: sqlite3.Cursor) -> Summary:
    """How much there is of everything."""
    (store,) = cursor.execute(sql.READ_META, ("store",)).fetchone()
    (threads,) = cursor.execute(sql.COUNT_THREADS).fetchone()
    states = cursor.execute(sql.COUNT_RUNS).fetchall()
    open_calls, awaited_calls = cursor.execute(sql.COUNT_CALLS).fetchone()
    return Summary(id=store, threads=threads, runs=dict(states), open_calls=open_calls, awaited_calls=awaited_calls)
