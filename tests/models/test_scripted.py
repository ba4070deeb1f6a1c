"""A model that follows a script says what the script says, and a recording of any model can be replayed."""

import asyncio
from typing import Any

import pytest

from farhand import Agent, manual, scripted, tool
from farhand.core.errors import InvalidInput, ModelError
from farhand.core.messages import UserMessage
from farhand.core.pieces import (
    Done,
    Finish,
    Piece,
    ReasoningDelta,
    TextDelta,
    ToolArgsDelta,
    ToolEnd,
    ToolStart,
    Usage,
)
from farhand.models import Model, Request, Scripted, Turn, Use, record

REQUEST = Request((UserMessage(()),), (), "", 1, "r")


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def said(model: Model) -> list[Piece]:
    return [piece async for piece in model.stream(REQUEST)]


async def test_a_string_is_an_answer() -> None:
    assert await said(scripted(["hello"])) == [TextDelta("hello"), Done(Finish.STOP)]


async def test_text_comes_in_the_chunks_that_the_script_gives() -> None:
    pieces = await said(scripted([Turn(["a", "", "b"])]))
    assert pieces == [TextDelta("a"), TextDelta("b"), Done()]


async def test_an_empty_turn_says_nothing_and_is_done() -> None:
    assert await said(scripted([Turn()])) == [Done()]
    assert await said(scripted([""])) == [Done()]


async def test_a_call_comes_with_its_arguments_whole_or_in_chunks() -> None:
    whole, chunked = await said(scripted([Use("add", {"a": 1})])), await said(scripted([Use("add", {"a": 1}, chunk=3)]))
    assert whole == [
        ToolStart(0, "add", "call_1"),
        ToolArgsDelta(0, '{"a":1}'),
        ToolEnd(0, '{"a":1}'),
        Done(Finish.TOOLS),
    ]
    assert [piece.text for piece in chunked if isinstance(piece, ToolArgsDelta)] == ['{"a', '":1', "}"]
    assert chunked[-2:] == whole[-2:]


async def test_arguments_may_be_text_that_is_no_json() -> None:
    pieces = await said(scripted([Use("add", "{oops")]))
    assert pieces[2] == ToolEnd(0, "{oops")
    assert (await said(scripted([Use("add", "")])))[1] == ToolEnd(0, "")
    assert (await said(scripted([Use("add")])))[-2] == ToolEnd(0, "{}")


async def test_several_calls_have_their_own_index_and_label() -> None:
    pieces = await said(scripted([Turn("", Use("a"), Use("b", label="mine"))]))
    starts = [piece for piece in pieces if isinstance(piece, ToolStart)]
    assert starts == [ToolStart(0, "a", "call_1"), ToolStart(1, "b", "mine")]


async def test_reasoning_text_calls_and_usage_come_in_this_order() -> None:
    turn = Turn("hi", Use("a"), reasoning="hm", usage=Usage(3, 4), finish=Finish.LENGTH)
    kinds = [ReasoningDelta, TextDelta, ToolStart, ToolArgsDelta, ToolEnd, Usage, Done]
    pieces = await said(scripted([turn]))
    assert [type(piece) for piece in pieces] == kinds
    assert pieces[-2:] == [Usage(3, 4), Done(Finish.LENGTH)]


async def test_an_error_breaks_the_reply_off_after_what_was_said() -> None:
    stream = scripted([Turn("half", error=ModelError("gone"))]).stream(REQUEST)
    assert await anext(stream) == TextDelta("half")
    with pytest.raises(ModelError, match="gone"):
        await anext(stream)


async def test_an_error_may_stand_for_a_whole_turn() -> None:
    run = await Agent(scripted([ModelError("busy", code="rate_limit", retryable=True)])).run("hi")
    assert run.state.failure is not None
    assert (run.state.failure.code, run.state.failure.retryable) == ("rate_limit", True)


async def test_a_delay_lets_others_go_first() -> None:
    order: list[str] = []

    async def listen(name: str, delay: float) -> None:
        assert len([piece async for piece in scripted([Turn(["x", "y"], delay=delay)]).stream(REQUEST)]) == 3
        order.append(name)

    async with asyncio.timeout(5):
        await asyncio.gather(listen("slow", 0.01), listen("fast", 0))
    assert order == ["fast", "slow"]


async def test_a_function_decides_by_the_request() -> None:
    def choose(request: Request) -> Turn | Use | str:
        match len(request.messages):
            case 1:
                return Use("add", {"a": 1, "b": 1})
            case 3:
                return Turn("", Use("add", {"a": 2, "b": 2}))
            case _:
                return "enough"

    run = await Agent(scripted(choose), tools=[add]).run("hi")
    assert (run.output, [call.output for call in run.calls]) == ("enough", [2, 4])


async def test_a_script_that_is_over_says_so() -> None:
    model = scripted(["one"])
    await said(model)
    with pytest.raises(ModelError, match="the script has 1 turns and was asked for one more") as ended:
        await said(model)
    assert ended.value.code == "script_ended"


async def test_what_the_model_was_asked_is_kept() -> None:
    model = scripted(["one", "two"])
    await Agent(model, instructions="Be brief.").run("hi")
    (request,) = model.requests
    assert (request.instructions, request.turn, request.output_schema) == ("Be brief.", 1, None)
    assert [message.text for message in request.messages if isinstance(message, UserMessage)] == ["hi"]


async def test_a_recorded_run_is_replayed_to_the_same_end() -> None:
    turns = [
        Turn(["let ", "me"], Use("add", {"a": 1, "b": 2}, chunk=4), reasoning="hm", usage=Usage(5, 6)),
        Turn("3", usage=Usage(7, 8)),
    ]
    recorder = record(scripted(turns))
    first = await Agent(recorder, tools=[add]).run("hi")
    model = Scripted.replay(recorder.recording())
    again = await Agent(model, tools=[add]).run("hi")
    assert recorder.name == "scripted"
    assert (again.output, again.usage, again.calls[0].output) == (first.output, first.usage, 3)
    assert [type(event) for event in again.log] == [type(event) for event in first.log]
    assert Scripted.replay(recorder.recording().decode()).requests == []


async def test_every_piece_survives_a_recording() -> None:
    turn = Turn(["a", "b"], Use("t", {"x": [1]}, chunk=2, label="l"), reasoning="r", usage=Usage(1, 2, 3, 4, 5))
    recorder = record(scripted([turn]))
    pieces = await said(recorder)
    assert await said(Scripted.replay(recorder.recording())) == pieces


async def test_a_recording_keeps_a_reply_as_far_as_it_came() -> None:
    recorder = record(scripted([Turn("half", error=ModelError("gone"))]))
    with pytest.raises(ModelError):
        await said(recorder)
    assert await said(Scripted.replay(recorder.recording())) == [TextDelta("half")]


async def test_a_recording_may_be_of_a_person() -> None:
    person = manual()
    recorder = record(person)
    person.say("hello")
    await said(recorder)
    assert await said(Scripted.replay(recorder.recording())) == [TextDelta("hello"), Done()]


@pytest.mark.parametrize("recording", [b"", b"{", b"{}", b"[{}]", b'[[{"type":"unknown"}]]', "nonsense", b"\xff"])
def test_what_is_no_recording_is_refused(recording: Any) -> None:
    with pytest.raises(InvalidInput, match="not a recording"):
        Scripted.replay(recording)
