"""A key names one run of its principal, whatever else was left open when it was started."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from farhand import tool
from farhand.core.errors import StartConflict
from farhand.durable import Runner
from farhand.models import Use
from farhand.stores.memory import MemoryStore
from tests.durable.story import agent


async def test_a_start_under_a_key_without_a_thread_gives_the_same_run_again() -> None:
    async with Runner(agent("hello"), store=MemoryStore()) as runner:
        first = await runner.start("hi", key="job-1")
        again = await runner.start("hi", key="job-1")
        assert (again.id, again.thread) == (first.id, first.thread)
        assert (await runner.thread(again.thread)).messages[0].text == "hi"
        with pytest.raises(StartConflict):
            await runner.start("hi", key="job-1", thread=first.thread)


async def test_the_same_tools_are_the_same_start_and_others_of_the_same_name_are_not() -> None:
    def tools(description: str = "Draw.") -> Iterator[Any]:
        yield tool.define("draw", input={"type": "object"}, description=description)
        yield {"name": "erase", "description": "Erase.", "parameters": {"type": "object"}}

    async with Runner(agent("hello"), store=MemoryStore()) as runner:
        first = await runner.start("hi", key="job-1", tools=tools())
        assert (await runner.start("hi", key="job-1", tools=tools())).id == first.id
        assert {"draw", "erase"} <= set((await first.look()).state.tools)
        with pytest.raises(StartConflict):
            await runner.start("hi", key="job-1", tools=tools("Draw something else."))


@pytest.mark.parametrize("busy", ["replace", "refuse"])
async def test_a_start_that_is_said_twice_at_once_does_not_call_its_own_run_off(busy: Any) -> None:
    class Slow(MemoryStore):
        """Whoever asks for a key first is told late that there is no run."""

        go_on: asyncio.Event | None = None

        async def run_under(self, principal: str, key: str) -> Any:
            found = await super().run_under(principal, key)
            if self.go_on is not None:
                waits, self.go_on = self.go_on, None
                await waits.wait()
            return found

    rows = MemoryStore()
    slow = Slow(rows)
    slow.go_on = gate = asyncio.Event()
    async with (
        Runner(agent(Use("pick"), "done"), store=slow) as first,
        Runner(agent(Use("pick"), "done"), store=MemoryStore(rows)) as second,
    ):
        late = asyncio.ensure_future(first.start("hi", thread="t", key="job-1", busy=busy))
        await asyncio.sleep(0)
        run = await second.start("hi", thread="t", key="job-1", busy=busy)
        await run.wait()
        gate.set()
        assert (await late).id == run.id
        assert (await run.look()).status == "waiting"
