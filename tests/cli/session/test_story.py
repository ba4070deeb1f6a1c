"""What is to be seen of a thread follows from its updates alone."""

from typing import Any

import pytest

from farhand import Agent, CallContext, scripted, tool
from farhand.cli.session import cards
from farhand.cli.session.story import Moved, Note, Over, Paragraph, Story, Told, Waits, Words, fraction
from farhand.core.call import CallState, Outcome
from farhand.core.definition import Place
from farhand.core.updates import (
    CallClaimed,
    CallExecuting,
    CallReady,
    CallUnattended,
    TextStreamed,
    TurnStarted,
    Update,
    Warned,
)
from farhand.models import Turn, Use


@tool
async def count(context: CallContext) -> str:
    """Count."""
    context.progress({"done": 1, "of": 2})
    return "counted"


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def heard(updates: list[Update], story: Story | None = None) -> list[Told]:
    story = story or Story()
    return [told for update in updates for told in story.hear(update)]


async def updates_of(*turns: Any, **callbacks: Any) -> list[Update]:
    """Everything that a run tells."""
    told: list[Update] = []
    await Agent(scripted(list(turns)), tools=[count, pay]).run("go", on_update=told.append, **callbacks)
    return told


async def test_a_run_is_words_calls_and_an_end() -> None:
    story = Story()
    told = heard(await updates_of(Turn(["Let ", "me see."], Use("count")), "done"), story)
    words = "".join(each.text for each in told if isinstance(each, Words))
    assert words == "Let me see.done"
    states = [each.card.state for each in told if isinstance(each, Moved)]
    assert states[-1] is CallState.OUTPUT_AVAILABLE
    assert CallState.EXECUTING in states
    assert [each.card.fraction for each in told if isinstance(each, Moved) and each.card.progress] == [0.5, 0.5]
    assert isinstance(told[-1], Over)
    assert story.open_cards == ()


async def test_stored_updates_alone_tell_the_same_words() -> None:
    live = await updates_of(Turn(["Let ", "me see."], Use("count")), "done")
    stored = [update for update in live if not isinstance(update, TextStreamed)]
    said = [each.text for each in heard(stored) if isinstance(each, Words)]
    assert said == ["Let me see.", "done"]


async def test_a_call_that_waits_for_a_person_is_open() -> None:
    story = Story()
    told = heard(await updates_of(Use("pay", {"amount": 5}), "done"), story)
    assert isinstance(told[-1], Waits)
    [card] = story.open_cards
    assert cards.standing(card) == 'pay {"amount":5} waits for a person'


def test_words_that_come_again_are_said_once_and_a_reply_that_is_void_is_told() -> None:
    first = TextStreamed(1, 0, 1, 0, "Let me")
    again = TextStreamed(1, 0, 1, 4, "me see")
    told = heard([TurnStarted(1, 0, 1), first, again, TurnStarted(2, 0, 1, again=True)])
    assert told == [
        Words("Let me"),
        Words(" see"),
        Paragraph(),
        Note("the model is asked again; what it said before is void"),
    ]


def test_warnings_and_unknown_things_are_notes_or_nothing() -> None:
    assert heard([Warned(1, 0, "tool_deprecated", "use another", "some-call")]) == [Note("use another", bad=True)]


def executing(call_id: str, arguments: str, attempt: int = 1) -> CallExecuting:
    return CallExecuting(1, 0, call_id, "pick", Place.CLIENT, attempt, arguments, None, "label")


def test_what_a_client_gets_to_run_a_call_with_is_not_shown_if_it_was_shown_otherwise_before() -> None:
    story = Story()
    heard([CallReady(1, 0, "c", "pick", 1, Place.CLIENT, '{"key":"•••"}'), executing("c", '{"key":"secret"}')], story)
    assert story.cards["c"].arguments == '{"key":"•••"}'


def test_who_works_on_a_call_is_shown_unless_it_is_this_client() -> None:
    story = Story(me="me")
    heard([executing("c", "{}"), CallUnattended(2, 0, "c", 1, 5000)], story)
    assert cards.standing(story.cards["c"]) == "pick at the client {} - nobody is there to run it"
    heard([CallClaimed(3, 0, "c", 1, "tab")], story)
    assert cards.standing(story.cards["c"]) == "pick at the client {} - taken up by tab"
    heard([executing("d", "{}"), CallClaimed(4, 0, "d", 1, "me")], story)
    assert cards.standing(story.cards["d"]) == "pick at the client {}"


async def test_a_reply_without_words_ends_no_paragraph() -> None:
    told = heard(await updates_of(Use("count"), "done"))
    assert [each for each in told if isinstance(each, Paragraph)] == [Paragraph()]
    ended = [each.card for each in told if isinstance(each, Moved) and each.card.outcome is Outcome.OK]
    assert [(cards.mark(card), cards.ending(card)) for card in ended] == [("✓", 'count: "counted"')]


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (0.25, 0.25),
        (1, 1.0),
        (25, None),
        (True, None),
        ("half", None),
        ({"done": 1, "of": 4}, 0.25),
        ({"done": 5, "of": 4}, 1.0),
        ({"current": 1, "total": 2}, 0.5),
        ({"loaded": 3, "total": 4}, 0.75),
        ({"percent": 25}, 0.25),
        ({"progress": 0.5}, 0.5),
        ({"progress": 1, "total": 2}, 0.5),
        ({"done": 1, "of": 0}, None),
        ({"done": "1", "of": 4}, None),
        ([1, 2], None),
        (None, None),
    ],
)
def test_progress_is_a_part_of_the_whole_where_it_says_so(value: Any, part: float | None) -> None:
    assert fraction(value) == part
