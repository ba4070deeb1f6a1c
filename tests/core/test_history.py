"""A conversation that a new run takes over: every call in it has an outcome, in the right place."""

from farhand.core.call import Outcome
from farhand.core.history import closed
from farhand.core.messages import AssistantMessage, CallRequest, Text, ToolMessage, UserMessage


def said(text: str) -> UserMessage:
    return UserMessage((Text(text),))


def asked(*ids: str) -> AssistantMessage:
    return AssistantMessage("", calls=tuple(CallRequest(call, "label", "t", "{}") for call in ids))


def told(call: str) -> ToolMessage:
    return ToolMessage(call, "label", "t", Outcome.OK)


def test_a_whole_conversation_stays_as_it_is() -> None:
    whole = (said("a"), asked("c1", "c2"), told("c1"), told("c2"), AssistantMessage("b"), said("c"))
    assert closed(whole) == whole
    assert closed([said("a")]) == (said("a"),)


def test_a_call_without_an_outcome_is_closed_before_the_conversation_goes_on() -> None:
    messages = closed([said("a"), asked("c1", "c2"), told("c1"), said("b")])
    assert [type(message).__name__ for message in messages] == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
        "ToolMessage",
        "UserMessage",
    ]
    last = messages[3]
    assert isinstance(last, ToolMessage)
    assert (last.call_id, last.outcome) == ("c2", Outcome.CANCELLED)


def test_a_conversation_that_ends_in_a_call_is_closed_too() -> None:
    messages = closed([said("a"), asked("c1")])
    assert isinstance(messages[-1], ToolMessage)
    assert [type(message) for message in closed([asked("c1")])] == [AssistantMessage, ToolMessage]


def test_an_outcome_in_the_wrong_place_is_put_behind_its_call_and_one_of_no_call_is_left_out() -> None:
    late = (said("a"), asked("c1", "c2"), told("c2"), said("b"), told("c1"), told("nobody's"))
    assert closed(late) == (said("a"), asked("c1", "c2"), told("c1"), told("c2"), said("b"))
