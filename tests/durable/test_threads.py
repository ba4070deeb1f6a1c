"""Conversations that are kept: the store has their history, one run at a time goes on with it, a key starts one run."""

import asyncio

import pytest

from farhand import ToolError, tool
from farhand.core.call import Outcome
from farhand.core.errors import StartConflict, ThreadBusy, UnknownCall, UsageError
from farhand.core.messages import AssistantMessage, UserMessage
from farhand.core.run import Ending
from farhand.durable import Runner
from farhand.models import Use
from farhand.stores.memory import MemoryStore
from tests.durable.story import agent, by_rule, pick


async def test_a_thread_remembers_what_was_said() -> None:
    async with Runner(agent("hello", "again"), store=MemoryStore()) as runner:
        await runner.run("hi", thread="t")
        view = await runner.run("and now?", thread="t")
        said = [message.text for message in view.messages if isinstance(message, UserMessage | AssistantMessage)]
        assert said == ["hi", "hello", "and now?", "again"]
        thread = await runner.thread("t")
        assert thread.messages == view.messages
        assert thread.run == ""


async def test_a_thread_shows_what_waits() -> None:
    async with Runner(agent(Use("pick")), store=MemoryStore()) as runner:
        run = await runner.start("hi", thread="t")
        await run.wait()
        thread = await runner.thread("t")
        assert thread.run == run.id
        assert [call.tool for call in thread.pending] == ["pick"]
        assert [call.id for call in await runner.pending(thread="t")] == [thread.pending[0].id]
        assert await runner.pending(thread="other") == []


async def test_new_input_takes_the_place_of_a_run_that_waits() -> None:
    async with Runner(agent(Use("pick"), "hello"), store=MemoryStore()) as runner:
        first = await runner.start("hi", thread="t")
        await first.wait()
        view = await runner.run("never mind", thread="t")
        assert view.output == "hello"
        before = await first.look()
        assert before.state.ending is Ending.CANCELLED
        assert before.calls[0].outcome is Outcome.CANCELLED
        assert before.calls[0].failure is not None
        assert "user provided new input" in before.calls[0].failure.message


async def test_new_input_may_be_refused_while_a_run_is_open() -> None:
    async with Runner(agent(Use("pick"), "hello"), store=MemoryStore()) as runner:
        first = await runner.start("hi", thread="t")
        await first.wait()
        with pytest.raises(ThreadBusy):
            await runner.start("never mind", thread="t", busy="refuse")
        assert (await first.look()).status == "waiting"


async def test_two_principals_never_share_a_thread() -> None:
    async with Runner(agent("for ann", "for bob"), store=MemoryStore()) as runner:
        await runner.run("hi", thread="t", principal="ann")
        view = await runner.run("hi", thread="t", principal="bob")
        assert len(view.messages) == 2
        with pytest.raises(UnknownCall):
            await runner.thread("t", principal="eve")


async def test_starting_again_under_the_same_key_gives_the_same_run() -> None:
    async with Runner(agent("hello"), store=MemoryStore()) as runner:
        first = await runner.start("hi", thread="t", key="job-1")
        again = await runner.start("hi", thread="t", key="job-1")
        assert again.id == first.id
        with pytest.raises(StartConflict):
            await runner.start("something else", thread="t", key="job-1")
        assert (await first.wait()).output == "hello"


async def test_a_key_belongs_to_its_principal() -> None:
    async with Runner(by_rule("hello"), store=MemoryStore()) as runner:
        first = await runner.start("hi", key="job-1", principal="ann")
        other = await runner.start("hi", key="job-1", principal="bob")
        assert other.id != first.id


async def test_ten_starts_on_one_thread_at_once_leave_one_open_run() -> None:
    async with asyncio.timeout(10), Runner(by_rule(Use("pick"), "ok"), store=MemoryStore()) as runner:
        runs = await asyncio.gather(*[runner.start("hi", thread="t") for _ in range(10)])
        states = [(await run.look()).status for run in runs]
        assert sorted(states)[:9] == ["cancelled"] * 9
        thread = await runner.thread("t")
        assert thread.run in {run.id for run in runs}


async def test_a_stored_run_takes_no_functions_along() -> None:
    @tool
    def local() -> None:
        """Be local."""
        raise ToolError("never")

    async with Runner(agent("hello"), store=MemoryStore()) as runner:
        with pytest.raises(UsageError):
            await runner.start("hi", tools=[local])


async def test_a_client_may_bring_definitions_which_are_kept_with_the_run() -> None:
    rows = MemoryStore()
    async with Runner(by_rule(Use("mine", {}), "ok", tools=[pick]), store=rows) as runner:
        run = await runner.start(
            "hi", tools=[{"name": "mine", "description": "Mine.", "parameters": {"type": "object"}}]
        )
        view = await run.wait()
        [call] = view.pending
        assert call.tool == "mine"
    async with Runner(by_rule(Use("mine", {}), "ok", tools=[pick]), store=MemoryStore(rows)) as other:
        await other.answer(call.id, 1)
        assert (await (await other.find(run.id)).wait()).output == "ok"
