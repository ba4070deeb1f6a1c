"""The thread that writes to a file: what fails takes nothing else with it, and everybody is told."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from farhand.core.errors import StoreAway, StoreError
from farhand.stores import sqlite_changes as change
from farhand.stores.sqlite_changes import Rung
from farhand.stores.sqlite_schema import MIGRATIONS, connect_writer
from farhand.stores.sqlite_writer import Writer
from farhand.testing.store_rows import call_row, run_row, start, step


class Broken(sqlite3.Connection):
    """A connection to a file that fails now and then, in the middle of some statement."""

    failing: dict[str, int]

    def cursor(self, factory: Any = None) -> Any:
        self.failing = {}
        return super().cursor(BrokenCursor)


class BrokenCursor(sqlite3.Cursor):
    def execute(self, statement: str, arguments: Any = ()) -> sqlite3.Cursor:
        failing = self.connection.failing  # type: ignore[attr-defined]
        word = statement.split()[0]
        if failing.get(word, 0):
            failing[word] -= 1
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(statement, arguments)


@pytest.fixture
def connection(tmp_path: Path) -> Broken:
    path = tmp_path / "runs.db"
    connect_writer(path, "full", MIGRATIONS).close()
    return sqlite3.connect(path, factory=Broken, isolation_level=None, check_same_thread=False)


@pytest.fixture
def rung() -> Rung:
    return []


@pytest.fixture
async def writer(connection: Broken, rung: Rung) -> AsyncIterator[Writer]:
    writer = Writer(connection, rung.extend)
    yield writer
    writer.stop()
    connection.close()


def begin_all(writer: Writer, names: range) -> "list[asyncio.Future[bool]]":
    return [writer.ask(change.write, start(run_row(f"r{number}", f"t{number}"))) for number in names]


async def outcomes(asked: "list[asyncio.Future[Any]]") -> list[Any]:
    async with asyncio.timeout(20):
        return await asyncio.gather(*asked, return_exceptions=True)


def versions(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT id, version FROM runs").fetchall())


async def test_a_commit_that_fails_is_made_again_one_by_one(connection: Broken, writer: Writer, rung: Rung) -> None:
    connection.failing["COMMIT"] = 1
    assert await outcomes(begin_all(writer, range(30))) == [True] * 30
    writer.stop()
    assert len(versions(connection)) == 30
    assert len(rung) == 30
    assert len(set(rung)) == 30


async def test_what_cannot_be_committed_is_told_to_whoever_asked(
    connection: Broken, writer: Writer, rung: Rung
) -> None:
    connection.failing["COMMIT"] = 10**6
    asked = begin_all(writer, range(30))
    assert {type(outcome) for outcome in await outcomes(asked)} == {StoreAway}
    assert (versions(connection), rung) == ({}, [])
    connection.failing.clear()
    assert await outcomes(begin_all(writer, range(30))) == [True] * 30


async def test_a_change_that_fails_leaves_those_beside_it_alone(connection: Broken, writer: Writer, rung: Rung) -> None:
    run = run_row("odd", "odd", created=2**70)
    half = start(run_row("half", "half"), calls=[call_row("c1", run_row(principal="\ud800"))])
    asked = [*begin_all(writer, range(5)), writer.ask(change.write, start(run)), writer.ask(change.write, half)]
    asked += [*begin_all(writer, range(5, 9)), writer.ask(change.write, step(run_row("r1", "t1")))]
    *good, _ = found = await outcomes(asked)
    assert [type(outcome) for outcome in found] == [bool] * 5 + [StoreError] * 2 + [bool] * 5
    assert good.count(True) == 9
    writer.stop()
    assert set(versions(connection)) == {f"r{number}" for number in range(9)}
    assert connection.execute("SELECT count(*) FROM calls").fetchone() == (0,)
    assert len(rung) == 10


async def test_a_full_disk_refuses_what_does_not_fit_and_takes_the_rest(connection: Broken, writer: Writer) -> None:
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 12}")
    big = [start(run_row(f"b{number}", f"b{number}"), snapshot=bytes(20_000)) for number in range(20)]
    found = await outcomes([writer.ask(change.write, write) for write in big] + begin_all(writer, range(3)))
    assert {type(outcome) for outcome in found} == {bool, StoreAway}
    kept = {write.run.id for write, outcome in zip(big, found, strict=False) if outcome is True}
    assert kept <= set(versions(connection))
    connection.execute("PRAGMA max_page_count = 100000")
    again = [write for write in big if write.run.id not in kept]
    assert await outcomes([writer.ask(change.write, write) for write in again]) == [True] * len(again)


async def test_where_nothing_can_be_begun_nobody_waits_in_vain(connection: Broken, writer: Writer) -> None:
    connection.failing["BEGIN"] = 1
    found = await outcomes(begin_all(writer, range(100)))
    assert {type(outcome) for outcome in found} <= {bool, StoreAway}
    assert isinstance(found[0], StoreAway)
    connection.failing |= {"COMMIT": 1, "INSERT": 0}
    writer.ask(lambda *_: connection.failing.update(BEGIN=1), None)
    found = await outcomes(begin_all(writer, range(200, 300)))
    assert StoreAway in {type(outcome) for outcome in found}
    assert await outcomes(begin_all(writer, range(400, 410))) == [True] * 10


async def test_a_transaction_that_cannot_be_rolled_back_is_no_end(
    connection: Broken, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    connection.failing |= {"COMMIT": 1, "ROLLBACK": 1}
    found = await outcomes(begin_all(writer, range(10)))
    assert {type(outcome) for outcome in found} <= {bool, StoreAway}
    assert "could not be rolled back" in caplog.text
    assert await outcomes(begin_all(writer, range(20, 30))) == [True] * 10


async def test_a_bell_that_breaks_is_logged_and_the_writes_stand(
    connection: Broken, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(rung: Rung) -> None:
        raise OSError("no bell")

    writer = Writer(connection, break_down)
    assert await outcomes(begin_all(writer, range(3))) == [True] * 3
    await asyncio.to_thread(writer.stop)
    assert "no bell" in caplog.text
    with pytest.raises(StoreAway, match="is closed"):
        writer.ask(change.beat, ("w1", 1, 2))
    connection.close()


@pytest.mark.parametrize("most", [2, 1])
async def test_what_nobody_needs_after_a_power_failure_waits_for_no_disk(connection: Broken, most: int) -> None:
    """Unless it shares its commit with something else; and never with more care than the store was opened with."""

    def light(cursor: sqlite3.Cursor, _: Rung, __: None) -> int:
        return cursor.execute("PRAGMA synchronous").fetchone()[0]

    def heavy(cursor: sqlite3.Cursor, _: Rung, __: None) -> int:
        return cursor.execute("PRAGMA synchronous").fetchone()[0]

    connection.execute(f"PRAGMA synchronous = {most}")
    writer, blocking = Writer(connection, lambda _: None, light=(light,)), threading.Event()
    try:
        alone = [await writer.ask(asked, None) for asked in (light, heavy, light, light, heavy)]
        assert alone == [1, most, 1, 1, most]
        blocked = writer.ask(lambda *_: blocking.wait(20), None)
        beside = [writer.ask(light, None), writer.ask(heavy, None)]
        blocking.set()
        assert await blocked
        assert await outcomes(beside) == [most, most]
    finally:
        writer.stop()
        connection.close()
