"""What can be read off a run between two events."""

from farhand.core.definition import Approval, Place, SideEffect
from farhand.core.events import ApprovalJudged, RunCancelled
from farhand.core.limits import Limits
from tests.core.story import Story, make_tool


def test_a_run_that_asks_the_model_is_running() -> None:
    assert (Story().run.status, Story().run.waiting) == ("running", False)


def test_a_run_waits_when_only_clients_and_persons_can_move_it() -> None:
    story = Story(make_tool("c", place=Place.CLIENT), make_tool("p", approval=Approval.ALWAYS))
    story.reply(("c", {}), ("p", {}))
    assert story.run.status == "waiting"


def test_a_run_with_work_under_way_is_running() -> None:
    story = Story(make_tool(), make_tool("c", place=Place.CLIENT))
    story.reply(("t", {}), ("c", {}))
    assert story.run.status == "running"


def test_a_back_off_and_a_judgement_are_work_under_way() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=1), limits=Limits(retry_delay=1))
    (call,) = story.reply(("t", {}))
    story.fault(call)
    assert story.run.status == "running"
    story = Story(make_tool(approval=Approval.JUDGED))
    (call,) = story.reply(("t", {}))
    assert story.run.status == "running"
    story.take(ApprovalJudged(story.at, call, needed=True))
    assert story.run.status == "waiting"


def test_a_run_that_ended_says_how() -> None:
    story = Story()
    story.take(RunCancelled(story.at))
    assert story.run.status == "cancelled"


def test_open_calls_are_those_without_an_outcome_in_call_order() -> None:
    story = Story(make_tool("c", place=Place.CLIENT))
    first, second, third = story.reply(("c", {}), ("c", {}), ("c", {}))
    story.answer(second)
    assert [call.id for call in story.run.open_calls] == [first, third]
    assert [call.id for call in story.run.turn_calls] == [first, second, third]


def test_the_definition_of_a_call_is_found_by_its_pin() -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    assert story.run.definition_of(story.call(call)) is story.run.tools["t"]
    (unknown,) = Story().reply(("t", {}))
    assert unknown
