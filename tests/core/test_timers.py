"""Which timers a run has set, read off its calls."""

from farhand.core.definition import Absent, Approval, Place, SideEffect
from farhand.core.effects import SetTimer
from farhand.core.events import ClientAbsent, Recovered
from farhand.core.limits import Limits
from farhand.core.timers import next_due, timers_of
from farhand.core.updates import TurnStarted
from tests.core.story import Story, make_tool


def asked_for(story: Story) -> set[SetTimer]:
    """What the run asked the world for, of timers that still matter."""
    return {effect for effect in story.all_effects if isinstance(effect, SetTimer)}


def set_now(story: Story) -> set[SetTimer]:
    return {timer for call in story.run.open_calls for timer in timers_of(call)}


def test_every_timer_that_was_asked_for_can_be_read_off_the_calls() -> None:
    story = Story(
        make_tool("slow", place=Place.CLIENT, timeout=5.0),
        make_tool("asks", approval=Approval.ALWAYS, approval_timeout=3.0),
    )
    story.reply(("slow", {}), ("asks", {}))
    assert set_now(story) == asked_for(story)
    assert next_due(story.run) == story.at + 3000


def test_a_call_that_backs_off_or_looks_for_a_client_has_a_timer() -> None:
    story = Story(
        make_tool("flaky", effect=SideEffect.PURE, retries=1),
        make_tool("gone", place=Place.CLIENT, absent=Absent.FALLBACK),
        limits=Limits(retry_delay=2.0, grace=1.0, client_timeout=None),
    )
    flaky, gone = story.reply(("flaky", {}), ("gone", {}))
    story.fault(flaky)
    story.take(ClientAbsent(story.at, gone, 1))
    assert next_due(story.run) == story.at + 1000
    assert {timer.due - story.at for timer in set_now(story)} == {1000, 2000}


def test_a_run_without_timers_is_never_due() -> None:
    story = Story(make_tool("pick", place=Place.CLIENT), limits=Limits(client_timeout=None))
    story.reply(("pick", {}))
    assert next_due(story.run) is None


def test_a_run_that_lost_its_process_while_the_model_replied_tells_that_the_turn_begins_again() -> None:
    story = Story()
    story.take(Recovered(story.at, ()))
    last = story.told[-1]
    assert isinstance(last, TurnStarted)
    assert (last.turn, last.again) == (1, True)
