"""What follows from a reply: calls are admitted, approved, dispatched within the limits; then the next turn begins."""

from hashlib import sha256

from msgspec import DecodeError, json, structs

from farhand.core import reasons
from farhand.core.call import TABLE, ApprovalRecord, Call, CallState, Change, Outcome, move
from farhand.core.compiled import parameters_of
from farhand.core.definition import Approval, Definition, Place, SideEffect
from farhand.core.effects import AskApproval, AskModel, Dispatch, JudgeApproval, JudgeStop, SetTimer
from farhand.core.events import Memory, TimerKind
from farhand.core.failure import Failure
from farhand.core.final import output_failure, repair_request
from farhand.core.flow import UNTRUSTED, is_leak, source_of, touches
from farhand.core.limits import Limits
from farhand.core.messages import CallRequest
from farhand.core.pieces import Usage
from farhand.core.run import Ending, Phase, Run
from farhand.core.scene import OWNER
from farhand.core.schema import argument_problems
from farhand.core.shown import has_foreign_words
from farhand.core.strict_json import BadJson, parse
from farhand.core.wishes import grant, switch, uncover
from farhand.core.work import Work

# Reading a member off its enum costs as much as calling a function on Python 3.11; the hot path reads these.
_EXECUTING = CallState.EXECUTING
_CLIENT = Place.CLIENT
_SERVER = Place.SERVER
_NEVER = Approval.NEVER
_ASKING = Phase.ASKING
_DONE = Ending.DONE
_DEADLINE = TimerKind.DEADLINE
_ADMITTED = TABLE[CallState.AWAITING_INPUT][Change.COMPLETE]
_INPUT_COMPLETE = CallState.INPUT_COMPLETE
_DISPATCHED = TABLE[_INPUT_COMPLETE][Change.DISPATCH]


def arguments_hash(arguments: str) -> str:
    """What an approval is bound to: the meaning of the arguments, so that white space and order do not matter."""
    return sha256(json.encode(json.decode(arguments), order="sorted")).hexdigest()


def argument_failure(definition: Definition, arguments: str, max_bytes: int) -> Failure | None:
    """Why these arguments cannot be given to the tool, or None."""
    try:
        value = parse(arguments, max_bytes=max_bytes)
    except BadJson as error:
        return reasons.bad_json(error.reason)
    problems = argument_problems(parameters_of(definition), value)
    return reasons.bad_arguments(problems) if problems else None


def admit(work: Work, asked: CallRequest, position: int) -> None:
    """Take one call of a reply in: settled as invalid, waiting for a decision, or ready."""
    run = work.run
    arguments = asked.arguments if asked.arguments.strip() else "{}"
    definition = run.tools.get(asked.tool)
    failure: Failure | None
    if run.final:
        failure = reasons.no_tools_now(asked.tool)
    elif position >= run.limits.calls_per_turn:
        failure = reasons.too_many_calls(run.limits.calls_per_turn)
    elif run.limits.max_calls is not None and len(work.calls) >= run.limits.max_calls:
        failure = reasons.no_tools_now(asked.tool)
    elif run.scene is not None and definition is None and switch(work, _asked(run, asked, arguments, work.at)):
        return
    elif run.scene is not None and definition is not None and (failure := uncover(work, asked.tool)):
        pass
    elif definition is None:
        failure = reasons.unknown_tool(asked.tool)
    else:
        failure = argument_failure(definition, arguments, run.limits.argument_bytes)
    if failure is not None:
        work.settle(_asked(run, asked, arguments, work.at), Outcome.INVALID, failure)
        return
    assert definition is not None
    place = definition.place
    call = Call(
        asked.id,
        asked.label,
        asked.tool,
        run.turn,
        _ADMITTED,
        arguments,
        pin=definition.pin,
        place=place,
        created=work.at,
        preview=asked.preview,
        source="" if place is _SERVER and definition.source == OWNER else source_of(definition),
    )
    route(work, call, definition)


def _asked(run: Run, asked: CallRequest, arguments: str, at: int) -> Call:
    """A call as the model wrote it, before anything is decided about it."""
    return Call(asked.id, asked.label, asked.tool, run.turn, arguments=arguments, created=at, preview=asked.preview)


def route(work: Work, call: Call, definition: Definition) -> None:
    """Decide who decides: nobody, an earlier decision, the tool's own function, or a person."""
    approval = definition.policy.approval
    if definition.policy.sends_out and flows_out(work, call, definition):
        return
    if approval is _NEVER:
        work.put(call)
        return
    if follow_memory(work, call):
        return
    if approval is Approval.JUDGED:
        work.put(structs.replace(call, judging=True))
        work.effects.append(JudgeApproval(call.id))
    else:
        ask_approval(work, call, definition)


def flows_out(work: Work, call: Call, definition: Definition) -> bool:
    """Whether the call must not simply be made, because of what the model has been told; then it was seen to."""
    run = work.run
    words = {UNTRUSTED} if work.scene is not None and has_foreign_words(work.scene) else set[str]()
    if run.limits.flow == "off" or not is_leak(words.union(run.touched), call, definition):
        return False
    if run.limits.flow == "refuse":
        work.settle(call, Outcome.DENIED, reasons.would_leak(call.tool))
        return True
    remembered = recall(run.memory, call)
    if remembered is not None and (remembered.arguments_hash or not remembered.allow):
        return follow_memory(work, call)  # what was decided about the tool was not about this
    ask_approval(work, call, definition, "flow")
    return True


def touch(work: Work, call: Call, definition: Definition) -> None:
    """Note what the model is going to be told."""
    known = work.fields.get("touched", work.run.touched)
    for kind in touches(call, definition):
        if kind not in known:
            known = work.fields["touched"] = (*known, kind)


def follow_memory(work: Work, call: Call) -> bool:
    """Whether an earlier decision was meant to last for this call; then it holds."""
    remembered = recall(work.run.memory, call)
    if remembered is None:
        return False
    if remembered.allow:
        work.put(structs.replace(call, judging=False))
    else:
        work.settle(call, Outcome.DENIED, reasons.denied_before())
    return True


def recall(memory: tuple[Memory, ...], call: Call) -> Memory | None:
    """The newest remembered decision about exactly this call, or else about its tool."""
    mine = [entry for entry in reversed(memory) if entry.pin == call.pin]
    if not mine:
        return None
    exactly = arguments_hash(call.arguments)
    for wanted in (exactly, ""):
        for entry in mine:
            if entry.arguments_hash == wanted:
                return entry
    return None


def ask_approval(work: Work, call: Call, definition: Definition, because: str = "") -> None:
    """Have a person decide about exactly these arguments and this definition."""
    own = definition.policy.approval_timeout
    seconds = work.run.limits.approval_timeout if own is None else own
    expires = None if seconds is None else work.at + round(seconds * 1000)
    record = ApprovalRecord(arguments_hash(call.arguments), call.pin, work.at, expires, because=because)
    work.put(move(call, Change.ASK, approval=record, judging=False, deadline=expires))
    work.effects.append(AskApproval(call.id))
    if expires is not None:
        work.effects.append(SetTimer(expires, call.id, TimerKind.DEADLINE, call.attempt))


def advance(work: Work) -> None:
    """Go on as far as can be: dispatch what may run, or close the turn when every call has its outcome."""
    calls = work.calls
    unsettled = [call for call in map(calls.__getitem__, work.order) if call.outcome is None]
    if unsettled:
        _dispatch_ready(work, unsettled)
        return
    work.tell_outcomes()
    if work.run.wishes or "wishes" in work.fields:
        grant(work)
    if work.run.judged_stop and not work.run.final:
        work.fields["phase"] = Phase.JUDGING
        work.effects.append(JudgeStop(work.run.turn))
    else:
        next_turn(work)


def _dispatch_ready(work: Work, unsettled: list[Call]) -> None:
    if len(unsettled) == 1 and unsettled[0].approval is None:  # nothing stands in its way, be it what it may
        [call] = unsettled
        if call.state is _INPUT_COMPLETE and not call.judging and call.not_before <= work.at:
            dispatch(work, call)
        return
    limits = work.run.limits
    running = sum([call.state is _EXECUTING and call.place is not _CLIENT for call in unsettled])
    gated = limits.gate == "turn" and any(call.undecided for call in unsettled)
    refused = False
    for call in unsettled:
        if not call.ready or call.not_before > work.at:
            continue
        if call.approval is not None and not is_as_approved(call):
            work.settle(call, Outcome.UNAVAILABLE, reasons.approval_void(call))
            refused = True
            continue
        if call.place is not _CLIENT:
            if gated or running >= limits.parallel:
                continue
            running += 1
        dispatch(work, call)
    if refused:
        advance(work)


def is_as_approved(call: Call) -> bool:
    """Whether a person agreed to what is about to be sent. Between a decision and a dispatch a run may be stored."""
    approval = call.approval
    if approval is None or approval.decision != "approved" or approval.pin != call.pin:
        return False
    try:
        return approval.arguments_hash == arguments_hash(call.arguments)
    except DecodeError:
        return False


def dispatch(work: Work, call: Call) -> None:
    """Hand a call that is ready to its place. The effect is performed only after this is committed."""
    run = work.run
    definition = run.tools.get(call.tool)
    if definition is None or definition.pin != call.pin:
        definition = run.pinned[call.pin]
    seconds = seconds_to_run(run, definition)
    deadline = None if seconds is None else work.at + round(seconds * 1000)
    attempt = call.attempt + 1
    if attempt > 1:
        call = structs.replace(call, not_before=0, grace=None, held_by="", dies=False)
    call = structs.replace(call, state=_DISPATCHED, attempt=attempt, deadline=deadline)
    work.put(call)
    if call.source or definition.policy.reads_private or definition.policy.takes_untrusted:
        touch(work, call, definition)
    work.effects.append(Dispatch(call.id, attempt))
    if deadline is not None:
        work.effects.append(SetTimer(deadline, call.id, _DEADLINE, attempt))


def seconds_to_run(run: Run, definition: Definition) -> float | None:
    """How long one attempt may take."""
    timeout = definition.policy.timeout
    if timeout is not None:
        return timeout
    return run.limits.server_timeout if definition.place is _SERVER else run.limits.client_timeout


def retry(work: Work, call: Call, definition: Definition, failure: Failure) -> bool:
    """Plan another attempt if the tool may be repeated and has attempts left."""
    policy = definition.policy
    if policy.effect is SideEffect.ONCE or call.attempt - call.absences - call.losses > policy.retries:
        return False
    back_off(work, call, failure)
    return True


def back_off(work: Work, call: Call, failure: Failure | None = None) -> None:
    """Take the call back from its place and dispatch it again after a while, longer each time."""
    due = work.at + round(work.run.limits.retry_delay * 1000 * 2 ** min(call.attempt - 1, 16))
    work.put(move(call, Change.RELEASE, not_before=due, deadline=None, grace=None, held_by="", failure=failure))
    work.effects.append(SetTimer(due, call.id, TimerKind.BACKOFF, call.attempt))


def next_turn(work: Work) -> None:
    """Ask the model again, or end the run at the limit it has reached. Nothing is thrown away at a limit."""
    run = work.run
    tokens = token_limit(run.limits, work.usage())
    limit = tokens or run.limit or call_limit(run, len(work.calls))
    if run.final or (limit and (tokens or not run.limits.final_turn)):
        work.end(Ending.LIMIT, limit=limit)
        return
    turn = run.turn + 1
    fields = work.fields
    if run.news or "news" in fields:
        work.tell_news()
    fields["phase"] = _ASKING
    fields["turn"] = turn
    if limit:
        fields["final"] = True
        fields["limit"] = limit
    work.effects.append(AskModel(turn, tools=not limit))


def token_limit(limits: Limits, usage: Usage) -> str:
    """The name of the token limit that is reached, or an empty string."""
    if limits.input_tokens is not None and usage.input >= limits.input_tokens:
        return "input_tokens"
    if limits.output_tokens is not None and usage.output >= limits.output_tokens:
        return "output_tokens"
    if limits.total_tokens is not None and usage.total >= limits.total_tokens:
        return "total_tokens"
    return ""


def call_limit(run: Run, calls: int) -> str:
    """The name of the limit of turns or calls that is reached, or an empty string."""
    if run.turn >= run.limits.max_turns:
        return "max_turns"
    if run.limits.max_calls is not None and calls >= run.limits.max_calls:
        return "max_calls"
    return ""


def finish(work: Work, text: str) -> None:
    """A reply without calls: the answer, if it is what was asked for."""
    run = work.run
    failure = output_failure(run.output_schema, text)
    if run.news and not token_limit(run.limits, work.usage()):
        _ask_again(work)
    elif failure is None:
        work.end(Ending.LIMIT if run.limit else _DONE, output=text)
    elif run.repairs < run.limits.output_repairs and not token_limit(run.limits, work.usage()):
        work.say(repair_request(failure))
        work.fields["repairs"] = run.repairs + 1
        _ask_again(work)
    else:
        work.end(Ending.FAILED, output=text, failure=failure)


def _ask_again(work: Work) -> None:
    """Another turn although the reply had no calls: there is something to be told to the model."""
    run = work.run
    final = run.final or bool(call_limit(run, len(work.calls)))
    work.tell_news()
    work.fields.update(turn=run.turn + 1, final=final)
    work.effects.append(AskModel(run.turn + 1, tools=not final))
