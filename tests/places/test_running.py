"""What a running tool may know and do: its call, its person, its progress, that it was called off."""

import asyncio
import threading
from typing import Any

from farhand import Agent, Approve, CallContext, scripted, tool
from farhand.core.call import CallState, Outcome
from farhand.core.updates import CallEnded, CallExecuting, CallProgress, Update
from farhand.models import Use
from farhand.testing import VirtualClock


def test_progress_goes_where_the_place_wants_it_under_its_name() -> None:
    told: list[Any] = []
    context = CallContext(
        call_id="c1",
        tool="move",
        attempt=2,
        run_id="r",
        thread_id="t",
        principal="ann",
        payload={"pin": 1},
        on_progress=lambda *said: told.append(said),
    )
    context.progress(1)
    context.progress({"done": 2}, "step")
    assert told == [("progress", 1), ("step", {"done": 2})]
    assert not context.cancelled


async def test_a_tool_in_a_thread_tells_its_progress_on_the_event_loop_in_order() -> None:
    threads: list[int] = []
    seen: list[Any] = []

    @tool
    def slow(context: CallContext) -> str:
        """Take a while."""
        threads.append(threading.get_ident())
        context.progress(1)
        context.progress(2)
        return "done"

    def watch(update: Update) -> None:
        if isinstance(update, CallProgress | CallEnded):
            threads.append(threading.get_ident())
            seen.append(update.value if isinstance(update, CallProgress) else update.outcome)

    await Agent(scripted([Use("slow"), "ok"]), tools=[slow]).run("hi", on_update=watch)
    assert seen == [1, 2, Outcome.OK]
    assert threads[0] != threading.get_ident()
    assert set(threads[1:]) == {threading.get_ident()}


async def test_progress_from_a_thread_wakes_a_stream_that_sleeps() -> None:
    seen = threading.Event()
    loop_sleeps = threading.Event()

    @tool
    def slow(context: CallContext) -> bool:
        """Go on once the progress was seen."""
        assert loop_sleeps.wait(5)
        context.progress(1)
        return seen.wait(5)

    loop = asyncio.get_running_loop()
    loop.set_debug(True)  # then the loop itself complains of calls from other threads
    run = Agent(scripted([Use("slow"), "ok"]), tools=[slow], show_errors=True).start("hi")
    async with asyncio.timeout(5):
        async for update in run.updates():
            if isinstance(update, CallExecuting):
                loop.call_soon(loop_sleeps.set)  # once the reader waits for more
            elif isinstance(update, CallProgress):
                seen.set()
    assert run.calls[0].output is True


async def test_a_thread_whose_call_was_called_off_can_see_it_and_is_not_heard_any_more() -> None:
    started, go_on, ended = asyncio.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    flags: list[bool] = []

    @tool
    def slow(context: CallContext) -> str:
        """Look whether it was called off."""
        flags.append(context.cancelled)
        loop.call_soon_threadsafe(started.set)
        assert go_on.wait(5)
        flags.append(context.cancelled)
        context.progress("too late")
        loop.call_soon_threadsafe(ended.set)
        return "too late"

    updates: list[Update] = []
    run = Agent(scripted([Use("slow"), "ok"]), tools=[slow]).start("hi")
    run.watch(updates.append)
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await started.wait()
        run.cancel_call(run.calls[0].id)
        go_on.set()
        await ended.wait()
        await waiting
    assert flags == [False, True]
    assert run.calls[0].outcome is Outcome.CANCELLED
    assert [update for update in updates if isinstance(update, CallProgress)] == []


def test_progress_of_a_thread_that_outlives_the_event_loop_does_not_disturb_its_work() -> None:
    go_on, ended = threading.Event(), threading.Event()

    @tool(timeout=0.01)
    def slow(context: CallContext) -> None:
        """Go on after the deadline."""
        assert go_on.wait(5)
        context.progress("too late")
        ended.set()

    run = asyncio.run(Agent(scripted([Use("slow"), "ok"]), tools=[slow]).run("hi"))
    go_on.set()
    assert run.calls[0].outcome is Outcome.TIMED_OUT
    assert ended.wait(5)


async def test_progress_is_an_update_of_a_call_that_executes() -> None:
    @tool
    async def slow(context: CallContext) -> None:
        """Take a while."""
        context.progress([1, 2], name="page")

    updates: list[Update] = []
    clock = VirtualClock(start=5)
    agent = Agent(scripted([Use("slow"), "ok"]), tools=[slow], clock=clock)
    run = await agent.run("hi", on_update=updates.append)
    (progress,) = [update for update in updates if isinstance(update, CallProgress)]
    assert (progress.call_id, progress.name, progress.value, progress.at) == (run.calls[0].id, "page", [1, 2], 5)
    assert progress.state is CallState.EXECUTING


async def test_an_approval_function_may_ask_who_calls_and_its_progress_is_no_news() -> None:
    seen: list[str] = []

    def judge(context: CallContext) -> bool:
        seen.append(context.principal)
        context.progress("thinking")
        return context.principal != "ann"

    @tool(needs_approval=judge)
    async def wipe(context: CallContext) -> Any:
        """Wipe."""
        return context.payload

    updates: list[Update] = []
    agent = Agent(scripted(lambda request: "ok" if len(request.messages) > 1 else Use("wipe")), tools=[wipe])
    await agent.run("hi", principal="ann", on_update=updates.append)
    assert (await agent.run("hi", principal="bob", on_approval=lambda call: Approve(payload=7))).calls[0].output == 7
    assert seen == ["ann", "bob"]
    assert [update for update in updates if isinstance(update, CallProgress)] == []
