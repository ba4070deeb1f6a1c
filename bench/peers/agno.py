"""Agno.

Set-up: a model with six methods, telemetry off; `Function(external_execution=True)` is the client tool; a paused run
is resumed out of a database by run id and requirements, so `pause` needs one: in memory, and each session is deleted
again, so that the heap does not grow from repeat to repeat.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.run.agent import RunContentEvent
from agno.run.requirement import RunRequirement
from agno.tools.function import Function

from bench import story


class Fake(Model):
    """A scripted model."""

    def __init__(self, script: Any = None, count: story.Count | None = None) -> None:
        super().__init__(id="fake")
        self.script = script
        self.count = count

    async def ainvoke(self, messages: Any, **kwargs: Any) -> ModelResponse:
        if self.count:
            self.count.model_calls += 1
            await asyncio.sleep(story.MODEL_DELAY)
        reply = self.script([str(message.content) for message in messages if message.role == "tool"])
        if isinstance(reply, str):
            return ModelResponse(role="assistant", content=reply)
        function = {"name": reply.name, "arguments": reply.json}
        return ModelResponse(
            role="assistant",
            tool_calls=[{"id": reply.id, "type": "function", "function": function}],
        )

    async def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        for delta in story.DELTAS:
            yield ModelResponse(role="assistant", content=delta)

    def invoke(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _parse_provider_response_delta(self, response: Any) -> Any:
        raise NotImplementedError


def client_tool() -> Function:
    return Function(
        name="sel",
        description="Ask the client.",
        parameters=story.SCHEMA,
        external_execution=True,
        skip_entrypoint_processing=True,
    )


DB = InMemoryDb()
TURN = Agent(model=Fake(story.turn), tools=[story.add], telemetry=False)
PAUSE = Agent(model=Fake(story.pause), tools=[client_tool()], db=DB, telemetry=False)
STREAM = Agent(model=Fake(), telemetry=False)


async def turn() -> None:
    run = await TURN.arun(story.PROMPT)
    assert run.content == story.TURN_ANSWER


async def resume(agent: Agent, data: bytes) -> Any:
    """Load the requirements of a paused run, deliver the client's result and run on."""
    stored = json.loads(data)
    requirements = [RunRequirement.from_dict(requirement) for requirement in stored["requirements"]]
    for requirement in requirements:
        requirement.set_external_execution_result(story.CLIENT_RESULT_JSON)
    return await agent.acontinue_run(
        run_id=stored["run_id"],
        session_id=stored["session_id"],
        requirements=requirements,
    )


async def pause() -> None:
    waiting = await PAUSE.arun(story.PROMPT)
    assert waiting.is_paused
    data = json.dumps(waiting.to_dict()).encode()
    run = await resume(PAUSE, data)
    assert story.PAUSE_ANSWER in run.content
    DB.delete_session(run.session_id)


async def stream() -> None:
    events = STREAM.arun(story.PROMPT, stream=True)
    seen = [event.content async for event in events if isinstance(event, RunContentEvent)]
    assert "".join(seen) == story.STREAM_TEXT


async def duplicates() -> dict[str, Any]:
    count = story.Count()
    db = InMemoryDb()

    async def effect() -> str:
        """Do it."""
        count.effects += 1
        return "done"

    def agent() -> Agent:
        return Agent(
            id="twice", model=Fake(story.duplicates, count), tools=[client_tool(), effect], db=db, telemetry=False
        )

    waiting = await agent().arun(story.PROMPT)
    data = json.dumps(waiting.to_dict()).encode()
    count.reset()
    return count.report(
        await asyncio.gather(resume(agent(), data), resume(agent(), data), return_exceptions=True),
    )
