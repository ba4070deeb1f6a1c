"""The store's clock jumps while runs are worked on: nobody is taken for dead for it, and no time is lost or made up."""

import asyncio
from collections.abc import Callable

import pytest

from farhand import tool
from farhand.core.call import Outcome
from farhand.durable import Runner
from farhand.models import Use
from farhand.stores.memory import MemoryStore
from tests.durable.story import QUICK, by_rule, kill


class Jumping(MemoryStore):
    """A memory whose clock can be set, for all handles; it says how often it was looked at since."""

    ahead = 0
    looks = 0

    def __init__(self, other: "Jumping | None" = None) -> None:
        super().__init__(other)
        self.first: Jumping = self if other is None else other.first

    async def time(self) -> int:
        self.first.looks += 1
        return await super().time() + self.first.ahead

    def jump(self, seconds: float) -> None:
        self.first.ahead += round(seconds * 1000)
        self.first.looks = 0


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("seconds", [5, 30, 3600, -5, -30, -3600])
async def test_whoever_works_while_the_clock_jumps_goes_on(seconds: float) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    @tool
    async def work() -> str:
        """Work."""
        entered.set()
        await leave.wait()
        return "worked"

    store = Jumping()
    agents = [by_rule(Use("work"), "done", tools=(work,)) for _ in range(2)]
    async with (
        asyncio.timeout(30),
        Runner(agents[0], store=store, timing=QUICK) as first,
        Runner(agents[1], store=Jumping(store), timing=QUICK) as second,
    ):
        names = (first._replica.worker, second._replica.worker)
        run = await first.start("go")
        await entered.wait()
        store.jump(seconds)
        await until(lambda: store.looks > 20)
        leave.set()
        view = await run.wait()
        assert (view.output, view.calls[0].outcome) == ("done", Outcome.OK)
        assert (first._replica.worker, second._replica.worker) == names


@pytest.mark.parametrize("seconds", [5, 3600])
async def test_a_process_that_dies_when_the_clock_has_jumped_is_found_out_all_the_same(seconds: float) -> None:
    entered: list[int] = []

    @tool(effect="pure")
    async def work() -> str:
        """Work, for ever at first."""
        entered.append(1)
        if len(entered) == 1:
            await asyncio.Event().wait()
        return "worked"

    store = Jumping()
    agents = [by_rule(Use("work"), "done", tools=(work,)) for _ in range(2)]
    first = Runner(agents[0], store=store, timing=QUICK)
    await first.open()
    async with asyncio.timeout(30), Runner(agents[1], store=Jumping(store), timing=QUICK) as second:
        run = await first.start("go")
        await until(lambda: entered)
        store.jump(seconds)
        await kill(first)
        found = await second.find(run.id)
        assert (await found.wait()).output == "done"


async def test_a_deadline_is_the_stores_time_and_comes_when_the_clock_was_put_forward() -> None:
    hurry = tool.define("hurry", input={"type": "object"}, description="Be quick.", timeout=1800)
    store = Jumping()
    async with (
        asyncio.timeout(30),
        Runner(by_rule(Use("hurry"), "late", tools=(hurry,)), store=store, timing=QUICK) as runner,
    ):
        run = await runner.start("go")
        assert (await run.wait()).status == "waiting"
        store.jump(-3600)
        await until(lambda: store.looks > 4)
        assert (await run.look()).status == "waiting"
        store.jump(3600 + 1801)
        async for _ in run.updates(hold=True):
            pass
        assert (await run.look()).calls[0].outcome is Outcome.TIMED_OUT
