"""What another process makes of the runs of one that died."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from farhand import Agent, tool
from farhand.core.call import Outcome
from farhand.core.updates import RunEnded, TurnStarted
from farhand.durable import Runner
from farhand.models import Use
from farhand.stores.memory import MemoryStore
from tests.durable.story import QUICK, by_rule, kill, pick


async def test_a_paused_run_goes_on_in_another_process() -> None:
    rows = MemoryStore()
    first = Runner(by_rule(Use("pick"), "picked"), store=rows)
    await first.open()
    run = await first.start("hi", thread="t")
    assert (await run.wait()).status == "waiting"
    await kill(first)
    async with Runner(by_rule(Use("pick"), "picked"), store=MemoryStore(rows)) as second:
        [call] = await second.pending()
        await second.answer(call.id, 3)
        found = await second.find(run.id)
        assert (await found.wait()).output == "picked"


@pytest.mark.parametrize(
    ("effect", "outcome", "entered"),
    [("once", Outcome.UNKNOWN, 1), ("pure", Outcome.OK, 2), ("idempotent", Outcome.OK, 2)],
)
async def test_a_call_whose_process_died_is_run_again_only_if_that_can_do_no_harm(
    effect: Any, outcome: Outcome, entered: int
) -> None:
    reached, seen = asyncio.Event(), []

    @tool(effect=effect)
    async def charge(context: Any = None) -> str:
        """Charge."""
        seen.append(1)
        if len(seen) == 1:
            reached.set()
            await asyncio.Event().wait()
        return "charged"

    def build() -> Any:
        return by_rule(Use("charge"), "done", tools=[charge])

    rows = MemoryStore()
    first = Runner(build(), store=rows, timing=QUICK)
    await first.open()
    run = await first.start("hi")
    await reached.wait()
    await kill(first)
    async with asyncio.timeout(10), Runner(build(), store=MemoryStore(rows), timing=QUICK) as second:
        found = await second.find(run.id)
        view = await found.wait()
        assert view.output == "done"
        assert view.calls[0].outcome is outcome
        assert len(seen) == entered


async def test_a_reply_that_was_under_way_is_asked_for_again_and_watchers_are_told() -> None:
    class Hangs:
        name = "hangs"

        def __init__(self) -> None:
            self.asked = asyncio.Event()

        async def stream(self, _: Any) -> Any:
            self.asked.set()
            await asyncio.Event().wait()
            yield None

    model = Hangs()
    rows = MemoryStore()
    first = Runner(Agent(model, tools=[pick]), store=rows, timing=QUICK)
    await first.open()
    await first.start("hi", thread="t")
    await model.asked.wait()
    await kill(first)
    async with asyncio.timeout(10), Runner(by_rule("hello"), store=MemoryStore(rows), timing=QUICK) as second:
        told = []
        async for update in second.watch("t"):
            told.append(update)
            if isinstance(update, RunEnded):
                break
        asked = [update for update in told if isinstance(update, TurnStarted)]
        assert [update.again for update in asked] == [False, True]


async def test_a_runner_that_is_closed_gives_its_runs_to_others_at_once() -> None:
    reached, seen = asyncio.Event(), []

    @tool(effect="pure")
    async def think() -> str:
        """Think."""
        seen.append(1)
        if len(seen) == 1:
            reached.set()
            await asyncio.Event().wait()
        return "thought"

    def build() -> Any:
        return by_rule(Use("think"), "done", tools=[think])

    rows = MemoryStore()
    async with asyncio.timeout(10), Runner(build(), store=MemoryStore(rows)) as second:
        first = Runner(build(), store=rows, timing=structs.replace(QUICK, drain=0.0))
        await first.open()
        run = await first.start("hi")
        await reached.wait()
        await first.close()
        found = await second.find(run.id)
        assert (await found.wait()).output == "done"


async def test_a_deadline_fires_after_a_restart() -> None:
    short = tool.define("short", input={"type": "object"}, description="Short.", timeout=0.3)
    rows = MemoryStore()
    first = Runner(by_rule(Use("short"), "done", tools=[short]), store=rows, timing=QUICK)
    await first.open()
    run = await first.start("hi")
    assert (await run.wait()).status == "waiting"
    await kill(first)
    async with (
        asyncio.timeout(10),
        Runner(by_rule(Use("short"), "done", tools=[short]), store=MemoryStore(rows), timing=QUICK) as second,
    ):
        found = await second.find(run.id)
        async for _ in found.updates(hold=True):
            pass
        view = await found.look()
        assert view.calls[0].outcome is Outcome.TIMED_OUT
        assert view.output == "done"
