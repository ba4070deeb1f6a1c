"""Microsoft Agent Framework (core).

Set-up: a fake client only runs tools when `FunctionInvocationLayer` is among its bases; a `FunctionTool` without a
function is a client tool, given to each run; the result goes back as a plain tool message.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    ResponseStream,
    tool,
)

from bench import story


class Fake(FunctionInvocationLayer, BaseChatClient):
    """A scripted model."""

    def __init__(self, script: Any = None, count: story.Count | None = None) -> None:
        super().__init__()
        self.script = script
        self.count = count

    def _inner_get_response(self, *, messages: Sequence[Message], stream: bool, options: Any, **kwargs: Any) -> Any:
        return self.deltas() if stream else self.reply(messages)

    def deltas(self) -> Any:
        async def updates() -> Any:
            for delta in story.DELTAS:
                yield ChatResponseUpdate(contents=[Content.from_text(delta)], role="assistant")

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

    async def reply(self, messages: Sequence[Message]) -> ChatResponse:
        if self.count:
            self.count.model_calls += 1
            await asyncio.sleep(story.MODEL_DELAY)
        contents = (content for message in messages for content in message.contents)
        reply = self.script([str(content.result) for content in contents if content.type == "function_result"])
        if isinstance(reply, str):
            said = Content.from_text(reply)
        else:
            said = Content.from_function_call(reply.id, reply.name, arguments=reply.json)
        return ChatResponse(messages=[Message(role="assistant", contents=[said])])


def client_tool() -> FunctionTool:
    return FunctionTool(name="sel", description="Ask the client.", func=None, input_model=story.SCHEMA)


def answer() -> Message:
    return Message(
        role="tool",
        contents=[Content.from_function_result(story.SEL.id, result=story.CLIENT_RESULT_JSON)],
    )


TURN = Agent(Fake(story.turn), tools=[tool(approval_mode="never_require")(story.add)])
PAUSE = Agent(Fake(story.pause))
STREAM = Agent(Fake())
SEL = client_tool()


async def turn() -> None:
    response = await TURN.run(story.PROMPT)
    assert response.text == story.TURN_ANSWER


async def pause() -> None:
    session = PAUSE.create_session()
    await PAUSE.run(story.PROMPT, tools=[SEL], session=session)
    data = json.dumps(session.to_dict()).encode()
    session = AgentSession.from_dict(json.loads(data))
    response = await PAUSE.run([answer()], tools=[SEL], session=session)
    assert story.PAUSE_ANSWER in response.text


async def stream() -> None:
    seen = [update.text async for update in STREAM.run(story.PROMPT, stream=True)]
    assert "".join(seen) == story.STREAM_TEXT


async def duplicates() -> dict[str, Any]:
    count = story.Count()

    @tool(approval_mode="never_require")
    async def effect() -> str:
        """Do it."""
        count.effects += 1
        return "done"

    def agent() -> Agent:
        return Agent(Fake(story.duplicates, count), tools=[effect])

    first = agent()
    session = first.create_session()
    await first.run(story.PROMPT, tools=[client_tool()], session=session)
    data = json.dumps(session.to_dict()).encode()
    count.reset()

    async def deliver() -> None:
        await agent().run([answer()], tools=[client_tool()], session=AgentSession.from_dict(json.loads(data)))

    return count.report(await asyncio.gather(deliver(), deliver(), return_exceptions=True))
