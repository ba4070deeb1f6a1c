"""A stored run in the hand: it waits, looks and tells from wherever it was last, and holds nothing."""

import asyncio

import pytest

from farhand.core.errors import UnknownCall
from farhand.core.updates import RunEnded, RunWaiting
from farhand.durable import Runner
from farhand.durable.position import LIVE
from farhand.models import Use
from farhand.stores.memory import MemoryStore
from tests.durable.story import QUICK, by_rule


async def kinds(updates: object) -> list[str]:
    return [type(update).__name__ async for update in updates if type(update) not in LIVE]  # type: ignore[attr-defined]


async def test_it_tells_what_came_since_it_was_asked_last_and_stops_when_the_run_waits() -> None:
    async with asyncio.timeout(10), Runner(by_rule(Use("pick"), "picked"), store=MemoryStore()) as runner:
        run = await runner.start("go", thread="t")
        first = await kinds(run.updates())
        assert first[-1] == "RunWaiting"
        assert run.seq == len(first)
        assert await kinds(run.updates()) == []
        [call] = (await run.look()).pending
        await runner.answer(call.id, 1)
        second = await kinds(run.updates())
        assert (second[0], second[-1]) == ("CallEnded", "RunEnded")
        assert await kinds(run.updates()) == []
        assert await kinds(run.updates(hold=True)) == []


async def test_held_on_to_it_tells_on_until_the_run_has_ended() -> None:
    async with asyncio.timeout(10), Runner(by_rule(Use("pick"), "picked"), store=MemoryStore()) as runner:
        run = await runner.start("go")
        seen: list[type] = []
        async for update in run.updates(hold=True):
            seen.append(type(update))
            if isinstance(update, RunWaiting):
                await runner.answer(update.call_ids[0], 1)
        assert seen[-1] is RunEnded


async def test_it_begins_with_its_own_run_and_not_with_what_was_before_in_the_thread() -> None:
    async with asyncio.timeout(10), Runner(by_rule("hello"), store=MemoryStore()) as runner:
        await runner.run("one", thread="t")
        run = await runner.start("two", thread="t")
        told = [update async for update in run.updates() if type(update) not in LIVE]
        assert type(told[0]).__name__ == "RunStarted"
        assert [update.seq for update in told] == list(range(told[0].seq, told[0].seq + len(told)))
        assert told[0].seq > 1
        assert await kinds((await runner.find(run.id)).updates()) == []


async def test_waiting_and_looking_work_at_a_process_that_does_not_hold_the_run() -> None:
    rows = MemoryStore()
    async with (
        asyncio.timeout(10),
        Runner(by_rule(Use("pick"), "picked"), store=rows, timing=QUICK) as here,
        Runner(by_rule(Use("pick"), "picked"), store=MemoryStore(rows), timing=QUICK) as there,
    ):
        run = await here.start("go")
        elsewhere = await there.find(run.id)
        view = await elsewhere.wait()
        assert view.status == "waiting"
        await here.answer(view.pending[0].id, 1)
        while view.state.ending is None:
            view = await elsewhere.wait()
        assert view.output == "picked"
        assert (await elsewhere.look()).output == "picked"


async def test_who_stops_waiting_does_not_touch_the_run() -> None:
    async with asyncio.timeout(10), Runner(by_rule(Use("pick"), "picked"), store=MemoryStore()) as runner:
        run = await runner.start("go")
        waiting = asyncio.ensure_future(run.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
        assert (await run.wait()).status == "waiting"


async def test_a_run_that_was_pruned_is_unknown() -> None:
    async with asyncio.timeout(10), Runner(by_rule("hello"), store=MemoryStore()) as runner:
        run = await runner.start("go", thread="t")
        assert (await run.wait()).output == "hello"
        assert await runner.store.prune(2**60, 10) == 1
        for ask in (run.wait, run.look):
            with pytest.raises(UnknownCall):
                await ask()
        assert await kinds(run.updates()) == []
        assert run.id in repr(run)
