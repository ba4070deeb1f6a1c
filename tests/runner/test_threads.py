"""Several threads with an event loop each: one run is worked on by one of them, and the others wait or are refused."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from farhand import Agent, CallContext, LiveRun, scripted, tool
from farhand.agent import Callbacks
from farhand.core.call import Outcome
from farhand.core.errors import UsageError
from farhand.models import Use
from farhand.runner.recent import RecentRuns

pick = tool.define("pick", description="Pick something.")


async def test_what_another_thread_says_of_a_run_at_work_is_refused_and_loses_nothing() -> None:
    run = await Agent(scripted([Use("pick"), "ok"]), tools=[pick]).run("hi")
    call_id = run.pending[0].id
    waiting = asyncio.ensure_future(run.wait(hold=True))
    async with asyncio.timeout(5):
        await asyncio.sleep(0)
        for say in (run.answer, run.fail, run.cancel_call, run.cancel):
            with pytest.raises(UsageError, match="call_soon_threadsafe"):
                await asyncio.to_thread(say, *(() if say == run.cancel else (call_id, "x")))
        with pytest.raises(UsageError):
            await asyncio.to_thread(run.settle, {call_id: 1, "other": 2})
        await asyncio.to_thread(asyncio.get_running_loop().call_soon_threadsafe, run.answer, call_id, 7)
        await waiting
    assert (run.output, run.calls[0].output) == ("ok", 7)


async def test_a_sync_tool_may_not_stop_its_own_run_from_its_thread_but_on_the_loop() -> None:
    handle: list[LiveRun[str]] = []
    loop = asyncio.get_running_loop()

    @tool
    def stop(context: CallContext) -> str:
        """Stop."""
        with pytest.raises(UsageError):
            handle[0].cancel_call(context.call_id)
        loop.call_soon_threadsafe(handle[0].cancel_call, context.call_id)
        return "too late"

    run = Agent(scripted([Use("stop"), "ok"]), tools=[stop]).start("hi")
    handle.append(run)
    async with asyncio.timeout(5):
        await run.wait()
    assert (run.calls[0].outcome, run.output) == (Outcome.CANCELLED, "ok")


def test_a_stored_run_resumed_in_two_threads_goes_on_once_and_both_get_it() -> None:
    began, go_on, ran = threading.Event(), threading.Event(), list[int]()

    @tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        ran.append(1)
        began.set()
        assert await asyncio.to_thread(go_on.wait, 5)
        return "paid"

    model = scripted(lambda request: "ok" if len(request.messages) > 1 else Use("pay"))
    agent = Agent(model, tools=[pay], recent=RecentRuns())
    run = asyncio.run(agent.run("hi"))
    stored, call_id = run.to_json(), run.calls[0].id

    async def resume() -> LiveRun[Any]:
        async with asyncio.timeout(5):
            return await agent.resume(stored, decisions={call_id: True})

    with ThreadPoolExecutor() as threads:
        first = threads.submit(asyncio.run, resume())
        assert began.wait(5)
        second = threads.submit(asyncio.run, resume())
        with pytest.raises(TimeoutError):
            second.result(0.05)
        go_on.set()
        assert first.result(5) is second.result(5)
    assert (first.result().output, ran) == ("ok", [1])


def test_a_waiter_in_another_thread_may_be_cancelled_alone() -> None:
    asked, go_on = threading.Event(), threading.Event()

    async def ask(call: Any) -> str:
        asked.set()
        assert await asyncio.to_thread(go_on.wait, 5)
        return "red"

    async def give_up() -> None:
        async with asyncio.timeout(0.01):
            await run.wait()

    run = Agent(scripted([Use("pick"), "ok"]), tools=[pick]).start("hi", callbacks=Callbacks(on_call=ask))
    with ThreadPoolExecutor() as threads:
        first = threads.submit(asyncio.run, run.wait())
        assert asked.wait(5)
        with pytest.raises(TimeoutError):
            threads.submit(asyncio.run, give_up()).result(5)
        go_on.set()
        assert first.result(5).output == "ok"
