"""One run and everything under way for it: timers, watchers, several effects at once, and nothing left behind."""

import asyncio
from typing import Any

import pytest

from farhand import Agent, Approve, Call, CallContext, LiveRun, ToolError, manual, scripted, tool, until
from farhand.agent import Callbacks
from farhand.core.call import CallState, Outcome
from farhand.core.errors import IllegalChange
from farhand.core.events import Answered, Denied, Raw
from farhand.core.updates import (
    CallEnded,
    CallExecuting,
    CallReady,
    CallWaiting,
    RunEnded,
    RunStarted,
    TextStreamed,
    TurnStarted,
    Update,
)
from farhand.models import Turn, Use
from farhand.runner.decision import Decisions
from farhand.runner.driver import Driver, Means
from farhand.runner.perform import perform
from farhand.runner.recent import RecentRuns
from farhand.testing import VirtualClock

pick = tool.define("pick", input={"type": "object"}, description="Pick something.")


@tool
async def quick() -> int:
    """Be quick."""
    return 1


def kinds(updates: list[Update]) -> list[str]:
    return [type(update).__name__ for update in updates]


def others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]


class Gate:
    """A tool that hangs until it is let go, and says when it was entered and left."""

    def __init__(self, name: str = "hang", **settings: Any) -> None:
        self.entered, self.go_on, self.left = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def hang() -> str:
            """Hang."""
            self.entered.set()
            try:
                await self.go_on.wait()
            finally:
                self.left.set()
            return "let go"

        self.tool = tool(name=name, **settings)(hang)


class Alarm(VirtualClock):
    """A clock that says when a timer was set."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = asyncio.Event()

    def call_at(self, due: int, callback: Any) -> Any:
        self.armed.set()
        return super().call_at(due, callback)


# Timers


async def test_a_call_that_ends_without_waiting_sets_no_timer() -> None:
    clock = Alarm()
    run = await Agent(scripted([Use("quick"), "ok"]), tools=[quick], clock=clock).run("hi")
    assert (run.status, clock.armed.is_set()) == ("done", False)


async def test_timers_run_while_the_driver_waits_and_none_is_left_once_the_call_ended() -> None:
    clock, gate = Alarm(), Gate(timeout=60)
    run = Agent(scripted([Use("hang"), "ok"]), tools=[gate.tool], clock=clock).start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await clock.armed.wait()
        assert clock.waiting == 1
        gate.go_on.set()
        await waiting
    assert (run.calls[0].outcome, clock.waiting) == (Outcome.OK, 0)


async def test_a_paused_run_holds_no_timer_and_its_deadline_counts_when_it_goes_on() -> None:
    clock = VirtualClock()
    bounded = tool.define("pick", input={"type": "object"}, description="Pick.", timeout=60.0)
    run = await Agent(scripted([Use("pick"), "too late"]), tools=[bounded], clock=clock).run("hi")
    assert (run.status, clock.waiting) == ("waiting", 0)
    clock.advance(61)
    assert run.status == "waiting"
    async with asyncio.timeout(5):
        await run.wait()
    assert (run.calls[0].outcome, run.output) == (Outcome.TIMED_OUT, "too late")


async def test_a_timer_that_ran_while_the_driver_waited_is_called_off_when_the_run_pauses() -> None:
    clock, gate = Alarm(), Gate()
    bounded = tool.define("pick", input={"type": "object"}, description="Pick.", timeout=60.0)
    agent = Agent(scripted([Turn("", Use("hang"), Use("pick")), "ok"]), tools=[gate.tool, bounded], clock=clock)
    run = agent.start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await clock.armed.wait()
        gate.go_on.set()
        await waiting
    assert (run.status, clock.waiting) == ("waiting", 0)
    clock.advance(61)
    await run.wait()
    assert [call.outcome for call in run.calls] == [Outcome.OK, Outcome.TIMED_OUT]


async def test_a_held_run_ends_its_call_at_the_deadline_by_itself() -> None:
    clock = Alarm()
    bounded = tool.define("pick", input={"type": "object"}, description="Pick.", timeout=60.0)
    run = Agent(scripted([Use("pick"), "too late"]), tools=[bounded], clock=clock).start("hi")
    waiting = asyncio.ensure_future(run.wait(hold=True))
    async with asyncio.timeout(5):
        await clock.armed.wait()
        assert clock.waiting == 1
        clock.advance(60)
        await waiting
    assert (run.calls[0].outcome, clock.waiting) == (Outcome.TIMED_OUT, 0)


async def test_a_retry_waits_for_its_time_on_the_clock() -> None:
    clock, attempts = Alarm(), []

    @tool(effect="pure", retries=1)
    async def flaky(context: CallContext) -> int:
        """Fail once."""
        attempts.append(context.attempt)
        if context.attempt == 1:
            raise ToolError("not yet")
        return context.attempt

    run = Agent(scripted([Use("flaky"), "ok"]), tools=[flaky], clock=clock).start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await clock.armed.wait()
        clock.advance(0.4)
        assert attempts == [1]
        clock.advance(0.1)
        await waiting
    assert (attempts, run.calls[0].output, clock.waiting) == ([1, 2], 2, 0)


async def test_an_approval_expires_on_the_clock_while_the_callback_still_thinks() -> None:
    clock, asked, stopped = Alarm(), asyncio.Event(), asyncio.Event()

    @tool(needs_approval=True, approval_timeout=60)
    async def wipe() -> None:
        """Wipe."""
        raise AssertionError

    async def think(call: Call[Any, Any]) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    running = asyncio.ensure_future(
        Agent(scripted([Use("wipe"), "ok"]), tools=[wipe], clock=clock).run("hi", on_approval=think)
    )
    async with asyncio.timeout(5):
        await asked.wait()
        await clock.armed.wait()
        clock.advance(60)
        run = await running
    assert (run.calls[0].outcome, stopped.is_set(), clock.waiting) == (Outcome.TIMED_OUT, True, 0)


async def test_an_approval_expires_although_the_callback_lets_no_timer_ring() -> None:
    clock = VirtualClock()

    @tool(needs_approval=True, approval_timeout=60)
    async def wipe() -> None:
        """Wipe."""
        raise AssertionError

    def ask(call: Call[Any, Any]) -> bool:
        clock.advance(60)
        return True

    run = await Agent(scripted([Use("wipe"), "ok"]), tools=[wipe], clock=clock).run("hi", on_approval=ask)
    assert (run.calls[0].outcome, run.status) == (Outcome.TIMED_OUT, "done")


# Watchers


async def test_a_watcher_is_told_from_now_on_until_it_is_removed() -> None:
    run = await Agent(scripted([Use("pick"), Use("pick"), "ok"]), tools=[pick]).run("hi")
    first: list[Update] = []
    unwatch = run.watch(first.append)
    run.answer(run.pending[0].id)
    await run.wait()
    heard = len(first)
    assert kinds(first)[0] == "CallEnded"
    unwatch()
    unwatch()  # twice is as good as once
    run.answer(run.pending[0].id)
    await run.wait()
    assert len(first) == heard


async def test_a_late_watcher_may_first_hear_where_the_run_stands_and_the_others_hear_nothing() -> None:
    earlier: list[Update] = []
    late: list[Update] = []
    run = await Agent(scripted([Use("pick"), "ok"]), tools=[pick]).run("hi", on_update=earlier.append)
    heard = len(earlier)
    unwatch = run.watch(late.append, current=True)
    assert (kinds(late), len(earlier)) == (["CallExecuting", "RunWaiting"], heard)
    assert {update.seq for update in late} == {earlier[-1].seq}
    run.answer(run.pending[0].id)
    await run.wait()
    assert late[2:] == earlier[heard:]
    unwatch()
    run.watch(late.append, current=True)
    assert isinstance(late[-1], RunEnded)


async def test_whoever_takes_up_a_run_that_is_under_way_hears_where_it_stands() -> None:
    agent = Agent(scripted([Use("pick"), "ok"]), tools=[pick], recent=RecentRuns())
    run = await agent.run("hi")
    stored = run.to_json()
    first: list[Update] = []
    second: list[Update] = []
    agent.load(stored, callbacks=Callbacks(on_update=first.append))
    working = asyncio.ensure_future(run.wait(hold=True))
    await asyncio.sleep(0)
    again = agent.load(stored, callbacks=Callbacks(on_update=second.append))
    assert kinds(first) == kinds(second) == ["CallExecuting", "RunWaiting"]
    again.answer(again.pending[0].id)
    await working
    assert isinstance(second[-1], RunEnded)


async def test_what_was_told_before_anybody_watched_goes_to_the_first_watcher_only() -> None:
    run = Agent(scripted(["ok"])).start("hi")
    first: list[Update] = []
    second: list[Update] = []
    run.watch(first.append)
    run.watch(second.append)
    assert (kinds(first), kinds(second)) == (["RunStarted", "TurnStarted"], [])
    await run.wait()
    assert first[2:] == second


async def test_what_an_answer_told_while_nobody_drove_is_not_lost_for_a_stream() -> None:
    run = await Agent(scripted([Use("pick"), "ok"]), tools=[pick]).run("hi")
    run.answer(run.pending[0].id)
    updates = [update async for update in run.updates()]
    assert isinstance(updates[0], CallEnded)
    assert isinstance(updates[-1], RunEnded)


async def test_a_run_that_nobody_watched_keeps_nothing_for_later() -> None:
    run = await Agent(scripted([Turn(["a", "b"])])).run("hi")
    late: list[Update] = []
    run.watch(late.append)
    assert late == []


async def test_watchers_may_come_and_go_while_they_are_told() -> None:
    run = Agent(scripted([Turn(["a", "b", "c"])])).start("hi")
    heard: list[str] = []

    def once(update: Update) -> None:
        if isinstance(update, TextStreamed):
            heard.append(update.text)
            unwatch()
            run.watch(lambda update: heard.append(type(update).__name__))

    unwatch = run.watch(once)
    await run.wait()
    assert heard[0] == "a"
    assert heard.count("TextStreamed") == 2
    assert heard[-1] == "RunEnded"


async def test_a_watcher_that_fails_is_told_nothing_more_and_the_run_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[Update] = []

    def broken(update: Update) -> None:
        told.append(update)
        raise LookupError("boom")

    run = await Agent(scripted(["ok"])).run("hi", on_update=broken)
    assert (run.status, kinds(told)) == ("done", ["RunStarted"])
    assert "a watcher failed" in caplog.text


# Events


async def test_an_event_that_the_run_does_not_take_changes_nothing() -> None:
    means = Means(scripted([Use("pick")]), {"pick": pick}, VirtualClock(), Decisions())
    agent = Agent(means.model, tools=[pick])
    live = await agent.run("hi")
    driver = Driver(means, perform, state=live.state, seq=7)
    told: list[Update] = []
    driver.watchers.add(told.append)
    before = driver.state
    call = live.pending[0].id
    for event in (Answered(1, "nobody", 1, Raw(b"1")), Answered(1, call, 2, Raw(b"1")), Denied(1, call, "ann")):
        with pytest.raises(IllegalChange):
            driver.commit(event)
    assert (driver.state is before, driver.log, driver.seq, told, driver.busy) == (True, [], 7, [], False)


async def test_the_numbers_of_updates_go_on_where_the_stored_run_stopped() -> None:
    updates: list[Update] = []
    agent = Agent(scripted([Use("pick"), "ok"]), tools=[pick], recent=RecentRuns())
    run = await agent.run("hi", on_update=updates.append)
    await agent.resume(run.to_json(), {run.pending[0].id: 1}, on_update=updates.append)
    stored = [update.seq for update in updates if not isinstance(update, TextStreamed) and update.seq]
    assert stored == sorted(stored)
    assert isinstance(updates[0], RunStarted)
    assert isinstance(updates[-1], RunEnded)


# Several things at once


async def test_a_single_effect_needs_no_task_of_its_own_and_two_run_side_by_side() -> None:
    tasks: dict[str, Any] = {}
    both = asyncio.Barrier(2)

    @tool
    async def alone() -> None:
        """Note the task."""
        tasks["alone"] = asyncio.current_task()

    async def meet(name: str) -> None:
        tasks[name] = asyncio.current_task()
        await both.wait()

    @tool
    async def one() -> None:
        """Meet the other."""
        await meet("one")

    @tool
    async def two() -> None:
        """Meet the other."""
        await meet("two")

    turns = [Use("alone"), Turn("", Use("one"), Use("two")), "ok"]
    async with asyncio.timeout(5):
        await Agent(scripted(turns), tools=[alone, one, two]).run("hi")
    assert tasks["alone"] is asyncio.current_task()
    assert len(set(tasks.values())) == 3
    assert others() == set()


async def test_what_is_asked_for_while_an_inline_tool_waits_begins_at_once() -> None:
    gate, second = Gate(), Gate("second", needs_approval=True)
    uses = Turn("", Use("hang"), Use("second"))
    run = Agent(scripted([uses, "ok"]), tools=[gate.tool, second.tool]).start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await gate.entered.wait()
        (asked,) = [call for call in run.calls if call.needs_approval]
        run.approve(asked.id)
        await second.entered.wait()
        assert not gate.left.is_set()
        second.go_on.set()
        await second.left.wait()
        gate.go_on.set()
        await waiting
    assert [call.output for call in run.calls] == ["let go", "let go"]
    assert others() == set()


async def test_a_call_cancelled_by_its_own_tool_ends_there_and_the_run_goes_on() -> None:
    handle: list[LiveRun[str]] = []

    @tool
    async def stop() -> str:
        """Call oneself off, after waiting."""
        await asyncio.sleep(0)
        (run,) = handle
        run.cancel_call(run.calls[0].id)
        return "it went on"

    run = Agent(scripted([Use("stop"), "ok"]), tools=[stop]).start("hi")
    handle.append(run)
    async with asyncio.timeout(5):
        await run.wait()
    assert (run.calls[0].outcome, run.output) == (Outcome.CANCELLED, "ok")


async def test_a_run_cancelled_by_its_own_tool_does_not_cancel_its_caller() -> None:
    handle: list[LiveRun[str]] = []

    @tool
    async def stop() -> None:
        """Call everything off, after waiting."""
        await asyncio.sleep(0)
        handle[0].cancel()

    run = Agent(scripted([Use("stop")]), tools=[stop]).start("hi")
    handle.append(run)
    async with asyncio.timeout(5):
        await run.wait()
        await asyncio.sleep(0)
    assert run.status == "cancelled"


async def test_a_second_driver_waits_for_the_first_and_may_be_cancelled_alone() -> None:
    model = manual()
    run = Agent(model).start("hi")
    first, second = asyncio.ensure_future(run.wait()), asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await model.asked()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        model.say("done")
        await first
    assert run.output == "done"


# Things that go wrong


async def test_a_callback_that_raises_cancels_the_run_and_everything_under_way_and_surfaces() -> None:
    gate = Gate()

    @tool(needs_approval=True)
    async def wipe() -> None:
        """Wipe."""

    async def broken(call: Call[Any, Any]) -> Any:
        await gate.entered.wait()
        raise LookupError("boom")

    agent = Agent(scripted([Turn("", Use("hang"), Use("wipe"))]), tools=[gate.tool, wipe])
    run = agent.start("hi", callbacks=Callbacks(on_approval=broken))
    async with asyncio.timeout(5):
        with pytest.raises(LookupError, match="boom"):
            await run.wait()
    assert (run.status, gate.left.is_set(), others()) == ("cancelled", True, set())
    assert [call.outcome for call in run.calls] == [Outcome.CANCELLED, Outcome.CANCELLED]


async def test_a_callback_that_raises_alone_surfaces_as_well() -> None:
    @tool(needs_approval=True)
    async def wipe() -> None:
        """Wipe."""

    def broken(call: Call[Any, Any]) -> Any:
        raise LookupError("boom")

    run = Agent(scripted([Use("wipe")]), tools=[wipe]).start("hi", callbacks=Callbacks(on_approval=broken))
    with pytest.raises(LookupError, match="boom"):
        await run.wait()
    assert run.status == "cancelled"
    await run.wait()  # it has ended, and the error was told once


async def test_cancelling_the_driver_stops_every_task_before_it_returns() -> None:
    one, two = Gate("one"), Gate("two")
    agent = Agent(scripted([Turn("", Use("one"), Use("two"))]), tools=[one.tool, two.tool])
    running = asyncio.ensure_future(agent.run("hi"))
    async with asyncio.timeout(5):
        await one.entered.wait()
        await two.entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert (one.left.is_set(), two.left.is_set(), others()) == (True, True, set())


async def test_a_stream_that_is_left_before_it_began_cancels_the_run() -> None:
    run = Agent(manual()).start("hi")
    updates = run.updates()
    await anext(updates)
    await updates.aclose()
    assert (run.status, others()) == ("cancelled", set())


async def test_a_stream_that_nobody_reads_leaves_the_run_alone() -> None:
    run = Agent(scripted(["ok"])).start("hi")
    await run.updates().aclose()
    assert run.status == "running"
    assert (await run.wait()).output == "ok"


async def test_an_error_in_a_stream_surfaces_where_it_is_read() -> None:
    @tool(needs_approval=True)
    async def wipe() -> None:
        """Wipe."""

    def broken(call: Call[Any, Any]) -> Any:
        raise LookupError("boom")

    stream = Agent(scripted([Use("wipe")]), tools=[wipe]).stream("hi", on_approval=broken)
    heard: list[Update] = []
    with pytest.raises(LookupError, match="boom"):
        heard.extend([update async for update in stream])
    assert stream.run.status == "cancelled"


async def test_a_decision_that_comes_while_the_callback_thinks_wins() -> None:
    asked, stopped = asyncio.Event(), asyncio.Event()

    @tool(needs_approval=True)
    async def wipe() -> str:
        """Wipe."""
        return "wiped"

    async def think(call: Call[Any, Any]) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    run = Agent(scripted([Use("wipe"), "ok"]), tools=[wipe]).start("hi", callbacks=Callbacks(on_approval=think))
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await asked.wait()
        run.deny(run.calls[0].id, "no")
        await waiting
    assert (run.calls[0].outcome, stopped.is_set()) == (Outcome.DENIED, True)


async def test_a_callback_that_swallows_its_cancellation_says_nothing_any_more() -> None:
    asked = asyncio.Event()

    @tool(needs_approval=True)
    async def wipe() -> str:
        """Wipe."""
        raise AssertionError

    async def stubborn(call: Call[Any, Any]) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Approve()

    run = Agent(scripted([Use("wipe"), "ok"]), tools=[wipe]).start("hi", callbacks=Callbacks(on_approval=stubborn))
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await asked.wait()
        run.deny(run.calls[0].id)
        await waiting
    assert run.calls[0].outcome is Outcome.DENIED


# What was settled before anybody got to it


def when(kind: type[Update], act: Any) -> tuple[Any, list[LiveRun[str]]]:
    """A watcher that acts on the run at once when it hears of this."""
    handle: list[LiveRun[str]] = []

    def watch(update: Update) -> None:
        if type(update) is kind and handle:
            act(handle[0], update)

    return watch, handle


async def test_a_model_is_not_asked_for_a_run_that_was_called_off_just_before() -> None:
    model = scripted([Use("quick"), "never"])
    watch, handle = when(TurnStarted, lambda run, update: run.cancel())
    run = Agent(model, tools=[quick]).start("hi")
    handle.append(run)
    run.watch(watch)  # hears of the first turn now: cancelled before it began
    await run.wait()
    assert (run.status, len(model.requests)) == ("cancelled", 0)


async def test_a_person_is_not_asked_about_a_call_that_was_decided_just_before() -> None:
    @tool(needs_approval=True)
    async def wipe() -> str:
        """Wipe."""
        return "wiped"

    def never(call: Call[Any, Any]) -> Any:
        raise AssertionError(call)

    watch, handle = when(CallWaiting, lambda run, update: run.approve(update.call_id))
    agent = Agent(scripted([Use("wipe"), "ok"]), tools=[wipe])
    run = agent.start("hi", callbacks=Callbacks(on_approval=never))
    handle.append(run)
    run.watch(watch)
    await run.wait()
    assert run.calls[0].output == "wiped"


async def test_a_call_that_was_called_off_just_before_is_not_run() -> None:
    @tool
    async def wipe() -> str:
        """Wipe."""
        raise AssertionError

    watch, handle = when(CallExecuting, lambda run, update: run.cancel_call(update.call_id))
    run = Agent(scripted([Use("wipe"), "ok"]), tools=[wipe]).start("hi")
    handle.append(run)
    run.watch(watch)
    await run.wait()
    assert (run.calls[0].outcome, run.output) == (Outcome.CANCELLED, "ok")


async def test_a_reply_that_comes_in_spite_of_everything_is_not_heard() -> None:
    handle: list[LiveRun[str]] = []

    def choose(request: Any) -> str:
        handle[0].cancel("enough")
        return "I do not care"

    run = Agent(scripted(choose)).start("hi")
    handle.append(run)
    await run.wait()
    assert (run.status, run.text) == ("cancelled", "")


async def test_what_an_approval_function_says_of_a_call_that_has_ended_is_not_heard() -> None:
    handle: list[LiveRun[str]] = []

    def judge() -> bool:
        handle[0].cancel_call(handle[0].calls[0].id)
        return False

    @tool(needs_approval=judge)
    async def wipe() -> None:
        """Wipe."""
        raise AssertionError

    run = Agent(scripted([Use("wipe"), "ok"]), tools=[wipe]).start("hi")
    handle.append(run)
    await run.wait()
    assert (run.calls[0].outcome, run.output) == (Outcome.CANCELLED, "ok")


async def test_what_a_stop_condition_says_of_a_run_that_has_ended_is_not_heard() -> None:
    handle: list[LiveRun[str]] = []

    def stop(state: Any) -> bool:
        handle[0].cancel()
        return False

    run = Agent(scripted([Use("quick"), "never"]), tools=[quick], stop_when=until(stop)).start("hi")
    handle.append(run)
    await run.wait()
    run.cancel("again")  # it has ended: nothing happens
    assert run.status == "cancelled"


async def test_a_client_may_say_that_its_call_failed() -> None:
    run = await Agent(scripted([Use("pick"), "sorry"]), tools=[pick]).run("hi")
    call = run.pending[0].id
    assert not run.fail(call, "no window is open", code="no_window").repeated
    assert run.fail(call, "no window is open", code="no_window").repeated
    await run.wait()
    assert run.calls[0].failure is not None
    assert (run.calls[0].failure.code, run.calls[0].outcome) == ("no_window", Outcome.FAILED)


async def test_a_tool_whose_function_is_gone_is_told_to_the_model() -> None:
    agent = Agent(scripted([Use("quick"), "ok"]), tools=[quick])
    bare = tool.define("quick", description="Be quick.", input={"type": "object"})
    agent.tools["quick"] = bare
    run = await agent.run("hi")
    assert run.calls[0].failure is not None
    assert run.calls[0].failure.code == "tool_missing"


async def test_the_states_of_a_call_are_told_in_their_order() -> None:
    updates: list[Any] = []
    agent = Agent(scripted([Use("quick"), "ok"]), tools=[quick])
    await agent.run("hi", on_update=updates.append)
    states = [update.state for update in updates if hasattr(update, "state")]
    assert states == [
        CallState.AWAITING_INPUT,
        CallState.INPUT_STREAMING,
        CallState.INPUT_COMPLETE,
        CallState.EXECUTING,
        CallState.OUTPUT_AVAILABLE,
    ]
    assert any(isinstance(update, CallReady) for update in updates)
