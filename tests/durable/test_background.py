"""Work that a client takes on and ends later, perhaps after the run and after a restart."""

import asyncio

import pytest

from farhand.core.errors import AnswerConflict, NotExpected
from farhand.core.messages import UserMessage
from farhand.durable import Runner
from farhand.models import Use
from farhand.stores.memory import MemoryStore
from tests.durable.story import by_rule, kill


async def test_a_client_may_end_a_call_after_the_run_and_the_thread_hears_of_it() -> None:
    rows = MemoryStore()
    first = Runner(by_rule(Use("pick"), "It is under way."), store=rows)
    await first.open()
    run = await first.start("hi", thread="t")
    [call] = (await run.wait()).pending
    await first.accept(call.id, "an hour or so")
    assert (await run.wait()).output == "It is under way."
    await kill(first)
    async with asyncio.timeout(10), Runner(by_rule("Good news."), store=MemoryStore(rows)) as second:
        assert not (await second.report(call.id, {"n": 1})).repeated
        assert (await second.report(call.id, {"n": 1})).repeated
        with pytest.raises(AnswerConflict):
            await second.report(call.id, {"n": 2})
        told = await second.thread("t")
        if told.run:
            await (await second.find(told.run)).wait()
            told = await second.thread("t")
        said = [message.text for message in told.messages if isinstance(message, UserMessage)]
        assert len(said) == 2
        assert '{"n":1}' in said[1]


async def test_news_goes_to_the_run_that_is_open_by_then() -> None:
    async with asyncio.timeout(10), Runner(by_rule(Use("pick"), "ok", "heard"), store=MemoryStore()) as runner:
        first = await runner.start("hi", thread="t")
        [call] = (await first.wait()).pending
        await runner.accept(call.id)
        await first.wait()
        second = await runner.start("again", thread="t")
        [waits] = (await second.wait()).pending
        await runner.report(call.id, 5)
        await runner.report(call.id, 5)
        await runner.answer(waits.id, 1)
        view = await second.wait()
        news = [
            message for message in view.messages if isinstance(message, UserMessage) and "has ended" in message.text
        ]
        assert len(news) == 1


async def test_only_what_was_taken_on_can_be_ended_later() -> None:
    async with Runner(by_rule(Use("pick"), "ok"), store=MemoryStore()) as runner:
        run = await runner.start("hi")
        [call] = (await run.wait()).pending
        with pytest.raises(NotExpected):
            await runner.report(call.id, 5)
