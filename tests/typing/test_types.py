"""What a type checker knows of a program that uses Farhand. `basedpyright` reads this file; nothing here waits.

A comment that ignores an error is a test as well: the checker fails when the error is not there.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, assert_never, assert_type

from pydantic import BaseModel

from farhand import Agent, Approve, Call, CallContext, Deny, LiveRun, scripted, tool, until
from farhand.core.call import CallState, Outcome
from farhand.core.messages import Message
from farhand.core.run import Run
from farhand.core.updates import (
    CallApproved,
    CallClaimed,
    CallEnded,
    CallExecuting,
    CallNamed,
    CallProgress,
    CallReady,
    CallReleased,
    CallStreamed,
    CallWaiting,
    ReasoningStreamed,
    ReplyEnded,
    RunEnded,
    RunStarted,
    RunWaiting,
    TextStreamed,
    TurnStarted,
    Update,
    Warned,
)
from farhand.models import Model, Turn
from farhand.models.scripted import Scripted
from farhand.stopping import StopWhen, called
from farhand.tool import FunctionTool, Tool

OPEN: dict[str, Any] = {"type": "object"}


class Report(BaseModel):
    """A report."""

    title: str


class Item(BaseModel):
    """An item."""

    name: str


@tool
async def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@tool
def name_of(item: Item, *, loud: bool = False) -> str:
    """Say its name."""
    return item.name.upper() if loud else item.name


@tool(name="sum", needs_approval=True, effect="pure", timeout=3.0, retries=2, tags=["math"])
async def total(numbers: list[int]) -> int:
    """Sum up."""
    return sum(numbers)


@tool(needs_approval=lambda path: path != "/tmp")
def wipe(path: str, context: CallContext) -> None:
    """Wipe."""


bare = tool.define("find", input=Item, output=Report)
typed_input = tool.define("keep", input=Item)
typed_output = tool.define("load", output=Report, input=OPEN)
untyped = tool.define("pick", input='{"type":"object"}', output=OPEN)
writer = Agent(scripted([]), tools=[add, bare], output=Report)
speaker = Agent(scripted([]), tools=[add])


# Tools


async def test_a_decorated_function_keeps_its_parameters_and_its_result() -> None:
    assert_type(add, FunctionTool[[int, int], int]) if False else None  # the names of parameters are kept as well
    checked: Tool[dict[str, Any], int] = add
    assert_type(name_of(Item(name="a"), loud=True), str | Awaitable[str])
    assert_type(checked.name, str)
    add("1")  # pyright: ignore[reportArgumentType]
