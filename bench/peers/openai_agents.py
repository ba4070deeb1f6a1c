"""OpenAI Agents SDK.

Set-up: a subclass of `Model`, tracing off. It has no client tools: a function tool that needs approval stands in, which
returns the client's result out of the run's context once it has been approved.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    Runner,
    RunState,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import assistant_message, function_call
from openai.types.responses import Response, ResponseCompletedEvent, ResponseTextDeltaEvent

from bench import story

set_tracing_disabled(True)


class Fake(Model):
    """A scripted model."""

    def __init__(self, script: Any = None, count: story.Count | None = None) -> None:
        self.script = script
        self.count = count

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:  # noqa: A002
        if self.count:
            self.count.model_calls += 1
            await asyncio.sleep(story.MODEL_DELAY)
        items = [] if isinstance(input, str) else input
        reply = self.script([item["output"] for item in items if item.get("type") == "function_call_output"])
        if isinstance(reply, str):
            item = assistant_message(reply)
        else:
            item = function_call(reply.name, reply.json, call_id=reply.id)
        return ModelResponse(output=[item], usage=Usage(requests=1), response_id="r")

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        for index, delta in enumerate(story.DELTAS):
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta",
                content_index=0,
                delta=delta,
                item_id="m",
                logprobs=[],
                output_index=0,
                sequence_number=index,
            )
        whole = Response(
            id="r",
            created_at=0,
            model="fake",
            object="response",
            output=[assistant_message(story.STREAM_TEXT)],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(type="response.completed", response=whole, sequence_number=len(story.DELTAS))


async def from_context(context: Any, arguments: str) -> str:
    return context.context["result"]


def client_tool() -> FunctionTool:
    return FunctionTool(
        name="sel",
        description="Ask the client.",
        params_json_schema=story.SCHEMA,
        on_invoke_tool=from_context,
        strict_json_schema=False,
        needs_approval=True,
    )


TURN = Agent(name="turn", model=Fake(story.turn), tools=[function_tool(story.add)])
PAUSE = Agent(name="pause", model=Fake(story.pause), tools=[client_tool()])
STREAM = Agent(name="stream", model=Fake())


async def turn() -> None:
    result = await Runner.run(TURN, story.PROMPT)
    assert result.final_output == story.TURN_ANSWER


async def resume(agent: Agent[Any], data: bytes) -> Any:
    """Load a stored state, deliver the client's result and run on."""
    context = {"result": story.CLIENT_RESULT_JSON}
    state = await RunState.from_string(agent, data.decode(), context_override=context)
    for interruption in state.get_interruptions():
        state.approve(interruption)
    return await Runner.run(agent, state)


async def pause() -> None:
    waiting = await Runner.run(PAUSE, story.PROMPT, context={})
    data = waiting.to_state().to_string().encode()
    result = await resume(PAUSE, data)
    assert story.PAUSE_ANSWER in result.final_output


async def stream() -> None:
    result = Runner.run_streamed(STREAM, story.PROMPT)
    seen = [
        event.data.delta
        async for event in result.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    assert "".join(seen) == story.STREAM_TEXT
    assert result.final_output == story.STREAM_TEXT


async def duplicates() -> dict[str, Any]:
    count = story.Count()

    @function_tool
    async def effect() -> str:
        """Do it."""
        count.effects += 1
        return "done"

    def agent() -> Agent[Any]:
        return Agent(name="twice", model=Fake(story.duplicates, count), tools=[client_tool(), effect])

    waiting = await Runner.run(agent(), story.PROMPT, context={})
    data = waiting.to_state().to_string().encode()
    count.reset()
    return count.report(
        await asyncio.gather(resume(agent(), data), resume(agent(), data), return_exceptions=True),
    )
