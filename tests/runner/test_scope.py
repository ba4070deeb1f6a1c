"""Work that can be stopped by name: stopping ends the work and nothing else, whatever the work does about it."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

import pytest

from farhand.runner.scope import Scope, Stopped


class Stage:
    """A scope, its work, and what became of it."""

    def __init__(self) -> None:
        self.scope = Scope()
        self.waits = 0
        self.entered = asyncio.Event()
        self.go_on = asyncio.Event()

    async def run(self, work: Coroutine[Any, Any, None]) -> str:
        try:
            if self.scope.begin(work):
                self.waits += 1
                await self.scope.finish()
        except Stopped:
            return "stopped"
        return "ended"

    async def hang(self) -> None:
        self.entered.set()
        await self.go_on.wait()


async def test_work_that_never_waits_needs_no_task_and_no_watching() -> None:
    stage, done = Stage(), []

    async def work() -> None:
        done.append(1)

    assert (await stage.run(work()), stage.waits, done) == ("ended", 0, [1])
    stage.scope.stop()  # too late, and harmless
    await asyncio.sleep(0)


async def test_the_rest_is_done_at_one_go_however_often_the_work_waits() -> None:
    stage = Stage()

    async def work() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    assert (await stage.run(work()), stage.waits) == ("ended", 1)


async def test_what_the_work_waits_for_reaches_it() -> None:
    stage = Stage()
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    got: list[int] = []

    async def work() -> None:
        got.append(await answer)

    asyncio.get_running_loop().call_soon(answer.set_result, 7)
    assert (await stage.run(work()), got) == ("ended", [7])


async def test_stopping_work_that_waits_ends_it_and_not_the_task_around_it() -> None:
    stage = Stage()
    running = asyncio.ensure_future(stage.run(stage.hang()))
    async with asyncio.timeout(5):
        await stage.entered.wait()
        stage.scope.stop()
        stage.scope.stop()
        assert await running == "stopped"
    assert running.cancelling() == 0


async def test_work_stopped_before_it_began_ends_as_soon_as_it_waits() -> None:
    stage, did = Stage(), []

    async def work() -> None:
        did.append("first stretch")
        await asyncio.sleep(0)
        did.append("never")

    stage.scope.stop()
    async with asyncio.timeout(5):
        assert await stage.run(work()) == "stopped"
    assert did == ["first stretch"]


async def test_work_that_stops_itself_ends_as_soon_as_it_waits() -> None:
    stage = Stage()

    async def work() -> None:
        stage.scope.stop()
        await stage.hang()

    async with asyncio.timeout(5):
        assert await stage.run(work()) == "stopped"


async def test_work_that_swallows_its_cancellation_is_stopped_all_the_same() -> None:
    stage, did = Stage(), []

    async def work() -> None:
        try:
            await stage.hang()
        except asyncio.CancelledError:
            did.append("swallowed")
        await asyncio.sleep(0)
        did.append("went on")

    running = asyncio.ensure_future(stage.run(work()))
    async with asyncio.timeout(5):
        await stage.entered.wait()
        stage.scope.stop()
        assert await running == "stopped"
    assert did == ["swallowed", "went on"]
    assert running.cancelling() == 0


async def test_work_that_ended_just_before_it_was_stopped_leaves_no_cancellation_behind() -> None:
    stage = Stage()

    async def work() -> None:
        await stage.hang()
        stage.scope.stop()

    async def around() -> str:
        outcome = await stage.run(work())
        await asyncio.sleep(0)
        return outcome

    running = asyncio.ensure_future(around())
    async with asyncio.timeout(5):
        await stage.entered.wait()
        stage.go_on.set()
        assert await running == "stopped"


async def test_cleaning_up_happens_before_the_work_counts_as_stopped() -> None:
    stage, did = Stage(), []

    async def work() -> None:
        try:
            await stage.hang()
        finally:
            await asyncio.sleep(0)
            did.append("cleaned up")

    running = asyncio.ensure_future(stage.run(work()))
    async with asyncio.timeout(5):
        await stage.entered.wait()
        stage.scope.stop()
        assert await running == "stopped"
    assert did == ["cleaned up"]


async def test_a_cancellation_from_outside_passes_through() -> None:
    stage = Stage()
    running = asyncio.ensure_future(stage.run(stage.hang()))
    async with asyncio.timeout(5):
        await stage.entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert not stage.scope.stopped


async def test_a_cancellation_from_outside_wins_over_stopping() -> None:
    stage = Stage()
    running = asyncio.ensure_future(stage.run(stage.hang()))
    async with asyncio.timeout(5):
        await stage.entered.wait()
        stage.scope.stop()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_a_cancellation_from_outside_is_not_lost_in_work_that_swallows_it() -> None:
    stage = Stage()

    async def work() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await stage.hang()

    async def around() -> str:
        async with asyncio.timeout(0):
            return await stage.run(work())

    with pytest.raises(TimeoutError):
        await around()


async def test_a_timeout_around_the_work_is_not_mixed_up_with_stopping() -> None:
    stage = Stage()

    async def around() -> str:
        async with asyncio.timeout(0):
            return await stage.run(stage.hang())

    with pytest.raises(TimeoutError):
        await around()


@pytest.mark.parametrize("waits", [False, True])
async def test_an_exception_of_the_work_passes(waits: bool) -> None:
    stage = Stage()

    async def work() -> None:
        if waits:
            await asyncio.sleep(0)
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        await stage.run(work())


async def test_an_exception_while_it_is_stopped_passes_and_leaves_no_cancellation_behind() -> None:
    stage = Stage()

    async def work() -> None:
        try:
            await stage.hang()
        except asyncio.CancelledError:
            raise LookupError("lost") from None

    async def around() -> int:
        with pytest.raises(LookupError):
            await stage.run(work())
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    running = asyncio.ensure_future(around())
    async with asyncio.timeout(5):
        await stage.entered.wait()
        stage.scope.stop()
        assert await running == 0


async def test_a_cancellation_that_the_work_makes_up_itself_passes() -> None:
    stage = Stage()

    async def work() -> None:
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await stage.run(work())
