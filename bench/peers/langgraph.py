"""LangGraph with LangChain's `create_agent`.

Set-up: a `BaseChatModel` whose `bind_tools` returns itself; a client tool is a server tool that calls `interrupt` and
is run again from its top on resume; the state is kept by a checkpointer, here the in-memory one, in its own form.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from bench import story

QUESTION = {"messages": [{"role": "user", "content": story.PROMPT}]}
THREADS = itertools.count()


class Fake(BaseChatModel):
    """A scripted model."""

    script: Any = None
    count: Any = None

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        if self.count:
            self.count.model_calls += 1
            await asyncio.sleep(story.MODEL_DELAY)
        reply = self.script([str(message.content) for message in messages if isinstance(message, ToolMessage)])
        if isinstance(reply, str):
            message = AIMessage(reply)
        else:
            message = AIMessage("", tool_calls=[{"id": reply.id, "name": reply.name, "args": reply.args}])
        return ChatResult(generations=[ChatGeneration(message=message)])


class Streaming(Fake):
    """A model that streams; apart, since LangChain chooses by which methods a class has."""

    async def _astream(self, *args: Any, run_manager: Any = None, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for delta in story.DELTAS:
            chunk = ChatGenerationChunk(message=AIMessageChunk(delta))
            if run_manager:
                await run_manager.on_llm_new_token(delta, chunk=chunk)
            yield chunk


async def ask_client(**arguments: Any) -> Any:
    return interrupt(arguments)


def client_tool() -> StructuredTool:
    return StructuredTool(name="sel", description="Ask the client.", args_schema=story.SCHEMA, coroutine=ask_client)


TURN = create_agent(Fake(script=story.turn), tools=[tool(story.add)])
SAVER = InMemorySaver()
PAUSE = create_agent(Fake(script=story.pause), tools=[client_tool()], checkpointer=SAVER)
STREAM = create_agent(Streaming(), tools=[])


async def turn() -> None:
    state = await TURN.ainvoke(QUESTION)
    assert state["messages"][-1].content == story.TURN_ANSWER


async def pause() -> None:
    thread = f"t{next(THREADS)}"
    config = {"configurable": {"thread_id": thread}}
    waiting = await PAUSE.ainvoke(QUESTION, config)
    asked = waiting["__interrupt__"][0]
    state = await PAUSE.ainvoke(Command(resume={asked.id: story.CLIENT_RESULT}), config)
    assert story.PAUSE_ANSWER in state["messages"][-1].content
    SAVER.delete_thread(thread)


async def stream() -> None:
    seen = [
        chunk.content
        async for chunk, _ in STREAM.astream(QUESTION, stream_mode="messages")
        if isinstance(chunk, AIMessageChunk)
    ]
    assert "".join(seen) == story.STREAM_TEXT


async def duplicates() -> dict[str, Any]:
    count = story.Count()
    saver = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "twice"}}

    @tool
    async def effect() -> str:
        """Do it."""
        count.effects += 1
        return "done"

    def agent() -> Any:
        model = Fake(script=story.duplicates, count=count)
        return create_agent(model, tools=[client_tool(), effect], checkpointer=saver)

    waiting = await agent().ainvoke(QUESTION, config)
    asked = waiting["__interrupt__"][0]
    count.reset()

    async def deliver() -> None:
        await agent().ainvoke(Command(resume={asked.id: story.CLIENT_RESULT}), config)

    return count.report(await asyncio.gather(deliver(), deliver(), return_exceptions=True))
