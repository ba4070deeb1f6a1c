"""A run event by event: the rules of a call's life, without an event loop."""

import pytest
from msgspec import Raw, json, structs

from farhand.core.call import CallState, Outcome
from farhand.core.definition import Absent, Approval, Place, SideEffect
from farhand.core.effects import (
    AskApproval,
    AskModel,
    Dispatch,
    JudgeApproval,
    JudgeStop,
    Memorise,
    SetTimer,
    StopModel,
    Withdraw,
)
from farhand.core.errors import IllegalChange
from farhand.core.events import (
    Answered,
    ApprovalJudged,
    Approved,
    CallCancelled,
    Claimed,
    ClientAbsent,
    Lost,
    Memory,
    ModelFailed,
    Recovered,
    Remember,
    Replied,
    RunCancelled,
    StopJudged,
    TimerFired,
    TimerKind,
)
from farhand.core.failure import Failure
from farhand.core.limits import Limits
from farhand.core.messages import AssistantMessage, CallRequest, ToolMessage
from farhand.core.pieces import Usage
from farhand.core.run import Ending, Phase
from farhand.core.step import ACCEPTS, HANDLERS, replay, step
from tests.core.story import ADD, Story, make_tool


def client(name: str = "pick", **fields: object) -> object:
    return make_tool(name, place=Place.CLIENT, **fields)


# The shape of a run


def test_a_run_begins_by_asking_the_model() -> None:
    story = Story()
    assert story.effects == (AskModel(1),)
    assert (story.run.phase, story.run.status) == (Phase.ASKING, "running")


def test_a_reply_without_calls_is_the_answer() -> None:
    story = Story()
    story.reply(text="hello")
    assert (story.run.ending, story.run.output) == (Ending.DONE, "hello")


def test_a_call_is_dispatched_answered_and_told_to_the_model() -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    assert Dispatch(call, 1) in story.effects
    story.answer(call, {"x": 1})
    assert story.effects == (AskModel(2),)
    assert story.tool_messages[0].text == '{"x":1}'


def test_every_event_has_a_handler_and_every_handler_a_phase() -> None:
    taken = set().union(*ACCEPTS.values())
    assert taken == set(HANDLERS)


@pytest.mark.parametrize("phase", list(Phase))
def test_an_event_that_the_phase_does_not_take_is_refused(phase: Phase) -> None:
    story = Story(make_tool(), judged_stop=True)
    if phase is not Phase.ASKING:
        (call,) = story.reply(("t", {}))
    if phase is Phase.JUDGING:
        story.answer(call)
    if phase is Phase.ENDED:
        story.take(RunCancelled(story.at))
    assert story.run.phase is phase
    wrong = StopJudged(1, stop=True) if phase is not Phase.JUDGING else Replied(1)
    with pytest.raises(IllegalChange):
        story.take(wrong)


def test_a_log_without_its_beginning_is_refused() -> None:
    with pytest.raises(IllegalChange):
        step(None, Replied(1))
    with pytest.raises(IllegalChange):
        replay([])


def test_a_timer_after_the_end_changes_nothing() -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    story.answer(call)
    story.reply(text="done")
    before = story.run
    story.take(TimerFired(story.at, call, TimerKind.DEADLINE, 1))
    assert story.run is before


def test_a_model_that_fails_ends_the_run() -> None:
    story = Story()
    story.take(ModelFailed(story.at, Failure("rate_limit", "too fast")))
    assert (story.run.ending, story.run.failure) == (Ending.FAILED, Failure("rate_limit", "too fast"))


# 1. Every call reaches exactly one outcome and the model is told it


@pytest.mark.parametrize("value", [0, False, "", None, [], {}])
def test_a_falsy_result_is_a_result(value: object) -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    story.answer(call, value)
    assert story.call(call).outcome is Outcome.OK
    assert json.decode(story.tool_messages[0].result) == value


def test_an_unknown_tool_is_told_to_the_model_and_the_run_goes_on() -> None:
    story = Story()
    (call,) = story.reply(("nope", {}))
    assert story.call(call).outcome is Outcome.INVALID
    assert story.tool_messages[0].text == "Error: Unknown tool: nope"
    assert story.effects == (AskModel(2),)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"n":', "Invalid tool arguments JSON"),
        ("[1]", "Arguments are not valid: must be an object."),
        ("null", "Arguments are not valid: must be an object."),
        ("{}", "Missing required parameter: n"),
        ('{"n":1,"zz":1}', "Unknown parameter: zz"),
        ('{"n":"x"}', "Parameter n has wrong type: expected integer, got string"),
        ('{"n":2.5}', "Parameter n must be an integer, got: 2.5"),
        ('{"n":true}', "Parameter n has wrong type: expected integer, got boolean"),
        ('{"n":-5}', "Parameter n"),
    ],
)
def test_invalid_arguments_never_reach_the_tool_and_the_model_reads_why(arguments: str, text: str) -> None:
    story = Story(make_tool(schema=ADD))
    (call,) = story.reply(("t", arguments))
    assert story.call(call).outcome is Outcome.INVALID
    assert text in story.tool_messages[0].text
    assert story.dispatched == []


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
def test_empty_arguments_are_an_empty_object(arguments: str) -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", arguments))
    assert story.call(call).arguments == "{}"
    assert story.dispatched == [(call, 1)]


def test_too_many_calls_of_one_turn_are_refused_one_by_one() -> None:
    story = Story(make_tool(), limits=Limits(calls_per_turn=1))
    first, second = story.reply(("t", {}), ("t", {}))
    assert story.call(first).state is CallState.EXECUTING
    assert story.call(second).failure is not None
    assert story.call(second).failure.code == "too_many_calls"


def test_arguments_that_are_too_large_are_refused() -> None:
    story = Story(make_tool(), limits=Limits(argument_bytes=10))
    (call,) = story.reply(("t", {"a": "x" * 20}))
    assert story.call(call).outcome is Outcome.INVALID


def test_a_tool_that_fails_is_told_to_the_model() -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    story.fault(call, "no such file")
    assert story.call(call).outcome is Outcome.FAILED
    assert story.tool_messages[0].text == "Error: no such file"


# 2. The id is ours


def test_two_calls_with_one_label_are_two_calls() -> None:
    story = Story(make_tool())
    first, second = story.reply(("t", {}), ("t", {}))
    assert story.call(first).label == story.call(second).label
    story.answer(first, 1)
    story.answer(second, 2)
    assert [message.text for message in story.tool_messages] == ["1", "2"]


def test_an_id_that_was_used_before_is_refused() -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    story.answer(call)
    with pytest.raises(IllegalChange, match="id"):
        story.take(Replied(1, calls=(CallRequest(call, "x", "t", "{}"),)))
    twice = CallRequest("new", "x", "t", "{}")
    with pytest.raises(IllegalChange, match="id"):
        story.take(Replied(1, calls=(twice, twice)))


# 3. Approvals


def test_nothing_runs_before_its_approval() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    assert story.effects == (AskApproval(call),)
    assert story.dispatched == []
    assert story.run.waiting
    story.approve(call)
    assert story.dispatched == [(call, 1)]


def test_an_approval_is_used_once() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    story.approve(call)
    with pytest.raises(IllegalChange):
        story.approve(call)
    assert story.dispatched == [(call, 1)]


def test_an_approved_call_that_waits_for_its_place_cannot_be_denied() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS), limits=Limits(parallel=1))
    first, second = story.reply(("t", {}), ("t", {}))
    story.approve(first)
    story.approve(second)
    with pytest.raises(IllegalChange):
        story.deny(second)
    story.answer(first)
    assert story.dispatched == [(first, 1), (second, 1)]


def test_a_call_that_asked_nobody_cannot_be_approved() -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    with pytest.raises(IllegalChange):
        story.approve(call)


def test_a_denied_call_is_told_to_the_model_with_its_reason() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    story.deny(call, reason="too dear")
    assert story.call(call).outcome is Outcome.DENIED
    assert story.call(call).state is CallState.CANCELLED
    assert story.tool_messages[0].text == "Error: The user denied this call. Reason: too dear"


def test_a_denial_without_a_reason_says_just_that() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    story.deny(call)
    assert story.tool_messages[0].text == "Error: The user denied this call."


def test_edited_arguments_run_and_the_model_is_told_so() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, schema=ADD))
    (call,) = story.reply(("t", {"n": 1}))
    story.approve(call, arguments='{"n":2}')
    record = story.call(call)
    assert (record.arguments, record.written, record.edited) == ('{"n":2}', '{"n":1}', True)
    story.answer(call, "ok")
    assert '{"n":2}' in story.tool_messages[0].text
    assert story.tool_messages[0].text.endswith("ok")


def test_arguments_sent_back_unchanged_are_no_edit() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", "{}"))
    story.approve(call, arguments="{}")
    assert not story.call(call).edited


def test_an_approval_is_bound_to_arguments_and_pin() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    record = story.call(call).approval
    assert record is not None
    assert record.pin == story.run.tools["t"].pin
    assert len(record.arguments_hash) == 64


def test_nothing_but_what_was_approved_is_dispatched() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, schema=ADD), limits=Limits(parallel=1))
    first, second = story.reply(("t", {"n": 1}), ("t", {"n": 2}))
    story.approve(first)
    story.approve(second)
    approved = story.run
    written = approved.calls[second].arguments
    changed = [written[:at] + "7" + written[at + 1 :] for at in range(len(written))]
    for call in (
        *(structs.replace(approved.calls[second], arguments=arguments) for arguments in changed),
        structs.replace(approved.calls[second], pin="another"),
    ):
        stored = structs.replace(
            approved, calls={**approved.calls, second: call}, pinned={"another": approved.tools["t"]}
        )
        run, effects = step(stored, Answered(story.at, first, 1, Raw(b"1")))
        assert effects == (AskModel(2),)
        assert run.calls[second].outcome is Outcome.UNAVAILABLE
        assert "not the one that was approved" in run.messages[-1].text


def test_arguments_that_change_before_the_decision_are_not_what_is_approved() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, schema=ADD))
    (call,) = story.reply(("t", {"n": 1}))
    changed = structs.replace(story.call(call), arguments='{"n":1000}')
    run, effects = step(structs.replace(story.run, calls={call: changed}), Approved(story.at, call, "ann"))
    assert effects == (AskModel(2),)
    assert run.calls[call].outcome is Outcome.UNAVAILABLE


def test_an_approval_expires() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, approval_timeout=60))
    (call,) = story.reply(("t", {}))
    assert story.effects == (AskApproval(call), SetTimer(story.at + 60_000, call, TimerKind.DEADLINE, 0))
    story.fire(call, after=59)
    assert story.run.waiting
    story.fire(call, after=1)
    assert story.call(call).outcome is Outcome.TIMED_OUT
    assert "Nobody approved" in story.tool_messages[0].text


def test_the_time_of_a_decision_is_not_the_time_of_running() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, timeout=5), limits=Limits(approval_timeout=60))
    (call,) = story.reply(("t", {}))
    story.at += 59_000
    story.approve(call)
    assert story.call(call).deadline == story.at + 5_000


@pytest.mark.parametrize("remember", [None, Remember.TOOL])
def test_the_time_of_a_decision_is_over_once_it_is_made_also_for_a_call_in_line(remember: Remember | None) -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, approval_timeout=1, timeout=9), limits=Limits(parallel=1))
    first, second = story.reply(("t", {}), ("t", {}))
    story.approve(first, remember=remember)
    if remember is None:
        story.approve(second)
    story.fire(second, after=1)
    story.answer(first)
    assert story.dispatched == [(first, 1), (second, 1)]


@pytest.mark.parametrize("scope", list(Remember))
def test_a_remembered_yes_lets_the_next_call_through(scope: Remember) -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, schema=ADD))
    (call,) = story.reply(("t", {"n": 1}))
    story.approve(call, remember=scope)
    assert any(isinstance(effect, Memorise) and effect.principal == "ann" for effect in story.effects)
    story.answer(call)
    same, other = story.reply(("t", {"n": 1}), ("t", {"n": 2}))
    assert story.call(same).state is CallState.EXECUTING
    expected = CallState.EXECUTING if scope is Remember.TOOL else CallState.APPROVAL_REQUESTED
    assert story.call(other).state is expected


def test_a_remembered_no_denies_without_asking() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    story.deny(call, remember=Remember.TOOL)
    (again,) = story.reply(("t", {}))
    assert story.call(again).outcome is Outcome.DENIED
    assert "never" in story.tool_messages[1].text


def test_a_decision_is_remembered_by_pin_and_never_by_name() -> None:
    changed = make_tool(approval=Approval.ALWAYS, schema=ADD)
    story = Story(changed, memory=(Memory(make_tool(approval=Approval.ALWAYS).pin, allow=True),))
    (call,) = story.reply(("t", {"n": 1}))
    assert story.call(call).state is CallState.APPROVAL_REQUESTED


def test_the_newest_decision_counts() -> None:
    tool = make_tool(approval=Approval.ALWAYS)
    story = Story(tool, memory=(Memory(tool.pin, allow=True), Memory(tool.pin, allow=False)))
    (call,) = story.reply(("t", {}))
    assert story.call(call).outcome is Outcome.DENIED


@pytest.mark.parametrize("needed", [True, False])
def test_the_tools_own_function_decides_whether_a_person_must(needed: bool) -> None:
    story = Story(make_tool(approval=Approval.JUDGED))
    (call,) = story.reply(("t", {}))
    assert story.effects == (JudgeApproval(call),)
    assert (story.dispatched, story.run.waiting) == ([], False)
    story.take(ApprovalJudged(story.at, call, needed))
    expected = CallState.APPROVAL_REQUESTED if needed else CallState.EXECUTING
    assert story.call(call).state is expected


def test_a_call_is_judged_once() -> None:
    story = Story(make_tool(approval=Approval.JUDGED))
    (call,) = story.reply(("t", {}))
    story.take(ApprovalJudged(story.at, call, needed=True))
    with pytest.raises(IllegalChange):
        story.take(ApprovalJudged(story.at, call, needed=False))


# 4. Once settled, nothing moves a call (who may answer is in test_answers)


def test_a_second_answer_is_refused() -> None:
    story = Story(make_tool(), make_tool("u"))
    first, _ = story.reply(("t", {}), ("u", {}))
    story.answer(first)
    with pytest.raises(IllegalChange):
        story.take(Answered(story.at, first, 1, Raw(b"2")))


def test_an_answer_of_an_attempt_that_is_over_is_refused() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=1))
    (call,) = story.reply(("t", {}))
    story.fault(call)
    story.fire(call, TimerKind.BACKOFF, after=1)
    with pytest.raises(IllegalChange, match="attempt"):
        story.take(Answered(story.at, call, 1, Raw(b"1")))


def test_a_call_is_taken_up_by_one_client() -> None:
    story = Story(client())
    (call,) = story.reply(("pick", {}))
    story.take(Claimed(story.at, call, 1, "tab-1"))
    assert story.call(call).held_by == "tab-1"
    with pytest.raises(IllegalChange):
        story.take(Claimed(story.at, call, 1, "tab-2"))


@pytest.mark.parametrize("place", [Place.SERVER, Place.MCP, Place.A2A])
def test_a_call_of_another_place_neither_looks_for_a_client_nor_is_taken_up_by_one(place: Place) -> None:
    story = Story(make_tool(place=place))
    (call,) = story.reply(("t", {}))
    for event in (ClientAbsent(story.at, call, 1), Claimed(story.at, call, 1, "tab")):
        with pytest.raises(IllegalChange):
            story.take(event)


# 5. `once` is never dispatched twice


def test_a_once_tool_is_not_retried_after_a_failure() -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    story.fault(call)
    assert (story.call(call).outcome, story.dispatched) == (Outcome.FAILED, [(call, 1)])


def test_a_once_tool_that_was_lost_ends_unknown_and_both_are_told() -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    story.take(Lost(story.at, call, 1))
    assert (story.call(call).outcome, story.dispatched) == (Outcome.UNKNOWN, [(call, 1)])
    assert "may or may not have happened" in story.tool_messages[0].text


@pytest.mark.parametrize("effect", [SideEffect.PURE, SideEffect.IDEMPOTENT])
def test_a_tool_that_may_be_repeated_is_dispatched_again_when_lost(effect: SideEffect) -> None:
    story = Story(make_tool(effect=effect))
    (call,) = story.reply(("t", {}))
    story.take(Lost(story.at, call, 1))
    assert story.dispatched == [(call, 1), (call, 2)]


def test_retries_back_off_and_end() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=2), limits=Limits(retry_delay=1))
    (call,) = story.reply(("t", {}))
    waits: list[int] = []
    for _ in range(2):
        story.fault(call)
        (timer,) = [effect for effect in story.effects if isinstance(effect, SetTimer)]
        waits.append(timer.due - story.at)
        assert not story.run.waiting
        story.fire(call, TimerKind.BACKOFF, after=waits[-1] / 1000)
    story.fault(call, "still broken")
    assert waits == [1000, 2000]
    assert story.dispatched == [(call, 1), (call, 2), (call, 3)]
    assert story.tool_messages[0].text == "Error: still broken"


def test_a_failure_that_cannot_get_better_is_not_retried() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=2))
    (call,) = story.reply(("t", {}))
    story.fault(call, retryable=False)
    assert story.call(call).outcome is Outcome.FAILED


def test_a_failure_of_an_attempt_that_is_over_does_not_end_the_call() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=1))
    (call,) = story.reply(("t", {}))
    story.fault(call)
    with pytest.raises(IllegalChange):
        story.fault(call, retryable=False)
    story.fire(call, TimerKind.BACKOFF, after=1)
    assert story.dispatched == [(call, 1), (call, 2)]


def test_a_failure_of_a_call_that_is_still_judged_is_refused() -> None:
    story = Story(make_tool(approval=Approval.JUDGED))
    (call,) = story.reply(("t", {}))
    with pytest.raises(IllegalChange):
        story.fault(call)


def test_a_back_off_that_rings_early_changes_nothing() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=1), limits=Limits(retry_delay=10))
    (call,) = story.reply(("t", {}))
    story.fault(call)
    story.fire(call, TimerKind.BACKOFF, after=1)
    assert story.dispatched == [(call, 1)]


# 6. Deadlines


def test_a_deadline_ends_the_call_and_reaches_the_place() -> None:
    story = Story(make_tool(timeout=5))
    (call,) = story.reply(("t", {}))
    assert SetTimer(story.at + 5000, call, TimerKind.DEADLINE, 1) in story.effects
    story.fire(call, after=5)
    assert Withdraw(call, 1) in story.effects
    assert story.call(call).outcome is Outcome.TIMED_OUT
    assert story.tool_messages[0].text == "Error: Tool 't' timed out after 5 s. It may or may not have taken effect."


def test_a_client_tool_that_never_answers_ends_at_its_deadline() -> None:
    story = Story(client(effect=SideEffect.PURE), limits=Limits(client_timeout=30))
    (call,) = story.reply(("pick", {}))
    assert story.run.waiting
    story.fire(call, after=30)
    assert story.tool_messages[0].text == "Error: Client tool 'pick' timed out after 30 s."


def test_a_time_out_of_a_tool_that_may_be_repeated_is_retried() -> None:
    story = Story(make_tool(timeout=1, effect=SideEffect.PURE, retries=1))
    (call,) = story.reply(("t", {}))
    story.fire(call, after=1)
    assert story.call(call).open
    story.fire(call, TimerKind.BACKOFF, after=1)
    assert story.dispatched == [(call, 1), (call, 2)]


def test_a_tool_without_a_limit_sets_no_timer() -> None:
    story = Story(make_tool(), limits=Limits(server_timeout=None))
    story.reply(("t", {}))
    assert not any(isinstance(effect, SetTimer) for effect in story.effects)


def test_a_deadline_of_an_earlier_attempt_or_moment_changes_nothing() -> None:
    story = Story(make_tool(timeout=5))
    (call,) = story.reply(("t", {}))
    for timer in (
        TimerFired(story.at + 4999, call, TimerKind.DEADLINE, 1),
        TimerFired(story.at + 9999, call, TimerKind.DEADLINE, 7),
        TimerFired(story.at + 9999, "other", TimerKind.DEADLINE, 1),
        TimerFired(story.at + 9999, call, TimerKind.GRACE, 7),
    ):
        story.take(timer)
    assert story.call(call).state is CallState.EXECUTING


# 7. Independent calls run side by side, results in call order


def test_calls_run_side_by_side_and_results_come_in_call_order() -> None:
    story = Story(make_tool())
    calls = story.reply(("t", {}), ("t", {}), ("t", {}))
    assert story.dispatched == [(call, 1) for call in calls]
    for position in (2, 0, 1):
        story.answer(calls[position], position)
    assert [message.text for message in story.tool_messages] == ["0", "1", "2"]
    assert story.effects == (AskModel(2),)


def test_a_call_that_waits_for_a_person_does_not_hold_up_the_others() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS), make_tool("u"))
    waits, runs = story.reply(("t", {}), ("u", {}))
    assert story.dispatched == [(runs, 1)]
    assert not story.run.waiting
    story.answer(runs)
    assert story.run.waiting
    story.approve(waits)
    story.answer(waits)
    assert story.effects == (AskModel(2),)


def test_a_gate_over_the_turn_holds_server_calls_but_not_client_calls() -> None:
    tools = make_tool(approval=Approval.ALWAYS), make_tool("u"), client()
    story = Story(*tools, limits=Limits(gate="turn"))
    waits, gated, free = story.reply(("t", {}), ("u", {}), ("pick", {}))
    assert story.dispatched == [(free, 1)]
    story.deny(waits)
    assert story.dispatched == [(free, 1), (gated, 1)]


def test_no_more_calls_run_on_the_server_than_the_limit_says() -> None:
    story = Story(make_tool(), client(), limits=Limits(parallel=2))
    first, second, third, free = story.reply(("t", {}), ("t", {}), ("t", {}), ("pick", {}))
    assert story.dispatched == [(first, 1), (second, 1), (free, 1)]
    story.answer(second)
    assert story.dispatched[-1] == (third, 1)


# 8. Limits


def test_at_the_limit_of_turns_open_calls_finish_and_the_model_has_a_last_word() -> None:
    story = Story(make_tool(), limits=Limits(max_turns=2))
    story.answer(story.reply(("t", {}))[0], 1)
    story.answer(story.reply(("t", {}))[0], 2)
    assert story.effects == (AskModel(3, tools=False),)
    story.reply(text="that is all")
    assert (story.run.ending, story.run.limit, story.run.output) == (Ending.LIMIT, "max_turns", "that is all")
    assert [message.text for message in story.tool_messages] == ["1", "2"]


def test_a_model_that_calls_tools_at_the_limit_all_the_same_is_refused() -> None:
    story = Story(make_tool(), limits=Limits(max_turns=1))
    story.answer(story.reply(("t", {}))[0])
    (call,) = story.reply(("t", {}))
    assert story.call(call).failure is not None
    assert story.call(call).failure.code == "limit_reached"
    assert (story.run.ending, story.run.limit) == (Ending.LIMIT, "max_turns")
    assert len(story.dispatched) == 1


def test_the_last_word_can_be_left_out() -> None:
    story = Story(make_tool(), limits=Limits(max_turns=1, final_turn=False))
    story.answer(story.reply(("t", {}))[0], 7)
    assert (story.run.ending, story.tool_messages[0].text) == (Ending.LIMIT, "7")


def test_a_limit_of_calls_ends_like_a_limit_of_turns() -> None:
    story = Story(make_tool(), limits=Limits(max_calls=2))
    for call in story.reply(("t", {}), ("t", {})):
        story.answer(call)
    assert story.effects == (AskModel(2, tools=False),)


def test_the_limit_that_was_reached_first_is_the_one_that_is_told() -> None:
    story = Story(make_tool(), limits=Limits(max_calls=1, max_turns=2))
    story.answer(story.reply(("t", {}))[0])
    story.reply(("t", {}))
    assert (story.run.ending, story.run.limit) == (Ending.LIMIT, "max_calls")


@pytest.mark.parametrize("limit", ["input_tokens", "output_tokens", "total_tokens"])
def test_a_limit_of_tokens_ends_without_asking_again(limit: str) -> None:
    story = Story(make_tool(), limits=Limits(**{limit: 10}))
    (call,) = story.reply(("t", {}), usage=Usage(10, 10))
    story.answer(call)
    assert (story.run.ending, story.run.limit) == (Ending.LIMIT, limit)
    assert len(story.tool_messages) == 1


def test_tokens_of_a_reply_whose_calls_were_all_invalid_count() -> None:
    story = Story(limits=Limits(total_tokens=10))
    story.reply(("nope", {}), usage=Usage(10, 10))
    assert story.run.ending is Ending.LIMIT


@pytest.mark.parametrize("stop", [True, False])
def test_the_programs_own_condition_is_asked_after_a_turn(stop: bool) -> None:
    story = Story(make_tool(), judged_stop=True)
    story.answer(story.reply(("t", {}), text="so far")[0])
    assert story.effects == (JudgeStop(1),)
    story.take(StopJudged(story.at, stop))
    assert story.run.ending is (Ending.STOPPED if stop else None)


def test_the_last_word_is_not_judged() -> None:
    story = Story(make_tool(), judged_stop=True, limits=Limits(max_turns=1))
    story.answer(story.reply(("t", {}))[0])
    story.take(StopJudged(story.at, stop=False))
    story.reply(("t", {}))
    assert story.run.ending is Ending.LIMIT


# 9. Cancelling


def test_cancelling_a_call_reaches_its_place_and_the_model_is_told() -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    story.take(CallCancelled(story.at, call, "changed my mind"))
    assert Withdraw(call, 1) in story.effects
    assert story.call(call).outcome is Outcome.CANCELLED
    assert "while it ran" in story.tool_messages[0].text
    assert "changed my mind" in story.tool_messages[0].text


def test_a_call_that_was_not_dispatched_is_cancelled_without_a_word_to_its_place() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    story.take(CallCancelled(story.at, call))
    assert not any(isinstance(effect, Withdraw) for effect in story.effects)
    assert story.tool_messages[0].text == "Error: Tool 't' was cancelled before it ran."


def test_cancelling_a_run_settles_all_its_calls_and_keeps_the_history_whole() -> None:
    story = Story(make_tool(), client(), make_tool("u", approval=Approval.ALWAYS))
    story.reply(("t", {}), ("pick", {}), ("u", {}))
    story.take(RunCancelled(story.at, "enough"))
    assert story.outcomes == [Outcome.CANCELLED] * 3
    assert [message.call_id for message in story.tool_messages] == list(story.run.order)
    assert sum(isinstance(effect, Withdraw) for effect in story.effects) == 2
    assert story.run.ending is Ending.CANCELLED


def test_cancelling_while_the_model_speaks_closes_its_stream() -> None:
    story = Story()
    story.take(RunCancelled(story.at))
    assert (story.effects, story.run.ending) == ((StopModel(1),), Ending.CANCELLED)


def test_cancelling_while_stop_conditions_are_asked_ends_the_run() -> None:
    story = Story(make_tool(), judged_stop=True)
    story.answer(story.reply(("t", {}))[0])
    story.take(RunCancelled(story.at))
    assert (story.run.ending, len(story.tool_messages)) == (Ending.CANCELLED, 1)


# When nobody is there


def test_without_a_client_the_model_gets_the_fallback_after_a_grace_period() -> None:
    story = Story(client(), limits=Limits(grace=5))
    (call,) = story.reply(("pick", {}))
    story.take(ClientAbsent(story.at, call, 1))
    assert story.effects == (SetTimer(story.at + 5000, call, TimerKind.GRACE, 1),)
    story.fire(call, TimerKind.GRACE, after=5)
    assert story.call(call).outcome is Outcome.UNAVAILABLE
    assert story.tool_messages[0].text == "Error: Client disconnected. Tool 'pick' is unavailable."


def test_a_client_that_comes_within_the_grace_period_keeps_the_call() -> None:
    story = Story(client())
    (call,) = story.reply(("pick", {}))
    story.take(ClientAbsent(story.at, call, 1))
    story.take(Claimed(story.at, call, 1, "tab"))
    story.fire(call, TimerKind.GRACE, after=5)
    assert story.call(call).open


def test_a_grace_period_ends_with_its_attempt() -> None:
    story = Story(client(effect=SideEffect.PURE, retries=1))
    (call,) = story.reply(("pick", {}))
    story.take(ClientAbsent(story.at, call, 1))
    story.fault(call)
    story.fire(call, TimerKind.GRACE, after=5)
    assert story.call(call).open


def test_a_grace_period_counts_once_it_began_and_not_before_its_end() -> None:
    story = Story(client())
    (call,) = story.reply(("pick", {}))
    story.fire(call, TimerKind.GRACE, after=5)
    assert story.call(call).open, "nobody was said to be absent"
    story.take(ClientAbsent(story.at, call, 1))
    story.fire(call, TimerKind.GRACE, after=4)
    story.take(ClientAbsent(story.at, call, 1))
    assert (story.call(call).open, story.effects) == (True, ()), "it does not begin anew"
    story.fire(call, TimerKind.GRACE, after=1)
    assert story.call(call).outcome is Outcome.UNAVAILABLE


def test_a_grace_period_goes_on_after_a_crash() -> None:
    tool = client()
    story = Story(tool)
    (call,) = story.reply(("pick", {}))
    story.take(ClientAbsent(story.at, call, 1))
    story.take(Recovered(story.at + 1, (tool,)))
    assert SetTimer(story.at + 5000, call, TimerKind.GRACE, 1) in story.effects
    story.take(Recovered(story.at + 2, (tool,), unsent=(call,)))
    story.fire(call, TimerKind.GRACE, after=6)
    assert (story.call(call).attempt, story.call(call).open) == (2, True), "the new attempt has a grace of its own"


def test_a_call_that_keeps_losing_its_process_ends_unknown_and_its_losses_are_no_failures() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=1), limits=Limits(max_losses=2, retry_delay=1))
    (call,) = story.reply(("t", {}))
    for attempt in (1, 2):
        story.take(Lost(story.at, call, attempt))
    story.fault(call)
    story.fire(call, TimerKind.BACKOFF, after=4)
    assert story.dispatched == [(call, 1), (call, 2), (call, 3), (call, 4)]
    story.take(Lost(story.at, call, 4))
    assert story.call(call).outcome is Outcome.UNKNOWN


def test_a_run_has_one_tool_of_a_name() -> None:
    with pytest.raises(IllegalChange):
        Story(make_tool(), make_tool())
    story = Story(make_tool())
    with pytest.raises(IllegalChange):
        story.take(Recovered(story.at, (make_tool(), make_tool())))


def test_edited_arguments_are_held_against_the_tool_whoever_made_the_event() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, schema=ADD))
    (call,) = story.reply(("t", {"n": 1}))
    for nonsense in ("nonsense", "[]", '{"n":"x"}'):
        with pytest.raises(IllegalChange):
            story.approve(call, arguments=nonsense)
    assert story.call(call).state is CallState.APPROVAL_REQUESTED


def test_the_fallback_message_is_a_setting() -> None:
    story = Story(client(fallback="{0} is off, {tool}!"))
    (call,) = story.reply(("pick", {}))
    story.take(ClientAbsent(story.at, call, 1))
    story.fire(call, TimerKind.GRACE, after=5)
    assert story.tool_messages[0].text == "Error: pick is off, pick!"


def test_a_call_that_needs_a_person_waits_for_its_client() -> None:
    story = Story(client(approval=Approval.ALWAYS))
    (call,) = story.reply(("pick", {}))
    story.approve(call)
    story.take(ClientAbsent(story.at, call, 1))
    assert (story.effects, story.call(call).state) == ((), CallState.EXECUTING)


def test_absent_fail_ends_the_run() -> None:
    story = Story(client(absent=Absent.FAIL), make_tool())
    call, other = story.reply(("pick", {}), ("t", {}))
    story.take(ClientAbsent(story.at, call, 1))
    assert (story.run.ending, story.call(other).outcome) == (Ending.FAILED, Outcome.CANCELLED)
    assert story.effects == (Withdraw(other, 1),)
    assert len(story.tool_messages) == 2


def test_absent_retry_dispatches_again_and_then_falls_back() -> None:
    story = Story(client(absent=Absent.RETRY), limits=Limits(absent_retries=2, retry_delay=1))
    (call,) = story.reply(("pick", {}))
    for attempt, wait in ((1, 1), (2, 2)):
        story.take(ClientAbsent(story.at, call, attempt))
        story.fire(call, TimerKind.BACKOFF, after=wait)
    story.take(ClientAbsent(story.at, call, 3))
    story.fire(call, TimerKind.GRACE, after=5)
    assert story.dispatched == [(call, 1), (call, 2), (call, 3)]
    assert story.call(call).outcome is Outcome.UNAVAILABLE


# Taking up a run again


def test_a_model_request_is_repeated_after_a_crash() -> None:
    story = Story(make_tool())
    story.take(Recovered(story.at, tuple(story.run.tools.values())))
    assert story.effects == (AskModel(1),)


def test_stop_conditions_are_asked_again_after_a_crash() -> None:
    story = Story(make_tool(), judged_stop=True)
    story.answer(story.reply(("t", {}))[0])
    story.take(Recovered(story.at, tuple(story.run.tools.values())))
    assert story.effects == (JudgeStop(1),)


@pytest.mark.parametrize(
    ("effect", "outcome", "dispatches"), [(SideEffect.ONCE, Outcome.UNKNOWN, 1), (SideEffect.PURE, None, 2)]
)
def test_a_server_call_that_was_running_is_repeated_only_if_that_is_harmless(
    effect: SideEffect, outcome: Outcome | None, dispatches: int
) -> None:
    story = Story(make_tool(effect=effect))
    (call,) = story.reply(("t", {}))
    story.take(Recovered(story.at, tuple(story.run.tools.values())))
    assert (story.call(call).outcome, len(story.dispatched)) == (outcome, dispatches)


def test_what_waits_for_others_waits_again_with_its_old_deadline() -> None:
    tools = client(), make_tool(approval=Approval.ALWAYS, approval_timeout=9), make_tool("j", approval=Approval.JUDGED)
    story = Story(*tools)
    picked, asked, judged = story.reply(("pick", {}), ("t", {}), ("j", {}))
    deadline = story.call(picked).deadline
    story.at += 500
    story.take(Recovered(story.at, tuple(story.run.tools.values())))
    assert set(story.effects) == {
        Dispatch(picked, 1),
        SetTimer(deadline or 0, picked, TimerKind.DEADLINE, 1),
        AskApproval(asked),
        SetTimer(10_000, asked, TimerKind.DEADLINE, 0),
        JudgeApproval(judged),
    }
    assert story.call(picked).attempt == 1


def test_a_client_that_holds_a_call_is_not_asked_again() -> None:
    story = Story(client())
    (call,) = story.reply(("pick", {}))
    story.take(Claimed(story.at, call, 1, "tab"))
    story.take(Recovered(story.at, tuple(story.run.tools.values())))
    assert not any(isinstance(effect, Dispatch) for effect in story.effects)


def test_a_back_off_goes_on_after_a_crash() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=1))
    (call,) = story.reply(("t", {}))
    story.fault(call)
    story.take(Recovered(story.at, tuple(story.run.tools.values())))
    assert story.effects == (SetTimer(story.call(call).not_before, call, TimerKind.BACKOFF, 1),)


def test_a_changed_tool_is_not_run_under_its_old_approval() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", {}))
    story.take(Recovered(story.at, (make_tool(approval=Approval.ALWAYS, schema=ADD),)))
    assert story.call(call).outcome is Outcome.UNAVAILABLE
    assert "has changed" in story.tool_messages[0].text
    assert story.dispatched == []


def test_a_tool_that_is_gone_ends_its_waiting_calls() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    story.reply(("t", {}))
    story.take(Recovered(story.at, ()))
    assert "not available any more" in story.tool_messages[0].text


def test_a_client_call_that_was_dispatched_is_still_taken_after_its_tool_changed() -> None:
    story = Story(client(output={"type": "integer"}))
    (call,) = story.reply(("pick", {}))
    story.take(Recovered(story.at, (client(output={"type": "string"}),)))
    old = story.run.definition_of(story.call(call))
    assert old is not None
    assert old.output is not None
    assert bytes(old.output) == b'{"type":"integer"}'
    story.answer(call, 5)
    assert story.call(call).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("effect", "outcome"), [(SideEffect.PURE, Outcome.UNAVAILABLE), (SideEffect.ONCE, Outcome.UNKNOWN)]
)
def test_a_server_call_that_ran_when_its_tool_changed_is_not_run_again(effect: SideEffect, outcome: Outcome) -> None:
    story = Story(make_tool(effect=effect))
    (call,) = story.reply(("t", {}))
    story.take(Recovered(story.at, (make_tool(effect=effect, schema=ADD),)))
    assert (story.call(call).outcome, len(story.dispatched)) == (outcome, 1)


def test_the_new_tools_hold_from_the_next_turn() -> None:
    story = Story(make_tool())
    story.take(Recovered(story.at, (make_tool("new"),)))
    assert list(story.run.tools) == ["new"]
    (call,) = story.reply(("new", {}))
    assert story.dispatched == [(call, 1)]


def test_the_last_word_is_asked_for_without_tools_after_a_crash_as_well() -> None:
    story = Story(make_tool(), limits=Limits(max_turns=1))
    story.answer(story.reply(("t", {}))[0])
    story.take(Recovered(story.at, tuple(story.run.tools.values())))
    assert story.effects == (AskModel(2, tools=False),)


def test_a_call_that_is_taken_back_has_neither_holder_nor_deadline_nor_anybody_to_die_with() -> None:
    story = Story(client(effect=SideEffect.PURE, retries=1))
    (call,) = story.reply(("pick", {}))
    story.take(Claimed(story.at, call, 1, "process", dies=True))
    story.fault(call)
    assert (story.call(call).held_by, story.call(call).deadline) == ("", None)
    story.fire(call, TimerKind.BACKOFF, after=1)
    assert (story.call(call).held_by, story.call(call).dies) == ("", False)


# Structured answers


def test_an_answer_that_fits_the_schema_is_taken() -> None:
    story = Story(output_schema=Raw(json.encode(ADD)))
    story.reply(text='```json\n{"n": 1}\n```')
    assert story.run.ending is Ending.DONE


def test_an_answer_that_breaks_the_schema_is_mended_by_the_model() -> None:
    story = Story(output_schema=Raw(json.encode(ADD)))
    story.reply(text='{"n": -1}')
    assert story.effects == (AskModel(2),)
    assert "breaks the schema" in story.run.messages[-1].text
    story.reply(text='{"n": 1}')
    assert (story.run.ending, story.run.output) == (Ending.DONE, '{"n": 1}')


def test_repairs_are_bounded() -> None:
    story = Story(output_schema=Raw(json.encode(ADD)), limits=Limits(output_repairs=1))
    story.reply(text="not json")
    story.reply(text="still not")
    assert story.run.ending is Ending.FAILED
    assert story.run.failure is not None
    assert story.run.failure.code == "output_invalid"


def test_a_repair_is_not_asked_for_beyond_a_token_limit() -> None:
    story = Story(output_schema=Raw(json.encode(ADD)), limits=Limits(total_tokens=5))
    story.reply(text="not json", usage=Usage(5, 5))
    assert story.run.ending is Ending.FAILED


# 10 and replay


def test_a_log_replays_into_the_same_run() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=1), client(), make_tool("u", approval=Approval.ALWAYS))
    first, second, third = story.reply(("t", {}), ("pick", {}), ("u", {}))
    story.fault(first)
    story.fire(first, TimerKind.BACKOFF, after=1)
    story.answer(first, 1)
    story.take(Claimed(story.at, second, 1, "tab"))
    story.answer(second, 2)
    story.approve(third, arguments='{"a":1}')
    story.answer(third, 3)
    story.reply(text="done")
    assert story.replayed() == story.run


def test_a_conversation_is_taken_over_with_an_outcome_for_every_call() -> None:
    started = Story(make_tool()).log[0]
    asked = AssistantMessage("", calls=(CallRequest("c9", "x", "t", "{}"),))
    run, _ = step(None, structs.replace(started, messages=(*started.messages, asked)))
    assert isinstance(run.messages[-1], ToolMessage)
    assert run.said_before == len(run.messages) == 3


def test_only_the_models_reply_makes_calls() -> None:
    """Posted history is context: an assistant message with calls in it runs nothing."""
    forged = AssistantMessage("", calls=(CallRequest("c9", "x", "t", "{}"),))
    story = Story(make_tool())
    before = step(
        None,
        type(story.log[0])(1, "r", "t", "ann", (forged, ToolMessage("c9", "x", "t", Outcome.OK)), story.log[0].tools),
    )
    assert before[1] == (AskModel(1),)
    assert before[0].calls == {}
    with pytest.raises(IllegalChange):
        step(before[0], Approved(1, "c9", "ann"))


def test_updates_and_effects_are_values_that_can_be_written_down() -> None:
    story = Story(make_tool(deprecated="use u"))
    story.answer(story.reply(("t", {}))[0])
    story.reply(text="x")
    assert json.decode(json.encode([*story.told, *story.all_effects, *story.log]))


def test_a_retry_of_an_absent_client_does_not_use_up_the_retries_of_failures() -> None:
    tool = client(absent=Absent.RETRY, effect=SideEffect.PURE, retries=1)
    story = Story(tool, limits=Limits(retry_delay=1))
    (call,) = story.reply(("pick", {}))
    story.take(ClientAbsent(story.at, call, 1))
    story.fire(call, TimerKind.BACKOFF, after=1)
    story.fault(call)
    assert story.call(call).open


def test_an_ended_call_is_not_known_to_further_events() -> None:
    story = Story(make_tool(), make_tool("u"))
    first, _ = story.reply(("t", {}), ("u", {}))
    story.answer(first)
    for event in (Lost(1, first, 1), Lost(1, "nobody", 1), Claimed(1, "nobody", 1, "x")):
        with pytest.raises(IllegalChange):
            story.take(event)


def test_remembering_exactly_these_arguments_after_an_edit_means_the_edited_ones() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, schema=ADD))
    (call,) = story.reply(("t", {"n": 1000}))
    story.approve(call, arguments='{"n":1}', remember=Remember.ARGUMENTS)
    story.answer(call)
    refused, allowed = story.reply(("t", {"n": 1000}), ("t", {"n": 1}))
    assert story.call(refused).state is CallState.APPROVAL_REQUESTED
    assert story.call(allowed).state is CallState.EXECUTING


def test_white_space_and_order_are_no_edit_and_do_not_make_other_arguments() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    (call,) = story.reply(("t", '{"n": 1, "m": 2}'))
    story.approve(call, arguments='{"m":2,"n":1}', remember=Remember.ARGUMENTS)
    assert not story.call(call).edited
    assert story.call(call).arguments == '{"n": 1, "m": 2}'
    story.answer(call)
    (again,) = story.reply(("t", '{ "m" : 2, "n" : 1 }'))
    assert story.call(again).state is CallState.EXECUTING


def test_a_decision_about_exactly_these_arguments_beats_one_about_the_tool() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, schema=ADD))
    (call,) = story.reply(("t", {"n": 1}))
    story.deny(call, remember=Remember.ARGUMENTS)
    (other,) = story.reply(("t", {"n": 2}))
    story.approve(other, remember=Remember.TOOL)
    story.answer(other)
    first, second = story.reply(("t", {"n": 1}), ("t", {"n": 3}))
    assert story.call(first).outcome is Outcome.DENIED
    assert story.call(second).state is CallState.EXECUTING


@pytest.mark.parametrize("yes", [True, False])
def test_a_lasting_decision_holds_for_the_calls_that_wait_beside_it(yes: bool) -> None:
    other = make_tool("u", approval=Approval.ALWAYS)
    story = Story(make_tool(approval=Approval.ALWAYS, schema=ADD), other)
    first, second, third = story.reply(("t", {"n": 1}), ("t", {"n": 2}), ("u", {}))
    if yes:
        story.approve(first, remember=Remember.TOOL)
        assert story.dispatched == [(first, 1), (second, 1)]
    else:
        story.deny(first, remember=Remember.TOOL)
        assert story.call(second).outcome is Outcome.DENIED
    assert story.call(third).state is CallState.APPROVAL_REQUESTED


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("needed", [True, False])
def test_a_lasting_decision_holds_for_a_call_that_is_still_judged(yes: bool, needed: bool) -> None:
    story = Story(make_tool(approval=Approval.JUDGED))
    asked, judged = story.reply(("t", {}), ("t", {}))
    story.take(ApprovalJudged(story.at, asked, needed=True))
    if yes:
        story.approve(asked, remember=Remember.TOOL)
    else:
        story.deny(asked, remember=Remember.TOOL)
    story.take(ApprovalJudged(story.at, judged, needed))
    assert story.call(judged).outcome is (None if yes else Outcome.DENIED)
    assert ((judged, 1) in story.dispatched) is yes


def test_calls_beyond_the_limit_of_calls_are_refused_in_the_same_turn() -> None:
    story = Story(make_tool(), limits=Limits(max_calls=1))
    first, second = story.reply(("t", {}), ("t", {}))
    assert story.dispatched == [(first, 1)]
    assert story.call(second).outcome is Outcome.INVALID
    story.answer(first)
    assert story.effects == (AskModel(2, tools=False),)


def test_a_repair_beyond_the_limit_of_turns_has_no_tools() -> None:
    story = Story(make_tool(), output_schema=Raw(json.encode(ADD)), limits=Limits(max_turns=1))
    story.reply(text="not json")
    assert story.effects == (AskModel(2, tools=False),)
    story.reply(text='{"n": 1}')
    assert story.run.ending is Ending.DONE


def test_a_call_that_is_repaired_with_calls_all_the_same_ends_the_run() -> None:
    story = Story(make_tool(), output_schema=Raw(json.encode(ADD)), limits=Limits(max_turns=1))
    story.reply(text="not json")
    story.reply(("t", {}))
    assert (story.run.ending, story.dispatched) == (Ending.LIMIT, [])


def test_a_call_that_a_function_of_the_dead_process_held_is_lost_with_it() -> None:
    story = Story(client(effect=SideEffect.IDEMPOTENT), client("other"))
    again, gone = story.reply(("pick", {}), ("other", {}))
    for call in (again, gone):
        story.take(Claimed(story.at, call, 1, "process", dies=True))
    story.take(Recovered(story.at, tuple(story.run.tools.values())))
    assert story.dispatched[-1] == (again, 2)
    assert story.call(gone).outcome is Outcome.UNKNOWN


def test_what_was_surely_not_sent_is_sent_after_all_even_if_it_must_not_be_repeated() -> None:
    story = Story(make_tool())
    (call,) = story.reply(("t", {}))
    story.take(Recovered(story.at, tuple(story.run.tools.values()), unsent=(call,)))
    assert story.dispatched == [(call, 1), (call, 2)]
    story.answer(call, "ok")
    assert story.call(call).outcome is Outcome.OK


def test_a_call_that_was_taken_up_was_sent_whatever_is_said() -> None:
    story = Story(client())
    (call,) = story.reply(("pick", {}))
    story.take(Claimed(story.at, call, 1, "tab"))
    story.take(Recovered(story.at, tuple(story.run.tools.values()), unsent=(call,)))
    assert (story.dispatched, story.call(call).held_by) == ([(call, 1)], "tab")


@pytest.mark.parametrize("place", [Place.SERVER, Place.CLIENT])
def test_what_was_not_sent_is_not_sent_after_its_tool_changed_and_surely_did_not_happen(place: Place) -> None:
    story = Story(make_tool(place=place))
    (call,) = story.reply(("t", {}))
    story.take(Recovered(story.at, (make_tool(place=place, schema=ADD),), unsent=(call,)))
    assert story.dispatched == [(call, 1)]
    assert story.call(call).outcome is Outcome.UNAVAILABLE
    assert "so it was not run" in story.tool_messages[0].text


def test_a_call_that_goes_on_after_a_failure_does_not_look_failed() -> None:
    story = Story(make_tool(effect=SideEffect.PURE, retries=1))
    (call,) = story.reply(("t", {}))
    story.fault(call)
    story.fire(call, TimerKind.BACKOFF, after=1)
    story.answer(call, 1)
    assert story.call(call).failure is None


def test_a_call_that_is_tried_again_after_a_redeploy_goes_by_the_definition_it_was_made_under() -> None:
    pick = client("pick", effect=SideEffect.PURE, retries=1, timeout=10)
    story = Story(pick)
    (call,) = story.reply(("pick", {}))
    story.take(Recovered(story.at, (client("pick", effect=SideEffect.IDEMPOTENT, timeout=99),)))
    story.fault(call)
    story.fire(call, TimerKind.BACKOFF, after=1)
    assert story.dispatched[-1] == (call, 2)
    assert story.call(call).deadline == story.at + 10_000
