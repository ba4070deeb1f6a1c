"""Tests of every store: what is read is what was written, in order."""

from typing import Any

from msgspec import structs

from farhand.stores.base import Holdings, MemoryRow, Store
from farhand.testing.store_rows import call_row, done, ended, exported, log_row, run_row, start, step


class ReadSuite:
    """What a store promises of reading."""

    async def test_a_run_is_loaded_from_its_snapshot_on(self, store: Store) -> None:
        """Its tail is what came after; a newer snapshot takes the place of the older one."""
        run = await done(store, start(run_row()))
        first = step(run, snapshot=b"one")
        second, third = step(first.run), step(step(first.run).run)
        await done(store, first, second, third)
        stored = await store.load("r1")
        assert stored is not None
        assert (stored.snapshot, list(stored.tail)) == (b"one", [second.log, third.log])
        await done(store, last := step(third.run, snapshot=b"two"))
        stored = await store.load("r1")
        assert stored is not None
        assert (stored.run, stored.snapshot, list(stored.tail)) == (last.run, b"two", [])

    async def test_a_run_has_the_conversation_up_to_its_end(self, store: Store) -> None:
        """That of the runs before it, and not what came later; rows that say nothing are left out."""
        first = await ended(store, await done(store, start(run_row())))
        write = start(run_row("r2", seq=first.seq + 1, said=first.said + 1), seq=first.seq, said=first.said)
        silent = step(write.run, log={"messages": b""}, said=write.run.said)
        await ended(store, await done(store, write, silent))
        earlier, later = await store.load("r1"), await store.load("r2")
        assert earlier is not None
        assert later is not None
        assert len(earlier.messages) == 2
        assert len(later.messages) == 4
        assert list(later.messages) == list(await store.messages("t1"))
        assert {row.run for row in earlier.tail} == {"r1"}
        assert {row.run for row in later.tail} == {"r2"}
        assert (len(earlier.tail), len(later.tail)) == (2, 3)

    async def test_a_long_tail_is_complete_also_if_many_commits_told_nothing(self, store: Store) -> None:
        """Their rows all have the number of the last one that did."""
        await done(store, start(run_row("r0", "t0")))
        writes = [start(run_row())]
        for number in range(30):
            quiet: dict[str, Any] = {"seq": writes[-1].run.seq} if number % 4 else {}
            writes.append(step(writes[-1].run, 1, log={"updates": b""} if quiet else {}, **quiet))
        await done(store, *writes)
        stored = await store.load("r1")
        assert stored is not None
        assert list(stored.tail) == [write.log for write in writes]

    async def test_runs_that_told_nothing_at_their_end_or_beginning_are_told_apart(self, store: Store) -> None:
        """Their rows have the same number, in the same thread."""
        silent: dict[str, Any] = {"log": {"updates": b""}, "seq": 5}
        first = [start(run_row()), step(run_row())]
        first.append(step(first[-1].run, ends=True, state="done", **silent))
        begun = start(run_row("r2", seq=5, said=4), seq=5, said=3)
        second = [structs.replace(begun, log=log_row(begun.run, 2, updates=b""))]
        second.append(step(second[-1].run, **silent))
        second.append(step(second[-1].run))
        await done(store, *first, *second)
        for name, writes in (("r1", first), ("r2", second)):
            stored = await store.load(name)
            assert stored is not None
            assert list(stored.tail) == [write.log for write in writes]
        told = [*first[:2], second[-1]]
        assert list(await store.log("t1", 0, 9)) == [write.log for write in told]
        said = [write.log.messages for write in (*first, *second) if write.log is not None]
        assert list(await store.messages("t1")) == said

    async def test_the_log_is_read_in_pages_of_what_was_told(self, store: Store) -> None:
        """Across the runs of a thread, without rows that told nothing."""
        first = start(run_row())
        quiet = step(first.run, log={"updates": b"", "messages": b""}, seq=first.run.seq, said=first.run.said)
        told = step(quiet.run)
        last = step(told.run, ends=True, state="done")
        await done(store, first, quiet, told, last)
        again = start(run_row("r2", seq=last.run.seq + 2), seq=last.run.seq)
        await done(store, again, start(run_row("r9", "t9")))
        rows = [first.log, told.log, last.log, again.log]
        assert list(await store.log("t1", 0, 10)) == rows
        assert list(await store.log("t1", 0, 2)) == rows[:2]
        assert list(await store.log("t1", first.run.seq - 1, 10)) == rows
        assert list(await store.log("t1", first.run.seq, 2)) == rows[1:3]
        assert list(await store.log("t1", again.run.seq, 10)) == []

    async def test_calls_that_wait_are_found_by_their_owner(self, store: Store) -> None:
        """Oldest first, of one thread or of all; one that waits no more is gone from the list."""
        one, two, bobs = run_row(), run_row("r2", "t2"), run_row("r3", "t3", principal="bob")
        first, second = call_row("c2", one, updated=1_000), call_row("c1", one, updated=1_001)
        third = call_row("c3", two, updated=1_002)
        silent = call_row("c4", two, awaited=False, state="server")
        await done(store, start(one, calls=[first, second]), start(two, calls=[third, silent]))
        await done(store, start(bobs, calls=[call_row("c5", bobs)]))
        assert await store.awaited() == 4
        assert list(await store.waiting("ann", "", 10)) == [first, second, third]
        assert list(await store.waiting("ann", "", 2)) == [first, second]
        assert list(await store.waiting("ann", "t2", 10)) == [third]
        assert list(await store.waiting("ann", "t3", 10)) == []
        over = structs.replace(first, awaited=False, state="ok", record=b"", updated=1_010)
        await done(store, step(one, calls=[over]))
        assert list(await store.waiting("ann", "", 10)) == [second, third]
        assert (await store.run_of("c1"), await store.run_of("c2"), await store.run_of("c4")) == ("r1", "r1", "r2")

    async def test_of_a_call_written_twice_in_one_write_the_last_counts(self, store: Store) -> None:
        """It may be opened and answered between two commits."""
        run = run_row()
        early, late = call_row("c1", run), call_row("c1", run, awaited=False, state="ok", record=b"")
        await done(store, start(run, calls=[early, late]))
        assert list(await store.waiting("ann", "", 10)) == []
        assert await store.awaited() == 0
        assert ("calls", tuple(sorted(structs.asdict(late).items()))) in await exported(store)

    async def test_runs_are_listed_newest_first(self, store: Store) -> None:
        """By principal and state, or any of them."""
        rows = [
            run_row("r3", "t3", created=1_000),
            run_row("r1", "t1", created=1_001, state="waiting"),
            run_row("r2", "t2", created=1_002, principal="bob"),
        ]
        await done(store, *(start(row) for row in rows))
        assert list(await store.runs("", "", 10)) == rows[::-1]
        assert list(await store.runs("", "", 2)) == rows[:0:-1]
        assert list(await store.runs("ann", "", 10)) == rows[1::-1]
        assert list(await store.runs("ann", "waiting", 10)) == [rows[1]]
        assert list(await store.runs("", "running", 10)) == [rows[2], rows[0]]
        assert list(await store.runs("bob", "waiting", 10)) == []

    async def test_what_a_principal_has_is_counted(self, store: Store) -> None:
        """Threads, those with an open run, and calls that wait; nobody else's."""
        await ended(store, await done(store, start(run_row("r1", "t1"))))
        waits = run_row("r2", "t2")
        calls = [call_row(f"c{number}", waits, awaited=number < 3) for number in range(4)]
        await done(store, start(waits, calls=calls), start(run_row("r3", "t3", principal="bob")))
        assert await store.holdings("ann") == Holdings(threads=2, runs=1, calls=3)
        assert await store.holdings("eve") == Holdings(threads=0, runs=0, calls=0)

    async def test_definitions_are_kept_once(self, store: Store) -> None:
        """Those that are there stay as they are."""
        run = await done(store, start(run_row(), toolset=("h1", b"[1]")))
        await done(store, step(run, toolset=("h1", b"[2]")))
        assert await store.toolset("h1") == b"[1]"

    async def test_a_later_decision_takes_the_place_of_an_earlier_one(self, store: Store) -> None:
        """It is the newest then. Whoever forgets, forgets his own."""
        old = MemoryRow(principal="ann", pin="p1", arguments_hash="", allow=True, at=1)
        second = MemoryRow(principal="ann", pin="p1", arguments_hash="h", allow=False, at=2)
        bobs = MemoryRow(principal="bob", pin="p1", arguments_hash="", allow=True, at=3)
        new = structs.replace(old, allow=False, at=4)
        run = await done(store, start(run_row(), memories=[old, second, bobs]))
        assert list(await store.memories("ann")) == [old, second]
        run = await done(store, step(run, memories=[new]))
        assert list(await store.memories("ann")) == [second, new]
        assert (await store.memories("ann"))[1].allow is False
        await store.forget("ann")
        assert list(await store.memories("ann")) == []
        assert list(await store.memories("bob")) == [bobs]
