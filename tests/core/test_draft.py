"""A reply under way: live updates, the whole reply in the end, and adapters that break the rules."""

import pytest

from farhand.core.call import CallState, Outcome
from farhand.core.draft import Draft
from farhand.core.errors import ModelBroke
from farhand.core.messages import CallRequest, Reasoning
from farhand.core.pieces import Done, Finish, ReasoningDelta, TextDelta, ToolArgsDelta, ToolEnd, ToolStart, Usage
from farhand.core.updates import CallNamed, CallStreamed, ReasoningStreamed, TextStreamed


def test_text_is_told_with_its_offset_and_joined_in_the_reply() -> None:
    draft = Draft(1, 7)
    assert draft.feed(TextDelta("Hel"), 5) == TextStreamed(7, 5, 1, 0, "Hel")
    assert draft.feed(TextDelta("lo"), 6) == TextStreamed(7, 6, 1, 3, "lo")
    assert draft.feed(Done(), 6) is None
    assert draft.reply(8).text == "Hello"


def test_a_piece_of_a_derived_type_is_taken_for_what_it_derives_from() -> None:
    class Marked(TextDelta, frozen=True, gc=False):
        source: str = ""

    assert Draft(1, 7).feed(Marked("Hel", "here"), 5) == TextStreamed(7, 5, 1, 0, "Hel")


def test_a_call_passes_awaiting_input_and_input_streaming() -> None:
    draft = Draft(2, 0)
    named = draft.feed(ToolStart(0, "t", "label"), 1, "c1")
    first = draft.feed(ToolArgsDelta(0, '{"n"'), 2)
    second = draft.feed(ToolArgsDelta(0, ":1}"), 3)
    assert named == CallNamed(0, 1, "c1", "t", 2)
    assert first == CallStreamed(0, 2, "c1", 0, '{"n"')
    assert second == CallStreamed(0, 3, "c1", 4, ":1}")
    assert named is not None
    assert (named.state, second.state) == (CallState.AWAITING_INPUT, CallState.INPUT_STREAMING)
    assert draft.feed(ToolEnd(0, '{"n":1}'), 4) is None
    draft.feed(Done(Finish.TOOLS), 5)
    assert draft.reply(5).calls == (CallRequest("c1", "label", "t", '{"n":1}'),)


def test_arguments_that_come_whole_are_streamed_once() -> None:
    draft = Draft(1, 0)
    draft.feed(ToolStart(0, "t"), 1, "c1")
    assert draft.feed(ToolEnd(0, "{}"), 2) == CallStreamed(0, 2, "c1", 0, "{}")


def test_empty_arguments_are_not_streamed() -> None:
    draft = Draft(1, 0)
    draft.feed(ToolStart(0, "t"), 1, "c1")
    assert draft.feed(ToolEnd(0, ""), 2) is None


def test_calls_are_told_apart_by_index_even_when_their_labels_are_equal() -> None:
    draft = Draft(1, 0)
    draft.feed(ToolStart(0, "t", "same"), 1, "c1")
    draft.feed(ToolStart(1, "t", "same"), 1, "c2")
    draft.feed(ToolEnd(1, "{}"), 1)
    draft.feed(ToolEnd(0, "{}"), 1)
    draft.feed(Done(), 1)
    assert [call.id for call in draft.reply(2).calls] == ["c1", "c2"]


def test_usage_adds_up() -> None:
    draft = Draft(1, 0)
    draft.feed(Usage(10, 1, cached=2), 1)
    draft.feed(Usage(0, 4, reasoning=3), 1)
    draft.feed(Done(), 1)
    usage = draft.reply(1).usage
    assert usage == Usage(10, 5, 2, 0, 3)
    assert usage.total == 15


def test_reasoning_is_kept_in_blocks_that_an_opaque_part_closes() -> None:
    draft = Draft(1, 0)
    assert draft.feed(ReasoningDelta("a"), 1) == ReasoningStreamed(0, 1, 1, 0, "a")
    assert draft.feed(ReasoningDelta("b", "sig"), 1) == ReasoningStreamed(0, 1, 1, 1, "b")
    draft.feed(ReasoningDelta("c"), 1)
    draft.feed(Done(), 1)
    assert draft.reply(1).reasoning == (Reasoning("ab", "sig"), Reasoning("c"))


@pytest.mark.parametrize(
    "pieces",
    [
        [ToolArgsDelta(0, "x")],
        [ToolEnd(0, "{}")],
        [ToolStart(0, "t"), ToolStart(0, "u")],
        [ToolStart(0, "t"), ToolEnd(0, "{}"), ToolEnd(0, "{}")],
        [ToolStart(0, "t"), ToolEnd(0, "{}"), ToolArgsDelta(0, "x")],
        [ToolStart(0, "t"), Done()],
        [Done(), TextDelta("late")],
        [Done(), Done()],
        [None],
        ["text"],
    ],
)
def test_an_adapter_that_breaks_the_rules_is_found_out(pieces: list[object]) -> None:
    draft = Draft(1, 0)
    *right, wrong = pieces
    for piece in right:
        draft.feed(piece, 1, "c1")
    with pytest.raises(ModelBroke):
        draft.feed(wrong, 1, "c1")


def test_a_stream_that_ends_early_is_no_reply() -> None:
    draft = Draft(1, 0)
    draft.feed(TextDelta("half"), 1)
    with pytest.raises(ModelBroke, match="ended before"):
        draft.reply(2)


@pytest.mark.parametrize(
    "pieces",
    [
        [TextDelta(None)],
        [TextDelta("\ud83d")],
        [ReasoningDelta("\ud83d")],
        [ReasoningDelta("a", "\ud83d")],
        [ToolStart(0, None)],
        [ToolStart(0, "t", 7)],
        [ToolStart(0, "\ud83d")],
        [ToolStart(0, "t"), ToolArgsDelta(0, "\ud83d")],
        [ToolStart(0, "t"), ToolEnd(0, "\ud83d")],
        [ToolStart(0, "t"), ToolArgsDelta(0, "x"), ToolEnd(0, "\ud83d")],
        [ToolStart(0, "t"), ToolEnd(0, {"a": 1})],
        [Done("end_turn")],
        [TextDelta("x" * 60), ReasoningDelta("x" * 60)],
        [ToolStart(0, "t"), ToolArgsDelta(0, "x" * 101)],
        [ToolStart(0, "t"), ToolArgsDelta(0, "x"), ToolEnd(0, "x" * 101)],
        [ToolStart(0, "t" * 101)],
        [ToolStart(0, "t", "x" * 101)],
        [*(ToolStart(index, "") for index in range(100)), ToolStart(100, "")],
        [ReasoningDelta("", "x" * 101)],
        [Usage(-5)],
        [Usage(5, 1.5)],
        [Usage(5, None)],
    ],
)
def test_what_cannot_be_text_or_has_no_end_is_found_out(pieces: list[object]) -> None:
    draft = Draft(1, 0, most=100)
    *right, wrong = pieces
    for piece in right:
        draft.feed(piece, 1, "c1")
    with pytest.raises(ModelBroke):
        draft.feed(wrong, 1, "c1")


def test_text_of_all_the_world_is_text() -> None:
    draft = Draft(1, 0)
    draft.feed(TextDelta("héllo 👋"), 1)
    draft.feed(ReasoningDelta("ü", "ö"), 1)
    draft.feed(ToolStart(0, "t", "läbel"), 1, "c1")
    draft.feed(ToolArgsDelta(0, '{"a":"'), 1)
    draft.feed(ToolArgsDelta(0, 'é"}'), 1)
    draft.feed(ToolEnd(0, '{"a":"é"}'), 1)
    draft.feed(Done(), 1)
    reply = draft.reply(1)
    assert (reply.text, reply.calls[0].arguments) == ("héllo 👋", '{"a":"é"}')


def test_calls_of_a_reply_that_breaks_off_have_their_end() -> None:
    draft = Draft(1, 5)
    draft.feed(ToolStart(0, "t"), 1, "c1")
    draft.feed(ToolStart(1, "u"), 1, "c2")
    draft.feed(ToolArgsDelta(1, "{"), 1)
    ended = draft.abandon(9)
    assert [(update.call_id, update.outcome, update.seq) for update in ended] == [
        ("c1", Outcome.CANCELLED, 5),
        ("c2", Outcome.CANCELLED, 5),
    ]
    assert draft.abandon(9) == []


def test_a_text_that_is_too_long_breaks_the_reply() -> None:
    draft = Draft(1, 0, most=4)
    assert draft.feed(TextDelta("four"), 0) is not None
    with pytest.raises(ModelBroke, match="longer than a reply may be"):
        draft.feed(TextDelta("!"), 0)
