"""Counters of a run: by tool, by outcome, with the time they took."""

from farhand.core.call import Outcome
from farhand.core.definition import Place
from farhand.core.tally import Tally, tally
from farhand.core.updates import RunEnded
from tests.core.story import Story, make_tool


def test_calls_are_counted_by_tool_and_outcome_with_their_time() -> None:
    story = Story(make_tool(), make_tool("u"))
    first, second, third = story.reply(("t", {}), ("t", {}), ("u", {}))
    story.at += 10
    story.answer(first)
    story.at += 10
    story.fault(second)
    story.answer(third)
    story.reply(text="done")
    assert tally(story.run.calls.values()) == {
        "t": Tally(2, {Outcome.OK: 1, Outcome.FAILED: 1}, 30),
        "u": Tally(1, {Outcome.OK: 1}, 20),
    }
    end = story.told[-1]
    assert isinstance(end, RunEnded)
    assert end.tools == tally(story.run.calls.values())


def test_a_call_that_is_open_is_not_counted() -> None:
    story = Story(make_tool(place=Place.CLIENT))
    story.reply(("t", {}))
    assert tally(story.run.calls.values()) == {}
