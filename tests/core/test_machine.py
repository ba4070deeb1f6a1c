"""Any order of replies, answers, duplicates, approvals, denials, times, cancels and crashes: the promises hold.

The world around the core is a model here: it performs effects when it pleases, repeats what it likes, and crashes.
After every step the log is replayed, as a process does that takes a run up again.
"""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Raw, json

from farhand.core import answers
from farhand.core.call import ENDED, Call, CallState, Outcome
from farhand.core.definition import Absent, Approval, Definition, Place, SideEffect
from farhand.core.effects import Dispatch, SetTimer
from farhand.core.errors import IllegalChange, RefusedAnswer
from farhand.core.events import (
    Answered,
    ApprovalJudged,
    Approved,
    CallCancelled,
    Claimed,
    ClientAbsent,
    ClientCame,
    Denied,
    Event,
    Faulted,
    Lost,
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
from farhand.core.presence import attend
from farhand.core.run import Phase
from farhand.core.step import replay
from farhand.core.updates import CallEnded, RunEnded
from tests.core.story import ADD, Story, make_tool

TOOLS: list[Definition] = [
    make_tool("once", schema=ADD),
    make_tool("pure", effect=SideEffect.PURE, retries=1, timeout=5),
    make_tool("asks", approval=Approval.ALWAYS, approval_timeout=20, schema=ADD),
    make_tool("judged", approval=Approval.JUDGED, effect=SideEffect.IDEMPOTENT),
    make_tool("client", place=Place.CLIENT, output={"type": "integer"}),
    make_tool("client_asks", place=Place.CLIENT, approval=Approval.ALWAYS, absent=Absent.RETRY),
    make_tool("client_fails", place=Place.CLIENT, absent=Absent.FAIL, effect=SideEffect.PURE, retries=1),
]
LIMITS = [
    Limits(max_turns=9, retry_delay=0),
    Limits(max_turns=2, final_turn=False, parallel=1),
    Limits(gate="turn", parallel=2, max_calls=4, calls_per_turn=3),
    Limits(total_tokens=5),
]
NAMES = [*(tool.name for tool in TOOLS), "nobody"]
ARGUMENTS = ['{"n":1}', '{"n":1}', '{"n":1}', "{}", '{"n":-1}', '{"n":', ""]
RESULTS = [b"0", b"null", b'"x"', b"7", b"7.0"]
EDITS = st.sampled_from([None, '{"n":2}', '{"n":"x"}', "nonsense"])
pick = st.integers(0, 30)
calls = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(ARGUMENTS)), min_size=1, max_size=4)


def open_calls(machine: "Runs") -> bool:
    return bool(machine.story.run.open_calls)


def going_on(machine: "Runs") -> bool:
    return machine.story.run.phase is not Phase.ENDED


class Runs(RuleBasedStateMachine):
    """One run between a model, clients, persons, timers and crashes."""

    story: Story

    @initialize(limits=st.sampled_from(LIMITS), judged=st.booleans(), attended=st.booleans(), calls=calls)
    def begin(self, limits: Limits, judged: bool, attended: bool, calls: list[tuple[str, str]]) -> None:
        self.story = Story(*TOOLS, limits=limits, judged_stop=judged, attended=attended)
        self.approved: set[str] = set()
        self.settled: dict[str, Outcome] = {}
        self.calls = 0
        self.the_model_replies(calls)

    # What the world does

    @precondition(lambda self: self.story.run.phase is Phase.ASKING)
    @rule(calls=calls)
    def the_model_replies(self, calls: list[tuple[str, str]]) -> None:
        self.story.reply(*calls, text="words")
        self.calls += len(calls)

    @precondition(lambda self: self.story.run.phase is Phase.ASKING)
    @rule(how=st.integers(0, 9))
    def the_model_comes_to_an_end(self, how: int) -> None:
        if how == 0:
            self.story.take(ModelFailed(self.story.at, Failure("x", "y")))
        elif how == 1:
            self.story.reply(text="done")

    @precondition(open_calls)
    @rule(at=pick)
    def the_place_answers(self, at: int) -> None:
        self.offer(at, lambda call: Answered(self.story.at, call.id, call.attempt, Raw(b"1")), server=True)

    @precondition(open_calls)
    @rule(at=pick, retryable=st.booleans())
    def the_place_fails(self, at: int, retryable: bool) -> None:
        failure = Failure("x", "broke", retryable=retryable)
        self.offer(at, lambda call: Faulted(self.story.at, call.id, call.attempt, failure), server=True)

    @precondition(open_calls)
    @rule(at=pick)
    def the_place_is_lost(self, at: int) -> None:
        self.offer(at, lambda call: Lost(self.story.at, call.id, call.attempt), server=True)

    @precondition(open_calls)
    @rule(at=pick, result=st.sampled_from(RESULTS), times=st.integers(1, 3), who=st.sampled_from(["ann", "eve"]))
    def a_client_answers(self, at: int, result: bytes, times: int, who: str) -> None:
        for _ in range(times):
            self.say(at, answers.answer, result, who=who)

    @precondition(open_calls)
    @rule(at=pick, holder=st.sampled_from(["tab", "phone"]), dies=st.booleans())
    def a_client_takes_a_call_up(self, at: int, holder: str, dies: bool) -> None:
        self.say(at, answers.claim, holder, dies=dies)

    @precondition(open_calls)
    @rule(at=pick, holder=st.sampled_from(["tab", "phone"]))
    def a_client_gives_a_call_back(self, at: int, holder: str) -> None:
        self.say(at, answers.release, holder=holder)

    @precondition(open_calls)
    @rule(at=pick)
    def no_client_is_there(self, at: int) -> None:
        self.offer(at, lambda call: ClientAbsent(self.story.at, call.id, call.attempt))

    @precondition(open_calls)
    @rule(at=pick)
    def a_client_comes(self, at: int) -> None:
        self.offer(at, lambda call: ClientCame(self.story.at, call.id, call.attempt))

    @precondition(open_calls)
    @rule(there=st.booleans())
    def somebody_looks_who_is_there(self, there: bool) -> None:
        """Said again at once, it changes nothing: whoever looks may look as often as he likes."""
        for call in self.story.run.open_calls:
            if (event := attend(self.story.run, call.id, there=there, at=self.story.at)) is not None:
                assert self.story.run.attended
                self.story.take(event)
            assert attend(self.story.run, call.id, there=there, at=self.story.at) is None

    @precondition(open_calls)
    @rule(at=pick, edit=EDITS, remember=st.sampled_from([None, *Remember]), times=st.integers(1, 2))
    def a_person_says_yes(self, at: int, edit: str | None, remember: Remember | None, times: int) -> None:
        for _ in range(times):
            said = self.say(at, answers.approve, arguments=edit, remember=remember)
            if said is not None:
                self.approved.add(said)

    @precondition(open_calls)
    @rule(at=pick, remember=st.sampled_from([None, Remember.ARGUMENTS]))
    def a_person_says_no(self, at: int, remember: Remember | None) -> None:
        self.say(at, answers.deny, remember=remember)

    @precondition(open_calls)
    @rule(at=pick, yes=st.booleans())
    def a_decision_comes_past_the_door(self, at: int, yes: bool) -> None:
        """An event that no check has seen: the core itself refuses it unless the call waits for a person."""
        kind = Approved if yes else Denied
        if self.offer(at, lambda call: kind(self.story.at, call.id, "ann")) and yes:
            self.approved.add(self.last)

    @precondition(lambda self: self.story.run.phase is Phase.ASKING and self.story.run.calls)
    @rule(at=pick)
    def the_model_reuses_one_of_our_ids(self, at: int) -> None:
        before = self.story.run
        request = CallRequest(self.nth(at).id, "label", "once", '{"n":1}')
        with pytest.raises(IllegalChange):
            self.story.take(Replied(self.story.at, calls=(request,)))
        assert self.story.run is before

    @precondition(open_calls)
    @rule(at=pick, needed=st.booleans())
    def a_call_is_judged(self, at: int, needed: bool) -> None:
        if self.offer(at, lambda call: ApprovalJudged(self.story.at, call.id, needed)) and not needed:
            self.approved.add(self.last)

    @precondition(lambda self: self.story.run.phase is Phase.JUDGING)
    @rule(stop=st.booleans())
    def stopping_is_judged(self, stop: bool) -> None:
        self.story.take(StopJudged(self.story.at, stop))

    @precondition(open_calls)
    @rule(at=pick)
    def a_call_is_cancelled(self, at: int) -> None:
        self.offer(at, lambda call: CallCancelled(self.story.at, call.id))

    @precondition(going_on)
    @rule(really=st.integers(0, 9))
    def the_run_is_cancelled(self, really: int) -> None:
        if really == 0:
            self.story.take(RunCancelled(self.story.at))

    @rule(seconds=st.sampled_from([0, 1, 5, 30, 600]))
    def time_passes(self, seconds: int) -> None:
        self.story.at += seconds * 1000

    @precondition(open_calls)
    @rule(at=pick, kind=st.sampled_from(list(TimerKind)), attempt=st.integers(0, 3))
    def any_timer_fires(self, at: int, kind: TimerKind, attempt: int) -> None:
        call_id = self.nth(at).id if self.story.run.calls else "nobody"
        self.story.take(TimerFired(self.story.at, call_id, kind, attempt))

    @rule()
    def a_timer_that_was_set_fires(self) -> None:
        for effect in self.story.all_effects:
            if isinstance(effect, SetTimer) and effect.due <= self.story.at:
                self.story.take(TimerFired(self.story.at, effect.call_id, effect.kind, effect.attempt))

    @precondition(going_on)
    @rule(missing=st.sampled_from([None, "asks", "client", "pure"]), really=st.integers(0, 4))
    def the_process_crashes(self, missing: str | None, really: int) -> None:
        if really:
            return
        tools = tuple(tool for tool in TOOLS if tool.name != missing)
        self.story.take(Recovered(self.story.at, tools))

    @precondition(lambda self: len(self.story.log) > 1)
    @rule(lost=st.integers(0, 3))
    def the_process_crashes_before_a_commit(self, lost: int) -> None:
        """The log ends earlier; whatever the lost event asked for was never performed. The run goes on from there."""
        if lost:
            return
        log = self.story.log[:-1]
        self.story.rewind(log)
        self.approved = {event.call_id for event in log if isinstance(event, Approved)}
        self.approved |= {event.call_id for event in log if isinstance(event, ApprovalJudged) and not event.needed}
        self.calls = len(self.story.run.calls)
        self.settled = {}
        if self.story.run.phase is not Phase.ENDED:
            self.story.take(Recovered(self.story.at, tuple(self.story.run.tools.values())))

    # Means

    def nth(self, at: int) -> Call:
        """Mostly a call that is open; sometimes any, because late and repeated words must be harmless."""
        calls = list(self.story.run.open_calls if at % 4 else self.story.run.calls.values())
        calls = calls or list(self.story.run.calls.values())
        return calls[at % len(calls)]

    def offer(self, at: int, make: Any, *, server: bool = False) -> bool:
        """Feed an event that may be too late or out of place: then it must be refused and change nothing."""
        if not self.story.run.calls:
            return False
        call = self.nth(at)
        if server and call.place is Place.CLIENT and call.state is CallState.EXECUTING:
            return False
        before, event = self.story.run, make(call)
        self.last = call.id
        fits = self.fits(call, event)
        try:
            self.story.take(event)
        except IllegalChange:
            assert self.story.run is before
            assert not fits
            return False
        assert fits
        return True

    def fits(self, call: Call, event: Event) -> bool:
        match event:
            case Answered() | Faulted() | Lost():
                return call.state is CallState.EXECUTING
            case CallCancelled():
                return call.open
            case Approved() | Denied():
                return call.state is CallState.APPROVAL_REQUESTED
            case ApprovalJudged():
                return call.judging
            case ClientAbsent() | ClientCame():
                return call.state is CallState.EXECUTING and call.place is Place.CLIENT and not call.dies
            case _:
                raise AssertionError(event)

    def say(self, at: int, decide: Any, *args: Any, who: str = "ann", **keywords: Any) -> str | None:
        if not self.story.run.calls:
            return None
        call = self.nth(at)
        try:
            event = decide(self.story.run, who, call.id, *args, at=self.story.at, **keywords)
        except RefusedAnswer:
            return None
        assert who == "ann"
        if event is None:
            return None
        self.story.take(event)
        return call.id

    # What must hold

    @invariant()
    def a_call_has_one_outcome_and_keeps_it(self) -> None:
        if not hasattr(self, "story"):
            return
        for call_id, call in self.story.run.calls.items():
            assert (call.outcome is not None) == (call.state in ENDED)
            if call.outcome is not None:
                assert self.settled.setdefault(call_id, call.outcome) is call.outcome
        ended = [update.call_id for update in self.story.told if isinstance(update, CallEnded)]
        assert sorted(ended) == sorted(self.settled)

    @invariant()
    def ids_never_collide(self) -> None:
        if hasattr(self, "story"):
            assert len(self.story.run.calls) == self.calls

    @invariant()
    def the_model_is_told_every_call_of_a_closed_turn_once_and_in_order(self) -> None:
        if not hasattr(self, "story"):
            return
        run = self.story.run
        asked = [call.id for message in run.messages if isinstance(message, AssistantMessage) for call in message.calls]
        told = [message.call_id for message in run.messages if isinstance(message, ToolMessage)]
        still_open = set(run.order) if run.phase is Phase.CALLING else set()
        assert told == [call_id for call_id in asked if call_id not in still_open]
        for message in run.messages:
            if isinstance(message, ToolMessage):
                assert message.outcome is run.calls[message.call_id].outcome

    @invariant()
    def a_run_that_ended_has_no_open_call_and_says_so_once(self) -> None:
        if not hasattr(self, "story"):
            return
        run = self.story.run
        if run.phase is Phase.ENDED:
            assert not any(call.open for call in run.calls.values())
        ends = sum(isinstance(update, RunEnded) for update in self.story.told)
        assert ends == (run.phase is Phase.ENDED)

    @invariant()
    def nothing_runs_before_its_approval(self) -> None:
        if not hasattr(self, "story"):
            return
        remembered = {memory.pin for memory in self.story.run.memory if memory.allow}
        for effect in self.story.all_effects:
            if isinstance(effect, Dispatch):
                call = self.story.run.calls[effect.call_id]
                definition = next(tool for tool in TOOLS if tool.name == call.tool)
                if definition.policy.approval is not Approval.NEVER:
                    assert call.id in self.approved or call.pin in remembered

    @invariant()
    def once_is_never_dispatched_twice_to_a_server(self) -> None:
        if not hasattr(self, "story"):
            return
        seen: set[str] = set()
        for effect in self.story.all_effects:
            if isinstance(effect, Dispatch):
                call = self.story.run.calls[effect.call_id]
                if call.tool in ("once", "asks"):
                    assert effect.call_id not in seen
                    seen.add(effect.call_id)

    @invariant()
    def once_is_never_dispatched_again_after_a_client_took_it_up(self) -> None:
        if not hasattr(self, "story"):
            return
        taken = {event.call_id: event.attempt for event in self.story.log if isinstance(event, Claimed)}
        for effect in self.story.all_effects:
            if isinstance(effect, Dispatch) and effect.call_id in taken:
                tool = self.story.run.calls[effect.call_id].tool
                assert tool == "client_fails" or effect.attempt <= taken[effect.call_id]

    @invariant()
    def a_client_is_missed_only_where_one_is_looked_for(self) -> None:
        if not hasattr(self, "story"):
            return
        for call in self.story.run.calls.values():
            if call.grace is not None:
                assert (call.state, call.place) == (CallState.EXECUTING, Place.CLIENT)
                assert not call.dies

    @invariant()
    def what_runs_is_what_was_checked(self) -> None:
        if not hasattr(self, "story"):
            return
        for call in self.story.run.calls.values():
            if call.attempt and call.tool in ("once", "asks"):
                assert json.decode(call.arguments)["n"] >= 0

    @invariant()
    def the_log_replays_into_the_run(self) -> None:
        if hasattr(self, "story"):
            assert replay(self.story.log) == self.story.run

    @invariant()
    def updates_are_numbered_without_a_gap(self) -> None:
        if hasattr(self, "story"):
            assert [update.seq for update in self.story.told] == list(range(1, len(self.story.told) + 1))

    @invariant()
    def a_run_that_goes_on_waits_for_somebody_or_has_asked_for_something(self) -> None:
        """No dead end: some effect is outstanding for every call that is open."""
        if not hasattr(self, "story") or self.story.run.phase is not Phase.CALLING:
            return
        run = self.story.run
        assert run.open_calls
        executing = sum(call.state is CallState.EXECUTING and call.place is not Place.CLIENT for call in run.turn_calls)
        for call in run.open_calls:
            if call.ready and call.not_before <= self.story.at and not call.not_before:
                gated = run.limits.gate == "turn" and any(other.undecided for other in run.open_calls)
                assert call.place is not Place.CLIENT
                assert gated or executing >= run.limits.parallel


TestRuns = Runs.TestCase
TestRuns.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
