"""Tests of every store: a write counts once and whole, or not at all."""

import asyncio

from msgspec import structs

from farhand.stores.base import (
    FORMAT,
    MemoryRow,
    Store,
    Write,
)
from farhand.testing.store_rows import (
    call_row,
    done,
    ended,
    exported,
    log_row,
    run_row,
    start,
    step,
)


class WriteSuite:
    """What a store promises of writes and their conditions."""

    async def test_a_run_is_read_as_it_was_written(self, store: Store) -> None:
        """Every field of every row comes back."""
        run = run_row(key="k", request="hash", holder="w", due=5, why="", epoch=7, format=FORMAT)
        write = start(run, toolset=("h1", b"[1]"), calls=[call_row("c1", run)])
        assert write.begins is not None
        assert await store.write(write)
        stored = await store.load("r1")
        assert stored is not None
        assert (stored.run, stored.thread, stored.snapshot) == (run, write.begins, b"")
        assert list(stored.tail) == [write.log]
        assert write.log is not None
        assert list(stored.messages) == [write.log.messages]
        assert list(await store.waiting("ann", "", 10)) == list(write.calls)
        assert await store.toolset("h1") == b"[1]"

    async def test_bytes_and_text_of_any_kind_are_kept(self, store: Store) -> None:
        """Also those that are no JSON, no UTF-8, or very long; and letters of every kind."""
        run = run_row("r ü'\"\\%", "t 💬", principal="ann/1?", agent="ä")
        odd = {"events": bytes(range(256)), "updates": b"\x00", "messages": b"x" * 3_000_000}
        write = structs.replace(start(run), log=log_row(run, 2, **odd))
        await done(store, write)
        stored = await store.load(run.id)
        assert stored is not None
        assert (stored.run, list(stored.tail)) == (run, [write.log])

    async def test_what_is_not_there_is_none_or_empty(self, store: Store) -> None:
        """And nothing is raised for it."""
        assert await store.load("r1") is None
        assert await store.run_of("c1") is None
        assert await store.run_under("ann", "k") is None
        assert await store.run_under("ann", "") is None
        assert await store.thread("t1") is None
        assert await store.toolset("h1") is None
        for found in (
            await store.messages("t1"),
            await store.log("t1", 0, 10),
            await store.waiting("ann", "", 10),
            await store.runs("", "", 10),
            await store.memories("ann"),
            await store.streamed("r1"),
            await store.claim("w1", ["helper"], 99_000, 10),
        ):
            assert list(found) == []
        assert dict(await store.held("w1")) == {}
        assert not await store.beat("w1", 1, 2)
        assert await store.expire(99_000) == 0
        assert await store.prune(99_000, 10) == 0

    async def test_a_write_at_another_version_or_epoch_changes_nothing(self, store: Store) -> None:
        """Nor one of a run that is not there. Not even the rows beside the run are written."""
        run = await done(store, start(run_row()))
        before = await exported(store)
        for was in ((1, 1), (3, 1), (2, 0), (2, 2)):
            late = step(
                run,
                calls=[call_row("c1", run)],
                snapshot=b"s",
                toolset=("h1", b"[]"),
                memories=[MemoryRow(principal="ann", pin="p", arguments_hash="", allow=True, at=1)],
                ends=True,
            )
            assert not await store.write(structs.replace(late, was=was))
        assert not await store.write(step(run_row("r2")))
        assert await exported(store) == before

    async def test_a_run_of_a_known_id_is_not_begun_again(self, store: Store) -> None:
        """On whatever thread."""
        await done(store, start(run_row()))
        before = await exported(store)
        assert not await store.write(start(run_row()))
        assert not await store.write(start(run_row("r1", "t2")))
        assert await exported(store) == before

    async def test_a_key_is_used_once_by_a_principal(self, store: Store) -> None:
        """Others may use it too, and an empty one is none."""
        await done(store, start(run_row("r1", "t1", key="k")))
        assert not await store.write(start(run_row("r2", "t2", key="k")))
        assert await store.thread("t2") is None
        assert await store.write(start(run_row("r3", "t3", key="k", principal="bob")))
        assert await store.write(start(run_row("r4", "t4")))
        assert await store.write(start(run_row("r5", "t5")))
        assert await store.run_under("ann", "k") == run_row("r1", "t1", key="k")
        assert await store.run_under("bob", "k") == run_row("r3", "t3", key="k", principal="bob")
        assert await store.run_under("ann", "") is None

    async def test_a_thread_has_one_open_run(self, store: Store) -> None:
        """A second is not begun before the first has ended."""
        run = await done(store, start(run_row()))
        assert not await store.write(start(run_row("r2", seq=6)))
        assert not await store.write(start(run_row("r2", seq=6), seq=3))
        assert await store.load("r2") is None
        run = await ended(store, run)
        assert (run.seq, run.said) == (5, 2)
        assert await store.write(start(run_row("r2", seq=8, said=3), seq=5, said=2))

    async def test_a_thread_that_has_moved_on_takes_no_run(self, store: Store) -> None:
        """Whoever begins one has read the numbers before; a thread that is not there is at no number."""
        await ended(store, await done(store, start(run_row())))
        for seq in (0, 3, 6):
            assert not await store.write(start(run_row("r2", seq=9), seq=seq))
        assert not await store.write(start(run_row("r2", "t2"), seq=4))
        assert await store.load("r2") is None
        assert await store.thread("t2") is None

    async def test_a_new_run_without_its_thread_is_not_begun(self, store: Store) -> None:
        """There is nothing to hold the two together."""
        assert not await store.write(structs.replace(start(run_row()), begins=None))
        assert await store.load("r1") is None

    async def test_the_end_of_a_run_frees_its_thread(self, store: Store) -> None:
        """It takes the run's numbers; until then it has those from before."""
        run = await done(store, start(run_row()), step(run_row()))
        thread = await store.thread("t1")
        assert thread is not None
        assert (thread.run, thread.seq, thread.said) == ("r1", 0, 0)
        run = await ended(store, run)
        thread = await store.thread("t1")
        assert thread is not None
        assert (thread.run, thread.seq, thread.said, thread.updated) == ("", run.seq, run.said, run.updated)
        assert (thread.owner, thread.created) == ("ann", 1_000)

    async def test_a_thread_names_its_last_run_as_long_as_that_has_left_something(self, store: Store) -> None:
        """The end of a run that has left nothing takes the name away; what happens in between does not."""
        first = await done(store, start(run_row()), step(run_row()))
        thread = await store.thread("t1")
        assert thread is not None
        assert thread.scene == ""
        first = await ended(store, first, scene=True)
        thread = await store.thread("t1")
        assert thread is not None
        assert thread.scene == "r1"
        second = run_row("r2", seq=first.seq + 3, said=first.said + 1)
        begin = start(second, seq=first.seq, said=first.said)
        assert begin.begins is not None
        begins = structs.replace(begin.begins, scene=thread.scene)
        await done(store, structs.replace(begin, begins=begins), step(second))
        stored = await store.load("r2")
        assert stored is not None
        assert stored.thread.scene == "r1"
        await ended(store, stored.run)
        thread = await store.thread("t1")
        assert thread is not None
        assert thread.scene == ""

    async def test_of_runs_that_end_at_once_each_thread_names_its_own(self, store: Store) -> None:
        """Also where a store commits them together."""
        runs = [run_row(f"r{number}", f"t{number}", state="done") for number in range(40)]
        writes = [start(run, ends=True, scene=bool(number % 2)) for number, run in enumerate(runs)]
        assert all(await asyncio.gather(*(store.write(write) for write in writes)))
        for number in range(40):
            thread = await store.thread(f"t{number}")
            assert thread is not None
            assert thread.scene == (f"r{number}" if number % 2 else "")

    async def test_a_run_can_be_given_back_without_events(self, store: Store) -> None:
        """Then the log stays as it is."""
        run = await done(store, start(run_row(holder="w1")))
        back = structs.replace(run, state="ready", holder="")
        assert await store.write(Write(run=back, was=(run.version, run.epoch)))
        stored = await store.load("r1")
        assert stored is not None
        assert (stored.run, len(stored.tail)) == (back, 1)

    async def test_of_a_hundred_equal_writes_at_once_exactly_one_counts(self, store: Store, other: Store) -> None:
        """Through two handles, and whatever is committed together with what."""
        await other.open()
        run = await done(store, start(run_row()))
        async with asyncio.timeout(60):
            counted = await asyncio.gather(
                *((store, other)[number % 2].write(step(run, why=str(number))) for number in range(100))
            )
        assert counted.count(True) == 1
        stored = await store.load("r1")
        assert stored is not None
        assert (stored.run.why, len(stored.tail)) == (str(counted.index(True)), 2)

    async def test_of_a_hundred_equal_starts_at_once_exactly_one_counts(self, store: Store, other: Store) -> None:
        """Of one id, of one key, or on one thread."""
        await other.open()
        handles = (store, other)
        same = [start(run_row("r1", "t1")) for _ in range(30)]
        keyed = [start(run_row(f"k{number}", f"tk{number}", key="k")) for number in range(30)]
        on_one = [start(run_row(f"o{number}", "t2")) for number in range(30)]
        async with asyncio.timeout(60):
            counted = [
                await asyncio.gather(*(handles[number % 2].write(write) for number, write in enumerate(writes)))
                for writes in (same, keyed, on_one)
            ]
        assert [some.count(True) for some in counted] == [1, 1, 1]
        assert len(await store.runs("", "", 100)) == 3

    async def test_writes_that_are_not_as_expected_leave_those_beside_them_alone(self, store: Store) -> None:
        """Many are asked for at once, so that a store may commit them together."""
        runs = [run_row(f"r{number}", f"t{number}") for number in range(60)]
        await asyncio.gather(*(store.write(start(run)) for run in runs))
        writes = [
            step(run) if number % 3 else structs.replace(step(run), was=(9, 9)) for number, run in enumerate(runs)
        ]
        counted = await asyncio.gather(*(store.write(write) for write in writes))
        assert counted == [bool(number % 3) for number in range(60)]
        for number, run in enumerate(runs):
            stored = await store.load(run.id)
            assert stored is not None
            assert (stored.run.version, len(stored.tail)) == ((4, 2) if number % 3 else (2, 1))

    async def test_writes_of_one_run_that_build_on_each_other_all_count(self, store: Store) -> None:
        """Asked for in their order without waiting, they are made in it."""
        writes = [start(run_row())]
        for _ in range(20):
            writes.append(step(writes[-1].run))
        assert all(await asyncio.gather(*(store.write(write) for write in writes)))
        assert [row.version for row in await store.log("t1", 0, 100)] == list(range(2, 44, 2))
