"""The server that the programs of docs/client.md and docs/plugins.md talk to, in a thread of its own."""

import os
from collections.abc import Generator
from contextlib import contextmanager

from farhand import Agent, scripted, tool
from farhand.asgi import create_app
from farhand.asgi.access import Tokens
from farhand.core.messages import ToolMessage
from farhand.models import Request, Use
from farhand.testing.server import serving

TOKEN = "a-token-of-twenty-characters"  # noqa: S105  of a server that lives for a second


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay from the user's account."""
    return f"paid {amount}"


open_file = tool.define("open_file", input={"type": "object"}, description="Open a file in the user's editor.")


def reply(request: Request) -> Use | str:
    """Calls the tool that fits what was said, and then says what it gave."""
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return f"{last.tool} says: {last.text}"
    arguments = {
        "pay": {"amount": 5},
        "open_file": {"path": "main.py"},
        "render": {"scene": "sunset"},
        "read_note": {"name": "monday"},
    }
    wanted = [each.name for each in request.tools if each.name.split("_")[0] in last.text.lower()]
    return Use(wanted[0], arguments.get(wanted[0], {})) if wanted else f"You said: {last.text}"


app = create_app(Agent(scripted(reply), tools=[pay, open_file]), store="memory:", authenticate=Tokens({TOKEN: "ann"}))


@contextmanager
def office() -> Generator[None]:
    """Serve, and say where and who in the environment, as whoever runs a program would."""
    with serving(app) as url:
        os.environ |= {"FARHAND_URL": url, "FARHAND_TOKEN": TOKEN}
        yield
