"""One of several processes that share a database. Runs in Farhand's environment; one JSON line in, one out.

Orders: `start` a run (`held`: with a server tool that runs until its client's call is answered), `answer` a call, let a
run come to `rest`. A line of its own says when the model was asked again, by whichever process does that. Times are of
the clock that all processes of a machine share.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench import story
from bench.ours import client_tool
from farhand import Agent, tool
from farhand.core.messages import ToolMessage
from farhand.core.pieces import Done, Finish, Piece, TextDelta, ToolArgsDelta, ToolEnd, ToolStart
from farhand.core.updates import CallEnded
from farhand.durable import Runner
from farhand.models import Request
from farhand.places.running import CallContext

HELD = "hold it"


def say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


class Model:
    """Asks for the client tool, and for the server tool when it is told to; then it is done."""

    name = "fake"

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        if any(isinstance(message, ToolMessage) for message in request.messages):
            say(asked=request.run_id, at=time.perf_counter_ns())
            yield TextDelta("done")
            yield Done()
            return
        calls = {"sel": story.SEL.json}
        if any(message.text == HELD for message in request.messages):
            calls["hold"] = "{}"
        for index, (name, arguments) in enumerate(calls.items()):
            yield ToolStart(index, name, f"c{index}")
            yield ToolArgsDelta(index, arguments)
            yield ToolEnd(index, arguments)
        yield Done(Finish.TOOLS)


class Replica:
    """A runner, and what is asked of it."""

    def __init__(self, url: str) -> None:
        self.holding: dict[str, asyncio.Event] = {}

        @tool(effect="pure")
        async def hold(context: CallContext) -> str:
            """Hold the run until the client's call has ended; whoever watches learns of that."""
            async with aclosing(self.runner.watch(context.thread_id)) as updates:
                async for update in updates:
                    self.held(context.run_id).set()  # from here on nothing is missed
                    if type(update) is CallEnded:
                        break
            return "held"

        self.runner = Runner(Agent(Model(), tools=[client_tool(), hold]), store=url)

    def held(self, run: str) -> asyncio.Event:
        return self.holding.setdefault(run, asyncio.Event())

    async def do(self, order: str, **how: Any) -> dict[str, Any]:
        match order:
            case "start":
                return await self.start(how["held"])
            case "answer":
                posted = time.perf_counter_ns()
                await self.runner.answer(how["call"], story.CLIENT_RESULT)
                return {"posted": posted, "accepted": time.perf_counter_ns()}
            case _:
                run = await self.runner.find(how["run"])
                return {"output": (await run.wait()).output}

    async def start(self, held: bool) -> dict[str, Any]:
        run = await self.runner.start(HELD if held else story.PROMPT)
        if held:
            await self.held(run.id).wait()
        else:
            await run.wait()
        [call] = await self.runner.pending(thread=run.thread)
        return {"run": run.id, "call": call.id}


async def main() -> None:
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    replica = Replica(sys.argv[1])
    async with replica.runner:
        say(ready=True)
        async for line in orders:
            say(**await replica.do(**json.loads(line)))


if __name__ == "__main__":
    asyncio.run(main())
