"""Runs that are kept: what is said counts once, wherever it is said, and nothing is told before it is kept."""

from typing import Any

import pytest

from farhand import Agent, scripted, tool
from farhand.core.errors import AnswerConflict, UnknownCall
from farhand.core.messages import ToolMessage
from farhand.core.updates import RunEnded
from farhand.durable import Runner
from farhand.models import Turn, Use
from farhand.stores.memory import MemoryStore

pick = tool.define("pick", input={"type": "object"}, description="Pick something.")


@tool
async def quick() -> int:
    """Be quick."""
    return 1


def agent(*script: Any, tools: Any = (pick, quick)) -> Agent[str]:
    return Agent(scripted(script), tools=tools)


async def test_a_run_is_done() -> None:
    async with Runner(agent("hello"), store=MemoryStore()) as runner:
        run = await runner.run("hi")
        assert run.status == "done"
        assert run.output == "hello"


async def test_a_paused_run_is_answered_and_goes_on() -> None:
    async with Runner(agent(Use("pick"), "picked"), store=MemoryStore()) as runner:
        run = await runner.start("hi")
        view = await run.wait()
        assert view.status == "waiting"
        [call] = await runner.pending()
        receipt = await runner.answer(call.id, 3)
        assert not receipt.repeated
        view = await run.wait()
        assert view.output == "picked"
        assert (await runner.answer(call.id, 3)).repeated
        with pytest.raises(AnswerConflict):
            await runner.answer(call.id, 4)
        with pytest.raises(UnknownCall):
            await runner.answer(call.id, 3, principal="eve")


async def test_updates_are_numbered_without_gap_and_can_be_read_again() -> None:
    async with Runner(agent(Use("pick"), Use("quick"), "picked"), store=MemoryStore()) as runner:
        run = await runner.start("hi", thread="t")
        first = [update async for update in run.updates()]
        [call] = await runner.pending()
        await runner.answer(call.id, 3)
        second = [update async for update in run.updates()]
        again = []
        async for update in runner.watch("t"):
            again.append(update)
            if isinstance(update, RunEnded):
                break
        numbers = [update.seq for update in again]
        assert numbers == list(range(1, len(numbers) + 1))
        told = [
            update
            for update in first + second
            if type(update).__name__ not in ("TextStreamed", "CallNamed", "CallStreamed")
        ]
        assert told == again


async def test_calls_that_wait_together_may_be_answered_one_at_a_time() -> None:
    model = scripted([Turn("", Use("pick"), Use("pick")), "both"])
    async with Runner(Agent(model, tools=[pick]), store=MemoryStore()) as runner:
        run = await runner.start("hi")
        first, second = (await run.wait()).pending
        await runner.answer(second.id, 2)
        view = await run.wait()
        assert (view.status, [call.id for call in view.pending]) == ("waiting", [first.id])
        await runner.answer(first.id, 1)
        view = await run.wait()
        assert (view.output, view.id) == ("both", run.id)
        told = [message.call_id for message in model.requests[1].messages if isinstance(message, ToolMessage)]
        assert told == [first.id, second.id]
