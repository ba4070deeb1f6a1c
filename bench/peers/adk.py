"""Google's Agent Development Kit.

Set-up: `Runner` over in-memory sessions, a session created inside the timed body; the a2a extra is installed, since
without it each run tries a failing import again. A client tool is a long-running tool that returns nothing; its answer
is a user message; the JSON of the session stands in for a store, and the run is resumed in memory.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from bench import story

APP, USER = "bench", "u"


class Fake(BaseLlm):
    """A scripted model."""

    script: Any = None
    count: Any = None

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        if stream:
            for delta in story.DELTAS:
                yield LlmResponse(content=content("model", types.Part(text=delta)), partial=True)
            yield LlmResponse(content=content("model", types.Part(text=story.STREAM_TEXT)), turn_complete=True)
            return
        if self.count:
            self.count.model_calls += 1
            await asyncio.sleep(story.MODEL_DELAY)
        parts = (part for message in llm_request.contents for part in message.parts)
        reply = self.script([spoken(part.function_response.response) for part in parts if part.function_response])
        if isinstance(reply, str):
            part = types.Part(text=reply)
        else:
            part = types.Part(function_call=types.FunctionCall(id=reply.id, name=reply.name, args=reply.args))
        yield LlmResponse(content=content("model", part))


class ClientTool(BaseTool):
    """A definition without an implementation, which takes a class of its own."""

    def __init__(self) -> None:
        super().__init__(name="sel", description="Ask the client.", is_long_running=True)

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=story.SCHEMA
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> None:
        return None


def content(role: str, part: types.Part) -> types.Content:
    return types.Content(role=role, parts=[part])


def spoken(response: dict[str, Any]) -> str:
    """What a tool returned, as text; a bare value comes wrapped in `result`."""
    return str(response.get("result", response))


def runner(script: Any, tools: list[Any], count: Any = None) -> Runner:
    agent = LlmAgent(name="agent", model=Fake(model="fake", script=script, count=count), tools=tools)
    return Runner(app_name=APP, agent=agent, session_service=InMemorySessionService())


async def run(on: Runner, session_id: str, part: types.Part, config: RunConfig | None = None) -> list[Any]:
    events = on.run_async(user_id=USER, session_id=session_id, new_message=content("user", part), run_config=config)
    return [event async for event in events]


def text(event: Any) -> str:
    return event.content.parts[0].text


def answer() -> types.Part:
    return types.Part(
        function_response=types.FunctionResponse(id=story.SEL.id, name="sel", response=story.CLIENT_RESULT)
    )


TURN = runner(story.turn, [story.add])
PAUSE = runner(story.pause, [ClientTool()])
STREAM = runner(None, [])


async def opened(on: Runner) -> str:
    session = await on.session_service.create_session(app_name=APP, user_id=USER)
    return session.id


async def closed(on: Runner, session_id: str) -> None:
    await on.session_service.delete_session(app_name=APP, user_id=USER, session_id=session_id)


async def turn() -> None:
    session_id = await opened(TURN)
    events = await run(TURN, session_id, types.Part(text=story.PROMPT))
    assert text(events[-1]) == story.TURN_ANSWER
    await closed(TURN, session_id)


async def pause() -> None:
    session_id = await opened(PAUSE)
    await run(PAUSE, session_id, types.Part(text=story.PROMPT))
    session = await PAUSE.session_service.get_session(app_name=APP, user_id=USER, session_id=session_id)
    assert session is not None
    Session.model_validate(json.loads(session.model_dump_json().encode()))
    events = await run(PAUSE, session_id, answer())
    assert story.PAUSE_ANSWER in text(events[-1])
    await closed(PAUSE, session_id)


async def stream() -> None:
    session_id = await opened(STREAM)
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    events = await run(STREAM, session_id, types.Part(text=story.PROMPT), config)
    assert "".join(text(event) for event in events if event.partial) == story.STREAM_TEXT
    await closed(STREAM, session_id)


async def duplicates() -> dict[str, Any]:
    count = story.Count()
    service = InMemorySessionService()

    async def effect() -> str:
        """Do it."""
        count.effects += 1
        return "done"

    def fresh() -> Runner:
        model = Fake(model="fake", script=story.duplicates, count=count)
        agent = LlmAgent(name="agent", model=model, tools=[ClientTool(), effect])
        return Runner(app_name=APP, agent=agent, session_service=service)

    first = fresh()
    session_id = await opened(first)
    await run(first, session_id, types.Part(text=story.PROMPT))
    count.reset()
    deliveries = (run(fresh(), session_id, answer()), run(fresh(), session_id, answer()))
    return count.report(await asyncio.gather(*deliveries, return_exceptions=True))
