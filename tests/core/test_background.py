"""Work that a client takes on to end it later: the run goes on, the end counts once, and the model is told."""

from typing import Any

import pytest

from farhand.core import answers
from farhand.core.call import Outcome
from farhand.core.definition import Place
from farhand.core.effects import AskModel
from farhand.core.errors import AnswerConflict, IllegalChange, InvalidAnswer, NotExpected, UnknownCall
from farhand.core.events import Accepted, BackgroundEnded, Noted, RunCancelled
from farhand.core.limits import Limits
from farhand.core.messages import Text, ToolMessage, UserMessage
from farhand.core.pieces import Usage
from farhand.core.run import Ending
from farhand.core.step import replay
from farhand.core.updates import CallEnded, CallReported
from tests.core.story import Story, make_tool
from tests.core.test_answers import say


def taken_on(limits: Limits | None = None, **fields: Any) -> tuple[Story, str]:
    """A run whose client works on in the background; the model has been asked again."""
    story = Story(make_tool("pick", place=Place.CLIENT, **fields), limits=limits)
    (call,) = story.reply(("pick", {}))
    say(story, answers.accept, call, note="an hour or so")
    return story, call


def news(story: Story) -> list[str]:
    return [message.text for message in story.run.messages[1:] if isinstance(message, UserMessage)]


def test_the_run_goes_on_when_a_client_takes_a_call_on() -> None:
    story, call = taken_on()
    assert story.call(call).outcome is Outcome.OK
    assert any(isinstance(effect, AskModel) for effect in story.effects)
    told = story.run.messages[-1]
    assert isinstance(told, ToolMessage)
    assert "an hour or so" in told.text
    story.reply(text="It is under way.")
    assert story.run.ending is Ending.DONE


def test_taking_on_twice_is_a_repeat_and_answering_then_a_conflict() -> None:
    story, call = taken_on()
    assert say(story, answers.accept, call, note="an hour or so") is None
    with pytest.raises(AnswerConflict):
        say(story, answers.accept, call, note="two hours")
    with pytest.raises(AnswerConflict):
        say(story, answers.answer, call, b"1")


def test_the_model_is_told_of_the_end_before_it_is_asked_again() -> None:
    story, call = taken_on()
    say(story, answers.report, call, result=b'{"n":1}')
    assert isinstance(story.told[-1], CallReported)
    assert news(story) == []
    (other,) = story.reply(("pick", {}))
    story.answer(other, 2)
    assert len(news(story)) == 1
    assert '{"n":1}' in news(story)[0]
    story.reply(text="done")
    assert story.run.ending is Ending.DONE


def test_a_run_does_not_end_before_the_model_has_heard_the_news() -> None:
    story, call = taken_on()
    say(story, answers.report, call, outcome=Outcome.FAILED, message="the disk is full")
    story.reply(text="It is under way.")
    assert story.run.ending is None
    assert "failed: the disk is full" in news(story)[0]
    story.reply(text="It failed.")
    assert story.run.output == "It failed."


def test_at_a_token_limit_news_waits_no_longer() -> None:
    story, call = taken_on(Limits(total_tokens=10))
    say(story, answers.report, call, result=b"1")
    story.reply(text="late", usage=Usage(20, 0))
    assert story.run.ending is not None
    assert story.call(call).background is not None


def test_news_in_the_last_turn_is_told_without_tools() -> None:
    story, call = taken_on(Limits(max_turns=2))
    say(story, answers.report, call, result=b"1")
    story.reply(text="so far")
    assert story.run.final
    story.reply(text="done")
    assert story.run.ending is not None


@pytest.mark.parametrize(
    ("outcome", "words"),
    [(Outcome.CANCELLED, "was cancelled while it ran"), (Outcome.UNKNOWN, "may or may not have happened")],
)
def test_background_work_may_also_be_called_off_or_lost(outcome: Outcome, words: str) -> None:
    story, call = taken_on()
    say(story, answers.report, call, outcome=outcome, message="closed")
    story.reply(text="x")
    assert words in news(story)[0]


def test_the_end_counts_once() -> None:
    story, call = taken_on()
    assert isinstance(say(story, answers.report, call, result=b"1"), BackgroundEnded)
    assert say(story, answers.report, call, result=b" 1 ") is None
    for changed in ({"result": b"2"}, {"outcome": Outcome.FAILED, "message": "no"}):
        with pytest.raises(AnswerConflict):
            say(story, answers.report, call, **changed)


def test_an_end_after_the_run_is_kept_with_the_call_and_tells_watchers_nothing() -> None:
    story, call = taken_on()
    story.reply(text="It is under way.")
    told = len(story.told)
    say(story, answers.report, call, result=b"1")
    background = story.call(call).background
    assert background is not None
    assert (background.outcome, bytes(background.result)) == (Outcome.OK, b"1")
    assert len(story.told) == told
    assert replay(story.log) == story.run


def test_only_what_was_taken_on_can_be_reported() -> None:
    story = Story(make_tool("pick", place=Place.CLIENT))
    (call,) = story.reply(("pick", {}))
    with pytest.raises(NotExpected):
        say(story, answers.report, call, result=b"1")
    with pytest.raises(UnknownCall):
        say(story, answers.accept, call, who="eve")
    with pytest.raises(IllegalChange):
        story.take(BackgroundEnded(story.at, call, Outcome.OK))
    with pytest.raises(IllegalChange):
        story.take(BackgroundEnded(story.at, "nothing", Outcome.OK))
    with pytest.raises(IllegalChange):
        story.take(Accepted(story.at, "nothing", 1))


def test_an_end_has_to_fit_the_tool_and_be_an_end() -> None:
    story, call = taken_on(output={"type": "integer"})
    with pytest.raises(InvalidAnswer):
        say(story, answers.report, call, result=b'"one"')
    with pytest.raises(InvalidAnswer):
        say(story, answers.report, call, outcome=Outcome.DENIED)
    say(story, answers.report, call, result=b"1")


def test_news_of_an_earlier_run_is_told_once() -> None:
    story = Story(make_tool("pick", place=Place.CLIENT))
    note = Noted(story.at, "earlier", UserMessage((Text("it has ended"),)))
    story.take(note)
    story.take(note)
    story.reply(text="hello")
    assert news(story) == ["it has ended"]


def test_the_call_that_was_taken_on_ended_once_for_those_who_watch() -> None:
    story, call = taken_on()
    say(story, answers.report, call, result=b"1")
    assert [update.call_id for update in story.told if isinstance(update, CallEnded)] == [call]


def test_a_cancelled_run_leaves_background_work_alone() -> None:
    story, call = taken_on()
    story.take(RunCancelled(story.at))
    say(story, answers.report, call, result=b"1")
    assert story.call(call).outcome is Outcome.OK
    assert bytes(story.call(call).result) != b"1"
