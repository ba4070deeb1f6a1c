"""Clients that are not there, that are gone with a call in their hands, and that come back."""

from typing import Any

import pytest

from farhand.core import answers
from farhand.core.call import CallState, Outcome
from farhand.core.definition import Absent, Approval, Definition, Place, SideEffect
from farhand.core.effects import Dispatch, SetTimer
from farhand.core.errors import AnswerConflict, IllegalChange, NotExpected
from farhand.core.events import Claimed, ClientAbsent, ClientCame, Released, TimerKind
from farhand.core.failure import Failure
from farhand.core.limits import Limits
from farhand.core.presence import attend, is_free
from farhand.core.run import Ending
from farhand.core.updates import CallAttended, CallUnattended, current
from tests.core.story import Story, make_tool


def client(**policy: Any) -> Definition:
    return make_tool("pick", place=Place.CLIENT, **policy)


def story_of(tool: Definition, **started: Any) -> tuple[Story, str]:
    """A run whose client is expected to be there, with one call of its tool."""
    story = Story(tool, **{"attended": True, **started})
    (call,) = story.reply(("pick", {}))
    return story, call


def held(tool: Definition) -> tuple[Story, str]:
    """The same, once a client has taken the call up and is gone."""
    story, call = story_of(tool)
    story.take(Claimed(story.at, call, 1, "tab"))
    story.take(ClientAbsent(story.at, call, 1))
    return story, call


# A client that took a call up


def test_whoever_has_taken_a_call_up_and_is_gone_has_a_grace_period_to_come_back() -> None:
    story, call = held(client())
    assert story.effects == (SetTimer(story.at + 5000, call, TimerKind.GRACE, 1),)
    story.at += 4000
    story.take(ClientCame(story.at, call, 1))
    story.fire(call, TimerKind.GRACE, after=5)
    assert (story.call(call).open, story.call(call).held_by) == (True, "tab")
    story.answer(call, 1)
    assert story.call(call).outcome is Outcome.OK


def test_a_once_call_whose_client_does_not_come_back_ends_unknown() -> None:
    story, call = held(client())
    story.fire(call, TimerKind.GRACE, after=5)
    assert story.call(call).outcome is Outcome.UNKNOWN
    assert story.dispatched == [(call, 1)]


@pytest.mark.parametrize("effect", [SideEffect.PURE, SideEffect.IDEMPOTENT])
@pytest.mark.parametrize("absent", [None, Absent.FALLBACK, Absent.FAIL, Absent.RETRY])
def test_a_call_that_may_be_repeated_looks_for_another_client(effect: SideEffect, absent: Absent | None) -> None:
    story, call = held(client(effect=effect, absent=absent))
    story.fire(call, TimerKind.GRACE, after=5)
    assert Dispatch(call, 2) in story.effects
    assert is_free(story.call(call))
    assert story.call(call).grace is None


def test_a_call_that_waits_for_its_client_waits_also_when_that_is_gone_with_it() -> None:
    story, call = held(client(absent=Absent.WAIT))
    assert (story.effects, story.call(call).grace) == ((), None)


def test_a_grace_period_of_a_lost_client_does_not_begin_anew() -> None:
    story, call = held(client())
    story.at += 4000
    story.take(ClientAbsent(story.at, call, 1))
    assert story.effects == ()
    story.fire(call, TimerKind.GRACE, after=1)
    assert story.call(call).outcome is Outcome.UNKNOWN


def test_a_function_of_the_process_is_not_missed_as_a_client_is() -> None:
    story, call = story_of(client())
    story.take(Claimed(story.at, call, 1, "this process", dies=True))
    for event in (ClientAbsent(story.at, call, 1), ClientCame(story.at, call, 1)):
        with pytest.raises(IllegalChange):
            story.take(event)
    assert attend(story.run, call, there=False, at=story.at) is None


# A client that comes


def test_a_client_that_comes_ends_the_grace_period() -> None:
    story, call = story_of(client())
    story.take(ClientAbsent(story.at, call, 1))
    story.take(ClientCame(story.at, call, 1))
    story.fire(call, TimerKind.GRACE, after=5)
    assert is_free(story.call(call))


def test_a_client_that_comes_where_nobody_was_missing_changes_nothing() -> None:
    story, call = story_of(client())
    before = story.call(call)
    story.take(ClientCame(story.at, call, 1))
    assert story.call(call) is before


def test_who_is_gone_again_has_a_whole_grace_period_again() -> None:
    story, call = story_of(client())
    story.take(ClientAbsent(story.at, call, 1))
    story.at += 4000
    story.take(ClientCame(story.at, call, 1))
    story.take(ClientAbsent(story.at, call, 1))
    story.fire(call, TimerKind.GRACE, after=4)
    assert story.call(call).open
    story.fire(call, TimerKind.GRACE, after=1)
    assert story.call(call).outcome is Outcome.UNAVAILABLE


def test_watchers_see_that_a_client_is_missing_and_that_it_is_back() -> None:
    story, call = story_of(client())
    story.take(ClientAbsent(story.at, call, 1))
    missing = CallUnattended(len(story.told), story.at, call, 1, story.at + 5000)
    assert story.told[-1] == missing
    assert missing in current(story.run, missing.seq)
    story.take(ClientCame(story.at, call, 1))
    assert story.told[-1] == CallAttended(len(story.told), story.at, call, 1)
    told = len(story.told)
    story.take(ClientCame(story.at, call, 1))
    assert len(story.told) == told


def test_a_claim_says_by_itself_that_a_client_is_there() -> None:
    story, call = story_of(client())
    story.take(ClientAbsent(story.at, call, 1))
    story.take(Claimed(story.at, call, 1, "tab"))
    assert [type(update).__name__ for update in story.told[-2:]] == ["CallUnattended", "CallClaimed"]


@pytest.mark.parametrize("end", ["answer", "fault"])
def test_the_end_of_an_attempt_is_told_without_a_word_of_clients(end: str) -> None:
    story, call = story_of(client(effect=SideEffect.PURE, retries=1))
    story.take(ClientAbsent(story.at, call, 1))
    getattr(story, end)(call)
    assert not any(isinstance(update, CallAttended) for update in story.told)


# Which word a call deserves


@pytest.mark.parametrize("there", [True, False])
def test_a_run_that_expects_nobody_is_never_told_who_is_there(there: bool) -> None:
    story, call = story_of(client(), attended=False)
    assert attend(story.run, call, there=there, at=story.at) is None


def test_it_is_said_once_that_a_client_is_gone_and_once_that_it_is_back() -> None:
    story, call = story_of(client())
    assert attend(story.run, call, there=True, at=story.at) is None
    for there, event in ((False, ClientAbsent(story.at, call, 1)), (True, ClientCame(story.at, call, 1))):
        assert attend(story.run, call, there=there, at=story.at) == event
        story.take(event)
        assert attend(story.run, call, there=there, at=story.at) is None


@pytest.mark.parametrize("policy", [{"absent": Absent.WAIT}, {"approval": Approval.ALWAYS}])
def test_nothing_is_said_of_a_call_that_waits_anyway(policy: Any) -> None:
    story, call = story_of(client(**policy))
    if story.call(call).state is CallState.APPROVAL_REQUESTED:
        story.approve(call)
    assert attend(story.run, call, there=False, at=story.at) is None


def test_nothing_is_said_of_a_call_that_no_client_has_to_run() -> None:
    story = Story(make_tool(), make_tool("asks", place=Place.CLIENT, approval=Approval.ALWAYS), attended=True)
    calls = story.reply(("t", {}), ("asks", {}))
    for call in (*calls, "nobody"):
        assert attend(story.run, call, there=False, at=story.at) is None


def test_a_tool_that_fails_without_its_client_ends_the_run_at_once() -> None:
    story, call = story_of(client(absent=Absent.FAIL))
    event = attend(story.run, call, there=False, at=story.at)
    assert event is not None
    assert story.take(event).ending is Ending.FAILED
    assert attend(story.run, call, there=False, at=story.at) is None


def test_while_a_call_waits_to_be_dispatched_again_nobody_is_missed() -> None:
    story, call = story_of(client(absent=Absent.RETRY), limits=Limits(retry_delay=1))
    story.take(ClientAbsent(story.at, call, 1))
    assert attend(story.run, call, there=False, at=story.at) is None
    story.fire(call, TimerKind.BACKOFF, after=1)
    assert attend(story.run, call, there=False, at=story.at) == ClientAbsent(story.at, call, 2)


# Which client


def say(story: Story, decide: Any, call: str, *args: Any, **keywords: Any) -> Any:
    return decide(story.run, "ann", call, *args, at=story.at, **keywords)


ANSWERS = [(answers.answer, (b"1",)), (answers.fail, (Failure("x", "y"),)), (answers.accept, ())]


def progress(story: Story, call: str, **keywords: Any) -> str:
    return answers.progress(story.run, "ann", call, 50, **keywords).id


@pytest.mark.parametrize(("decide", "args"), ANSWERS)
def test_a_client_that_says_who_it_is_does_not_answer_for_another(decide: Any, args: Any) -> None:
    story, call = story_of(client())
    story.take(Claimed(story.at, call, 1, "tab"))
    with pytest.raises(AnswerConflict):
        say(story, decide, call, *args, client="phone")
    assert say(story, decide, call, *args, client="tab") == say(story, decide, call, *args)


@pytest.mark.parametrize(("decide", "args"), ANSWERS)
def test_a_call_that_nobody_took_up_is_answered_by_any_client(decide: Any, args: Any) -> None:
    story, call = story_of(client())
    assert say(story, decide, call, *args, client="phone") is not None


@pytest.mark.parametrize(("decide", "args"), ANSWERS)
def test_a_run_for_one_client_takes_no_answer_of_another(decide: Any, args: Any) -> None:
    story, call = story_of(client(), target="tab")
    with pytest.raises(NotExpected):
        say(story, decide, call, *args, client="phone")
    assert say(story, decide, call, *args, client="tab") == say(story, decide, call, *args)


def test_a_run_for_one_client_is_taken_up_by_that_one_only() -> None:
    story, call = story_of(client(), target="tab")
    with pytest.raises(NotExpected):
        say(story, answers.claim, call, "phone")
    assert say(story, answers.claim, call, "tab") == Claimed(story.at, call, 1, "tab")
    assert say(story, answers.claim, call, "this process", dies=True) is not None


def test_a_call_that_a_client_has_is_not_taken_by_a_function() -> None:
    story, call = story_of(client())
    story.take(Claimed(story.at, call, 1, "tab"))
    with pytest.raises(AnswerConflict):
        say(story, answers.claim, call, "this process", dies=True)


def test_whoever_may_answer_a_call_may_say_how_far_it_is() -> None:
    story, call = story_of(client())
    assert progress(story, call) == call
    story.take(Claimed(story.at, call, 1, "tab"))
    assert progress(story, call, client="tab", attempt=1) == call
    with pytest.raises(AnswerConflict):
        progress(story, call, client="phone")
    story.answer(call)
    with pytest.raises(AnswerConflict):
        progress(story, call)


def test_a_run_knows_whether_it_is_attended_and_for_whom_it_is_after_a_restart() -> None:
    story, _ = story_of(client(), target="tab")
    assert (story.replayed().attended, story.replayed().target) == (True, "tab")


def test_a_call_that_is_given_back_keeps_its_deadline_and_misses_nobody() -> None:
    story, call = held(client(timeout=60))
    before = story.call(call)
    story.take(Released(story.at, call, 1))
    after = story.call(call)
    assert before.grace is not None
    assert (after.state, after.attempt, after.deadline) == (before.state, 1, before.deadline)
    assert (after.held_by, after.grace) == ("", None)
    assert story.dispatched == [(call, 1)]


def test_only_what_a_client_has_is_given_back() -> None:
    story, call = story_of(client())
    for event in (Released(story.at, call, 1), Released(story.at, call, 2)):
        with pytest.raises(IllegalChange):
            story.take(event)
    story.take(Claimed(story.at, call, 1, "process", dies=True))
    with pytest.raises(IllegalChange):
        story.take(Released(story.at, call, 1))
