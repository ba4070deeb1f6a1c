"""LangGraph with `create_agent`, its state kept in SQLite by `AsyncSqliteSaver`; one thread a run.

The client tool is a server tool that calls `interrupt`, as in `langgraph.py`. The saver sets WAL itself and leaves
`synchronous` at SQLite's default, which is FULL; one connection and one lock serve all runs. Durability is LangGraph's
default, `async`: a checkpoint is written while the next step runs.
"""

import itertools
import time
from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from bench import story
from bench.durable import trips as clock
from bench.peers.langgraph import QUESTION, Fake, client_tool

THREADS = itertools.count()


async def trips(url: str, **how: Any) -> dict[str, Any]:
    async with AsyncSqliteSaver.from_conn_string(url.removeprefix("sqlite:")) as saver:
        agent = create_agent(Fake(script=story.pause), tools=[client_tool()], checkpointer=saver)

        async def trip() -> int:
            config: Any = {"configurable": {"thread_id": f"t{next(THREADS)}"}}
            waiting = await agent.ainvoke(QUESTION, config)
            asked = waiting["__interrupt__"][0]
            seen = time.perf_counter_ns()
            state = await agent.ainvoke(Command(resume={asked.id: story.CLIENT_RESULT}), config)
            assert story.PAUSE_ANSWER in state["messages"][-1].content
            return seen

        return await clock.measure(trip, **how)
