"""Who is there for a call, who is gone with one, who comes back: on one process, on several, over a death."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from farhand import Agent, tool
from farhand.core.call import Call, Outcome
from farhand.core.errors import AnswerConflict, InvalidInput, RefusedAnswer, StoreAway, UsageError
from farhand.core.updates import (
    CallAttended,
    CallEnded,
    CallProgress,
    CallReleased,
    CallUnattended,
    RunEnded,
    RunWaiting,
    Update,
)
from farhand.durable import Position, Runner
from farhand.durable.names import thread_key
from farhand.models import Turn, Use
from farhand.runner.clock import Clock
from farhand.stores import open_store
from farhand.stores.base import Store
from farhand.stores.memory import MemoryStore
from farhand.stores.presence import ClientRow
from farhand.testing import VirtualClock
from tests.durable.story import QUICK, by_rule, kill
from tests.stores.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

ANYTHING: Any = {"type": "object"}
Kind = TypeVar("Kind")


def client_tool(**policy: Any) -> Any:
    return tool.define("pick", input=ANYTHING, description="Pick something.", **policy)


def picking(**policy: Any) -> Agent[Any]:
    """An agent whose model has a client pick something first."""
    return by_rule(Use("pick"), "done", tools=(client_tool(**policy),))


async def opened(
    stack: AsyncExitStack, agent: Agent[Any], store: Store | None = None, clock: Clock | None = None
) -> Runner:
    return await stack.enter_async_context(
        Runner(agent, store=MemoryStore() if store is None else store, timing=QUICK, clock=clock)
    )


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def begun(runner: Runner, thread: str = "t", **settings: Any) -> Call:
    """The one call of a new run, once the run rests."""
    run = await runner.run("go", thread=thread, **{"attended": True, **settings})
    assert run.status == "waiting"
    return run.pending[0].record


async def now(runner: Runner, call: Call) -> Call:
    return (await runner.call(call.id)).record


async def until(runner: Runner, kind: type[Kind], after: Update | None = None) -> Kind:
    """The next update of a kind in the thread, from its beginning or after another one."""
    place = Position(0 if after is None else after.seq)
    async with asyncio.timeout(20), aclosing(runner.watch("t", after=place)) as updates:
        async for update in updates:
            if isinstance(update, kind):
                return update
    raise AssertionError


async def everything(runner: Runner) -> list[Update]:
    """All that a thread has told when its run has ended."""
    last = await until(runner, RunEnded)
    return (await runner.updates("t", 0, limit=last.seq))[0]


async def outcome(runner: Runner, call: Call) -> Outcome | None:
    """How a call has ended, once its run is over."""
    await until(runner, RunEnded)
    return (await now(runner, call)).outcome


# Dispatch


async def test_a_call_that_no_client_is_there_for_has_a_grace_period_from_its_dispatch_on(
    stack: AsyncExitStack,
) -> None:
    clock = VirtualClock()
    runner = await opened(stack, picking(), clock=clock)
    call = await begun(runner)
    assert call.grace == clock.now() + 5000
    clock.advance(5)
    assert await outcome(runner, call) is Outcome.UNAVAILABLE


async def test_a_call_whose_client_is_there_is_not_missing_anybody(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    assert call.grace is None
    await runner.answer(call.id, 1, client="tab")
    assert not any(isinstance(update, CallUnattended) for update in await everything(runner))


@pytest.mark.parametrize("offers", [["choose"], []])
async def test_a_client_that_runs_other_tools_is_not_there_for_a_call(offers: list[str], stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    await runner.attach("tab", offers, thread="t")
    assert (await begun(runner)).grace is not None


async def test_a_client_of_another_thread_or_of_somebody_else_is_not_there(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    await runner.attach("tab", ["*"], thread="u")
    await runner.attach("tab", ["*"], principal="eve", thread="t")
    await runner.attach("tab", ["*"], principal="eve")
    assert (await begun(runner)).grace is not None


async def test_a_client_that_runs_everything_is_there_for_any_call(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    await runner.attach("tab", ["*"], thread="t")
    assert (await begun(runner)).grace is None


async def test_a_run_for_one_client_misses_it_although_another_is_there(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    await runner.attach("phone", ["pick"], thread="t")
    call = await begun(runner, target="tab")
    assert call.grace is not None
    await runner.attach("tab", ["pick"], thread="t")
    assert (await now(runner, call)).grace is None


async def test_a_run_that_expects_nobody_is_never_told_of_absence(stack: AsyncExitStack) -> None:
    clock = VirtualClock()
    runner = await opened(stack, picking(absent="fail"), clock=clock)
    call = await begun(runner, attended=False)
    tab = await runner.attach("tab", ["pick"], thread="t")
    await runner.claim(call.id, "tab")
    await tab.close()
    clock.advance(500)
    await runner.answer(call.id, 1)
    assert not any(isinstance(update, CallUnattended | CallAttended) for update in await everything(runner))


async def test_a_client_at_another_process_is_found_there(stack: AsyncExitStack) -> None:
    rows = MemoryStore()
    here, there = await opened(stack, picking(), rows), await opened(stack, picking(), MemoryStore(rows))
    await there.attach("tab", ["pick"], thread="t")
    call = await begun(here)
    assert call.grace is None
    assert (await here.store.runs("local", "waiting", 9))[0].holder == ""


async def test_of_several_calls_each_is_told_for_itself(stack: AsyncExitStack) -> None:
    agent = by_rule(
        Turn("", Use("pick"), Use("show"), Use("pick")),
        "done",
        tools=(client_tool(), tool.define("show", input=ANYTHING, description="Show.")),
    )
    runner = await opened(stack, agent)
    await runner.attach("tab", ["show"], thread="t")
    run = await runner.run("go", thread="t", attended=True)
    assert [call.record.grace is not None for call in run.pending] == [True, False, True]


async def test_a_call_that_is_dispatched_by_an_approval_at_another_process_is_looked_for_too(
    stack: AsyncExitStack,
) -> None:
    """The run is held by one process, which works on another call; the yes is said to the other one."""
    entered = asyncio.Event()

    @tool
    async def work() -> None:
        """Work."""
        entered.set()
        await asyncio.Event().wait()

    def build() -> Agent[Any]:
        asks = client_tool(needs_approval=True, absent="fallback")
        return by_rule(Turn("", Use("pick"), Use("work")), "done", tools=(asks, work))

    rows = MemoryStore()
    here, there = await opened(stack, build(), rows), await opened(stack, build(), MemoryStore(rows))
    await here.start("go", thread="t", attended=True)
    await entered.wait()
    [call] = await there.pending()
    await there.approve(call.id)
    assert (await until(there, CallUnattended)).call_id == call.id


# Going and coming


async def test_who_closes_is_missed_at_once_and_who_comes_back_ends_it(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    tab = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    await tab.close()
    assert (await now(runner, call)).grace is not None
    await runner.attach("tab", ["pick"], thread="t")
    assert (await now(runner, call)).grace is None
    await runner.answer(call.id, 1)
    kinds = [type(update) for update in await everything(runner)]
    assert [kind for kind in kinds if kind in (CallUnattended, CallAttended, CallEnded)] == [
        CallUnattended,
        CallAttended,
        CallEnded,
    ]


async def test_a_page_that_is_loaded_anew_is_never_missed(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    old = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    await runner.claim(call.id, "tab")
    new = await runner.attach("tab", ["pick"], thread="t")
    await old.close()
    assert (await now(runner, call)).grace is None
    await new.close()
    assert (await now(runner, call)).grace is not None


async def test_who_goes_is_not_missed_where_another_one_runs_the_tool(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    tab = await runner.attach("tab", ["pick"], thread="t")
    await runner.attach("phone", ["*"], thread="t")
    call = await begun(runner)
    await tab.close()
    assert (await now(runner, call)).grace is None


async def test_whoever_holds_a_call_is_missed_although_another_one_runs_the_tool(stack: AsyncExitStack) -> None:
    clock = VirtualClock()
    runner = await opened(stack, picking(effect="idempotent"), clock=clock)
    tab = await runner.attach("tab", ["pick"], thread="t")
    await runner.attach("phone", ["pick"], thread="t")
    call = await begun(runner)
    await runner.claim(call.id, "tab")
    await tab.close()
    clock.advance(5)
    await until(runner, CallReleased)
    again = await now(runner, call)
    assert (again.attempt, again.held_by, again.grace) == (2, "", None)
    await runner.claim(call.id, "phone")


async def test_whoever_comes_back_within_the_grace_period_still_has_the_call(stack: AsyncExitStack) -> None:
    clock = VirtualClock()
    runner = await opened(stack, picking(), clock=clock)
    tab = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    await runner.claim(call.id, "tab")
    await tab.close()
    clock.advance(4)
    await runner.attach("tab", ["pick"], thread="t")
    clock.advance(60)
    with pytest.raises(AnswerConflict):
        await runner.claim(call.id, "phone")
    await runner.answer(call.id, 1, client="tab")
    assert await outcome(runner, call) is Outcome.OK


@pytest.mark.parametrize(("effect", "ends"), [("once", Outcome.UNKNOWN), ("idempotent", Outcome.UNAVAILABLE)])
async def test_whoever_does_not_come_back_has_lost_the_call(effect: str, ends: Outcome, stack: AsyncExitStack) -> None:
    """What may be repeated looks for another client, finds none, and falls back."""
    clock = VirtualClock()
    runner = await opened(stack, picking(effect=effect), clock=clock)
    tab = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    await runner.claim(call.id, "tab")
    await tab.close()
    missed = await until(runner, CallUnattended)
    clock.advance(5)
    if effect == "idempotent":
        await until(runner, CallUnattended, after=missed)
        clock.advance(5)
    assert await outcome(runner, call) is ends
    with pytest.raises(RefusedAnswer):
        await runner.answer(call.id, 1, client="tab")


async def test_a_call_without_a_client_is_dispatched_again_and_falls_back_in_the_end(stack: AsyncExitStack) -> None:
    clock = VirtualClock()
    runner = await opened(stack, picking(absent="retry"), clock=clock)
    run = await runner.start("go", thread="t", attended=True)
    released: Update | None = None
    for seconds in (0.5, 1, 2):
        released = await until(runner, CallReleased, after=released)
        clock.advance(seconds)
    await until(runner, CallUnattended)
    clock.advance(5)
    await until(runner, RunEnded)
    [call] = (await run.look()).calls
    assert (call.outcome, call.record.attempt) == (Outcome.UNAVAILABLE, 4)


async def test_a_call_that_is_dispatched_again_reaches_whoever_has_come_meanwhile(stack: AsyncExitStack) -> None:
    clock = VirtualClock()
    runner = await opened(stack, picking(absent="retry"), clock=clock)
    run = await runner.start("go", thread="t", attended=True)
    released = await until(runner, CallReleased)
    await runner.attach("tab", ["pick"], thread="t")
    clock.advance(0.5)
    await until(runner, RunWaiting, after=released)
    [call] = (await run.wait()).pending
    assert (call.record.attempt, call.record.grace) == (2, None)


async def test_a_tool_that_fails_without_its_client_ends_the_run_at_once(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking(absent="fail"))
    run = await runner.start("go", thread="t", attended=True)
    view = await run.wait()
    assert (view.status, view.calls[0].outcome) == ("failed", Outcome.UNAVAILABLE)


async def test_a_tool_that_waits_for_its_client_waits(stack: AsyncExitStack) -> None:
    clock = VirtualClock()
    runner = await opened(stack, picking(absent="wait", timeout=60), clock=clock)
    tab = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    await tab.close()
    assert (await now(runner, call)).grace is None
    clock.advance(60)
    assert await outcome(runner, call) is Outcome.TIMED_OUT


async def test_who_closes_twice_is_gone_once(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    tab = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    await tab.close()
    first = await now(runner, call)
    await runner.attach("tab", ["pick"], thread="t")
    await tab.close()
    assert (first.grace is None, (await now(runner, call)).grace) == (False, None)


async def test_a_close_that_is_cancelled_counts_all_the_same(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    tab = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    closing = asyncio.ensure_future(tab.close())
    await asyncio.sleep(0)
    closing.cancel()
    assert (await until(runner, CallUnattended)).call_id == call.id


async def test_somebody_who_only_looks_on_costs_nothing(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    onlookers = [await runner.attach(f"tab {number}", [], thread="t") for number in range(100)]
    assert list(await runner.store.clients("local", thread_key("local", "t"))) == []
    assert (await begun(runner)).grace is not None
    for onlooker in onlookers:
        await onlooker.close()


async def test_nothing_is_left_of_clients_that_went(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    there = [await runner.attach(f"tab {number}", ["*"], thread=f"t{number}") for number in range(50)]
    assert len({attachment.connection for attachment in there}) == 50
    await asyncio.gather(*(attachment.close() for attachment in there))
    assert list(await runner.store.clients("local", thread_key("local", "t1"))) == []
    presence = runner._replica.presence
    assert (presence._here, presence._leaving, presence._seeing) == ({}, {}, set())


@pytest.mark.parametrize(
    ("client", "offers"), [("", ["pick"]), ("x" * 129, ["pick"]), ("tab", [""]), ("tab", ["a\nb"])]
)
async def test_a_client_and_its_tools_have_names(client: str, offers: list[str], stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    with pytest.raises(InvalidInput):
        await runner.attach(client, offers, thread="t")


async def test_a_client_of_one_thread_brings_its_tools_with_its_runs(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    with pytest.raises(UsageError):
        await runner.attach("tab", ["pick"], thread="t", tools=[{"name": "x"}])


# Races


async def test_of_two_clients_that_claim_at_once_one_has_the_call(stack: AsyncExitStack) -> None:
    rows = MemoryStore()
    runners = [await opened(stack, picking(), MemoryStore(rows)) for _ in range(2)]
    call = await begun(runners[0])
    said = await asyncio.gather(
        *(runners[number % 2].claim(call.id, f"tab {number}") for number in range(6)), return_exceptions=True
    )
    assert sum(not isinstance(each, BaseException) for each in said) == 1
    assert sum(isinstance(each, AnswerConflict) for each in said) == 5


@pytest.mark.parametrize("order", [0, 1])
async def test_an_answer_beside_a_disconnection_counts(order: int, stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    tab = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    await runner.claim(call.id, "tab")
    both = [tab.close(), runner.answer(call.id, 1, client="tab")]
    await asyncio.gather(*(both if order else both[::-1]))
    assert await outcome(runner, call) is Outcome.OK


async def test_a_call_that_is_given_back_is_for_another_client_and_nobody_is_missed(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    await runner.attach("tab", ["pick"], thread="t")
    await runner.attach("phone", ["pick"], thread="t")
    call = await begun(runner)
    await runner.claim(call.id, "tab")
    with pytest.raises(AnswerConflict):
        await runner.release(call.id, "phone")
    assert not (await runner.release(call.id, "tab")).repeated
    assert (await runner.release(call.id, "tab")).repeated
    back = await now(runner, call)
    assert (back.attempt, back.held_by, back.grace) == (1, "", None)
    assert (await runner.claim(call.id, "phone")).attempt == 1
    await runner.answer(call.id, 1, client="phone")
    assert await outcome(runner, call) is Outcome.OK
    assert not [update for update in await everything(runner) if isinstance(update, CallUnattended)]


async def test_where_nobody_else_is_there_a_call_that_is_given_back_misses_a_client(stack: AsyncExitStack) -> None:
    """Also a `once` call: nothing of it was done, so its outcome is no riddle."""
    clock = VirtualClock()
    runner = await opened(stack, picking(), clock=clock)
    call = await begun(runner)
    await runner.claim(call.id, "somebody who is not connected")
    await runner.release(call.id, "somebody who is not connected")
    await until(runner, CallUnattended, after=await until(runner, CallReleased))
    clock.advance(5)
    assert await outcome(runner, call) is Outcome.UNAVAILABLE


async def test_whoever_goes_while_its_claim_is_on_its_way_is_missed(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    tab = await runner.attach("tab", ["pick"], thread="t")
    await runner.attach("phone", ["pick"], thread="t")
    call = await begun(runner)
    await asyncio.gather(tab.close(), runner.claim(call.id, "tab"))
    await until(runner, CallUnattended)


async def test_whoever_goes_before_its_claim_is_stored_is_missed_when_it_is(stack: AsyncExitStack) -> None:
    """The claim is said to another process than the one that the client is connected to."""

    class Slow(MemoryStore):
        asked, go_on = asyncio.Event(), asyncio.Event()

        async def write(self, write: Any) -> bool:
            self.asked.set()
            await self.go_on.wait()
            return await super().write(write)

    rows = MemoryStore()
    slow = Slow(rows)
    here, there = await opened(stack, picking(), rows), await opened(stack, picking(), slow)
    tab = await here.attach("tab", ["pick"], thread="t")
    await here.attach("phone", ["pick"], thread="t")
    call = await begun(here)
    claiming = asyncio.ensure_future(there.claim(call.id, "tab"))
    await slow.asked.wait()
    await tab.close()
    assert (await now(here, call)).grace is None, "there is another one"
    slow.go_on.set()
    await claiming
    await until(here, CallUnattended)


async def test_whoever_takes_a_call_up_without_being_connected_is_not_missed(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    tab = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    await runner.claim(call.id, "a script")
    await tab.close()
    assert (await now(runner, call)).grace is None


async def test_a_client_that_goes_in_the_moment_of_a_dispatch_is_missed(stack: AsyncExitStack) -> None:
    """Whichever of the two comes first, at every possible place in between."""
    for hops in range(12):
        runner = await opened(stack, picking())
        tab = await runner.attach("tab", ["pick"], thread="t")
        run = await runner.start("go", thread="t", attended=True)
        for _ in range(hops):
            await asyncio.sleep(0)
        await tab.close()
        await until(runner, CallUnattended)
        assert (await run.wait()).status == "waiting", hops


async def test_a_client_that_comes_in_the_moment_of_a_dispatch_is_not_missed_for_long(stack: AsyncExitStack) -> None:
    for hops in range(12):
        runner = await opened(stack, picking())
        run = await runner.start("go", thread="t", attended=True)
        for _ in range(hops):
            await asyncio.sleep(0)
        await runner.attach("tab", ["pick"], thread="t")
        await run.wait()
        [call] = (await run.look()).pending
        assert call.record.grace is None, hops


# Deaths


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Handles of one store."""
    if request.param == "memory":
        rows = MemoryStore()
        return lambda: MemoryStore(rows)
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:{tmp_path}/runs.db"
    return lambda: open_store(url)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(15):
        while not await condition():  # noqa: ASYNC110  nobody rings for what a test asks about
            await asyncio.sleep(0.02)


async def test_clients_of_a_dead_process_are_missed_and_may_come_back_elsewhere(
    store_of: Callable[[], Store], stack: AsyncExitStack
) -> None:
    first = Runner(picking(), store=store_of(), timing=QUICK)
    await first.open()
    await first.attach("tab", ["pick"], thread="t")
    call = await begun(first)
    await first.claim(call.id, "tab")
    await kill(first)
    second = await opened(stack, picking(), store_of())
    await until(second, CallUnattended)
    await second.attach("tab", ["pick"], thread="t")
    assert (await now(second, call)).grace is None
    await second.answer(call.id, 1, client="tab")
    assert await outcome(second, call) is Outcome.OK

    async def forgotten() -> bool:
        return len(await second.store.orphans("nobody", 9)) == 0

    await eventually(forgotten)


async def test_who_has_come_back_before_the_death_was_noticed_is_never_missed(
    store_of: Callable[[], Store], stack: AsyncExitStack
) -> None:
    first = Runner(picking(), store=store_of(), timing=QUICK)
    await first.open()
    second = await opened(stack, picking(), store_of())
    await first.attach("tab", ["pick"], thread="t")
    call = await begun(first)
    await first.claim(call.id, "tab")
    await second.attach("tab", ["pick"], thread="t")
    worker = first._replica.worker
    await kill(first)

    async def noticed() -> bool:
        rows = await second.store.clients("local", thread_key("local", "t"))
        return worker not in {row.worker for row in rows} and not second._replica.presence._leaving

    await eventually(noticed)
    assert (await now(second, call)).grace is None


async def test_a_process_that_dies_between_a_dispatch_and_the_look_for_a_client_has_it_looked_for(
    stack: AsyncExitStack,
) -> None:
    class Blind(MemoryStore):
        """A store in which nobody ever finds out who is there."""

        async def clients(self, principal: str, thread: str) -> list[ClientRow]:
            if not principal or not thread:
                return []
            return await asyncio.Future()

    rows = MemoryStore()
    first = Runner(picking(), store=Blind(rows), timing=QUICK)
    await first.open()
    await first.start("go", thread="t", attended=True)
    await eventually(lambda: _has_pending(first))
    await kill(first)
    second = await opened(stack, picking(), MemoryStore(rows))
    await until(second, CallUnattended)


async def _has_pending(runner: Runner) -> bool:
    return bool(await runner.pending())


async def test_a_process_that_dies_while_a_client_goes_has_it_missed(stack: AsyncExitStack) -> None:
    class Stuck(MemoryStore):
        """A store that does not say any more what waits."""

        asked: asyncio.Event | None = None

        async def waiting(self, principal: str, thread: str, limit: int) -> Any:
            if self.asked is None:
                return await super().waiting(principal, thread, limit)
            self.asked.set()
            return await asyncio.Future()

    rows = MemoryStore()
    stuck = Stuck(rows)
    first = Runner(picking(), store=stuck, timing=QUICK)
    await first.open()
    second = await opened(stack, picking(), MemoryStore(rows))
    tab = await first.attach("tab", ["pick"], thread="t")
    call = await begun(second)
    stuck.asked = asyncio.Event()
    closing = asyncio.ensure_future(tab.close())
    await stuck.asked.wait()
    assert (await now(second, call)).grace is None
    await kill(first)
    await closing
    await until(second, CallUnattended)


async def test_a_process_that_was_taken_for_dead_says_again_who_is_there(stack: AsyncExitStack) -> None:
    rows = MemoryStore()
    runner = await opened(stack, picking(), rows)
    tab = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    before, connection = runner._replica.worker, tab.connection
    await rows.leave(before)

    async def back() -> bool:
        found = await rows.clients("local", thread_key("local", "t"))
        return bool(found) and runner._replica.worker not in ("", before)

    await eventually(back)
    assert tab.connection != connection
    await tab.close()
    assert (await now(runner, call)).grace is not None
    assert not rows._tables.clients


async def test_who_goes_with_a_process_that_stops_in_order_is_missed_by_the_next_one(stack: AsyncExitStack) -> None:
    """Not before: the time in which nobody could have come back does not count."""
    rows = MemoryStore()
    first = Runner(picking(), store=rows, timing=QUICK)
    await first.open()
    tab = await first.attach("tab", ["pick"], thread="t")
    call = await begun(first)
    first.retire()
    await tab.close()
    assert (await now(first, call)).grace is None
    await first.close()
    second = await opened(stack, picking(), MemoryStore(rows))
    await until(second, CallUnattended)
    await second.attach("tab", ["pick"], thread="t")
    assert (await now(second, call)).grace is None


async def test_a_client_that_goes_while_the_store_is_away_is_missed_when_it_is_back(stack: AsyncExitStack) -> None:
    class Away(MemoryStore):
        away = False

        async def waiting(self, principal: str, thread: str, limit: int) -> Any:
            if self.away:
                raise StoreAway("away")
            return await super().waiting(principal, thread, limit)

    store = Away()
    runner = await opened(stack, picking(), store)
    tab = await runner.attach("tab", ["pick"], thread="t")
    call = await begun(runner)
    store.away = True
    await tab.close()
    assert (await now(runner, call)).grace is None
    with pytest.raises(StoreAway):
        await runner.attach("phone", ["pick"], thread="t")
    store.away = False
    await until(runner, CallUnattended)
    await eventually(lambda: _nobody_is_left(store))


async def _nobody_is_left(store: MemoryStore) -> bool:
    return not store._tables.clients


async def test_a_process_without_the_agent_leaves_its_clients_to_one_that_has_it(stack: AsyncExitStack) -> None:
    rows = MemoryStore()
    other = by_rule("hello", name="other")
    here, there = await opened(stack, picking(), rows), await opened(stack, other, MemoryStore(rows))
    tab = await there.attach("tab", ["pick"], thread="t")
    call = await begun(here)
    await tab.close()
    assert (await until(here, CallUnattended)).call_id == call.id
    await eventually(lambda: _nobody_is_left(rows))


async def test_a_client_at_a_process_without_the_agent_is_missed_no_more_when_it_comes(stack: AsyncExitStack) -> None:
    rows = MemoryStore()
    other = by_rule("hello", name="other")
    here, there = await opened(stack, picking(), rows), await opened(stack, other, MemoryStore(rows))
    call = await begun(here)
    assert call.grace is not None
    tab = await there.attach("tab", ["pick"], thread="t")
    await until(here, CallAttended)
    await tab.close()
    await eventually(lambda: _nobody_is_left(rows))


# Progress


async def test_watchers_at_another_process_see_how_far_a_client_is(
    store_of: Callable[[], Store], stack: AsyncExitStack
) -> None:
    here, there = await opened(stack, picking(), store_of()), await opened(stack, picking(), store_of())
    call = await begun(here, attended=False)
    seen: list[Any] = []

    async def watch(runner: Runner) -> None:
        async with asyncio.timeout(20), aclosing(runner.watch("t")) as updates:
            async for update in updates:
                if isinstance(update, CallProgress):
                    seen.append(update.value)
                    if update.value == 100:
                        return

    watching = asyncio.ensure_future(watch(there))
    for percent in range(101):
        await here.progress(call.id, percent)
    await watching
    assert seen == sorted(set(seen))
    assert len(seen) < 30
    await watch(here)  # who comes late gets the last of it, wherever it was said
    assert seen[-2:] == [100, 100]


async def test_what_is_said_of_a_call_is_written_four_times_a_second_at_most(stack: AsyncExitStack) -> None:
    class Counts(MemoryStore):
        told_of = 0

        async def tell(self, row: Any) -> None:
            self.told_of += 1
            await super().tell(row)

    store = Counts()
    runner = await opened(stack, picking(), store)
    call = await begun(runner, attended=False)
    for percent in range(1000):
        await runner.progress(call.id, percent)
    await eventually(lambda: _has_told(store, b"999"))
    assert store.told_of <= 3
    await runner.answer(call.id, 1)
    await until(runner, RunEnded)
    assert list(await store.told((await runner.call(call.id)).run)) == []


async def _has_told(store: MemoryStore, value: bytes) -> bool:
    return any(row.value == value for row in store._tables.progress.values())
