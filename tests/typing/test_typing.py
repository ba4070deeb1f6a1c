"""What a type checker knows of a program that uses Farhand. `basedpyright` reads this file; nothing here waits.

A comment that ignores an error is a test as well: the checker fails when the error is not there.
"""

from collections.abc import Coroutine
from typing import Any, assert_never, assert_type

from pydantic import BaseModel

from farhand import Agent, Approve, Call, CallContext, Deny, LiveRun, manual, scripted, tool, until
from farhand.core.call import CallState, Outcome
from farhand.core.messages import Message
from farhand.core.updates import (
    CallApproved,
    CallAttended,
    CallClaimed,
    CallEnded,
    CallExecuting,
    CallNamed,
    CallProgress,
    CallReady,
    CallReleased,
    CallReported,
    CallStreamed,
    CallUnattended,
    CallUpdate,
    CallWaiting,
    ReasoningStreamed,
    ReplyEnded,
    RunEnded,
    RunStarted,
    RunWaiting,
    SceneChanged,
    TextStreamed,
    TurnStarted,
    Update,
    Warned,
)
from farhand.models import Model, Turn, Use
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


@tool(needs_approval=True)
def wipe(path: str, context: CallContext) -> None:
    """Wipe."""


bare = tool.define("find", input=Item, output=Report)
typed_input = tool.define("keep", input=Item)
typed_output = tool.define("load", output=Report, input=OPEN)
untyped = tool.define("pick", input='{"type":"object"}', output=OPEN)


def find(item: Item) -> Report:
    """Find it."""
    return Report(title=item.name)


async def find_later(item: Item, context: CallContext) -> Report:
    """Find it, and know who asks."""
    return Report(title=f"{item.name} for {context.principal}")


def takes_text(item: str) -> Report:
    """Take something else."""
    return Report(title=item)


def gives_text(item: Item) -> str:
    """Give something else."""
    return item.name


async def wants_number(item: Item, number: int) -> Report:
    """Take too much."""
    return Report(title=item.name * number)


# Tools


async def test_a_decorated_function_keeps_its_parameters_and_its_result() -> None:
    waiting = assert_type(add(1, b=2), Coroutine[Any, Any, int])
    assert_type(await waiting, int)
    assert_type(await total([1, 2]), int)
    assert_type(name_of(Item(name="a"), loud=True), str)
    tools: tuple[Tool[dict[str, Any], int], Tool[dict[str, Any], str]] = (add, name_of)
    assert [made.name for made in tools] == ["add", "name_of"]
    result: FunctionTool[..., int, Coroutine[Any, Any, int]] = total
    assert_type(result.name, str)


def wrong_arguments() -> None:
    """What the checker refuses; never called."""
    name_of("a")  # pyright: ignore[reportArgumentType]
    name_of(Item(name="a"), True)  # pyright: ignore[reportCallIssue]
    name_of()  # pyright: ignore[reportCallIssue]
    _ = add("1")  # pyright: ignore[reportArgumentType]
    _ = total(1)  # pyright: ignore[reportArgumentType]
    wipe(1, 2)  # pyright: ignore[reportArgumentType]


def test_a_definition_has_the_types_that_it_was_given() -> None:
    assert_type(bare, Tool[Item, Report])
    assert_type(typed_input, Tool[Item, Any])
    assert_type(typed_output, Tool[dict[str, Any], Report])
    assert_type(untyped, Tool[dict[str, Any], Any])
    assert_type(tool.define("x"), Tool[dict[str, Any], Any])
    assert_type(bare.load({"name": "a"}), Item)
    assert_type(bare.read({"title": "a"}), Report)


def test_a_place_takes_functions_of_the_tools_types_only() -> None:
    assert_type(bare.server(find), Tool[Item, Report])
    assert_type(bare.client(find_later), Tool[Item, Report])
    assert_type(untyped.server(lambda value: value["x"]), Tool[dict[str, Any], Any])
    bare.server(takes_text)  # pyright: ignore[reportArgumentType]
    bare.client(takes_text)  # pyright: ignore[reportArgumentType]
    bare.server(gives_text)  # pyright: ignore[reportArgumentType]
    bare.client(gives_text)  # pyright: ignore[reportArgumentType]
    bare.server(wants_number)  # pyright: ignore[reportArgumentType]
    bare.client(wants_number)  # pyright: ignore[reportArgumentType]


def test_an_approval_function_takes_the_input_of_the_tool() -> None:
    tool.define("x", input=Item, needs_approval=lambda item: item.name == "a")
    tool.define("x", input=OPEN, needs_approval=lambda value: "a" in value)


def wrong_settings() -> None:
    """What the checker refuses; never called."""
    tool.define("x", input=Item, needs_approval=takes_text)  # pyright: ignore[reportCallIssue, reportArgumentType]
    tool.define("x", effect="often")  # pyright: ignore[reportArgumentType]
    tool.define("x", absent="perhaps")  # pyright: ignore[reportArgumentType]
    tool.define("x", need_approval=True)  # pyright: ignore[reportCallIssue]
    tool(efect="pure")  # pyright: ignore[reportCallIssue]


# Agents and runs


def test_an_agent_has_the_type_of_its_answer() -> None:
    assert_type(Agent(scripted([]), tools=[add, bare]), Agent[str])
    assert_type(Agent(scripted([]), output=Report), Agent[Report])
    assert_type(Agent(scripted([]), output=int), Agent[int])
    assert_type(Agent(scripted([]), output=list[Report]), Agent[list[Report]])


async def test_a_run_and_its_answer_have_that_type() -> None:
    writer = Agent(scripted(['{"title":"a"}', '{"title":"b"}']), output=Report)
    assert_type(await writer.run("x"), LiveRun[Report])
    assert_type((await writer.run("x")).output, Report)
    assert_type(writer.start("x"), LiveRun[Report])
    assert_type(writer.stream("x").run, LiveRun[Report])
    assert_type((await Agent(scripted(["a"])).run("x")).output, str)


async def test_a_stored_run_comes_back_with_its_type() -> None:
    writer = Agent(scripted(['{"title":"a"}']), output=Report)
    run = await writer.run("x")
    assert_type(await writer.resume(run.to_json()), LiveRun[Report])
    assert_type(writer.load(run.to_json()), LiveRun[Report])
    assert_type(run.messages, tuple[Message, ...])


async def test_the_calls_of_a_tool_have_its_types() -> None:
    uses = Turn("", Use("add", {"a": 1}), Use("find", {"name": "a"}))
    run = await Agent(scripted([uses, "ok"]), tools=[add, bare.server(find)]).run("x")
    assert_type(run.calls_of(bare), tuple[Call[Item, Report], ...])
    assert_type(run.calls_of(add), tuple[Call[dict[str, Any], int], ...])
    (found,) = run.calls_of(bare)
    assert_type(found.input, Item)
    assert_type(found.output, Report)
    assert_type(found.outcome, Outcome | None)
    assert_type(run.calls, tuple[Call[Any, Any], ...])
    assert_type(run.calls_of(add)[0].output, int)


async def test_callbacks_are_plain_functions() -> None:
    def decide(call: Call[Any, Any]) -> Approve | Deny:
        return Deny("no") if call.arguments else Approve(remember="tool")

    def watch(update: Update) -> None:
        assert_type(update.seq, int)

    def ask(call: Call[Any, Any], context: CallContext) -> str:
        return call.tool + context.principal

    condition = until(lambda run: run.turn > 1) & called("add")
    assert_type(condition, StopWhen)
    agent = Agent(scripted(["a"]), tools=[wipe], stop_when=condition)
    assert_type(await agent.run("x", on_call=ask, on_approval=decide, on_update=watch), LiveRun[str])


def test_the_models_of_the_house_are_models() -> None:
    models: list[Model] = [scripted([]), manual()]
    assert len(models) == 2
    assert_type(scripted([]), Scripted)


def wrong_agents() -> None:
    """What the checker refuses; never called."""
    Agent(3)  # pyright: ignore[reportArgumentType]
    Agent(scripted([]), tools=[find])  # pyright: ignore[reportArgumentType]
    Agent(scripted([]), stop_when=lambda run: True)  # pyright: ignore[reportArgumentType]
    Deny("no", remember="forever")  # pyright: ignore[reportArgumentType]


# Updates


async def test_updates_are_told_apart_by_their_class() -> None:
    async for update in Agent(scripted(["a"])).stream("x"):
        assert_type(update, Update)
        assert_type(update.at, int)
        if isinstance(update, TextStreamed):
            assert_type(update.text, str)
        elif isinstance(update, CallEnded | CallReady):
            assert_type(update.state, CallState)
            assert_type(update, CallEnded | CallReady)


def say(update: Update) -> str:
    """One line for each kind; a new kind must be added here before the checker is content."""
    match update:
        case RunStarted(run_id=text) | RunEnded(output=text) | Warned(message=text):
            return text
        case TextStreamed(text=text) | ReasoningStreamed(text=text) | ReplyEnded(text=text) | CallStreamed(text=text):
            return text
        case TurnStarted(turn=turn):
            assert_type(turn, int)
            return str(turn)
        case CallNamed(tool=text) | CallReady(tool=text) | CallWaiting(tool=text) | CallExecuting(tool=text):
            return text
        case SceneChanged(groups=names):
            assert_type(names, tuple[str, ...])
            return ", ".join(names)
        case CallApproved(by=text) | CallClaimed(holder=text) | CallReleased(call_id=text):
            return text
        case CallUnattended(call_id=text) | CallAttended(call_id=text):
            return text
        case CallProgress(value=value):
            assert_type(value, Any)
            return str(value)
        case CallEnded(outcome=outcome) | CallReported(outcome=outcome):
            assert_type(outcome, Outcome)
            return str(outcome)
        case RunWaiting(call_ids=ids):
            assert_type(ids, tuple[str, ...])
            return ", ".join(ids)
        case _:
            assert_never(update)


def say_too_little(update: CallUpdate) -> str:
    """A kind that is left out is found by the checker."""
    match update:
        case CallNamed() | CallStreamed() | CallReady() | CallWaiting() | CallApproved() | CallExecuting():
            return update.call_id
        case CallClaimed() | CallUnattended() | CallAttended() | CallProgress() | CallReleased():
            return update.state
        case _:
            assert_never(update)  # pyright: ignore[reportArgumentType]


async def test_every_update_of_a_run_can_be_said() -> None:
    updates = [update async for update in Agent(scripted([Use("add", {"a": 1}), "ok"]), tools=[add]).stream("x")]
    assert [say(update) for update in updates][-1] == "ok"
    calls = [update for update in updates if isinstance(update, CallNamed | CallReady | CallExecuting)]
    assert len({say_too_little(update) for update in calls}) == 1
