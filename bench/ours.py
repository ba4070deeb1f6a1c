"""Farhand: the same stories, in process and without a store; validation and every update are on."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from bench import definitions as sent
from bench import story
from farhand import Agent, tool
from farhand.core.definition import validate_tool_definitions
from farhand.core.messages import ToolMessage
from farhand.core.pieces import Done, Finish, Piece, TextDelta, ToolArgsDelta, ToolEnd, ToolStart
from farhand.core.updates import TextStreamed, Update
from farhand.models import Request


class Fake:
    """A scripted model."""

    name = "fake"

    def __init__(self, script: Any = None, count: story.Count | None = None) -> None:
        self.script = script
        self.count = count

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        if self.count:
            self.count.model_calls += 1
            await asyncio.sleep(story.MODEL_DELAY)
        reply = self.script([message.text for message in request.messages if isinstance(message, ToolMessage)])
        if isinstance(reply, str):
            yield TextDelta(reply)
            yield Done()
        else:
            yield ToolStart(0, reply.name, reply.id)
            yield ToolArgsDelta(0, reply.json)
            yield ToolEnd(0, reply.json)
            yield Done(Finish.TOOLS)


class Streaming:
    """A model that says two thousand words."""

    name = "streaming"

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        for delta in story.DELTAS:
            yield TextDelta(delta)
        yield Done()


def client_tool() -> Any:
    return tool.define("sel", input=story.SCHEMA, output=story.RESULT_SCHEMA, description="Ask the client.")


TURN = Agent(Fake(story.turn), tools=[tool(story.add)])
PAUSE = Agent(Fake(story.pause), tools=[client_tool()])
STREAM = Agent(Streaming())


async def turn() -> None:
    updates: list[Update] = []
    run = await TURN.run(story.PROMPT, on_update=updates.append)
    assert run.output == story.TURN_ANSWER
    assert updates


async def pause() -> None:
    updates: list[Update] = []
    waiting = await PAUSE.run(story.PROMPT, on_update=updates.append)
    [call] = waiting.pending
    data = waiting.to_json()
    run = await PAUSE.resume(data, answers={call.id: story.CLIENT_RESULT}, on_update=updates.append)
    assert story.PAUSE_ANSWER in run.output
    assert updates


async def stream() -> None:
    seen = [update.text async for update in STREAM.stream(story.PROMPT) if isinstance(update, TextStreamed)]
    assert "".join(seen) == story.STREAM_TEXT


async def duplicates() -> dict[str, Any]:
    count = story.Count()

    @tool
    async def effect() -> str:
        """Do it."""
        count.effects += 1
        return "done"

    def agent() -> Agent[str]:
        return Agent(Fake(story.duplicates, count), tools=[client_tool(), effect])

    waiting = await agent().run(story.PROMPT)
    [call] = waiting.pending
    data = waiting.to_json()
    count.reset()

    async def deliver() -> None:
        run = await agent().resume(data, answers={call.id: story.CLIENT_RESULT})
        assert run.output == "done"

    return count.report(await asyncio.gather(deliver(), deliver(), return_exceptions=True))


BODY = sent.body()
NUMBERS = itertools.count()


async def cached() -> None:
    assert len(validate_tool_definitions(BODY)) == sent.COUNT


async def parsed() -> None:
    assert len(msgspec.json.decode(BODY)) == sent.COUNT


async def cold() -> None:
    assert len(validate_tool_definitions(sent.another(BODY, next(NUMBERS)))) == sent.COUNT


definitions = {"cached": cached, "parsed": parsed, "cold": cold}
