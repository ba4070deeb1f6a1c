"""What goes on around a run: its waiter is cancelled, others decide elsewhere, and everybody has a context."""

import asyncio
import gc
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

import pytest

from farhand import Agent, Call, Limits, scripted, tool
from farhand.agent import Callbacks
from farhand.core.call import Outcome
from farhand.core.errors import InvalidInput
from farhand.core.messages import Text, UserMessage
from farhand.models import Turn, Use


@pytest.mark.parametrize("last", ["return", "raise"])
async def test_a_timeout_around_a_run_holds_although_the_tool_swallows_its_cancellation(last: str) -> None:
    @tool
    async def stubborn() -> str:
        """Do not listen."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if last == "raise":
                raise ValueError from None
        return "done all the same"

    model = scripted([Use("stubborn"), "never"])
    run = Agent(model, tools=[stubborn]).start("hi")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run.wait()
    assert (run.status, len(model.requests)) == ("cancelled", 1)
    assert run.calls[0].outcome is (Outcome.OK if last == "return" else Outcome.FAILED)


async def test_a_place_that_becomes_free_is_taken_while_the_driver_is_held_up() -> None:
    began, last, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> None:
        """Hold the driver up."""
        began.set()
        await go_on.wait()

    @tool(needs_approval=True, effect="pure")
    async def quick(number: int) -> None:
        """Be quick."""
        await asyncio.sleep(0)
        if number == 2:
            last.set()

    script = scripted([Turn("", Use("slow"), Use("quick", {"number": 1}), Use("quick", {"number": 2})), "ok"])
    run = Agent(script, tools=[slow, quick], limits=Limits(parallel=2)).start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await began.wait()
        for call in run.pending:
            run.approve(call.id)
        await last.wait()
        go_on.set()
        await waiting
    assert [call.outcome for call in run.calls] == [Outcome.OK] * 3


async def test_a_call_approved_by_another_request_runs_in_the_context_of_the_run() -> None:
    who: ContextVar[str] = ContextVar("who")
    began, go_on = asyncio.Event(), asyncio.Event()
    seen: list[str] = []

    @tool
    async def slow() -> None:
        """Hold the driver up."""
        who.set("the slow tool")
        began.set()
        await go_on.wait()

    @tool(needs_approval=True)
    async def pay() -> None:
        """Pay."""
        seen.append(who.get())
        go_on.set()

    async def approve() -> None:
        who.set("whoever approves")
        run.approve(run.pending[0].id)

    run = Agent(scripted([Turn("", Use("slow"), Use("pay")), "ok"]), tools=[slow, pay]).start("hi")
    who.set("whoever runs")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await began.wait()
        await asyncio.ensure_future(approve())
        await waiting
    assert seen == ["whoever runs"]


async def test_a_callback_that_still_thinks_does_not_hold_up_a_run_whose_call_was_approved_elsewhere() -> None:
    open_door = tool.define("open_door", description="Open the door.", needs_approval=True)
    asked, stopped = asyncio.Event(), asyncio.Event()

    async def ask_at_the_terminal(call: Call[Any, Any]) -> bool:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return False

    run = Agent(scripted([Use("open_door"), "ok"]), tools=[open_door]).start(
        "hi", callbacks=Callbacks(on_approval=ask_at_the_terminal)
    )
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await asked.wait()
        run.approve(run.pending[0].id)
        await waiting
    assert (run.status, stopped.is_set()) == ("waiting", True)


@tool(needs_approval=True)
async def pay() -> str:
    """Pay."""
    return "paid"


def fail(call: Call[Any, Any]) -> bool:
    raise RuntimeError("password=hunter2")


async def test_a_stream_that_is_left_after_its_run_broke_logs_no_text_of_the_error() -> None:
    logged: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: logged.append(context))
    updates = aiter(Agent(scripted([Use("pay")]), tools=[pay]).stream("hi", on_approval=fail))
    async with asyncio.timeout(5), aclosing(updates):
        await anext(updates)
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    del updates
    gc.collect()
    assert logged == []


def test_half_a_character_in_the_input_is_refused_before_it_could_keep_the_run_from_being_stored() -> None:
    agent = Agent(scripted(["ok"]))
    for message in ("\ud83d", ["hi", Text("\ud83d")], UserMessage((Text("\ud83d"),))):
        with pytest.raises(InvalidInput, match="half a character"):
            agent.start(message)
    assert agent.start("zu teuer \U0001f4b8").to_json()
