"""What a client has told stays with its thread."""

import asyncio

from farhand import Agent, scripted, tool
from farhand.durable import Runner
from farhand.groups import Group
from farhand.models import Request

open_file = tool.define("open_file", input={"type": "object"}, description="Open a file in the editor.")
ide = Group(name="IDE", tools=[open_file], description="The editor that the user works in.")


def reply(request: Request) -> str:
    return f"I see {[tool.name for tool in request.tools]}."


async def main() -> None:
    async with Runner(Agent(scripted(reply)), store="sqlite:runs.db") as runner:
        await runner.run("Hi", thread="t", groups=[ide], context=[{"description": "open file", "value": "a.py"}])
    async with Runner(Agent(scripted(reply)), store="sqlite:runs.db") as runner:
        print((await runner.run("And now?", thread="t", expanded=["IDE"])).output)
        print((await runner.run("And now?", thread="t", reset_client_state=True)).output)


asyncio.run(main())
