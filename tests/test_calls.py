"""One call as a program sees it: its record, and its arguments and result as the tool's types."""

from typing import Any

import pytest
from msgspec import Raw
from pydantic import BaseModel

from farhand import Agent, Binary, Call, ToolError, scripted, tool
from farhand.core.call import Call as Record
from farhand.core.call import CallState, Outcome
from farhand.core.definition import Place
from farhand.core.failure import Failure
from farhand.core.messages import Text
from farhand.models import Turn, Use


class Point(BaseModel):
    x: int


move = tool.define("move", input=Point, output=Point, description="Move.", needs_approval=True)


def make(**fields: Any) -> Call[Point, Point]:
    return Call(Record("c1", "label", "move", 1, arguments='{"x":1}', place=Place.CLIENT, **fields), move)


def test_a_call_shows_its_record() -> None:
    call = make(state=CallState.APPROVAL_REQUESTED)
    assert (call.id, call.tool, call.place, call.state) == ("c1", "move", Place.CLIENT, CallState.APPROVAL_REQUESTED)
    assert (call.outcome, call.failure, call.needs_approval) == (None, None, True)
    assert not make(state=CallState.EXECUTING).needs_approval


def test_arguments_are_json_and_the_input_is_of_the_tools_type() -> None:
    assert (make().arguments, make().input) == ({"x": 1}, Point(x=1))
    assert Call(make().record, None).input == {"x": 1}


def test_the_output_is_of_the_tools_type() -> None:
    ok = make(state=CallState.OUTPUT_AVAILABLE, outcome=Outcome.OK, result=Raw(b'{"x":2}'))
    assert ok.output == Point(x=2)
    assert Call(ok.record, None).output == {"x": 2}
    bare = tool.define("move")
    assert Call(ok.record, bare).output == {"x": 2}


@pytest.mark.parametrize("raw", [b"false", b"0", b"null", b'""', b"[]"])
def test_an_empty_result_is_a_result(raw: bytes) -> None:
    ok = Call(make(outcome=Outcome.OK, result=Raw(raw)).record, None)
    assert ok.output in (False, 0, None, "", [])


def test_a_result_of_parts_is_its_parts() -> None:
    raw = Raw(b'[{"type":"text","text":"a"}]')
    assert make(outcome=Outcome.OK, result=raw, multipart=True).output == (Text("a"),)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"state": CallState.EXECUTING}, "executing"),
        ({"state": CallState.OUTPUT_ERROR, "outcome": Outcome.FAILED, "failure": Failure("x", "y")}, "failed"),
        ({"state": CallState.CANCELLED, "outcome": Outcome.DENIED}, "denied"),
    ],
)
def test_a_call_that_did_not_end_well_has_no_output_and_says_why(fields: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"call 'c1' has no output: {why}"):
        _ = make(**fields).output


def test_it_prints_as_what_it_is() -> None:
    assert repr(make(state=CallState.EXECUTING)) == "<Call c1 of 'move': executing>"
    assert repr(make(outcome=Outcome.OK)) == "<Call c1 of 'move': ok>"


async def test_a_run_lists_its_calls_and_those_of_one_tool() -> None:
    @tool
    async def add(a: int) -> int:
        """Add."""
        if a < 0:
            raise ToolError("too small", code="too_small", path="/a", details={"least": 0})
        return a + 1

    uses = Turn("", Use("add", {"a": 1}), Use("move", {"x": 5}), Use("add", {"a": -1}), Use("nothing"))
    run = await Agent(scripted([uses, "ok"]), tools=[add, move]).run("hi", on_approval=lambda call: False)
    assert [call.outcome for call in run.calls] == [Outcome.OK, Outcome.DENIED, Outcome.FAILED, Outcome.INVALID]
    first, second = run.calls_of(add)
    assert (first.input, first.output) == ({"a": 1}, 2)
    assert second.failure == Failure("too_small", "too small", "/a", True, {"least": 0})
    assert [call.input for call in run.calls_of(move)] == [Point(x=5)]


async def test_a_call_is_a_picture_that_does_not_change() -> None:
    pick = tool.define("pick", input={"type": "object"}, description="Pick.")
    run = await Agent(scripted([Use("pick"), "ok"]), tools=[pick]).run("hi")
    (before,) = run.pending
    run.answer(before.id, [Binary("image/png", data=b"1")])
    (after,) = run.calls_of(pick)
    assert (before.state, after.outcome) == (CallState.EXECUTING, Outcome.OK)
    assert after.output == (Binary("image/png", data=b"1"),)
