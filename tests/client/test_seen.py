"""What a client makes of updates: calls, messages and what a run waits for."""

from typing import Any

from msgspec import Raw

from farhand.client.seen import Seen
from farhand.core.call import CallState, Outcome
from farhand.core.definition import Place
from farhand.core.failure import Failure
from farhand.core.messages import AssistantMessage, ToolMessage
from farhand.core.pieces import Finish, Usage
from farhand.core.run import Ending
from farhand.core.updates import (
    CallApproved,
    CallClaimed,
    CallEnded,
    CallExecuting,
    CallReady,
    CallReleased,
    CallWaiting,
    ReplyEnded,
    RunEnded,
    RunStarted,
    RunWaiting,
    TextStreamed,
    TurnStarted,
    Update,
    Warned,
)

START = [RunStarted(1, 0, "r", "t"), TurnStarted(2, 0, 1)]


def seen(*updates: Update) -> Seen:
    made = Seen()
    for update in (*START, *updates):
        made.take(update)
    return made


def ready(call: str, turn: int = 1) -> CallReady:
    return CallReady(3, 0, call, "pick", turn, Place.CLIENT, "{}")


def executing(call: str, attempt: int = 1) -> CallExecuting:
    return CallExecuting(4, 0, call, "pick", Place.CLIENT, attempt, "{}", None, f"label of {call}")


def ended(call: str, result: bytes = b"1", failure: Failure | None = None) -> CallEnded:
    outcome = Outcome.OK if failure is None else Outcome.FAILED
    state = CallState.OUTPUT_AVAILABLE if failure is None else CallState.OUTPUT_ERROR
    return CallEnded(5, 9, call, "pick", state, outcome, Raw(result), failure, 9)


def reply(text: str, turn: int = 1) -> ReplyEnded:
    return ReplyEnded(3, 0, turn, text, 0, Finish.STOP, Usage(input=1))


def result(made: Seen) -> Any:
    return made.result({}, "9")


def test_text_that_is_under_way_is_the_text_until_the_reply_has_ended() -> None:
    made = seen(TextStreamed(2, 0, 1, 0, "Hel"), TextStreamed(2, 0, 1, 3, "lo"))
    assert result(made).text == "Hello"
    made.take(TextStreamed(2, 0, 1, 2, "y"))  # a piece that begins before the end of what is known
    assert result(made).text == "Hey"
    made.take(reply("Hey you"))
    assert result(made).text == "Hey you"


def test_what_was_missed_of_a_reply_is_its_rest() -> None:
    made = seen(TextStreamed(2, 0, 1, 0, "Hel"))
    assert made.missed(reply("Hello")) == TextStreamed(2, 0, 1, 3, "lo")
    assert made.missed(reply("Hel")) is None
    assert seen().missed(reply("")) is None


def test_a_turn_that_is_begun_again_has_no_text_yet() -> None:
    made = seen(TextStreamed(2, 0, 1, 0, "Hel"), TurnStarted(3, 0, 1, again=True))
    assert made.missed(reply("Other")) == TextStreamed(2, 0, 1, 0, "Other")


def test_results_stand_behind_their_reply_in_the_order_of_the_calls() -> None:
    made = seen(
        reply("two calls"), ready("a"), ready("b"), executing("a"), executing("b"), ended("b"), ended("a", b"2")
    )
    for update in (TurnStarted(6, 0, 2), reply("done", 2)):
        made.take(update)
    said, first, second, last = result(made).messages
    assert isinstance(said, AssistantMessage)
    assert [(request.id, request.label) for request in said.calls] == [("a", "label of a"), ("b", "label of b")]
    assert isinstance(first, ToolMessage)
    assert (first.call_id, second.call_id, last.text) == ("a", "b", "done")
    assert result(made).usage == Usage(input=2)


def test_a_call_that_was_refused_before_it_was_ready_is_there_too() -> None:
    made = seen(reply("bad"), ended("x", failure=Failure("unknown_tool", "Unknown tool: x")))
    [call] = result(made).calls
    assert (call.id, call.failure.message, call.record.turn) == ("x", "Unknown tool: x", 1)


def test_a_run_waits_until_what_it_waits_for_has_moved() -> None:
    made = seen(ready("a"), ready("b"), executing("a"), CallWaiting(5, 0, "b", "pick", "{}", "hash", None))
    made.take(RunWaiting(6, 0, ("a", "b")))
    assert (made.status, made.waiting) == ("waiting", {"a", "b"})
    assert [call.id for call in result(made).pending] == ["a", "b"]
    made.take(CallClaimed(7, 0, "a", 1, "editor"))
    assert made.calls["a"].held_by == "editor"
    made.take(ended("a"))
    assert (made.status, made.waiting) == ("waiting", {"b"})
    made.take(CallApproved(8, 0, "b", "ann", '{"n":1}', True))
    assert (made.status, made.waiting, made.calls["b"].arguments) == ("running", frozenset(), '{"n":1}')


def test_an_attempt_that_is_over_is_nobodys_and_the_next_one_has_its_number() -> None:
    made = seen(ready("a"), executing("a"), CallClaimed(5, 0, "a", 1, "editor"), CallReleased(6, 0, "a", 1, 50))
    assert (made.calls["a"].state, made.calls["a"].held_by) == (CallState.INPUT_COMPLETE, "")
    made.take(executing("a", 2))
    assert made.calls["a"].attempt == 2


def test_the_end_of_a_run_says_how_it_ended() -> None:
    made = seen(reply("so far"), RunEnded(9, 0, Ending.LIMIT, "", "max_turns", None, Usage(input=7), 5, {}))
    assert (made.ended, result(made).status, result(made).limit) == (True, "limit", "max_turns")
    assert (result(made).output, result(made).usage) == ("so far", Usage(input=7))


def test_updates_that_say_nothing_of_this_change_nothing() -> None:
    made = seen(Warned(3, 0, "deprecated", "old"), CallClaimed(4, 0, "unknown", 1, "editor"))
    assert (made.calls, made.status) == ({}, "running")
