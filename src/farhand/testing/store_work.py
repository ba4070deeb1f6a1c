"""Tests of every store: who works on what, and the pieces of a reply that is under way."""

import asyncio
from collections.abc import Sequence

from msgspec import structs

from farhand.stores.base import (
    FORMAT,
    PieceRow,
    Store,
)
from farhand.testing.store_rows import (
    done,
    ended,
    row_of,
    run_row,
    start,
    step,
    worker_row,
)


class WorkSuite:
    """What a store promises to workers."""

    async def test_ready_runs_are_taken_up_oldest_first(self, store: Store) -> None:
        """A run that was left is told to be lost; whoever takes one up raises its epoch and holds it."""
        for name, updated in (("r1", 30), ("r2", 10), ("r3", 20)):
            await done(store, start(run_row(name, f"t{name}", state="ready", updated=updated)))
        first = await store.claim("w1", ["helper"], 0, 2)
        assert [(claim.run, claim.lost) for claim in first] == [("r2", True), ("r3", True)]
        run = await row_of(store, "r2")
        assert (run.state, run.holder, run.epoch, run.version) == ("running", "w1", 2, 2)
        assert dict(await store.held("w1")) == {"r2": (2, 2), "r3": (2, 2)}
        assert [claim.run for claim in await store.claim("w2", ["helper"], 0, 10)] == ["r1"]
        assert list(await store.claim("w2", ["helper"], 0, 10)) == []

    async def test_a_waiting_run_is_taken_up_when_it_is_due(self, store: Store) -> None:
        """Not before, and it is not lost: nobody held it."""
        await done(store, start(run_row("r1", "t1", state="waiting", due=500, updated=50)))
        await done(store, start(run_row("r2", "t2", state="waiting", due=400, updated=40)))
        await done(store, start(run_row("r3", "t3", state="waiting", due=None)))
        assert list(await store.claim("w1", ["helper"], 399, 10)) == []
        claims = await store.claim("w1", ["helper"], 500, 10)
        assert [(claim.run, claim.lost) for claim in claims] == [("r2", False), ("r1", False)]
        assert await store.expire(500) == 2  # the worker has never entered

    async def test_only_runs_that_can_be_worked_on_are_taken_up(self, store: Store) -> None:
        """Of agents that the worker has, in a format that it reads, and not those that run, wait or have ended."""
        await done(store, start(run_row("r1", "t1", state="ready", agent="else")))
        await done(store, start(run_row("r2", "t2", state="ready", format=FORMAT + 1)))
        await done(store, start(run_row("r3", "t3", state="waiting", due=1, format=FORMAT + 1)))
        for number, state in enumerate(("running", "waiting", "done", "refused")):
            await done(store, start(run_row(f"s{number}", f"ts{number}", state=state)))
        assert list(await store.claim("w1", ["helper", "writer"], 1_000, 10)) == []
        assert list(await store.claim("w1", [], 1_000, 10)) == []
        assert [claim.run for claim in await store.claim("w1", ["helper", "else"], 0, 10)] == ["r1"]

    async def test_no_run_is_taken_up_twice(self, store: Store, other: Store) -> None:
        """By many workers at once, through two handles."""
        await other.open()
        names = [f"r{number:02}" for number in range(40)]
        await asyncio.gather(*(store.write(start(run_row(name, f"t{name}", state="ready"))) for name in names))

        async def take(worker: int) -> Sequence[str]:
            handle = (store, other)[worker % 2]
            return [claim.run for claim in await handle.claim(f"w{worker}", ["helper"], 0, 7)]

        async with asyncio.timeout(60):
            taken = [run for runs in await asyncio.gather(*(take(worker) for worker in range(10))) for run in runs]
            while some := await take(99):  # a store may pass over a row that somebody else is looking at
                taken += some
        assert sorted(taken) == names
        assert {(await row_of(other, name)).epoch for name in names} == {2}

    async def test_whoever_lost_a_run_can_write_it_no_more(self, store: Store, other: Store) -> None:
        """The epoch is another one."""
        await other.open()
        await store.enter(worker_row("w1", expires=100))
        run = await done(store, start(run_row(holder="w1")))
        assert await other.expire(101) == 1
        assert not await store.beat("w1", 102, 202)
        assert [claim.lost for claim in await other.claim("w2", ["helper"], 101, 1)] == [True]
        assert not await store.write(step(run))
        assert await other.write(step(await row_of(other, "r1")))

    async def test_a_worker_that_leaves_gives_back_what_it_holds(self, store: Store) -> None:
        """It is ready for others, at the same version."""
        await store.enter(worker_row("w1"))
        await store.enter(worker_row("w2"))
        await done(store, start(run_row("r1", "t1", holder="w1")), start(run_row("r2", "t2", holder="w2")))
        await store.leave("w1")
        run = await row_of(store, "r1")
        assert (run.state, run.holder, run.version, run.epoch) == ("ready", "", 2, 1)
        assert dict(await store.held("w1")) == {}
        assert dict(await store.held("w2")) == {"r2": (2, 1)}
        assert not await store.beat("w1", 5, 100)
        assert await store.beat("w2", 5, 100)

    async def test_runs_that_nobody_holds_are_not_given_back_by_somebody_without_a_name(self, store: Store) -> None:
        """Whether they wait or have ended."""
        waiting = await done(store, start(run_row("r1", "t1", state="waiting")))
        over = await ended(store, await done(store, start(run_row("r2", "t2"))))
        await store.leave("")
        assert [await row_of(store, name) for name in ("r1", "r2")] == [waiting, over]
        assert dict(await store.held("")) == {}

    async def test_a_worker_that_beats_in_time_stays(self, store: Store) -> None:
        """Another does not, and what it held is ready; one who never entered holds nothing for long."""
        await store.enter(worker_row("w1", expires=100))
        await store.enter(worker_row("w2", expires=100))
        for number, holder in enumerate(("w1", "w2", "nobody")):
            await done(store, start(run_row(f"r{number}", f"t{number}", holder=holder)))
        assert await store.beat("w1", 90, 200)
        assert await store.expire(100) == 1  # to the last moment
        assert await store.expire(101) == 1
        assert [(await row_of(store, f"r{number}")).state for number in range(3)] == ["running", "ready", "ready"]
        assert not await store.beat("w2", 101, 300)
        assert await store.expire(101) == 0

    async def test_a_run_that_cannot_be_read_is_put_aside(self, store: Store) -> None:
        """If it is still as it was read; it is not taken up any more."""
        run = await done(store, start(run_row(state="ready", due=5, holder="w1")))
        assert not await store.refuse(structs.replace(run, version=1), "no")
        assert not await store.refuse(structs.replace(run, epoch=2), "no")
        assert not await store.refuse(run_row("r9"), "no")
        assert await store.refuse(run, "an event of an unknown kind")
        refused = structs.replace(run, state="refused", holder="", due=None, why="an event of an unknown kind")
        assert await row_of(store, "r1") == refused
        assert list(await store.claim("w1", ["helper"], 99, 9)) == []

    async def test_a_run_that_was_put_aside_can_be_taken_up_again(self, store: Store) -> None:
        """If it still is as it was read; one that was not put aside is left alone."""
        run = await done(store, start(run_row(state="waiting", due=5)))
        assert not await store.readmit(run)
        assert not await store.readmit(run_row("r9"))
        assert await store.refuse(run, "no")
        refused = await row_of(store, "r1")
        assert not await store.readmit(structs.replace(refused, version=1))
        assert not await store.readmit(structs.replace(refused, epoch=2))
        assert await store.readmit(refused)
        assert await row_of(store, "r1") == structs.replace(refused, state="ready", why="")
        assert [claim.run for claim in await store.claim("w1", ["helper"], 0, 9)] == ["r1"]

    async def test_pieces_are_kept_for_the_epoch_they_name(self, store: Store) -> None:
        """Those of somebody who lost the run, or of no run, are not."""
        run = await done(store, start(run_row()))
        pieces = [
            PieceRow(run="r1", epoch=1, turn=1, offset=offset, text=text) for offset, text in ((0, "a"), (1, "b"))
        ]
        old = PieceRow(run="r1", epoch=0, turn=1, offset=2, text="old")
        await store.stream([*pieces, old, structs.replace(old, run="r9", epoch=1)])
        await store.stream([])
        assert list(await store.streamed("r1")) == pieces
        assert list(await store.streamed("r9")) == []
        run = await done(store, step(run))
        assert list(await store.streamed("r1")) == pieces
        await done(store, step(run, streamed=True))
        assert list(await store.streamed("r1")) == []
