"""A run waits for a person, the process that began it is gone, and another one goes on with it.

`python examples/durable.py` starts itself twice: once to begin and to die without a word, once to decide.
"""

import asyncio
import os
import subprocess
import sys
import tempfile

from farhand import Agent, scripted, tool
from farhand.core.messages import ToolMessage
from farhand.durable import Runner
from farhand.models import Request, Use


@tool(needs_approval=True)
async def delete_account(name: str) -> str:
    """Delete an account for good."""
    return f"the account of {name} is gone"


def reply(request: Request) -> Use | str:
    """Says what a model might say: it calls the tool, and repeats what came of it."""
    last = request.messages[-1]
    return f"Done: {last.text}." if isinstance(last, ToolMessage) else Use("delete_account", {"name": "ann"})


agent = Agent(scripted(reply), tools=[delete_account])


async def begin(store: str) -> None:
    """The first process: runs until a person must decide. Then it is over, as with a crash."""
    async with Runner(agent, store=store) as runner:
        run = await runner.run("Delete the account of Ann", thread="accounts")
        print(f"first process: {run.status} for {run.pending[0].tool} {run.pending[0].arguments}", flush=True)
        os._exit(0)


async def decide(store: str) -> None:
    """The second process: finds what waits, says yes, and sees how it ends."""
    async with Runner(agent, store=store) as runner:
        thread = await runner.thread("accounts")
        run = await runner.find(thread.run)
        for call in thread.pending:
            print(f"second process: yes to {call.tool} {call.arguments}")
            await runner.approve(call.id)
        done = await run.wait()
        print(f"second process: {done.status}. {done.output}")


def main() -> None:
    """Be one of the two processes, or start both."""
    match sys.argv[1:]:
        case ["begin", store]:
            asyncio.run(begin(store))
        case ["decide", store]:
            asyncio.run(decide(store))
        case _:
            with tempfile.TemporaryDirectory() as folder:
                for part in ("begin", "decide"):
                    program = [sys.executable, __file__, part, f"sqlite:{folder}/runs.db"]
                    subprocess.run(program, check=True)  # noqa: S603  this very file


if __name__ == "__main__":
    main()
