"""Tests of every store: what several handles see of each other, and housekeeping."""

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from farhand.core.errors import StoreError
from farhand.stores.base import (
    TABLES,
    MemoryRow,
    PieceRow,
    Ring,
    Store,
    Summary,
)
from farhand.stores.memory import MemoryStore
from farhand.testing.store_rows import (
    call_row,
    done,
    exported,
    log_row,
    row_of,
    run_row,
    start,
    step,
)

PATIENCE = 10.0
"""Seconds to wait for what another handle should be told."""


class Heard:
    """What a handle was told by others."""

    def __init__(self) -> None:
        self.rings: list[Ring] = []
        self._something = asyncio.Event()

    def __call__(self, ring: Ring) -> None:
        self.rings.append(ring)
        self._something.set()

    async def of(self, thread: str, run: str) -> None:
        """Wait to be told to look there, or everywhere."""
        async with asyncio.timeout(PATIENCE):
            while not {Ring(thread, run), Ring()} & set(self.rings):
                self._something.clear()
                await self._something.wait()


class UpkeepSuite:
    """What a store promises to those who share it, and to those who look after it."""

    async def test_what_was_written_can_be_read_by_another_handle_at_once(self, store: Store, other: Store) -> None:
        """Once it is said to be written."""
        await other.open()
        run = await done(store, start(run_row()))
        assert await row_of(other, "r1") == run
        after = await done(other, step(run))
        assert await row_of(store, "r1") == after

    async def test_others_are_told_where_to_look(self, store: Store, other: Store) -> None:
        """Of a write, of pieces, of a run that was refused, and of what became ready."""
        heard = Heard()
        await other.open(heard)
        run = await done(store, start(run_row()))
        await heard.of("t1", "r1")
        heard.rings.clear()
        await store.stream([PieceRow(run="r1", epoch=1, turn=1, offset=0, text="a")])
        await heard.of("t1", "r1")
        heard.rings.clear()
        await store.leave("w1")
        await store.write(structs.replace(step(run), was=(8, 8)))
        await done(store, step(run, holder="w1"), start(run_row("r2", "t2")))
        await heard.of("t2", "r2")
        heard.rings.clear()
        await store.leave("w1")
        await heard.of("", "")

    async def test_of_many_writes_at_once_none_is_missed_by_others(self, store: Store, other: Store) -> None:
        """Whoever looks where he is told finds all of them, sooner or later."""
        heard = Heard()
        await other.open(heard)
        names = [f"r{number}" for number in range(200)]
        await asyncio.gather(*(store.write(start(run_row(name, f"t{name}"))) for name in names))
        for name in names:
            await heard.of(f"t{name}", name)

    async def test_all_go_by_one_time(self, store: Store, other: Store) -> None:
        """In milliseconds, and it does not go back."""
        await other.open()
        times = [await store.time(), await other.time(), await store.time(), await other.time()]
        assert times == sorted(times)
        assert times[0] > 1_600_000_000_000

    async def test_old_threads_are_deleted_with_all_they_have(self, store: Store) -> None:
        """But none with an open run, none that something happened to since, and not more than were asked for."""
        for number in range(4):
            run = run_row(f"r{number}", f"t{number}", key=f"k{number}", updated=100 * number)
            write = start(run, calls=[call_row(f"c{number}", run)], toolset=("shared", b"[]"))
            own = (f"h{number}", b"[1]")
            log = structs.replace(log_row(run, 2), toolset="shared")
            run = await done(store, structs.replace(write, log=log))
            last = step(run, toolset=own, log={"toolset": own[0]}, snapshot=b"s", ends=number != 3, state="done")
            await store.stream([PieceRow(run=run.id, epoch=1, turn=1, offset=0, text="a")])
            await done(store, last)
        assert await store.prune(1, 10) == 0
        assert await store.prune(10_000, 1) == 1
        assert await store.load("r0") is None
        assert await store.thread("t0") is None
        assert (await store.run_of("c0"), await store.run_under("ann", "k0")) == (None, None)
        assert list(await store.messages("t0")) == []
        assert list(await store.log("t0", 0, 9)) == []
        assert [call.id for call in await store.waiting("ann", "", 9)] == ["c1", "c2", "c3"]
        assert await store.prune(200, 10) == 1
        assert await store.prune(10_000, 10) == 1
        assert [run.id for run in await store.runs("", "", 10)] == ["r3"]
        assert not {"r0", "r1", "r2"} & {value for _, row in await exported(store) for _, value in row}
        assert await store.toolset("shared") == b"[]"
        assert await store.toolset("h3") == b"[1]"
        assert await store.write(start(run_row("r0", "t0", key="k0")))  # as if it had never been
        assert list(await store.streamed("r0")) == []

    async def test_as_many_threads_are_deleted_as_were_asked_for(self, store: Store) -> None:
        """Whatever number a store deletes at a time."""
        ends = [start(run_row(f"r{number}", f"t{number}", state="done"), ends=True) for number in range(75)]
        assert all(await asyncio.gather(*(store.write(write) for write in ends)))
        assert [await store.prune(99_000, limit) for limit in (60, 60, 60)] == [60, 15, 0]

    async def test_a_store_tells_how_much_is_in_it(self, store: Store, other: Store) -> None:
        """And who it is: the same through every handle, and since it was set up."""
        await other.open()
        empty = await store.summary()
        assert empty == Summary(id=empty.id, threads=0, runs={}, open_calls=0, awaited_calls=0)
        assert empty.id
        run = run_row()
        over = call_row("c3", run, awaited=False, record=b"")
        calls = [call_row("c1", run), call_row("c2", run, awaited=False), over]
        await done(store, start(run, calls=calls), start(run_row("r2", "t2", state="waiting")))
        await done(store, start(run_row("r3", "t3", state="waiting")))
        there = Summary(id=empty.id, threads=3, runs={"running": 1, "waiting": 2}, open_calls=2, awaited_calls=1)
        assert await other.summary() == there

    async def test_the_tables_of_an_open_store_are_up_to_date(self, store: Store) -> None:
        """There is nothing to be done about them."""
        version = await store.version()
        assert version > 0
        assert await store.migrate() == 0
        assert await store.version() == version

    async def test_an_export_holds_everything_and_can_be_taken_in_elsewhere(self, store: Store) -> None:
        """By a store of another kind, and back: the same rows, in the same order."""
        run = run_row(key="k", state="ready")
        first = MemoryRow(principal="ann", pin="q", arguments_hash="h", allow=False, at=1)
        memories = [first, structs.replace(first, pin="p", allow=True, at=2)]
        away = MemoryStore()
        await done(
            away,
            start(run, calls=[call_row("c1", run)], toolset=("h1", b"\xff"), memories=memories),
            step(run, snapshot=b"snapshot", ends=True, scene=True, state="done"),
            start(run_row("r2", "t2", created=1_001)),
        )
        await store.take_in([(table, dict(row)) async for table, row in away.export()])
        assert await exported(store) == await exported(away)
        assert {table for table, _ in await exported(store)} == {*TABLES, "toolsets", "snapshots"}
        assert list(await store.runs("", "", 9)) == list(await away.runs("", "", 9))
        assert list(await store.memories("ann")) == memories
        assert await store.load("r1") == await away.load("r1")
        assert await store.write(step(run_row("r2", "t2", created=1_001)))
        back = MemoryStore()
        await back.take_in([(table, dict(row)) async for table, row in store.export()])
        assert await exported(back) == await exported(store)
        assert await back.load("r2") == await store.load("r2")

    async def test_a_store_that_holds_something_takes_nothing_in(self, store: Store) -> None:
        """It would be mixed up with what is there."""
        await done(store, start(run_row()))
        before = await exported(store)
        rows = [(table, dict(row)) async for table, row in store.export()]
        assert await refuses(store, rows)
        assert await exported(store) == before

    async def test_rows_are_taken_in_all_or_none(self, store: Store) -> None:
        """One that fits no table is the end of it."""
        begun = start(run_row())
        assert begun.begins is not None
        rows: list[tuple[str, dict[str, Any]]] = [("threads", structs.asdict(begun.begins))]
        assert await refuses(store, [*rows, ("nonsense", {"id": "x"})])
        assert await refuses(store, [*rows, ("runs", {"id": "x"})])
        assert await exported(store) == []
        assert await store.write(begun)


async def refuses(store: Store, rows: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """Whether the store says that it cannot take rows in."""
    try:
        await store.take_in(rows)
    except StoreError:
        return True
    return False
