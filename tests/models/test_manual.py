"""A person plays the model: each request waits for what somebody says."""

import asyncio

import pytest

from farhand import Agent, manual, tool
from farhand.core.errors import ModelError
from farhand.core.messages import ToolMessage, UserMessage
from farhand.core.pieces import Done, Finish, TextDelta, ToolArgsDelta, ToolEnd, ToolStart
from farhand.models import Request, Use

REQUEST = Request((UserMessage(()),), (), "", 1, "r")


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def test_a_reply_waits_until_it_is_said() -> None:
    model = manual()
    stream = model.stream(REQUEST)
    first = asyncio.ensure_future(anext(stream))
    async with asyncio.timeout(5):
        assert await model.asked() is REQUEST
        assert not first.done()
        model.say("hello")
        assert [await first, *[piece async for piece in stream]] == [TextDelta("hello"), Done()]


async def test_replies_may_be_laid_out_before_they_are_asked_for() -> None:
    model = manual()
    model.call("add", {"a": 1, "b": 2}, Use("add", {"a": 3, "b": 4}), text="let me see")
    model.say("done")
    async with asyncio.timeout(5):
        run = await Agent(model, tools=[add]).run("hi")
        turns = [(await model.asked()).turn for _ in range(2)]
    assert (run.output, [call.output for call in run.calls], turns) == ("done", [3, 7], [1, 2])


async def test_a_call_without_arguments_takes_none() -> None:
    model = manual()
    model.call("ping")
    assert [piece async for piece in model.stream(REQUEST)] == [
        ToolStart(0, "ping", "call_1"),
        ToolArgsDelta(0, "{}"),
        ToolEnd(0, "{}"),
        Done(Finish.TOOLS),
    ]


async def test_failing_fails_the_reply() -> None:
    model = manual()
    model.fail("no idea")
    with pytest.raises(ModelError, match="no idea"):
        await anext(model.stream(REQUEST))


async def test_the_person_sees_what_came_of_the_call() -> None:
    model = manual()
    running = asyncio.ensure_future(Agent(model, tools=[add]).run("hi"))
    async with asyncio.timeout(5):
        await model.asked()
        model.call("add", {"a": 20, "b": 22})
        message = (await model.asked()).messages[-1]
        model.say("42")
        await running
    assert isinstance(message, ToolMessage)
    assert message.text == "42"
