"""A paused run meets a program that has changed: nothing breaks, and nothing changes in silence."""

from typing import Any

import pytest

from farhand import Agent, Approve, scripted, tool
from farhand.core.call import Outcome
from farhand.core.errors import CallGone, RunRefused, UsageError
from farhand.core.messages import ToolMessage
from farhand.durable import Runner
from farhand.models import Turn, Use
from farhand.stores.memory import MemoryStore
from tests.durable.story import agent, by_rule, kill, pick

ASK = {"type": "object", "properties": {"n": {"type": "integer"}}}
asks = tool.define("asks", input=ASK, description="Ask.", needs_approval=True)
asks_otherwise = tool.define("asks", input=ASK, description="Ask about something else.", needs_approval=True)


async def paused(rows: MemoryStore, *tools: Any, turns: Any) -> str:
    runner = Runner(by_rule(*turns, tools=tools), store=rows)
    await runner.open()
    run = await runner.start("hi")
    assert (await run.wait()).status == "waiting"
    await kill(runner)
    return run.id


async def test_a_call_that_was_sent_out_is_answered_by_the_schema_it_was_made_under() -> None:
    before = tool.define("pick", input={"type": "object"}, output={"type": "integer"}, description="Pick.")
    after = tool.define("pick", input={"type": "object"}, output={"type": "string"}, description="Pick.")
    rows = MemoryStore()
    run = await paused(rows, before, turns=(Use("pick"), "ok"))
    async with Runner(by_rule(Use("pick"), "ok", tools=[after]), store=MemoryStore(rows)) as second:
        [call] = await second.pending()
        await second.answer(call.id, 3)
        view = await (await second.find(run)).wait()
        assert (view.output, view.calls[0].outcome) == ("ok", Outcome.OK)


async def test_an_approval_of_a_tool_that_has_changed_counts_for_nothing() -> None:
    rows = MemoryStore()
    run = await paused(rows, asks, turns=(Use("asks", {"n": 1}), "ok"))
    async with Runner(by_rule(Use("asks"), "ok", tools=[asks_otherwise]), store=MemoryStore(rows)) as second:
        [call] = await second.pending()
        with pytest.raises(CallGone):
            await second.approve(call.id)
        view = await (await second.find(run)).wait()
        assert view.calls[0].outcome is Outcome.UNAVAILABLE
        assert view.output == "ok"


async def test_a_tool_that_is_gone_ends_its_undecided_call() -> None:
    rows = MemoryStore()
    run = await paused(rows, asks, turns=(Use("asks", {"n": 1}), "ok"))
    async with Runner(by_rule(Use("asks"), "ok", tools=[pick]), store=MemoryStore(rows)) as second:
        [call] = await second.pending()
        with pytest.raises(CallGone):
            await second.approve(call.id)
        view = await (await second.find(run)).wait()
        assert view.calls[0].outcome is Outcome.UNAVAILABLE


async def test_a_decision_for_good_is_remembered_by_the_store() -> None:
    rows = MemoryStore()
    server = tool.define("asks", input=ASK, description="Ask.", needs_approval=True)

    async def run_it(arguments: Any) -> str:
        return "asked"

    turns = (Use("asks", {"n": 1}), "ok")
    async with Runner(by_rule(*turns, tools=[server.server(run_it)]), store=rows) as first:
        run = await first.start("hi", principal="ann")
        [call] = (await run.wait()).pending
        await first.approve(call.id, remember="tool", principal="ann")
        assert (await run.wait()).output == "ok"
    async with Runner(by_rule(*turns, tools=[server.server(run_it)]), store=MemoryStore(rows)) as second:
        assert (await second.run("again", principal="ann")).output == "ok"
        assert (await second.run("again", principal="bob")).status == "waiting"
        await second.forget(principal="ann")
        assert (await second.run("again", principal="ann")).status == "waiting"


async def test_several_results_and_decisions_count_together_or_not_at_all() -> None:
    def reply(request: Any) -> Any:
        told = any(isinstance(message, ToolMessage) for message in request.messages)
        return "ok" if told else Turn("", Use("pick"), Use("asks", {"n": 1}))

    async with Runner(Agent(scripted(reply), tools=[pick, asks]), store=MemoryStore()) as runner:
        run = await runner.start("hi")
        picked, asked = (await run.wait()).pending
        with pytest.raises(Exception, match="no such call"):
            await runner.settle({picked.id: 1, "nothing": 2})
        assert len((await run.look()).pending) == 2
        receipts = await runner.settle({picked.id: 1}, {asked.id: Approve(arguments={"n": 2})})
        assert [receipt.repeated for receipt in receipts] == [False, False]
        view = await run.wait()
        assert [call.tool for call in view.pending] == ["asks"]
        await runner.answer(asked.id, "yes")
        assert (await run.wait()).output == "ok"


async def test_a_run_of_an_agent_that_is_not_here_is_left_to_those_who_have_it() -> None:
    rows = MemoryStore()
    await paused(rows, pick, turns=(Use("pick"), "ok"))
    async with Runner(agent("x", name="another"), store=MemoryStore(rows)) as second:
        [call] = await second.pending()
        with pytest.raises(UsageError):
            await second.answer(call.id, 3)
    async with Runner(by_rule(Use("pick"), "ok"), store=MemoryStore(rows)) as third:
        assert not (await third.answer(call.id, 3)).repeated


async def test_a_log_that_does_not_fit_is_put_aside_and_never_guessed_at() -> None:
    rows = MemoryStore()
    run = await paused(rows, pick, turns=(Use("pick"), "ok"))
    version, body = rows._tables.snapshots[run]
    rows._tables.snapshots[run] = (version, body.replace(b'"executing"', b'"excavating"'))
    async with Runner(by_rule(Use("pick"), "ok"), store=MemoryStore(rows)) as second:
        [call] = await second.pending()
        with pytest.raises(RunRefused):
            await second.answer(call.id, 3)
        with pytest.raises(RunRefused, match="put aside"):
            await second.answer(call.id, 3)
        assert rows._tables.runs[run].state == "refused"
