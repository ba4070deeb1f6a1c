"""Several say something at the same moment, through one process or through two: one of them counts, and all are told.

Each race is run on every store; with two handles of one memory, two connections to one file or one server.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from farhand import tool
from farhand.core.call import Outcome
from farhand.core.errors import AnswerConflict, CallGone, RefusedAnswer, ThreadBusy
from farhand.durable import Runner, Timing
from farhand.durable.record import Toolsets, read_updates, revive
from farhand.models import Turn, Use
from farhand.places.running import CallContext
from farhand.runner.view import RunView
from farhand.stores import open_store
from farhand.stores.base import Store, Write
from farhand.stores.memory import MemoryStore
from farhand.testing.clock import VirtualClock
from tests.durable.story import QUICK, by_rule, choose, kill, pick
from tests.stores.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

CALM = Timing(lease=10.0, beat=1.0, tick=0.05, check=0.2, drain=2.0)
"""Nobody is taken for dead because the machine has other things to do."""
ROUNDS = 8

sign = tool.define("sign", input={"type": "object"}, description="Sign something.", needs_approval=True)
hurry = tool.define("hurry", input={"type": "object"}, description="Be quick.", timeout=5.0)

Open = Callable[..., Awaitable[Runner]]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Gives one more handle of the same store."""
    if request.param == "memory":
        first = MemoryStore()
        return lambda: MemoryStore(first)
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:{tmp_path}/runs.db"
    return lambda: open_store(url)


@pytest.fixture
async def opened(another: Callable[[], Store]) -> AsyncIterator[Open]:
    """Opens runners on the store, and closes them in the end."""
    runners: list[Runner] = []

    async def open_runner(*turns: Any, timing: Timing = CALM, clock: VirtualClock | None = None, **more: Any) -> Runner:
        runner = Runner(by_rule(*turns, **more), store=another(), timing=timing, clock=clock)
        await runner.open()
        runners.append(runner)
        return runner

    yield open_runner
    for runner in runners:
        await runner.close()


async def all_said(*sayings: Awaitable[Any]) -> list[Any]:
    """What everybody is told, be it a refusal."""
    async with asyncio.timeout(60):
        told = await asyncio.gather(*sayings, return_exceptions=True)
    assert [error for error in told if isinstance(error, Exception) and not isinstance(error, RefusedAnswer)] == []
    return told


async def ended(runner: Runner, run: str) -> RunView[Any]:
    async with asyncio.timeout(30):
        handle = await runner.find(run)
        async for _ in runner.watch(handle.thread):
            view = await handle.look()
            if view.state.ending is not None:
                return view
    raise AssertionError


async def replays(store: Store) -> None:
    """The numbers of every thread count up without gap or repeat, and every run can be read."""
    for row in await store.runs("", "", 10_000):
        numbers = [update.seq for entry in await store.log(row.thread, 0, 10_000) for update in read_updates(entry)]
        assert numbers == list(range(1, len(numbers) + 1))
        stored = await store.load(row.id)
        assert stored is not None
        await revive(stored, Toolsets(), store.toolset)


def use(which: Any) -> Use:
    return Use(which.name)


def receipts(told: Sequence[Any]) -> Counter[bool]:
    return Counter(receipt.repeated for receipt in told if not isinstance(receipt, Exception))


# Answers.


@pytest.mark.parametrize("through", [1, 2])
async def test_of_a_hundred_equal_answers_at_once_one_is_the_first(opened: Open, through: int) -> None:
    runners = [await opened(use(pick), "picked") for _ in range(through)]
    run = await runners[0].start("go")
    [call] = (await run.wait()).pending
    told = await all_said(*(runners[n % through].answer(call.id, {"n": 1}) for n in range(100)))
    assert receipts(told) == {False: 1, True: 99}
    view = await ended(runners[0], run.id)
    assert view.output == "picked"
    assert view.calls[0].output == {"n": 1}
    await replays(runners[0].store)


@pytest.mark.parametrize("through", [1, 2])
async def test_of_a_hundred_different_answers_at_once_one_wins(opened: Open, through: int) -> None:
    runners = [await opened(use(pick), "picked") for _ in range(through)]
    run = await runners[0].start("go")
    [call] = (await run.wait()).pending
    told = await all_said(*(runners[n % through].answer(call.id, n) for n in range(100)))
    [winner] = [n for n, said in enumerate(told) if not isinstance(said, Exception)]
    assert receipts(told) == {False: 1}
    assert Counter(type(said) for said in told)[AnswerConflict] == 99
    view = await ended(runners[-1], run.id)
    assert view.calls[0].output == winner
    await replays(runners[0].store)


async def test_an_answer_and_a_deadline_in_the_same_millisecond_make_one_outcome(opened: Open) -> None:
    clock = VirtualClock()
    first, second = [await opened(use(hurry), "late", tools=(hurry,), clock=clock) for _ in range(2)]
    for n in range(ROUNDS):
        run = await first.start("go", thread=f"t{n}")
        [call] = (await run.wait()).pending
        assert call.record.deadline is not None
        early = n % 2  # the clock moves on while the answer is on its way
        clock.advance((call.record.deadline - clock.now() - early) / 1000)
        saying = [asyncio.ensure_future(runner.answer(call.id, n)) for runner in (first, second)]
        for _ in range(n // 2):
            await asyncio.sleep(0)
        clock.advance(early / 1000)
        told = await all_said(*saying)
        view = await ended(second, run.id)
        accepted = receipts(told)
        assert accepted in ({}, {False: 1, True: 1}) or (accepted == {False: 1} and n)
        assert view.calls[0].outcome is (Outcome.OK if accepted else Outcome.TIMED_OUT)
        assert all(isinstance(said, CallGone) for said in told if isinstance(said, Exception))
    await replays(first.store)


@pytest.mark.parametrize("what", ["call", "run"])
async def test_an_answer_and_a_cancellation_at_once_make_one_outcome(opened: Open, what: str) -> None:
    first, second = [await opened(use(pick), "picked") for _ in range(2)]
    for n in range(ROUNDS):
        run = await first.start("go", thread=f"t{n}")
        [call] = (await run.wait()).pending
        cancel = first.cancel_call(call.id) if what == "call" else first.cancel(run.id)
        sayings = [second.answer(call.id, n), cancel]
        told = await all_said(*(sayings if n % 2 else reversed(sayings)))
        answered, cancelled = told if n % 2 else reversed(told)
        view = await ended(second, run.id)
        if isinstance(answered, Exception):
            assert isinstance(answered, CallGone)
            assert view.calls[0].outcome is Outcome.CANCELLED
            assert not isinstance(cancelled, Exception)
        else:
            assert view.calls[0].output == n
            assert isinstance(cancelled, CallGone | bool)
    await replays(first.store)


async def test_a_yes_and_a_no_at_once_make_one_decision(opened: Open) -> None:
    first, second = [await opened(use(sign), "signed", tools=(sign,)) for _ in range(2)]
    for n in range(ROUNDS):
        run = await first.start("go", thread=f"t{n}")
        [call] = (await run.wait()).pending
        told = await all_said(first.approve(call.id), second.deny(call.id, "no"), second.approve(call.id))
        kinds = {said.repeated for said in (told[0], told[2]) if not isinstance(said, Exception)}
        view = await (await second.find(run.id)).look()
        record = view.calls[0].record
        assert record.approval is not None
        if isinstance(told[1], Exception):
            assert isinstance(told[1], AnswerConflict)
            assert kinds == {False, True}
            assert record.approval.decision == "approved"
        else:
            assert kinds == set()
            assert record.approval.decision == "denied"
    await replays(first.store)


# Starts.


async def test_starts_under_one_key_at_once_give_one_run(opened: Open) -> None:
    runners = [await opened(use(pick), "picked") for _ in range(2)]
    for settings in ({"thread": "t"}, {}):
        key = f"key of {settings}"
        runs = await all_said(*(runners[n % 2].start("go", key=key, **settings) for n in range(10)))
        assert len({run.id for run in runs}) == 1
        assert len({run.thread for run in runs}) == 1
    assert len(await runners[0].store.runs("", "", 100)) == 2
    await replays(runners[0].store)


async def test_starts_on_one_thread_at_once_leave_one_open_run(opened: Open) -> None:
    runners = [await opened(use(pick), "picked") for _ in range(2)]
    runs = await all_said(*(runners[n % 2].start(f"go {n}", thread="t") for n in range(10)))
    assert len({run.id for run in runs}) == 10
    views = [await run.wait() for run in runs]
    assert Counter(view.status for view in views) == {"cancelled": 9, "waiting": 1}
    [waiting] = [view for view in views if view.status == "waiting"]
    assert (await runners[1].thread("t")).run == waiting.id
    await replays(runners[0].store)


async def test_of_starts_that_take_nobodys_place_one_is_let_in(opened: Open) -> None:
    runners = [await opened(use(pick), "picked") for _ in range(2)]
    told = await asyncio.gather(
        *(runners[n % 2].start("go", thread="t", busy="refuse") for n in range(10)), return_exceptions=True
    )
    refused = [said for said in told if isinstance(said, Exception)]
    assert Counter(type(error) for error in refused) == {ThreadBusy: 9}
    await replays(runners[0].store)


# Who works on what.


async def test_two_processes_that_find_the_same_lost_runs_share_them(
    opened: Open, another: Callable[[], Store]
) -> None:
    entered: Counter[tuple[str, int]] = Counter()
    all_in, hold = asyncio.Event(), asyncio.Event()

    @tool(effect="idempotent")
    async def work(context: CallContext) -> str:
        """Work."""
        entered[context.call_id, context.attempt] += 1
        if len(entered) == 30:
            all_in.set()
        if context.attempt == 1:
            await hold.wait()
        return "done"

    lost = Runner(by_rule(use(work), "done", tools=(work,)), store=another(), timing=QUICK)
    await lost.open()
    runs = [await lost.start("go", thread=f"t{n}") for n in range(30)]
    async with asyncio.timeout(30):
        await all_in.wait()
    await kill(lost)
    first, second = await asyncio.gather(*(opened(use(work), "done", tools=(work,), timing=QUICK) for _ in range(2)))
    views = [await ended(second if n % 2 else first, run.id) for n, run in enumerate(runs)]
    assert {view.output for view in views} == {"done"}
    assert set(entered.values()) == {1}
    assert Counter(attempt for _, attempt in entered) == {1: 30, 2: 30}
    await replays(first.store)


class SlowStore(MemoryStore):
    """A memory whose writes, or whose roll of workers, can be held up."""

    def __init__(self, other: MemoryStore | None = None) -> None:
        super().__init__(other)
        self.write_gate = asyncio.Event()
        self.write_gate.set()
        self.enter_gate = asyncio.Event()
        self.enter_gate.set()
        self.asked = asyncio.Event()

    async def write(self, write: Write) -> bool:
        self.asked.set()
        await self.write_gate.wait()
        return await super().write(write)

    async def enter(self, worker: Any) -> None:
        self.asked.set()
        await self.enter_gate.wait()
        await super().enter(worker)


async def test_a_run_that_is_called_off_elsewhere_stays_so_when_its_holder_had_more_to_say() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    @tool
    async def work() -> int:
        """Work."""
        entered.set()
        await leave.wait()
        return 1

    slow = SlowStore()
    async with (
        Runner(by_rule(use(work), "done", tools=(work,)), store=slow, timing=CALM) as first,
        Runner(by_rule(use(work), "done", tools=(work,)), store=MemoryStore(slow), timing=CALM) as second,
    ):
        run = await first.start("go")
        await entered.wait()
        slow.write_gate.clear()
        slow.asked.clear()
        leave.set()
        async with asyncio.timeout(10):
            await slow.asked.wait()
            assert await second.cancel(run.id)
            slow.write_gate.set()
            assert (await run.wait()).status == "cancelled"
            assert (await (await second.find(run.id)).wait()).status == "cancelled"
        await first._replica.read(run.id)
        await replays(slow)


async def test_of_equal_answers_in_one_millisecond_the_holders_own_is_not_taken_for_the_one_that_counted() -> None:
    entered = asyncio.Event()

    @tool
    async def work() -> None:
        """Work."""
        entered.set()
        await asyncio.Event().wait()

    slow, clock = SlowStore(), VirtualClock()
    agent = partial(by_rule, Turn("", use(pick), use(work)), "done", tools=(pick, work))
    async with (
        Runner(agent(), store=slow, timing=CALM, clock=clock) as first,
        Runner(agent(), store=MemoryStore(slow), timing=CALM, clock=clock) as second,
    ):
        run = await first.start("go")
        async with asyncio.timeout(10):
            await entered.wait()
        [call] = await second.pending()
        slow.write_gate.clear()
        slow.asked.clear()
        answering = asyncio.ensure_future(first.answer(call.id, 1))
        async with asyncio.timeout(10):
            await slow.asked.wait()
            assert not (await second.answer(call.id, 1)).repeated
            slow.write_gate.set()
            assert (await answering).repeated
        await second.cancel(run.id)
    await replays(slow)


async def test_what_is_said_to_a_process_that_was_taken_for_dead_waits_until_it_is_back() -> None:
    slow = SlowStore()
    other = MemoryStore(slow)
    async with Runner(by_rule(use(pick), "picked"), store=slow, timing=QUICK) as runner:
        run = await runner.start("go")
        [call] = (await run.wait()).pending
        slow.asked.clear()
        slow.enter_gate.clear()
        await other.leave(runner._replica.worker)
        async with asyncio.timeout(10):
            await slow.asked.wait()
            answering = asyncio.ensure_future(runner.answer(call.id, 1))
            starting = asyncio.ensure_future(runner.start("go", thread="other"))
            for _ in range(20):
                await asyncio.sleep(0)
            assert not answering.done()
            assert not starting.done()
            slow.enter_gate.set()
            assert not (await answering).repeated
            assert (await ended(runner, run.id)).output == "picked"
            assert (await (await starting).wait()).status == "waiting"


# Strangers.


@pytest.mark.parametrize("state", ["waiting", "undecided", "ended", "refused"])
async def test_a_stranger_is_told_of_a_call_just_what_he_is_told_of_none(opened: Open, state: str) -> None:
    client = sign if state == "undecided" else pick
    runner = await opened(use(client), "picked", tools=(client, choose))
    run = await runner.start("go", thread="t", principal="ann")
    [call] = (await run.wait()).pending
    if state == "ended":
        await runner.answer(call.id, 1, principal="ann")
        await run.wait()
    if state == "refused":
        stored = await runner.store.load(run.id)
        assert stored is not None
        assert await runner.store.refuse(stored.run, "a test wants it so")

    def ask(call_id: str, run_id: str, thread: str) -> list[Awaitable[Any]]:
        who = "eve"
        return [
            runner.answer(call_id, 1, principal=who),
            runner.answer(call_id, 1, principal=who, attempt=7),
            runner.fail(call_id, "no", principal=who),
            runner.claim(call_id, "eve's", principal=who),
            runner.approve(call_id, principal=who),
            runner.deny(call_id, principal=who),
            runner.cancel_call(call_id, principal=who),
            runner.settle({call_id: 1}, principal=who),
            runner.settle({}, {call_id: True}, principal=who),
            runner.cancel(run_id, principal=who),
            runner.find(run_id, principal=who),
            runner.thread(thread, principal=who),
        ]

    async def told(sayings: list[Awaitable[Any]]) -> list[tuple[type, str]]:
        said = await asyncio.gather(*sayings, return_exceptions=True)
        return [(type(error), str(error)) for error in said]

    foreign = await told(ask(call.id, run.id, "t"))
    assert foreign == await told(ask("f" * 32, "e" * 32, "nothing"))
    assert {kind.__name__ for kind, _ in foreign} == {"UnknownCall"}
    assert await runner.pending(principal="eve") == []
