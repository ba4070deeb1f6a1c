"""A power failure takes what was written and not yet synced, or any part of it.

A program writes to a store and notes down all that SQLite does to its files, and when something was acknowledged. Then
the files are made as a failure at some moment could have left them, again and again, and looked at.
"""

import pickle
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Event: TypeAlias = tuple[Any, ...]

# SQLite's own way to its files is changed where it stands: `open` is followed, and hands out other methods.
RECORD = """
import _sqlite3, asyncio, ctypes, pickle, shutil, sys
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p

from farhand.stores.sqlite import SqliteStore
from farhand.testing.store_rows import done, run_row, start, step

NAMES = "close read write truncate sync size lock unlock reserved control sector device"
NAMES += " map shm barrier unmap fetch unfetch"
OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
SYNC = CFUNCTYPE(c_int, c_void_p, c_int)

class Methods(Structure):
    _fields_ = [("version", c_int), *((name, c_void_p) for name in NAMES.split())]

class File(Structure):
    _fields_ = [("methods", POINTER(Methods))]

class System(Structure):
    _fields_ = [("version", c_int), ("size", c_int), ("longest", c_int), ("next", c_void_p), ("name", c_char_p),
                ("data", c_void_p), ("open", c_void_p)]

library = ctypes.CDLL(_sqlite3.__file__)
try:
    library.sqlite3_vfs_find.restype = POINTER(System)
except AttributeError:
    sys.exit(77)
system = library.sqlite3_vfs_find(None).contents
real_open = OPEN(system.open)
events, names, kept = [], {}, []

def follow(file):
    methods = ctypes.cast(file, POINTER(File)).contents.methods.contents
    real_write, real_truncate, real_sync = WRITE(methods.write), TRUNCATE(methods.truncate), SYNC(methods.sync)

    def write(file, data, length, offset):
        events.append(("write", names[file], offset, ctypes.string_at(data, length)))
        return real_write(file, data, length, offset)

    def truncate(file, size):
        events.append(("truncate", names[file], size))
        return real_truncate(file, size)

    def sync(file, flags):
        done = real_sync(file, flags)
        events.append(("sync", names[file]))
        return done

    mine = [WRITE(write), TRUNCATE(truncate), SYNC(sync)]
    copy = Methods.from_buffer_copy(methods)
    copy.write, copy.truncate, copy.sync = (ctypes.cast(each, c_void_p).value for each in mine)
    kept.extend([mine, copy])
    ctypes.cast(file, POINTER(File)).contents.methods = ctypes.pointer(copy)

def open_file(system, name, file, flags, out):
    failed = real_open(system, name, file, flags, out)
    if not failed and name:
        names[file] = ctypes.string_at(name).decode()
        follow(file)
    return failed

mine = OPEN(open_file)
system.open = ctypes.cast(mine, c_void_p).value

async def client(store, name):
    run = run_row(name, "t" + name)
    await done(store, start(run))
    for number in range(40):
        run = await done(store, step(run, snapshot=bytes([number]) * 30_000 if number % 2 else b""))
        events.append(("acknowledged", name, run.version))

async def main(path, synchronous, trace):
    store = SqliteStore(path, synchronous=synchronous)
    await store.open()
    events.clear()
    base = {}
    for suffix in ("", "-wal"):
        with open(path + suffix, "rb") as file:
            base[path + suffix] = file.read()
    await asyncio.gather(*(client(store, f"r{number}") for number in range(25)))
    with open(trace, "wb") as file:
        pickle.dump((base, list(events)), file)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def recorded(folder: Path, synchronous: str) -> tuple[dict[str, bytes], list[Event]]:
    """What a program did to its files."""
    path, trace = folder / "runs.db", folder / "trace"
    command = [sys.executable, "-c", RECORD, str(path), synchronous, str(trace)]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120)
    if ran.returncode == 77:
        pytest.skip("this Python has SQLite built in, and nothing of it can be reached")
    assert ran.returncode == 0, ran.stderr
    base, events = pickle.loads(trace.read_bytes())
    assert ran.stderr == ""
    return {Path(name).name: data for name, data in base.items()}, events


def failures(
    base: dict[str, bytes], events: list[Event], count: int
) -> Iterator[tuple[dict[str, bytes], dict[str, int]]]:
    """The files after a failure at some moment, and what had been acknowledged by then."""
    chance = random.Random(1)
    moments = set(chance.sample(range(len(events)), count)) | {len(events) - 1}
    synced = {name: bytearray(data) for name, data in base.items()}
    pending: dict[str, list[Event]] = {name: [] for name in base}
    acknowledged: dict[str, int] = {}
    for moment, event in enumerate(events):
        name = Path(event[1]).name
        match event:
            case ("acknowledged", run, version):
                acknowledged[run] = version
            case ("sync", _) if name in pending:
                for each in pending[name]:
                    apply(synced[name], each)
                pending[name].clear()
            case _ if name in pending:
                pending[name].append(event)
        if moment in moments:
            yield {each: left(synced[each], pending[each], chance) for each in base}, dict(acknowledged)


def left(synced: bytearray, pending: list[Event], chance: random.Random) -> bytes:
    """Of what was not synced, some is there, some is not, and some only in part."""
    file = bytearray(synced)
    kind = chance.randrange(3)  # all is gone, or the disk wrote in its own order
    for event in pending:
        if kind and chance.random() < 0.5:
            apply(file, event, chance.random() if kind == 2 else 1.0)
    return bytes(file)


def apply(file: bytearray, event: Event, share: float = 1.0) -> None:
    if event[0] == "truncate":
        del file[event[2] :]
        return
    _, _, offset, data = event
    data = data[: int(len(data) * share)]
    file.extend(bytes(max(0, offset - len(file))))
    file[offset : offset + len(data)] = data


def lost(folder: Path, files: dict[str, bytes], acknowledged: dict[str, int]) -> int:
    """How many acknowledged runs are not as far as was said; everything else has to be in order."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with closing(sqlite3.connect(folder / "runs.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        versions: dict[str, int] = dict(connection.execute("SELECT id, version FROM runs").fetchall())
        logs = dict(
            connection.execute("SELECT run, max(version) || '/' || sum(count) FROM log GROUP BY run").fetchall()
        )
        assert logs == {run: f"{version}/{version}" for run, version in versions.items()}
        snapshots = connection.execute("SELECT run, version FROM snapshots").fetchall()
        assert all(version <= versions[run] for run, version in snapshots)
    return sum(versions.get(run, 0) < version for run, version in acknowledged.items())


def test_a_power_failure_takes_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    base, events = recorded(tmp_path, "full")
    assert any(event[0] == "sync" and event[1].endswith(".db") for event in events), "there was no checkpoint"
    found = [lost(tmp_path / "after", *failure) for failure in failures(base, events, 150)]
    assert len(found) >= 150
    assert sum(found) == 0


def test_in_the_faster_mode_a_power_failure_takes_the_last_writes_and_nothing_else(tmp_path: Path) -> None:
    base, events = recorded(tmp_path, "normal")
    found = [lost(tmp_path / "after", *failure) for failure in failures(base, events, 60)]
    assert sum(found) > 0, "the test above would not find a missing sync"
