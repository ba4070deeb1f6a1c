"""A run that waits for a person is stored as JSON and goes on in another process.

`python examples/approvals.py` starts itself a second time as that other process.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from farhand import Agent, scripted, tool
from farhand.core.messages import ToolMessage
from farhand.models import Request, Turn, Use


@tool(needs_approval=True)
async def delete_account(name: str) -> str:
    """Delete an account for good."""
    return f"the account of {name} is gone"


def reply(request: Request) -> Turn | Use | str:
    """Says what a model might say: it calls the tool, and repeats what came of it."""
    last = request.messages[-1]
    return f"Done: {last.text}." if isinstance(last, ToolMessage) else Use("delete_account", {"name": "ann"})


agent = Agent(scripted(reply), tools=[delete_account])


async def begin() -> bytes:
    """The first process: runs until a person must decide, and gives the run away as JSON."""
    run = await agent.run("Delete the account of Ann")
    print(f"first process: {run.status} for {run.pending[0].tool} {run.pending[0].arguments}")
    return run.to_json()


async def decide(stored: bytes) -> None:
    """The second process: reads the run, says yes and lets it go on."""
    run = agent.load(stored)
    for call in run.pending:
        print(f"second process: yes to {call.tool} {call.arguments}")
        run.approve(call.id)
    await run.wait()
    print(f"second process: {run.status}. {run.output}")


def main() -> None:
    """Begin here, and go on in a process of its own."""
    if len(sys.argv) > 1:
        asyncio.run(decide(Path(sys.argv[1]).read_bytes()))
        return
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "run.json"
        store.write_bytes(asyncio.run(begin()))
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, str(store)], check=True)  # noqa: S603  this very file


if __name__ == "__main__":
    main()
