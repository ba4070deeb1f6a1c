"""One process among several: what is said about its runs while it is just taking them up, and how it leaves."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from farhand import tool
from farhand.core.call import Outcome
from farhand.durable import Runner, Timing
from farhand.models import Turn, Use
from farhand.runner.view import RunView
from farhand.stores.base import Claim, Stored, WorkerRow
from farhand.stores.memory import MemoryStore
from farhand.testing.clock import VirtualClock
from tests.durable.story import QUICK, by_rule

EAGER = Timing(lease=600.0, beat=100.0, tick=0.01, check=600.0, drain=2.0)
"""It takes up what is due at once, and compares nothing."""
LAZY = Timing(lease=600.0, beat=100.0, tick=600.0, check=600.0, drain=2.0)
"""It does only what it is asked for."""

hurry = tool.define("hurry", input={"type": "object"}, description="Be quick.", timeout=5.0)


class Delayed(MemoryStore):
    """A memory that does not give some of its runs away before it is told to."""

    def __init__(self, other: MemoryStore | None = None) -> None:
        super().__init__(other)
        self.secret: set[str] = set()
        self.told = asyncio.Event()
        self.claims: list[Claim] = []
        self.claimed = asyncio.Event()

    async def claim(self, worker: str, agents: Sequence[str], now: int, limit: int) -> Sequence[Claim]:
        claims = await super().claim(worker, agents, now, limit)
        self.claims += claims
        if claims:
            self.claimed.set()
        return claims

    async def load(self, run: str) -> Stored | None:
        if run in self.secret:
            await self.told.wait()
        return await super().load(run)


class Book:
    """A tool that may be run once, after a yes; and how often it was."""

    def __init__(self) -> None:
        self.entered = 0

        @tool(needs_approval=True)
        async def book() -> str:
            """Book."""
            self.entered += 1
            return "booked"

        self.tool = book

    def agent(self, *uses: str) -> Any:
        return by_rule(Turn("", *map(Use, uses)), "done", tools=(hurry, self.tool))


async def ended(runner: Runner, run: str) -> RunView[Any]:
    async with asyncio.timeout(10):
        while True:
            view = await (await runner.find(run)).wait()
            if view.state.ending is not None:
                return view
            await asyncio.sleep(0)


def outcomes(view: RunView[Any]) -> dict[str, Outcome | None]:
    return {call.tool: call.outcome for call in view.calls}


@pytest.mark.parametrize(
    ("uses", "said", "outcome"),
    [
        (["hurry"], "hurry", {"hurry": Outcome.OK}),
        (["hurry", "book"], "book", {"hurry": Outcome.TIMED_OUT, "book": Outcome.OK}),
    ],
    ids=["answer", "approval"],
)
async def test_what_is_said_elsewhere_between_claim_and_look_is_done_by_whoever_has_claimed(
    uses: list[str], said: str, outcome: dict[str, Outcome]
) -> None:
    clock, rows, book = VirtualClock(), Delayed(), Book()
    async with (
        Runner(book.agent(*uses), store=rows, timing=EAGER, clock=clock) as first,
        Runner(book.agent(*uses), store=MemoryStore(rows), timing=LAZY, clock=clock) as second,
    ):
        run = await first.start("go")
        calls = {call.tool: call.id for call in (await run.wait()).pending}
        rows.secret = {run.id}
        async with asyncio.timeout(10):
            clock.advance(6)
            await rows.claimed.wait()
            saying = second.answer(calls[said], 1) if said == "hurry" else second.approve(calls[said])
            assert not (await saying).repeated
        rows.told.set()
        view = await ended(second, run.id)
        assert (outcomes(view), view.output) == (outcome, "done")
        assert book.entered == ("book" in uses)


async def test_what_is_said_here_of_a_run_that_is_just_being_claimed_waits_until_it_is_held() -> None:
    clock, rows, book = VirtualClock(), Delayed(), Book()
    async with Runner(book.agent("hurry", "book"), store=rows, timing=EAGER, clock=clock) as runner:
        runs = [await runner.start("go", thread=str(number)) for number in range(2)]
        calls = [{call.tool: call.id for call in (await run.wait()).pending} for run in runs]
        rows.secret = {runs[0].id}
        async with asyncio.timeout(10):
            clock.advance(6)
            await rows.claimed.wait()
            approving = asyncio.ensure_future(runner.approve(calls[1]["book"]))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not approving.done()
            rows.told.set()
            assert not (await approving).repeated
        view = await ended(runner, runs[1].id)
        assert outcomes(view) == {"hurry": Outcome.TIMED_OUT, "book": Outcome.OK}
        assert [claim.lost for claim in rows.claims] == [False, False]
        assert book.entered == 1


class Roll(MemoryStore):
    """A memory that takes a worker in only once, and notes who leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[str] = []
        self.entered: list[str] = []
        self.asked_again = asyncio.Event()

    async def enter(self, worker: WorkerRow) -> None:
        if self.entered:
            self.asked_again.set()
            await asyncio.Event().wait()
        self.entered.append(worker.id)
        await super().enter(worker)

    async def leave(self, worker: str) -> None:
        self.left.append(worker)
        await super().leave(worker)


async def test_a_process_that_was_taken_for_dead_gives_nothing_back_when_it_is_closed() -> None:
    roll = Roll()
    async with Runner(by_rule(Use("pick"), "picked"), store=roll, timing=QUICK) as runner:
        run = await runner.start("go")
        assert (await run.wait()).status == "waiting"
        await roll.leave(roll.entered[0])
        async with asyncio.timeout(10):
            await roll.asked_again.wait()
    assert roll.left == roll.entered
    stored = await roll.load(run.id)
    assert stored is not None
    assert stored.run.state == "waiting"
