"""An agent for the tests of commands: it calls the tools that the user names, and says what came of it."""

from pathlib import Path
from typing import Any

from farhand import Agent, CallContext, scripted, tool
from farhand.core.errors import ToolError
from farhand.core.messages import ToolMessage, UserMessage
from farhand.models import Request, Turn, Use
from farhand.plugins import Plugin


@tool(effect="pure")
async def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: The one.
        b: The other one.
    """
    return a + b


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay somebody.

    Args:
        amount: How much.
    """
    return f"paid {amount}"


@tool
async def count(context: CallContext) -> str:
    """Count to two, and say so."""
    context.progress({"done": 1, "of": 2})
    context.progress("half [/] way")
    return "counted"


@tool
async def hang() -> None:
    """Never end."""
    import asyncio

    await asyncio.Event().wait()


@tool
def fail() -> None:
    """Fail."""
    raise ToolError("it is \x1b[31mbroken", code="broken")


pick = tool.define(
    "pick",
    input={
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "One."}},
        "additionalProperties": False,
    },
    output={"type": "integer"},
    description="Pick a number.",
)
draw = tool.define(
    "draw", input={"type": "object", "properties": {}, "additionalProperties": False}, description="Draw."
)


def _drawn(_: Any) -> str:
    return "a house"


def _picked(given: dict[str, Any]) -> int:
    return int(given["n"]) * 10


pick_here = pick.client(_picked)
drawing = Plugin(name="drawing", version="1", tools=[draw], executors={"draw": _drawn})

ARGUMENTS: dict[str, dict[str, Any]] = {"add": {"a": 1}, "pay": {"amount": 5}, "pick": {"n": 3}}


def reply(request: Request) -> Any:
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        told = [message.text for message in request.messages[-8:] if isinstance(message, ToolMessage)]
        return f"so: {told[-1]}"
    assert isinstance(last, UserMessage)
    if last.text.startswith("long"):
        return Turn([f"word{number} " for number in range(60)])
    if last.text.startswith("evil"):
        return "\x1b[31mred\x07 \u202egnirts"
    named = [word for word in last.text.split() if word in {known.name for known in request.tools}]
    return Turn("Let me see. ", *[Use(word, ARGUMENTS.get(word, {})) for word in named]) if named else last.text


agent = Agent(scripted(reply), name="house", tools=[add, pay, count, hang, fail, pick])
tools = [pick_here]
nothing = Path()


def make() -> Agent[str]:
    """The same."""
    return agent


def break_down() -> Agent[str]:
    """Nothing."""
    raise RuntimeError("no house today")
