"""What is special about a store in a file: other processes, other threads, killed ones, and the file itself."""

import asyncio
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import pytest

from farhand.core.errors import StoreAway, StoreError, StoreVersion
from farhand.stores import sqlite_queries as sql
from farhand.stores.base import Ring
from farhand.stores.sqlite import SqliteStore
from farhand.stores.sqlite_schema import MIGRATIONS, far_system
from farhand.testing.store_rows import done, row_of, run_row, start, step, worker_row

PRELUDE = """
import asyncio, json, os, signal, sys
from farhand.core.errors import StoreAway
from farhand.stores.base import Ring
from farhand.stores.sqlite import SqliteStore
from farhand.testing.store_rows import *

def tell(*what):
    os.write(1, (json.dumps(what) + "\\n").encode())
"""


@contextmanager
def another_process(program: str, *arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", PRELUDE + program, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[bytes]) -> list[object]:
    out: IO[bytes] | None = process.stdout
    assert out is not None
    line = out.readline()
    assert line, f"the process ended with {process.wait(10)}"
    return json.loads(line)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.close()


# Processes that die.

WRITE_FOR_EVER = """
async def client(store, name):
    run = run_row(name, "t" + name)
    await done(store, start(run))
    while True:
        tell(name, run.version)
        run = await done(store, step(run))

async def main():
    store = SqliteStore(sys.argv[1], synchronous=sys.argv[2])
    await store.open()
    await asyncio.gather(*(client(store, f"r{number}") for number in range(20)))

asyncio.run(main())
"""


@pytest.mark.parametrize("synchronous", ["full", "normal"])
async def test_whatever_was_acknowledged_is_there_after_kill_9(path: Path, synchronous: str) -> None:
    acknowledged: dict[str, int] = {}
    with another_process(WRITE_FOR_EVER, path, synchronous) as process:
        for _ in range(500):
            name, version = told(process)
            acknowledged[str(name)] = int(str(version))
        process.send_signal(signal.SIGKILL)
        assert process.stdout is not None
        for line in process.stdout.read().splitlines():
            name, version = json.loads(line)
            acknowledged[name] = version
    store = SqliteStore(path)
    await store.open()
    for name, version in acknowledged.items():
        stored = await store.load(name)
        assert stored is not None
        assert stored.run.version in {version, version + 2}
        assert [row.version for row in stored.tail] == list(range(2, stored.run.version + 1, 2))
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


WORK = """
async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    await store.enter(worker_row("w/1", expires=10**15))
    await done(store, start(run_row(holder="w/1")))
    tell("working")
    sys.stdin.read()

asyncio.run(main())
"""


async def test_the_runs_of_a_killed_process_are_ready_at_once(path: Path, store: SqliteStore) -> None:
    await store.enter(worker_row("w2", expires=10**15))
    await done(store, start(run_row("r2", "t2", holder="w2")))
    with another_process(WORK, path) as process:
        assert told(process) == ["working"]
        assert await store.expire(1_000) == 0
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert await store.expire(1_000) == 1
    assert (await row_of(store, "r1")).state == "ready"
    assert not await store.beat("w/1", 1_000, 2_000)
    assert await store.beat("w2", 1_000, 2_000)
    assert sorted(os.listdir(f"{path}-workers")) == ["w2.lock"]


async def test_a_worker_of_another_machine_has_its_time(path: Path, store: SqliteStore) -> None:
    await store.enter(worker_row("w1", expires=5_000))
    lock = f"{path}-workers/w1.lock"
    os.unlink(lock)
    with open(lock, "x") as file:  # noqa: ASYNC230
        file.write("another machine")
    await done(store, start(run_row(holder="w1")))
    second = SqliteStore(path)
    await second.open()
    assert await second.expire(5_000) == 0
    os.unlink(lock)
    assert await second.expire(5_000) == 0
    assert await second.expire(5_001) == 1
    await second.close()


async def test_a_worker_that_left_or_whose_store_was_closed_leaves_nothing_behind(path: Path) -> None:
    first, second = SqliteStore(path), SqliteStore(path)
    await first.open(lambda _: None)
    await second.open()
    for worker in ("w1", "w2"):
        await first.enter(worker_row(worker, expires=10**15))
    await done(second, start(run_row("r2", "t2", holder="w2")))
    with pytest.raises(StoreError, match="another process has a worker 'w1'"):
        await second.enter(worker_row("w1"))
    await first.leave("w1")
    await first.enter(worker_row("w1"))
    await first.leave("w1")
    await first.close()
    assert await second.expire(1_000) == 1
    await second.close()
    assert os.listdir(f"{path}-workers") == []


# Processes beside each other.

COUNT = """
async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    tell("open")
    sys.stdin.readline()
    counted = 0
    while counted < 50:
        run = await row_of(store, "r1")
        counted += await store.write(step(run, 1, why=sys.argv[2]))
        own = f"{sys.argv[2]}{counted}-{run.version}"
        await done(store, start(run_row(own, own)))
    await store.close()
    tell("done")

asyncio.run(main())
"""


async def test_two_processes_write_to_one_file(path: Path, store: SqliteStore) -> None:
    await done(store, start(run_row()))
    with another_process(COUNT, path, "a") as one, another_process(COUNT, path, "b") as two:
        for process in (one, two):
            assert told(process) == ["open"]
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        for process in (one, two):
            assert await asyncio.to_thread(told, process) == ["done"]
    stored = await store.load("r1")
    assert stored is not None
    assert stored.run.version == 102
    assert [row.version for row in stored.tail] == list(range(2, 103))


OPEN = """
async def main():
    tell("here")
    sys.stdin.readline()
    store = SqliteStore(sys.argv[1])
    await store.open()
    await done(store, start(run_row(sys.argv[2], sys.argv[2])))
    await store.close()
    tell("done")

asyncio.run(main())
"""


async def test_a_new_file_can_be_opened_by_many_at_once(path: Path) -> None:
    with another_process(OPEN, path, "r1") as one, another_process(OPEN, path, "r2") as two:
        assert (told(one), told(two)) == (["here"], ["here"])
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        assert (told(one), told(two)) == (["done"], ["done"])
    many = [SqliteStore(path.with_name("other.db")) for _ in range(8)]
    await asyncio.gather(*(store.open() for store in many))
    await asyncio.gather(*(store.close() for store in many))
    store = SqliteStore(path)
    await store.open()
    assert {run.id for run in await store.runs("", "", 9)} == {"r1", "r2"}
    await store.close()


async def heard(rings: "asyncio.Queue[Ring]") -> Ring:
    async with asyncio.timeout(10):
        return await rings.get()


@pytest.mark.parametrize("folder", ["short", "long" * 40])
async def test_others_are_told_where_to_look_however_long_the_path(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    path = tmp_path / folder / "runs.db"
    rings: asyncio.Queue[Ring] = asyncio.Queue()
    mine: asyncio.Queue[Ring] = asyncio.Queue()
    first, second = SqliteStore(path), SqliteStore(path)
    await first.open(mine.put_nowait)
    await second.open(rings.put_nowait)
    await done(first, start(run_row()))
    while (ring := await heard(rings)) == Ring():
        pass  # from a look that is had now and then
    assert ring == Ring("t1", "r1")
    await second.close()
    await first.close()
    assert all(mine.get_nowait() == Ring() for _ in range(mine.qsize()))


LISTEN = """
async def main():
    await SqliteStore(sys.argv[1]).open(print)
    tell("listening")
    sys.stdin.read()

asyncio.run(main())
"""


async def test_what_a_killed_process_listened_on_is_cleared_away(path: Path) -> None:
    with another_process(LISTEN, path) as process:
        told(process)
        assert len(os.listdir(f"{path}-workers")) == 1
    store = SqliteStore(path)
    await store.open()
    await done(store, start(run_row()))
    await store.close()
    assert os.listdir(f"{path}-workers") == []


async def test_a_write_that_nobody_rang_for_is_noticed_all_the_same(path: Path) -> None:
    rings: asyncio.Queue[Ring] = asyncio.Queue()
    store = SqliteStore(path)
    await store.open(rings.put_nowait)
    await done(store, start(run_row()))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET why = 'by hand'")
    assert await heard(rings) == Ring()
    await store.close()


# Threads.


async def test_a_heart_beats_from_a_thread_of_its_own(store: SqliteStore) -> None:
    await store.enter(worker_row("w1"))
    await done(store, start(run_row()))
    seen: list[object] = []

    async def beat() -> None:
        seen.append(await asyncio.gather(*(store.beat("w1", now, now + 100) for now in range(50))))
        seen.append(await row_of(store, "r1"))

    thread = threading.Thread(target=lambda: asyncio.run(beat()))
    thread.start()
    writes = [store.write(step(run_row())) for _ in range(50)]
    await asyncio.to_thread(thread.join, 10)
    assert [await write for write in writes].count(True) == 1
    assert seen[0] == [True] * 50
    assert len(seen) == 2


async def test_a_store_that_is_closed_leaves_no_question_open(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    asked = [asyncio.ensure_future(store.write(start(run_row(f"r{number}", f"t{number}")))) for number in range(600)]
    closing_it = asyncio.create_task(store.close())
    async with asyncio.timeout(10):
        await closing_it
        answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [answer for answer in answers if answer is not True and not isinstance(answer, StoreAway)] == []
    for ask in (lambda: store.write(start(run_row())), lambda: store.load("r1"), lambda: store.beat("w", 1, 2)):
        with pytest.raises(StoreAway, match="not open"):
            await ask()
    await store.close()
    await store.open()
    assert len(await store.runs("", "", 1_000)) == answers.count(True)
    with pytest.raises(StoreError, match="open already"):
        await store.open()
    await store.close()


async def test_whoever_asks_and_goes_away_disturbs_nobody(store: SqliteStore) -> None:
    def ask_and_leave() -> None:
        async def ask() -> None:
            asyncio.ensure_future(store.beat("w1", 1, 2))  # noqa: RUF006
            await asyncio.sleep(0)

        asyncio.run(ask())

    await asyncio.to_thread(ask_and_leave)
    task = asyncio.ensure_future(store.write(start(run_row())))
    await asyncio.sleep(0)
    task.cancel()
    await done(store, start(run_row("r2", "t2")))


# Reading beside writing.


async def test_an_export_is_of_one_moment_whatever_is_written_meanwhile(store: SqliteStore) -> None:
    await done(store, *(start(run_row(f"r{number}", f"t{number}")) for number in range(5)))
    rows = store.export()
    found = [await anext(rows)]
    await done(store, start(run_row("late", "late")), step(run_row("r0", "t0")))
    found += [row async for row in rows]
    assert len(found) == 15
    assert {row["version"] for table, row in found if table == "runs"} == {2}


async def test_a_run_is_read_whole_while_it_is_written(store: SqliteStore) -> None:
    run = await done(store, start(run_row()))
    reads = 0

    async def write() -> None:
        nonlocal run
        for _ in range(100):
            run = await done(store, step(run, snapshot=b"s" if run.version % 5 == 0 else b""))

    writing = asyncio.create_task(write())
    while not writing.done():
        stored = await asyncio.to_thread(lambda: asyncio.run(store.load("r1")))
        assert stored is not None
        assert not stored.tail or stored.tail[-1].version == stored.run.version
        assert len(stored.messages) == stored.run.said
        reads += 1
    await writing
    assert reads > 1


# No space.

FILL = """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

async def attempt(store, name):
    try:
        return await store.write(start(run_row(name, "t" + name), snapshot=b"s" * 4_000))
    except StoreAway:
        return None

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limit[1]))
    names = [f"r{number}" for number in range(400)]
    full = await asyncio.gather(*(attempt(store, name) for name in names))
    readable = (await store.load(names[full.index(True)])).run.version
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    after = await asyncio.gather(*(attempt(store, "again" + name) for name in names))
    tell([name for name, done in zip(names, full) if done], full.count(None), readable, after.count(True))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_full_disk_loses_nothing_that_was_acknowledged(path: Path) -> None:
    with another_process(FILL, path) as process:
        kept, away, readable, after = told(process)
    assert isinstance(kept, list)
    assert isinstance(away, int)
    assert (len(kept) + away, readable, after) == (400, 2, 400)
    assert away > 0
    assert kept
    store = SqliteStore(path)
    await store.open()
    found = {run.id for run in await store.runs("", "", 1_000)}
    assert {str(name) for name in kept} <= found
    assert len(found) == len(kept) + 400
    await store.close()


# The file.


async def test_the_file_is_for_its_owner_only(store: SqliteStore, path: Path) -> None:
    await done(store, start(run_row()))
    for name in (path, f"{path}-wal", f"{path}-shm"):
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(f"{path}-workers").st_mode) == 0o700


@pytest.mark.parametrize("place", [":memory:", ""])
def test_a_database_in_memory_is_refused(place: str) -> None:
    with pytest.raises(StoreError, match="MemoryStore"):
        SqliteStore(place)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(StoreError, match="'full' or 'normal'"):
        SqliteStore("x.db", synchronous="off")  # type: ignore[arg-type]


async def test_what_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened for writing: No such file"):
        await SqliteStore(tmp_path / "nowhere" / "runs.db").open()
    text = tmp_path / "text.db"
    text.write_text("not a database, but long enough to be taken for one" * 100)
    with pytest.raises(StoreError, match="not a database"):
        await SqliteStore(text).open()
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE something (x)")
    before = foreign.read_bytes()
    with pytest.raises(StoreError, match="holds something else"):
        await SqliteStore(foreign).open()
    assert foreign.read_bytes() == before


def migrations(folder: Path, *further: str) -> Path:
    folder.mkdir()
    (folder / "0001_tables.sql").write_text((MIGRATIONS / "0001_tables.sql").read_text())
    for number, text in enumerate(further, 2):
        (folder / f"{number:04}_more.sql").write_text(text)
    return folder


async def test_older_tables_are_refused_until_they_are_brought_up_to_date(tmp_path: Path, path: Path) -> None:
    old = SqliteStore(path)
    await old.open()
    await done(old, start(run_row()))
    await old.close()
    folder = migrations(
        tmp_path / "new", "ALTER TABLE meta ADD COLUMN note TEXT;\n-- and\nCREATE TABLE more (x);\n", ""
    )
    new = SqliteStore(path, migrations=folder)
    with pytest.raises(StoreVersion, match=re.escape(f"run `farhand store migrate sqlite:{path}`")):
        await new.open()
    assert await new.version() == 1
    assert (await new.migrate(), await new.migrate()) == (2, 0)
    assert await new.version() == 3
    await new.open()
    assert (await row_of(new, "r1")).version == 2
    await new.close()
    with pytest.raises(StoreVersion, match="of version 3, and this build reads 1"):
        await old.open()


async def test_asking_for_the_version_makes_no_file(tmp_path: Path, path: Path) -> None:
    store = SqliteStore(path)
    assert await store.version() == 0
    assert os.listdir(tmp_path) == []
    assert (await store.migrate(), await store.version(), await store.migrate()) == (1, 1, 0)
    await store.open()
    await store.close()


async def test_a_migration_that_fails_changes_nothing(tmp_path: Path, path: Path) -> None:
    old = SqliteStore(path)
    await old.open()
    await old.close()
    folder = migrations(tmp_path / "new", "CREATE TABLE more (x);\nCREATE TABLE runs (x);\n")
    with pytest.raises(StoreError, match="already exists"):
        await SqliteStore(path, migrations=folder).migrate()
    folder = migrations(tmp_path / "cut", "CREATE TABLE more (x")
    with pytest.raises(StoreError, match="in the middle of a statement"):
        await SqliteStore(path, migrations=folder).migrate()
    await old.open()
    await old.close()


MOUNTS = r"""
/dev/sda1 / ext4 rw 0 0
server:/srv /srv nfs4 rw 0 0
/dev/sdb1 /srv/local xfs rw 0 0
//server/share /mnt/with\040space cifs rw 0 0
me@server:/ /mnt/ssh fuse.sshfs rw 0 0
C:\134 /mnt/c 9p rw 0 0
/dev/sdc1 /mnt/c ext4 rw 0 0
"""


@pytest.mark.parametrize(
    ("place", "system"),
    [
        ("/var/runs.db", ""),
        ("/srv/ann/runs.db", "nfs4"),
        ("/srv/local/runs.db", ""),
        ("/srvs/runs.db", ""),
        ("/mnt/with space/runs.db", "cifs"),
        ("/mnt/ssh/runs.db", "fuse.sshfs"),
        ("/mnt/c/runs.db", ""),
    ],
)
def test_a_network_file_system_is_known_by_the_longest_mount(place: str, system: str) -> None:
    assert far_system(Path(place), MOUNTS) == system


async def test_a_file_on_a_network_file_system_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farhand.stores.sqlite_schema.FAR", {far_kind(path)})
    with pytest.raises(StoreError, match=r"network file system .* use a path on a disk"):
        await SqliteStore(path).open()
    assert os.listdir(path.parent) == []


def far_kind(path: Path) -> str:
    """The kind of file system that the tests run on."""
    found = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    inside = [(place, kind) for place, kind in found if path.is_relative_to(place)]
    return max(inside, key=lambda each: len(each[0]))[1]


# Speed.


async def test_no_query_of_every_day_looks_at_a_whole_table(store: SqliteStore, path: Path) -> None:
    everyday = {name: text for name, text in vars(sql).items() if name.isupper() and isinstance(text, str)}
    rare = {"FILLED", "TABLES", "WORKERS", "EXPIRE", "FREE_LOST", "RUNS", "COUNT_THREADS", "COUNT_RUNS", "COUNT_CALLS"}
    rare |= {"ORPHANS", "FORGET_PROGRESS", "AWAITED"}  # now and then, over what is there just now and not over all
    with closing(sqlite3.connect(path)) as connection:
        for name, text in everyday.items():
            if name in rare or not re.match(r"\s*(SELECT|UPDATE|DELETE|INSERT)", text):
                continue
            count = max([int(found) for found in re.findall(r"\?(\d)", text)], default=text.count("?"))
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", (None,) * count)]
            scans = [step for step in plan if step.startswith("SCAN") and "json_each" not in step]
            by_index = [step for step in scans if "USING INDEX runs_ready" in step or "CONSTANT ROW" in step]
            assert scans == by_index, (name, plan)
