"""Pydantic AI.

Set-up: a subclass of `Model`; `DeferredToolRequests` among the output types, the same `ExternalToolset` given to both
runs, and the history kept by the caller. `duplicates` uses the conversation store, the strongest thing it offers: there
the second delivery's *save* is refused, after its run has had its effect.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ExternalToolset
from pydantic_ai.conversation_store import InMemoryConversationStore
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import ToolDefinition

from bench import story


class Fake(Model):
    """A scripted model."""

    def __init__(self, script: Any, count: story.Count | None = None) -> None:
        super().__init__()
        self.script = script
        self.count = count

    @property
    def model_name(self) -> str:
        return "fake"

    @property
    def system(self) -> str:
        return "fake"

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
        if self.count:
            self.count.model_calls += 1
            await asyncio.sleep(story.MODEL_DELAY)
        parts = (part for message in messages for part in message.parts)
        reply = self.script([part.model_response_str() for part in parts if isinstance(part, ToolReturnPart)])
        if isinstance(reply, str):
            return ModelResponse(parts=[TextPart(reply)])
        return ModelResponse(parts=[ToolCallPart(reply.name, reply.json, tool_call_id=reply.id)])


async def deltas(messages: Any, info: Any) -> AsyncIterator[str]:
    for delta in story.DELTAS:
        yield delta


def client_tools() -> ExternalToolset:
    return ExternalToolset([ToolDefinition(name="sel", description="Ask", parameters_json_schema=story.SCHEMA)])


TURN = Agent(Fake(story.turn), tools=[story.add])
PAUSE = Agent(Fake(story.pause), output_type=[str, DeferredToolRequests])
STREAM = Agent(FunctionModel(stream_function=deltas))
CLIENT_TOOLS = client_tools()


async def turn() -> None:
    result = await TURN.run(story.PROMPT)
    assert result.output == story.TURN_ANSWER


async def pause() -> None:
    waiting = await PAUSE.run(story.PROMPT, toolsets=[CLIENT_TOOLS])
    assert isinstance(waiting.output, DeferredToolRequests)
    data = waiting.all_messages_json()
    result = await PAUSE.run(
        message_history=ModelMessagesTypeAdapter.validate_json(data),
        deferred_tool_results=DeferredToolResults(calls={story.SEL.id: story.CLIENT_RESULT}),
        toolsets=[CLIENT_TOOLS],
    )
    assert story.PAUSE_ANSWER in result.output


async def stream() -> None:
    async with STREAM.run_stream(story.PROMPT) as result:
        seen = [delta async for delta in result.stream_text(delta=True, debounce_by=None)]
    assert "".join(seen) == story.STREAM_TEXT


async def duplicates() -> dict[str, Any]:
    count = story.Count()

    async def effect() -> str:
        """Do it."""
        count.effects += 1
        return "done"

    def agent() -> Agent[None, Any]:
        return Agent(Fake(story.duplicates, count), tools=[effect], output_type=[str, DeferredToolRequests])

    store = InMemoryConversationStore()
    waiting = await agent().run(story.PROMPT, toolsets=[client_tools()])
    await store.save(waiting)
    conversation_id = waiting.conversation.conversation_id
    count.reset()

    async def deliver() -> None:
        result = await agent().run(
            conversation=await store.load(conversation_id),
            deferred_tool_results=DeferredToolResults(calls={story.SEL.id: story.CLIENT_RESULT}),
            toolsets=[client_tools()],
        )
        await store.save(result)

    return count.report(await asyncio.gather(deliver(), deliver(), return_exceptions=True))
