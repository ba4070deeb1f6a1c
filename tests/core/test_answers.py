"""Who may say what about a call: owners, repeats, conflicts, late and foreign answers, wrong values."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import json

from farhand.core import answers
from farhand.core.call import Outcome
from farhand.core.definition import Approval, Place, SideEffect
from farhand.core.errors import AnswerConflict, CallGone, InvalidAnswer, NotExpected, RefusedAnswer, UnknownCall
from farhand.core.events import Answered, CallCancelled, Denied, Recovered, Remember, RunCancelled, TimerKind
from farhand.core.failure import Failure
from farhand.core.limits import Limits
from farhand.core.turn import arguments_hash
from tests.core.story import ADD, Story, make_tool


def waiting(**fields: Any) -> tuple[Story, str]:
    """A run that waits for a client."""
    story = Story(make_tool("pick", place=Place.CLIENT, **fields), limits=Limits(result_bytes=100))
    (call,) = story.reply(("pick", {}))
    return story, call


def asking(**fields: Any) -> tuple[Story, str]:
    """A run that waits for a person."""
    story = Story(make_tool(approval=Approval.ALWAYS, schema=ADD, **fields))
    (call,) = story.reply(("t", {"n": 1}))
    return story, call


def say(story: Story, decide: Callable[..., Any], *args: Any, who: str = "ann", **keywords: Any) -> Any:
    event = decide(story.run, who, *args, at=story.at, **keywords)
    if event is not None:
        story.take(event)
    return event


def test_the_first_valid_answer_wins_and_an_equal_repeat_changes_nothing() -> None:
    story, call = waiting()
    assert isinstance(say(story, answers.answer, call, b'{"a":1,"b":[1]}'), Answered)
    effects = len(story.all_effects)
    assert say(story, answers.answer, call, b'{ "b": [1], "a": 1 }') is None
    assert len(story.all_effects) == effects


@pytest.mark.parametrize("other", [b"2", b"true", b"1.0", b'"1"', b"broken"])
def test_a_different_answer_is_a_conflict(other: bytes) -> None:
    story, call = waiting()
    say(story, answers.answer, call, b"1")
    with pytest.raises(AnswerConflict):
        say(story, answers.answer, call, other)


def test_an_answer_after_the_deadline_is_gone() -> None:
    story, call = waiting()
    story.fire(call, after=600)
    with pytest.raises(CallGone) as gone:
        say(story, answers.answer, call, b"1")
    assert gone.value.outcome is Outcome.TIMED_OUT


def test_an_answer_to_a_cancelled_call_is_told_so() -> None:
    story, call = waiting()
    say(story, answers.cancel_call, call)
    for decide, args in ((answers.answer, (b"1",)), (answers.fail, (Failure("x", "y"),)), (answers.claim, ("tab",))):
        with pytest.raises(CallGone) as gone:
            say(story, decide, call, *args)
        assert gone.value.outcome is Outcome.CANCELLED


def test_an_answer_of_an_earlier_attempt_is_gone() -> None:
    story = Story(make_tool(place=Place.CLIENT, effect=SideEffect.PURE, retries=1))
    (call,) = story.reply(("t", {}))
    story.fault(call)
    for _ in ("backing off", "at the second attempt"):
        with pytest.raises(CallGone) as gone:
            say(story, answers.answer, call, b"1", attempt=1)
        assert gone.value.outcome is None
        story.fire(call, TimerKind.BACKOFF, after=1)
    with pytest.raises(NotExpected):
        say(story, answers.answer, call, b"1", attempt=3)
    assert say(story, answers.answer, call, b"1", attempt=2) is not None


def test_a_foreign_call_is_answered_like_an_unknown_one() -> None:
    story, call = waiting()
    for decide, args in (
        (answers.answer, (b"1",)),
        (answers.fail, (Failure("x", "y"),)),
        (answers.claim, ("tab",)),
        (answers.approve, ()),
        (answers.deny, ()),
        (answers.cancel_call, ()),
    ):
        texts: set[str] = set()
        for who, call_id in (("eve", call), ("ann", "nobody"), ("eve", "nobody")):
            with pytest.raises(UnknownCall) as error:
                say(story, decide, call_id, *args, who=who)
            texts.add(str(error.value))
        assert len(texts) == 1
    with pytest.raises(UnknownCall):
        say(story, answers.cancel_run, who="eve")
    assert story.run.waiting


def test_a_result_that_breaks_the_output_schema_is_refused_and_the_call_stays_open() -> None:
    story, call = waiting(output=ADD)
    for wrong in (b'{"n":-1}', b'{"n":', b"null"):
        with pytest.raises(InvalidAnswer):
            say(story, answers.answer, call, wrong)
    with pytest.raises(InvalidAnswer) as error:
        say(story, answers.answer, call, b'{"n":"x"}')
    assert error.value.problems[0].path == "/n"
    assert story.run.waiting
    say(story, answers.answer, call, b'{"n":1}')
    assert story.call(call).outcome is Outcome.OK


def test_a_result_is_stored_as_it_is_read_back() -> None:
    story, call = waiting()
    say(story, answers.answer, call, b' \r\n{"a": 1}\t ')
    assert json.decode(json.encode(story.run), type=type(story.run)) == story.run
    assert story.tool_messages[0].text == '{"a": 1}'


def test_a_result_that_is_too_large_is_refused() -> None:
    story, call = waiting()
    with pytest.raises(InvalidAnswer, match="100"):
        say(story, answers.answer, call, b'"' + b"x" * 100 + b'"')


def test_parts_are_held_against_the_output_schema_by_what_they_say() -> None:
    story, call = waiting(output=ADD)
    for wrong in (b'[{"type":"text","text":"x"}]', b"[]", b'[{"type":"json","value":{"n":-1}}]'):
        with pytest.raises(InvalidAnswer):
            say(story, answers.answer, call, wrong, multipart=True)
    right = b'[{"type":"json","value":{"n":1}}]'
    say(story, answers.answer, call, right, multipart=True)
    assert story.tool_messages[0].text == '{"n":1}'
    with pytest.raises(AnswerConflict):
        say(story, answers.answer, call, right)


@pytest.mark.parametrize(
    ("result", "multipart"),
    [
        (b"not json", False),
        (b"", False),
        (b"NaN", False),
        (b"\xff", False),
        (b'{"a":1,"a":2}', False),
        (b'{"a":1}', True),
        (b'[{"type":"binary","mime_type":"a/b"}]', True),
    ],
)
def test_what_is_no_json_or_no_parts_is_no_answer(result: bytes, multipart: bool) -> None:
    story, call = waiting()
    with pytest.raises(InvalidAnswer):
        say(story, answers.answer, call, result, multipart=multipart)
    assert story.run.waiting


def test_files_are_parts_of_an_answer_like_any_other() -> None:
    story, call = waiting(output={"type": "array", "prefixItems": [{"const": "see"}, {"required": ["url"]}]})
    parts = b'[{"type":"text","text":"see"},{"type":"binary","mime_type":"image/png","url":"data:,"}]'
    say(story, answers.answer, call, parts, multipart=True)
    assert story.call(call).outcome is Outcome.OK


def test_a_clients_failure_is_an_answer_too() -> None:
    story, call = waiting()
    failure = Failure("tool_failed", "no window")
    say(story, answers.fail, call, failure)
    assert story.tool_messages[0].text == "Error: no window"
    assert say(story, answers.fail, call, failure) is None
    with pytest.raises(AnswerConflict):
        say(story, answers.fail, call, Failure("tool_failed", "another"))
    with pytest.raises(AnswerConflict):
        say(story, answers.answer, call, b"1")


@pytest.mark.parametrize("words", ["x" * 4095, "half a \ud83d"])
def test_what_is_said_beside_a_result_can_be_stored_and_has_an_end(words: str) -> None:
    story = Story(make_tool("pick", place=Place.CLIENT, approval=Approval.ALWAYS), limits=Limits(result_bytes=100))
    approved, asked = story.reply(("pick", {}), ("pick", {}))
    say(story, answers.approve, approved)
    for decide, args, said in (
        (answers.fail, (approved,), {"failure": Failure("x", words)}),
        (answers.approve, (asked,), {"payload": words}),
        (answers.deny, (asked,), {"reason": words}),
        (answers.cancel_call, (approved,), {"reason": words}),
        (answers.cancel_run, (), {"reason": words}),
    ):
        with pytest.raises(InvalidAnswer):
            say(story, decide, *args, **said)
    assert story.run.waiting
    say(story, answers.fail, approved, Failure("x", "x" * 4000))
    assert story.call(approved).outcome is Outcome.FAILED


def test_a_client_cannot_answer_for_a_server_tool_or_before_an_approval() -> None:
    story = Story(make_tool(), make_tool("pick", place=Place.CLIENT, approval=Approval.ALWAYS))
    server, unapproved = story.reply(("t", {}), ("pick", {}))
    for call in (server, unapproved):
        with pytest.raises(NotExpected):
            say(story, answers.answer, call, b"1")


def test_one_client_claims_and_the_others_see_that_it_is_taken() -> None:
    story, call = waiting()
    assert say(story, answers.claim, call, "tab-1", dies=True) is not None
    assert (story.call(call).held_by, story.call(call).dies) == ("tab-1", True)
    assert say(story, answers.claim, call, "tab-1") is None
    with pytest.raises(AnswerConflict):
        say(story, answers.claim, call, "tab-2")


def test_whoever_has_a_call_gives_it_back_and_another_client_takes_it_up() -> None:
    story, call = waiting()
    assert say(story, answers.release, call, holder="tab-1") is None
    say(story, answers.claim, call, "tab-1")
    with pytest.raises(AnswerConflict):
        say(story, answers.release, call, holder="tab-2")
    assert say(story, answers.release, call, holder="tab-1") is not None
    assert say(story, answers.release, call, holder="tab-1") is None
    assert (story.call(call).held_by, story.call(call).attempt) == ("", 1)
    assert say(story, answers.claim, call, "tab-2") is not None
    say(story, answers.answer, call, b"1", client="tab-2")
    with pytest.raises(AnswerConflict):
        say(story, answers.release, call, holder="tab-2")


def test_what_runs_in_the_process_of_its_run_is_not_given_back() -> None:
    story, call = waiting()
    say(story, answers.claim, call, "process", dies=True)
    with pytest.raises(NotExpected):
        say(story, answers.release, call, holder="process")


def test_a_client_without_a_name_takes_no_call_up() -> None:
    story, call = waiting()
    with pytest.raises(InvalidAnswer):
        say(story, answers.claim, call, "")
    assert say(story, answers.claim, call, "tab-1") is not None


def test_a_yes_counts_once() -> None:
    story, call = asking()
    record = story.call(call).approval
    assert record is not None
    shown = record.arguments_hash
    assert say(story, answers.approve, call, shown=shown) is not None
    assert say(story, answers.approve, call, shown=shown) is None
    assert story.dispatched == [(call, 1)]
    with pytest.raises(AnswerConflict):
        say(story, answers.deny, call)


def test_a_yes_to_other_arguments_than_those_shown_is_a_conflict() -> None:
    story, call = asking()
    with pytest.raises(AnswerConflict):
        say(story, answers.approve, call, shown="0" * 64)
    assert story.run.waiting


def test_an_edit_of_what_was_shown_said_twice_counts_once() -> None:
    story, call = asking()
    record = story.call(call).approval
    assert record is not None
    edit = {"shown": record.arguments_hash, "arguments": '{"n":2}'}
    assert say(story, answers.approve, call, **edit) is not None
    assert say(story, answers.approve, call, **edit) is None
    with pytest.raises(AnswerConflict):
        say(story, answers.approve, call, shown=arguments_hash('{"n":2}'), arguments='{"n":2}')


def test_an_edit_is_checked_and_the_approval_stays_open_to_a_right_one() -> None:
    story, call = asking()
    too_large = '{"n":1' + " " * story.run.limits.argument_bytes + "}"
    for wrong in ('{"n":-1}', '{"n":', "{}", too_large):
        with pytest.raises(InvalidAnswer):
            say(story, answers.approve, call, arguments=wrong)
    assert story.run.waiting
    say(story, answers.approve, call, arguments='{"n": 5}')
    assert say(story, answers.approve, call, arguments='{"n":5}') is None
    with pytest.raises(AnswerConflict):
        say(story, answers.approve, call, arguments='{"n":6}')


def test_a_no_counts_once() -> None:
    story, call = asking()
    event = say(story, answers.deny, call, reason="no", remember=Remember.TOOL)
    assert isinstance(event, Denied)
    assert say(story, answers.deny, call, reason="no", remember=Remember.TOOL) is None
    for decide, more in ((answers.deny, {}), (answers.deny, {"reason": "no"}), (answers.approve, {})):
        with pytest.raises(AnswerConflict):
            say(story, decide, call, **more)


@pytest.mark.parametrize("more", [{"payload": {"a": 2}}, {"remember": Remember.TOOL}, {"arguments": '{"n":3}'}])
def test_a_yes_that_says_more_than_the_first_is_no_repeat(more: dict[str, Any]) -> None:
    story, call = asking()
    said: dict[str, Any] = {"payload": {"a": 1, "b": 2}, "arguments": '{"n":2}'}
    say(story, answers.approve, call, **said)
    record = story.call(call).approval
    assert record is not None
    assert (record.by, record.payload) == ("ann", said["payload"])
    assert say(story, answers.approve, call, **(said | {"payload": {"b": 2, "a": 1}})) is None
    with pytest.raises(AnswerConflict):
        say(story, answers.approve, call, **(said | more))
    with pytest.raises(AnswerConflict):
        say(story, answers.approve, call)


def test_the_same_failure_said_twice_costs_one_attempt() -> None:
    story, call = waiting(effect=SideEffect.PURE, retries=1)
    failure = Failure("x", "broke", retryable=True)
    say(story, answers.fail, call, failure, attempt=1)
    assert say(story, answers.fail, call, failure) is None
    story.fire(call, TimerKind.BACKOFF, after=1)
    assert say(story, answers.fail, call, failure, attempt=1) is None
    assert story.call(call).attempt == 2
    say(story, answers.fail, call, failure, attempt=2)
    assert story.call(call).outcome is Outcome.FAILED


def test_a_decision_after_the_approval_expired_is_gone() -> None:
    story, call = asking(approval_timeout=1)
    story.fire(call, after=1)
    for decide in (answers.approve, answers.deny):
        with pytest.raises(CallGone):
            say(story, decide, call)


def test_a_decision_after_the_approval_expired_is_gone_also_when_the_timer_is_late() -> None:
    story, call = asking(approval_timeout=1)
    story.at += 999
    assert answers.approve(story.run, "ann", call, at=story.at) is not None
    story.at += 1
    for decide in (answers.approve, answers.deny):
        with pytest.raises(CallGone):
            say(story, decide, call)
    story.fire(call)
    assert story.call(call).outcome is Outcome.TIMED_OUT


def test_a_call_that_asks_nobody_takes_no_decision() -> None:
    story, call = waiting()
    for decide in (answers.approve, answers.deny):
        with pytest.raises(NotExpected):
            say(story, decide, call)


def test_a_call_is_cancelled_once_and_not_after_its_end() -> None:
    story, call = waiting()
    assert isinstance(say(story, answers.cancel_call, call), CallCancelled)
    assert say(story, answers.cancel_call, call) is None
    story, call = waiting()
    say(story, answers.answer, call, b"1")
    with pytest.raises(CallGone):
        say(story, answers.cancel_call, call)
    with pytest.raises(AnswerConflict):
        say(story, answers.claim, call, "tab")


def test_a_run_is_cancelled_once() -> None:
    story, _ = waiting()
    assert isinstance(say(story, answers.cancel_run), RunCancelled)
    assert say(story, answers.cancel_run) is None


def test_every_refusal_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in RefusedAnswer.__subclasses__()]
    assert len(set(codes)) == len(codes) == 5


def test_after_an_edit_the_record_names_what_was_decided_on() -> None:
    story, call = asking()
    before = story.call(call).approval
    say(story, answers.approve, call, arguments='{ "n" : 5 }')
    after = story.call(call).approval
    assert before is not None
    assert after is not None
    assert after.arguments_hash == arguments_hash('{"n":5}') != before.arguments_hash


def test_a_decision_about_a_call_that_has_ended_is_gone_also_when_its_tool_is() -> None:
    story, call = asking()
    say(story, answers.cancel_call, call)
    story.take(Recovered(story.at, ()))
    for decide in (answers.approve, answers.deny):
        with pytest.raises(CallGone):
            say(story, decide, call)
    with pytest.raises(CallGone):
        say(story, answers.approve, call, arguments="{}")
