"""What watchers are told: every change of a call, in order, numbered without a gap."""

from msgspec import structs

from farhand.core.call import CallState
from farhand.core.definition import Approval, Place, SideEffect
from farhand.core.events import (
    CallCancelled,
    Claimed,
    ClientAbsent,
    Lost,
    Released,
    Remember,
    RunCancelled,
    TimerFired,
    TimerKind,
)
from farhand.core.limits import Limits
from farhand.core.updates import (
    CallClaimed,
    CallEnded,
    CallExecuting,
    CallReady,
    CallReleased,
    ReplyEnded,
    RunEnded,
    RunWaiting,
    TurnStarted,
    Warned,
    current,
    updates,
)
from tests.core.story import Story, make_tool


def kinds(story: Story) -> list[str]:
    return [type(update).__name__ for update in story.told]


def test_a_plain_run_tells_its_whole_story() -> None:
    story = Story(make_tool())
    story.answer(story.reply(("t", {}))[0])
    story.reply(text="done")
    assert kinds(story) == [
        "RunStarted",
        "TurnStarted",
        "ReplyEnded",
        "CallReady",
        "CallExecuting",
        "CallEnded",
        "TurnStarted",
        "ReplyEnded",
        "RunEnded",
    ]


def test_numbers_rise_by_one() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS), make_tool("u", place=Place.CLIENT))
    first, second = story.reply(("t", {}), ("u", {}))
    story.approve(first)
    story.take(Claimed(story.at, second, 1, "tab"))
    story.answer(second)
    story.answer(first)
    story.reply(text="done")
    assert [update.seq for update in story.told] == list(range(1, len(story.told) + 1))


def test_an_approval_is_told_from_question_to_end() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    assert kinds(story)[-3:] == ["CallReady", "CallWaiting", "RunWaiting"]
    story.approve(call, remember=Remember.TOOL)
    assert kinds(story)[-2:] == ["CallApproved", "CallExecuting"]
    story.answer(call)
    again = story.reply(("t", {}))
    assert kinds(story)[-3:] == ["ReplyEnded", "CallReady", "CallExecuting"]
    assert again


def test_states_of_a_call_are_told_in_order_and_end_once() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    story.approve(call)
    story.answer(call)
    states = [update.state for update in story.told if getattr(update, "call_id", "") == call]
    assert states == [
        CallState.INPUT_COMPLETE,
        CallState.APPROVAL_REQUESTED,
        CallState.INPUT_COMPLETE,
        CallState.EXECUTING,
        CallState.OUTPUT_AVAILABLE,
    ]


def test_a_judged_call_is_told_to_wait_only_when_a_person_must_decide() -> None:
    from farhand.core.events import ApprovalJudged

    story = Story(make_tool(approval=Approval.JUDGED))
    (call,) = story.reply(("t", {}))
    assert kinds(story)[-1] == "CallReady"
    story.take(ApprovalJudged(story.at, call, needed=True))
    assert kinds(story)[-2:] == ["CallWaiting", "RunWaiting"]


def test_an_invalid_call_is_told_as_ended_and_never_as_ready() -> None:
    story = Story()
    story.reply(("nope", {}))
    assert not any(isinstance(update, CallReady) for update in story.told)
    (ended,) = [update for update in story.told if isinstance(update, CallEnded)]
    assert ended.state is CallState.OUTPUT_ERROR


def test_a_retry_is_told_as_released_and_executing_again() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=1), limits=Limits(retry_delay=1))
    (call,) = story.reply(("t", {}))
    story.fault(call)
    assert isinstance(story.told[-1], CallReleased)
    story.fire(call, TimerKind.BACKOFF, after=1)
    assert kinds(story)[-1] == "CallExecuting"
    story.take(Lost(story.at, call, 2))
    assert kinds(story)[-2:] == ["CallReleased", "CallExecuting"]


def test_a_client_is_told_the_models_label_and_what_its_tool_does() -> None:
    story = Story(make_tool(), make_tool("c", place=Place.CLIENT))
    story.reply(("t", {}), ("c", {}))
    server, client = (update for update in story.told if isinstance(update, CallExecuting))
    assert (client.label, client.description) == ("label", "Does c.")
    assert (server.label, server.description) == ("label", "")
    assert client in [structs.replace(update, seq=client.seq) for update in current(story.run, 9)]


def test_a_call_that_is_taken_up_is_told() -> None:
    story = Story(make_tool(place=Place.CLIENT))
    (call,) = story.reply(("t", {}))
    story.take(Claimed(story.at, call, 1, "tab"))
    assert kinds(story)[-1] == "CallClaimed"


def test_a_call_that_is_given_back_is_told_to_whoever_may_take_it_up() -> None:
    story = Story(make_tool(place=Place.CLIENT), attended=True)
    (call,) = story.reply(("t", {}))
    story.take(Claimed(story.at, call, 1, "tab"))
    story.take(ClientAbsent(story.at, call, 1))
    story.take(Released(story.at, call, 1))
    given_back, there_again = story.told[-2:]
    assert isinstance(given_back, CallReleased)
    assert (given_back.attempt, given_back.state) == (1, CallState.EXECUTING)
    assert isinstance(there_again, CallExecuting)
    assert there_again.attempt == 1


def test_what_was_told_of_a_call_is_not_told_again_with_its_end() -> None:
    story = Story(make_tool(place=Place.CLIENT), make_tool("a", approval=Approval.ALWAYS))
    taken, denied = story.reply(("t", {}), ("a", {}))
    story.take(Claimed(story.at, taken, 1, "tab"))
    story.answer(taken)
    story.deny(denied)
    assert kinds(story).count("CallClaimed") == 1
    assert "CallApproved" not in kinds(story)


def test_a_reply_that_ends_its_turn_is_told_with_the_number_of_that_turn() -> None:
    story = Story()
    story.reply(("nobody", {}))
    assert [update.turn for update in story.told if isinstance(update, ReplyEnded | TurnStarted)] == [1, 1, 2]


def test_nothing_is_told_after_the_end() -> None:
    story = Story()
    story.reply(text="done")
    before = list(story.told)
    story.take(TimerFired(story.at, "nobody", TimerKind.DEADLINE, 1))
    assert story.told == before


def test_waiting_is_told_once_and_names_the_calls() -> None:
    story = Story(make_tool(place=Place.CLIENT))
    first, second = story.reply(("t", {}), ("t", {}))
    assert story.told[-1].call_ids == (first, second)
    story.answer(first)
    assert sum(isinstance(update, RunWaiting) for update in story.told) == 1


def test_a_deprecated_tool_is_told_to_developers_and_not_to_the_model() -> None:
    story = Story(make_tool(deprecated="use u instead"))
    (call,) = story.reply(("t", {}))
    story.answer(call)
    (warning,) = [update for update in story.told if isinstance(update, Warned)]
    assert (warning.code, warning.call_id) == ("tool_deprecated", call)
    assert "use u instead" in warning.message
    assert "use u instead" not in story.tool_messages[0].text


def test_the_value_of_a_result_can_be_read_from_the_update() -> None:
    story = Story(make_tool())
    story.answer(story.reply(("t", {}))[0], {"x": [0, None]})
    ended = next(update for update in story.told if isinstance(update, CallEnded))
    assert ended.value == {"x": [0, None]}


def test_a_cancelled_run_tells_the_end_of_its_calls_first() -> None:
    story = Story(make_tool())
    story.reply(("t", {}))
    story.take(RunCancelled(story.at))
    assert kinds(story)[-2:] == ["CallEnded", "RunEnded"]


def test_a_cancelled_call_is_told_as_cancelled() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    story.take(CallCancelled(story.at, call))
    ended = next(update for update in story.told if isinstance(update, CallEnded))
    assert ended.state is CallState.CANCELLED


def test_the_last_word_is_announced_as_a_turn_without_tools() -> None:
    story = Story(make_tool(), limits=Limits(max_turns=1))
    story.answer(story.reply(("t", {}))[0])
    last = story.told[-1]
    assert isinstance(last, TurnStarted)
    assert not last.tools


def test_the_end_says_how_and_what_it_cost() -> None:
    story = Story()
    story.reply(text="hello")
    end = story.told[-1]
    assert isinstance(end, RunEnded)
    assert (end.output, end.turns) == ("hello", 1)


def test_a_run_that_was_recovered_has_nothing_to_tell_unless_something_changed() -> None:
    from farhand.core.events import Recovered

    story = Story(make_tool(place=Place.CLIENT))
    story.reply(("t", {}))
    before = len(story.told)
    story.take(Recovered(story.at, tuple(story.run.tools.values())))
    assert len(story.told) == before


def test_what_was_refused_is_told_at_the_beginning() -> None:
    story = Story(make_tool(), refused=("tool a", "tool b"))
    assert kinds(story) == ["RunStarted", "Warned", "Warned", "TurnStarted"]
    assert [update.seq for update in story.told] == [1, 2, 3, 4]


def test_a_late_watcher_is_told_where_the_run_stands() -> None:
    tools = (
        make_tool(approval=Approval.ALWAYS),
        make_tool("c", place=Place.CLIENT),
        make_tool("r", effect=SideEffect.PURE),
    )
    story = Story(*tools, limits=Limits(parallel=1))
    story.reply(("t", {}), ("c", {}), ("r", {}), ("r", {}))
    late = [type(update).__name__ for update in current(story.run, 9)]
    assert late == ["CallWaiting", "CallExecuting", "CallExecuting", "CallReady"]
    assert {update.seq for update in current(story.run, 9)} == {9}


def test_a_late_watcher_is_told_that_a_call_is_taken() -> None:
    story = Story(make_tool(place=Place.CLIENT))
    free, taken = story.reply(("t", {}), ("t", {}))
    story.take(Claimed(story.at, taken, 1, "tab"))
    claims = [update for update in current(story.run, 9) if isinstance(update, CallClaimed)]
    assert [(update.seq, update.call_id, update.holder) for update in claims] == [(9, taken, "tab")]
    assert story.call(free).held_by == ""


def test_a_late_watcher_is_told_that_a_run_waits_or_has_ended() -> None:
    story = Story(make_tool(place=Place.CLIENT))
    (call,) = story.reply(("t", {}))
    assert isinstance(current(story.run, 1)[-1], RunWaiting)
    story.answer(call)
    assert current(story.run, 1) == []
    story.reply(text="done")
    assert isinstance(current(story.run, 1)[-1], RunEnded)


def test_a_call_that_is_counted_anew_and_stays_where_it_is_is_no_news() -> None:
    story = Story(make_tool("pick", place=Place.CLIENT))
    (call,) = story.reply(("pick", {}))
    other = structs.replace(story.run, calls={call: structs.replace(story.call(call), losses=1)})
    assert updates(story.run, TimerFired(story.at, call, TimerKind.DEADLINE, 1), other, 7) == []
