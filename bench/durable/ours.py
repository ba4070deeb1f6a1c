"""Farhand with its runs kept: a `Runner` on a store, and clients in the same process."""

import time
from typing import Any

from bench import story
from bench.durable import trips as clock
from bench.ours import Fake, client_tool
from farhand import Agent
from farhand.durable import Runner


async def trips(url: str, **how: Any) -> dict[str, Any]:
    async with Runner(Agent(Fake(story.pause), tools=[client_tool()]), store=url) as runner:

        async def trip() -> int:
            run = await runner.start(story.PROMPT)
            waiting = await run.wait()
            seen = time.perf_counter_ns()
            [call] = waiting.pending
            await runner.answer(call.id, story.CLIENT_RESULT)
            ended = await run.wait()
            assert story.PAUSE_ANSWER in ended.output
            return seen

        return await clock.measure(trip, **how)
