"""An editor whose tools the model opens when it needs them."""

import asyncio
from typing import Any

from farhand import Agent, scripted, tool
from farhand.asgi import create_app
from farhand.asgi.access import Tokens
from farhand.client import Client
from farhand.groups import Augmented, Group
from farhand.models import Use
from farhand.testing.server import served


def open_file(given: dict[str, Any]) -> Augmented:
    context = [{"description": "open file", "value": given["path"], "key": "file"}]
    return Augmented("opened", {"expand": ["Debugger"], "add_context": context})


def step(given: dict[str, Any]) -> str:
    return "at line 2"


ide = Group(
    name="IDE",
    description="The editor that the user works in.",
    tools=[tool.define("open_file", input={"type": "object"}, description="Open a file.").client(open_file)],
)
debugger = Group(
    name="Debugger",
    description="Steps through the open file.",
    tools=[tool.define("step", input={"type": "object"}, description="Go one step.").client(step)],
)
script = [Use("IDE"), Use("open_file", {"path": "a.py"}), Use("step"), "You are at line 2."]


async def main() -> None:
    people = {"a-token-of-twenty-characters": "ann"}
    [token] = people
    app = create_app(Agent(scripted(script)), store="memory:", authenticate=Tokens(people))
    async with served(app) as url, Client(url, token=token) as client:
        client.register_group(ide)
        client.register_group(debugger)
        result = await client.thread("t").run("Where am I?")
        print([call.tool for call in result.calls], result.output)


asyncio.run(main())
