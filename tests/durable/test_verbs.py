"""What clients say about their calls, and what they can ask about them."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from farhand.core.errors import AnswerConflict, CallGone, NotExpected, UnknownCall
from farhand.core.updates import CallProgress
from farhand.durable import Runner
from farhand.models import Use
from farhand.stores.memory import MemoryStore
from tests.durable.story import by_rule


@pytest.fixture
async def runner() -> AsyncIterator[Runner]:
    agent = by_rule(Use("pick", {"n": 1}), "ok")
    async with asyncio.timeout(20), Runner(agent, store=MemoryStore()) as runner:
        yield runner


async def a_call(runner: Runner, **settings: str) -> str:
    run = await runner.run("hi", **{"thread": "t", **settings})
    return run.pending[0].id


async def test_whoever_takes_a_call_up_gets_what_it_needs_to_work_on_it(runner: Runner) -> None:
    call = await a_call(runner)
    claimed = await runner.claim(call, "tab")
    assert (claimed.call_id, claimed.attempt, claimed.arguments) == (call, 1, '{"n":1}')
    assert claimed.deadline is not None
    assert not claimed.repeated
    assert (await runner.claim(call, "tab")).repeated
    with pytest.raises(AnswerConflict):
        await runner.claim(call, "phone")


@pytest.mark.parametrize("verb", ["answer", "accept", "fail"])
async def test_a_client_does_not_answer_what_another_has_taken_up(runner: Runner, verb: str) -> None:
    call = await a_call(runner)
    await runner.claim(call, "tab")
    with pytest.raises(AnswerConflict):
        await getattr(runner, verb)(call, "x", client="phone")
    assert not (await getattr(runner, verb)(call, "x", client="tab")).repeated


async def test_a_run_for_one_client_is_taken_up_and_answered_by_no_other(runner: Runner) -> None:
    call = await a_call(runner, target="tab")
    for refused in (runner.claim(call, "phone"), runner.answer(call, 1, client="phone")):
        with pytest.raises(NotExpected):
            await refused
    await runner.claim(call, "tab")
    await runner.answer(call, 1, client="tab")


async def test_a_call_can_be_looked_at_before_and_after_its_end(runner: Runner) -> None:
    call = await a_call(runner)
    [waiting] = await runner.waiting()
    assert (waiting.record.id, waiting.thread) == (call, "t")
    assert await runner.call(call) == waiting
    await runner.answer(call, 7)
    ended = await runner.call(call)
    assert (ended.record.outcome, ended.run, ended.thread) == ("ok", waiting.run, "t")
    with pytest.raises(UnknownCall):
        await runner.call(call, principal="eve")


async def test_runs_are_listed_with_their_threads_newest_first(runner: Runner) -> None:
    await a_call(runner)
    call = await a_call(runner, thread="u")
    assert [thread for _, thread in await runner.runs()] == ["u", "t"]
    await runner.answer(call, 1)
    [(row, thread)] = await runner.runs(state="waiting")
    assert (row.state, thread) == ("waiting", "t")
    assert await runner.runs(principal="eve") == []


async def test_whoever_watches_sees_how_far_a_client_is(runner: Runner) -> None:
    call = await a_call(runner)
    thread = await runner.thread("t")
    watching = runner.watch("t", after=thread.seq)
    seen = asyncio.ensure_future(anext(watching))
    await asyncio.sleep(0)
    await runner.progress(call, {"percent": 40}, name="upload")
    update = await seen
    assert isinstance(update, CallProgress)
    assert (update.call_id, update.name, update.value) == (call, "upload", {"percent": 40})
    await watching.aclose()


async def test_progress_is_refused_where_an_answer_would_be(runner: Runner) -> None:
    call = await a_call(runner)
    with pytest.raises(UnknownCall):
        await runner.progress(call, 1, principal="eve")
    with pytest.raises(UnknownCall):
        await runner.progress("nothing", 1)
    await runner.claim(call, "tab")
    with pytest.raises(AnswerConflict):
        await runner.progress(call, 1, client="phone")
    with pytest.raises(CallGone):
        await runner.progress(call, 1, attempt=0)
    await runner.cancel_call(call)
    with pytest.raises(CallGone):
        await runner.progress(call, 1)
