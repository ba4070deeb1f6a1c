"""Every change of a run: which events each phase takes, and what each event does. `step` is the one way in.

`ACCEPTS` and `HANDLERS` are the whole of it; calls move by the table in `call`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import structs

from farhand.core import reasons
from farhand.core.background import accepted, background_ended, noted
from farhand.core.call import Call, CallState, Change, Outcome, move, settle
from farhand.core.definition import Definition, Place, SideEffect
from farhand.core.effects import (
    AskApproval,
    AskModel,
    Dispatch,
    Effect,
    JudgeApproval,
    JudgeStop,
    Memorise,
    StopModel,
    Withdraw,
)
from farhand.core.errors import IllegalChange
from farhand.core.events import (
    Accepted,
    Answered,
    ApprovalJudged,
    Approved,
    BackgroundEnded,
    CallCancelled,
    Claimed,
    ClientAbsent,
    ClientCame,
    Denied,
    Event,
    Faulted,
    Lost,
    Memory,
    ModelFailed,
    Noted,
    Recovered,
    Released,
    Remember,
    Replied,
    RunCancelled,
    Started,
    StopJudged,
    TimerFired,
    TimerKind,
)
from farhand.core.history import closed
from farhand.core.messages import AssistantMessage, CallRequest
from farhand.core.pieces import Usage
from farhand.core.presence import client_absent, client_came, grace_over, is_free, recover, released
from farhand.core.registration import tidy
from farhand.core.run import Ending, Phase, Run, still_needed
from farhand.core.scene import Scene
from farhand.core.secrets import preview, result_preview, with_previews
from farhand.core.switches import tool_meant
from farhand.core.timers import timers_of
from farhand.core.turn import (
    admit,
    advance,
    argument_failure,
    arguments_hash,
    ask_approval,
    finish,
    follow_memory,
    next_turn,
    recall,
    retry,
    seconds_to_run,
)
from farhand.core.work import Work

# Reading a member off its enum costs as much as calling a function on Python 3.11; the hot path reads these.
_ASKING = Phase.ASKING
_CALLING = Phase.CALLING
_ENDED = Phase.ENDED
_JUDGING = Phase.JUDGING
_OK = Outcome.OK
_CLIENT = Place.CLIENT
_EXECUTING = CallState.EXECUTING
_APPROVAL_REQUESTED = CallState.APPROVAL_REQUESTED
_NO_USAGE = Usage()

_ANY_TIME: frozenset[type] = frozenset({RunCancelled, Recovered, TimerFired, BackgroundEnded, Noted})

ACCEPTS: Mapping[Phase, frozenset[type]] = {
    Phase.ASKING: _ANY_TIME | {Replied, ModelFailed},
    Phase.CALLING: _ANY_TIME
    | {ApprovalJudged, Approved, Denied, Claimed, Released, Answered, Accepted, Faulted, Lost, CallCancelled}
    | {ClientAbsent, ClientCame},
    Phase.JUDGING: _ANY_TIME | {StopJudged},
    Phase.ENDED: frozenset({TimerFired, BackgroundEnded}),
}


def step(run: Run | None, event: Event) -> tuple[Run, tuple[Effect, ...]]:
    """Take one event; return the run after it and what it asks of the world."""
    if run is None:
        if not isinstance(event, Started):
            raise IllegalChange(f"a run begins with Started, not {type(event).__name__}")
        return _started(event)
    if run.phase is _ENDED and type(event) is TimerFired:
        return run, ()
    handler = _HANDLERS[run.phase].get(type(event))
    if handler is None:
        raise IllegalChange(f"{type(event).__name__} is not taken while the run is {run.phase}")
    work = Work(run, event.at)
    handler(work, event)
    return structs.replace(run, **work.fields), tuple(work.effects)


def replay(events: Iterable[Event]) -> Run:
    """The run that a log leads to. Effects are not asked for again; `Recovered` does that."""
    run: Run | None = None
    for event in events:
        run, _ = step(run, event)
    if run is None:
        raise IllegalChange("an empty log holds no run")
    return run


def _started(event: Started) -> tuple[Run, tuple[Effect, ...]]:
    messages = closed(event.messages)
    tools = _by_name(event.tools)
    run = Run(
        event.run_id,
        event.thread_id,
        event.principal,
        _ASKING,
        messages,
        tools,
        event.limits,
        event.instructions,
        said_before=len(messages),
        memory=event.memory,
        judged_stop=event.judged_stop,
        output_schema=event.output_schema,
        attended=event.attended,
        target=event.target,
        trace=event.trace,
        scene=event.scene,
        created=event.at,
        updated=event.at,
    )
    return run, (AskModel(1),)


def _replied(work: Work, event: Replied) -> None:
    work.fields["finish"] = event.finish
    if event.usage != _NO_USAGE:
        work.fields["usage"] = work.run.usage + event.usage
    calls = event.calls if work.run.scene is None else _meant(work.run, work.run.scene, event.calls)
    if calls:
        calls = with_previews(work.run.tools, calls)
    work.say(AssistantMessage(event.text, event.reasoning, calls))
    if not calls:
        finish(work, event.text)
        return
    ids = tuple([call.id for call in calls])
    if len(set(ids)) != len(ids) or not work.calls.keys().isdisjoint(ids):
        raise IllegalChange("a call id was used before")
    work.order = work.fields["order"] = ids
    work.told = False
    work.fields["phase"] = _CALLING
    for position, asked in enumerate(calls):
        admit(work, asked, position)
    advance(work)


def _meant(run: Run, scene: Scene, calls: tuple[CallRequest, ...]) -> tuple[CallRequest, ...]:
    """The calls, each with the name of its tool, however the model has written it."""
    return tuple([structs.replace(call, tool=tool_meant(scene, run.tools, call.tool)) for call in calls])


def _model_failed(work: Work, event: ModelFailed) -> None:
    work.end(Ending.FAILED, failure=event.failure)


def _stop_judged(work: Work, event: StopJudged) -> None:
    if event.stop:
        work.end(Ending.STOPPED)
    else:
        next_turn(work)


def _approval_judged(work: Work, event: ApprovalJudged) -> None:
    call, definition = _known(work, event.call_id)
    if not call.judging:
        raise IllegalChange(f"call {call.id!r} was not to be judged")
    if not follow_memory(work, call):  # a person may have decided for good since the function was asked
        if event.needed:
            ask_approval(work, call, definition)
        else:
            work.put(structs.replace(call, judging=False))
    advance(work)


def _approved(work: Work, event: Approved) -> None:
    call = work.call(event.call_id)
    edited = event.arguments
    if edited is not None:
        definition = work.run.definition_of(call)
        if definition is None or argument_failure(definition, edited, work.run.limits.argument_bytes) is not None:
            raise IllegalChange(f"the edited arguments of call {call.id!r} do not fit its tool")
        if arguments_hash(edited) == arguments_hash(call.arguments):
            edited = None
    _decide(work, call, event, edited)
    advance(work)


def _denied(work: Work, event: Denied) -> None:
    _decide(work, work.call(event.call_id), event)
    advance(work)


def _decide(work: Work, call: Call, event: Approved | Denied, edited: str | None = None) -> None:
    """Use the approval up, move the call, and remember the decision if it was meant to last."""
    if call.approval is None or call.state is not _APPROVAL_REQUESTED:
        raise IllegalChange(f"call {call.id!r} does not wait for a person")
    remember = "" if event.remember is None else event.remember.value
    record = structs.replace(call.approval, by=event.by, decision="denied", remember=remember)
    if isinstance(event, Approved):
        record = structs.replace(record, decision="approved", payload=event.payload)
        changes: dict[str, Any] = {}
        if edited is not None:
            record = structs.replace(record, arguments_hash=arguments_hash(edited))
            definition = work.run.definition_of(call)
            assert definition is not None
            changes = {"arguments": edited, "written": call.arguments, "preview": preview(definition, edited)}
        work.put(move(call, Change.APPROVE, approval=record, deadline=None, **changes))
    else:
        record = structs.replace(record, reason=event.reason)
        work.settle(structs.replace(call, approval=record), Outcome.DENIED, reasons.denied(event.reason))
    if event.remember is not None:
        exactly = record.arguments_hash if event.remember is Remember.ARGUMENTS else ""
        memory = Memory(call.pin, isinstance(event, Approved), exactly)
        work.fields["memory"] = (*work.run.memory, memory)
        work.effects.append(Memorise(work.run.principal, memory))
        _decide_alike(work, memory, event.by)


def _decide_alike(work: Work, memory: Memory, by: str) -> None:
    """A lasting decision holds for the calls that wait beside this one as well."""
    for call in [work.calls[call_id] for call_id in work.order]:
        if call.state is not _APPROVAL_REQUESTED or call.approval is None:
            continue
        if recall((memory,), call) is None:
            continue
        if memory.allow:
            record = structs.replace(call.approval, decision="approved", by=by)
            work.put(move(call, Change.APPROVE, approval=record, deadline=None))
        else:
            record = structs.replace(call.approval, decision="denied", by=by)
            work.settle(structs.replace(call, approval=record), Outcome.DENIED, reasons.denied_before())


def _claimed(work: Work, event: Claimed) -> None:
    call = work.call(event.call_id, event.attempt)
    if not is_free(call):
        raise IllegalChange(f"call {call.id!r} is not free to be taken up")
    work.put(structs.replace(call, held_by=event.holder, dies=event.dies, grace=None))


def _answered(work: Work, event: Answered) -> None:
    call = work.call(event.call_id, event.attempt)
    ended = settle(call, _OK, work.at, None, event.result, event.multipart)
    shown = result_preview(work.run.definition_of(call), event.result, multipart=event.multipart)
    if shown:
        ended = structs.replace(ended, result_preview=shown)
    if event.augmentation is not None or event.refused:
        ended = structs.replace(ended, augmentation=event.augmentation, refused=event.refused)
        work.fields["wishes"] = (*work.run.wishes, call.id)
    work.put(ended)
    advance(work)


def _faulted(work: Work, event: Faulted) -> None:
    call, definition = _known(work, event.call_id, event.attempt)
    if not (event.failure.retryable and retry(work, call, definition, event.failure)):
        work.settle(call, Outcome.FAILED, event.failure)
    advance(work)


def _lost(work: Work, event: Lost) -> None:
    call, definition = _known(work, event.call_id, event.attempt)
    recover(work, call, definition)
    advance(work)


def _timer_fired(work: Work, event: TimerFired) -> None:
    call = work.calls.get(event.call_id)
    if call is None or call.outcome is not None or call.attempt != event.attempt:
        return
    definition = work.run.definition_of(call)
    assert definition is not None
    match event.kind:
        case TimerKind.DEADLINE if call.deadline is not None and call.deadline <= work.at:
            _deadline(work, call, definition)
        case TimerKind.BACKOFF if call.ready and call.not_before <= work.at:
            work.put(structs.replace(call, not_before=0))
        case TimerKind.GRACE if call.grace is not None and call.grace <= work.at:
            grace_over(work, call, definition)
        case _:
            return
    advance(work)


def _deadline(work: Work, call: Call, definition: Definition) -> None:
    if call.state is _APPROVAL_REQUESTED:
        work.settle(call, Outcome.TIMED_OUT, reasons.approval_expired())
        return
    work.effects.append(Withdraw(call.id, call.attempt))
    once = definition.policy.effect is SideEffect.ONCE
    failure = reasons.timed_out(call, seconds_to_run(work.run, definition) or 0.0, once=once)
    if not retry(work, call, definition, failure):
        work.settle(call, Outcome.TIMED_OUT, failure)


def _call_cancelled(work: Work, event: CallCancelled) -> None:
    work.cancel(work.call(event.call_id), event.reason)
    advance(work)


def _run_cancelled(work: Work, event: RunCancelled) -> None:
    if work.run.phase is _ASKING:
        work.effects.append(StopModel(work.run.turn))
    for call in work.run.open_calls if work.run.phase is _CALLING else ():
        work.cancel(call, event.reason)
    work.end(Ending.CANCELLED, failure=reasons.run_cancelled(event.reason))


def _recovered(work: Work, event: Recovered) -> None:
    """Go on after a crash: nothing is guessed at, nothing that may have happened is repeated."""
    before = work.run
    tools = _by_name(event.tools)
    pinned = still_needed(before, tools)
    for call in before.open_calls:
        definition = before.definition_of(call)
        today = tools.get(call.tool)
        assert definition is not None
        # Who has taken a call up was sent it, whatever is said.
        unsent = call.state is _EXECUTING and not call.held_by and call.id in event.unsent
        if today is None or today.pin != call.pin:
            pinned[call.pin] = definition
            if unsent or call.state is not _EXECUTING:
                failure = reasons.tool_gone(call) if today is None else reasons.tool_changed(call)
                work.settle(call, Outcome.UNAVAILABLE, failure)
                continue
        offered = today is not None and today.pin == call.pin
        if unsent:
            work.put(move(call, Change.RELEASE, deadline=None, held_by="", dies=False))
        else:
            _resume_call(work, call, definition, offered=offered)
    work.fields.update(tools=tools, pinned=pinned)
    if before.scene is not None and (scene := tidy(before.scene, tools)) != before.scene:
        work.fields["scene"] = scene
    work.run = structs.replace(before, tools=tools, pinned=pinned)
    if before.phase is _ASKING:
        work.effects.append(AskModel(before.turn, tools=not before.final))
    elif before.phase is _JUDGING:
        work.effects.append(JudgeStop(before.turn))
    else:
        advance(work)


def _resume_call(work: Work, call: Call, definition: Definition, *, offered: bool) -> None:
    """Ask again for whatever an open call was waiting for."""
    if call.state is _EXECUTING and (call.place is not _CLIENT or call.dies):
        if offered or definition.policy.effect is SideEffect.ONCE:
            recover(work, call, definition)
        else:
            work.settle(call, Outcome.UNAVAILABLE, reasons.tool_changed(call))
        return
    if call.state is _EXECUTING and not call.held_by:
        work.effects.append(Dispatch(call.id, call.attempt))
    elif call.state is _APPROVAL_REQUESTED:
        work.effects.append(AskApproval(call.id))
    elif call.judging:
        work.effects.append(JudgeApproval(call.id))
    work.effects.extend(timers_of(call))


def _by_name(definitions: tuple[Definition, ...]) -> dict[str, Definition]:
    named = {definition.name: definition for definition in definitions}
    if len(named) < len(definitions):
        raise IllegalChange("two tools of one run have the same name")
    return named


def _known(work: Work, call_id: str, attempt: int | None = None) -> tuple[Call, Definition]:
    call = work.call(call_id, attempt)
    definition = work.run.definition_of(call)
    assert definition is not None
    return call, definition


HANDLERS: Mapping[type, Callable[[Work, Any], None]] = {
    Replied: _replied,
    ModelFailed: _model_failed,
    StopJudged: _stop_judged,
    ApprovalJudged: _approval_judged,
    Approved: _approved,
    Denied: _denied,
    Claimed: _claimed,
    Released: released,
    Answered: _answered,
    Accepted: accepted,
    BackgroundEnded: background_ended,
    Noted: noted,
    Faulted: _faulted,
    Lost: _lost,
    ClientAbsent: client_absent,
    ClientCame: client_came,
    TimerFired: _timer_fired,
    CallCancelled: _call_cancelled,
    RunCancelled: _run_cancelled,
    Recovered: _recovered,
}

_HANDLERS: Mapping[Phase, Mapping[type, Callable[[Work, Any], None]]] = {
    phase: {kind: HANDLERS[kind] for kind in kinds} for phase, kinds in ACCEPTS.items()
}
