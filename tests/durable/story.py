"""Agents and deaths for the tests of stored runs."""

import asyncio
from typing import Any

from farhand import Agent, scripted, tool
from farhand.core.messages import ToolMessage, UserMessage
from farhand.durable import Runner, Timing
from farhand.models import Request, Turn, Use

QUICK = Timing(lease=0.6, beat=0.1, tick=0.05, check=0.1, drain=2.0)
"""So that a death is noticed within a test."""

pick = tool.define("pick", input={"type": "object"}, description="Pick something.")
choose = tool.define("choose", input={"type": "object"}, description="Choose something.")


def agent(*script: Any, tools: Any = (pick, choose), **settings: Any) -> Agent[Any]:
    return Agent(scripted(script), tools=tools, **settings)


def by_rule(*turns: Any, tools: Any = (pick, choose), **settings: Any) -> Agent[Any]:
    """An agent whose model looks how often it was answered since the input, so that it may be asked again."""

    def reply(request: Request) -> Turn | Use | str:
        said = 0
        for message in reversed(request.messages):
            if isinstance(message, UserMessage):
                break
            said += not isinstance(message, ToolMessage)
        return turns[said]

    return Agent(scripted(reply), tools=tools, **settings)


async def kill(runner: Runner) -> None:
    """End a runner as a crash does: nothing of it reaches the store any more, and nobody is told."""
    replica = runner._replica
    tasks = [*replica._tasks.values()]
    if replica._tending is not None:
        replica._tending.cancel()
        tasks.append(replica._tending)
    tasks += replica.errands.drop()
    replica._drop_all()
    assert replica._heart is not None
    await replica._heart.stop()
    if tasks:
        await asyncio.wait(tasks)
    await replica.store.close()
