"""Times that are stored with a run come to pass after a restart too: not too early, once, and at one process only."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from farhand import Limits, tool
from farhand.core.call import Outcome
from farhand.core.events import Event, TimerFired, TimerKind
from farhand.core.updates import CallExecuting, RunWaiting
from farhand.durable import Runner, Timing
from farhand.models import Use
from farhand.runner.view import RunView
from farhand.stores import open_store
from farhand.stores.base import Claim, Store
from farhand.stores.memory import MemoryStore
from farhand.testing.clock import VirtualClock
from tests.durable.story import by_rule, kill
from tests.stores.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

TIMING = Timing(lease=300.0, beat=100.0, tick=0.01, check=0.05, drain=2.0)
hurry = tool.define("hurry", input={"type": "object"}, description="Be quick.", timeout=600)
sign = tool.define("sign", input={"type": "object"}, description="Sign.", needs_approval=True, approval_timeout=600)
show = tool.define("show", input={"type": "object"}, description="Show it.", effect="pure", retries=1, timeout=86_400)
TOOLS = (hurry, sign, show)
LIMITS = Limits(retry_delay=600)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Gives one more handle of the same store."""
    if request.param == "memory":
        first = MemoryStore()
        return lambda: MemoryStore(first)
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:{tmp_path}/runs.db"
    return lambda: open_store(url)


def runner(store: Store, name: str, clock: VirtualClock) -> Runner:
    agent = by_rule(Use(name), "done", tools=TOOLS, limits=LIMITS)
    return Runner(agent, store=store, timing=TIMING, clock=clock)


async def left(another: Callable[[], Store], name: str, clock: VirtualClock) -> str:
    """A run that waits for somebody or for a time, and whose process is gone."""
    first = runner(another(), name, clock)
    await first.open()
    run = await first.start("go")
    view = await run.wait()
    assert view.status == "waiting"
    if name == "show":
        await first.fail(view.pending[0].id, "not now", retryable=True)
    await kill(first)
    return run.id


async def fired(store: Store, run: str) -> list[TimerFired]:
    stored = await store.load(run)
    assert stored is not None
    rows = await store.log(stored.run.thread, 0, 1000)
    events = [event for row in rows for event in json.decode(row.events, type=list[Event])]
    return [event for event in events if isinstance(event, TimerFired)]


async def until(runner: Runner, run: str, there: Callable[[RunView[Any]], object]) -> RunView[Any]:
    async with asyncio.timeout(20):
        handle = await runner.find(run)
        async for _ in runner.watch(handle.thread):
            view = await handle.look()
            if there(view):
                return view
    raise AssertionError


@pytest.mark.parametrize("name", ["hurry", "sign"], ids=["deadline", "approval"])
async def test_a_time_that_came_while_nobody_was_there_is_seen_to_by_one_of_many(
    another: Callable[[], Store], name: str
) -> None:
    clock = VirtualClock()
    run = await left(another, name, clock)
    clock.advance(601)
    async with (
        runner(another(), name, clock) as first,
        runner(another(), name, clock),
        runner(another(), name, clock),
    ):
        view = await until(first, run, lambda view: view.state.ending)
        assert (view.calls[0].outcome, view.output) == (Outcome.TIMED_OUT, "done")
        assert [event.kind for event in await fired(first.store, run)] == [TimerKind.DEADLINE]


async def test_a_pause_before_another_try_is_over_after_a_restart(another: Callable[[], Store]) -> None:
    clock = VirtualClock()
    run = await left(another, "show", clock)
    clock.advance(601)
    async with runner(another(), "show", clock) as first, runner(another(), "show", clock) as second:
        view = await until(first, run, lambda view: view.calls[0].record.attempt == 2)
        assert view.status == "waiting"
        attempts: list[int] = []
        async for update in second.watch((await second.find(run)).thread):
            attempts += [update.attempt] if isinstance(update, CallExecuting) else []
            if isinstance(update, RunWaiting) and len(attempts) > 1:
                break
        assert attempts == [1, 2]


class Looked(MemoryStore):
    """A memory that counts how often somebody looked for what is due."""

    def __init__(self, other: MemoryStore | None = None) -> None:
        super().__init__(other)
        self.looks = 0
        self.often = asyncio.Event()
        self.given: list[Claim] = []

    async def claim(self, worker: str, agents: Sequence[str], now: int, limit: int) -> Sequence[Claim]:
        claims = await super().claim(worker, agents, now, limit)
        self.given += claims
        self.looks += 1
        if self.looks >= 5:
            self.often.set()
        return claims


@pytest.mark.parametrize("name", ["hurry", "sign"])
async def test_nothing_fires_before_its_time(name: str) -> None:
    clock, rows = VirtualClock(), Looked()
    run = await left(lambda: MemoryStore(rows), name, clock)
    stored = await rows.load(run)
    assert stored is not None
    assert stored.run.due is not None
    clock.advance((stored.run.due - clock.now() - 1) / 1000)
    rows.given.clear()
    async with runner(rows, name, clock) as second, asyncio.timeout(10):
        rows.looks = 0
        rows.often.clear()
        await rows.often.wait()
        assert rows.given == []
        clock.advance(0.001)
        await until(second, run, lambda view: view.state.ending)
        assert [claim.run for claim in rows.given] == [run]


async def test_a_thousand_that_are_overdue_fire_once_each_and_answers_are_not_held_up() -> None:
    clock, rows = VirtualClock(), MemoryStore()
    first = runner(MemoryStore(rows), "hurry", clock)
    await first.open()
    runs = [await first.start("go", thread=str(number)) for number in range(1000)]
    for run in runs:
        await run.wait()
    await kill(first)
    clock.advance(601)
    late = await rows.runs("", "waiting", 2000)
    assert len(late) == 1000
    async with runner(MemoryStore(rows), "hurry", clock) as second:
        fresh = await second.start("go", thread="fresh")
        [call] = (await fresh.wait()).pending
        await second.answer(call.id, 1)
        assert (await until(second, fresh.id, lambda view: view.state.ending)).calls[0].outcome is Outcome.OK
        async with asyncio.timeout(60):
            for run in runs:
                view = await (await second.find(run.id)).wait()
                while view.state.ending is None:
                    await asyncio.sleep(0)
                    view = await (await second.find(run.id)).wait()
                assert view.calls[0].outcome is Outcome.TIMED_OUT
        assert {len(await fired(rows, run.id)) for run in runs} == {1}
