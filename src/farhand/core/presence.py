"""Calls whose client is not there, or is there again: what becomes of them, and which word about it they deserve.

What a tool says of it is `Policy.absent`. Only calls of a run that expects clients to be connected are ever spoken of.
"""

from msgspec import structs

from farhand.core import reasons
from farhand.core.call import Call, CallState, Change, Outcome, move
from farhand.core.definition import Absent, Approval, Definition, Place, SideEffect
from farhand.core.effects import SetTimer
from farhand.core.errors import IllegalChange
from farhand.core.events import ClientAbsent, ClientCame, Released, TimerKind
from farhand.core.run import Ending, Run
from farhand.core.turn import back_off
from farhand.core.work import Work

_EXECUTING = CallState.EXECUTING
_CLIENT = Place.CLIENT


def attend(run: Run, call_id: str, *, there: bool, at: int) -> ClientAbsent | ClientCame | None:
    """What a call has to be told when its client, or anybody who may take it up, is there or is not."""
    call = run.calls.get(call_id)
    if call is None or not run.attended or not is_with_clients(call):
        return None
    if there:
        return None if call.grace is None else ClientCame(at, call_id, call.attempt)
    definition = run.definition_of(call)
    assert definition is not None
    if call.grace is not None or _policy(definition) is Absent.WAIT:
        return None
    return ClientAbsent(at, call_id, call.attempt)


def is_with_clients(call: Call) -> bool:
    """Whether a client may take the call up, or has; not a function of the process that runs the run."""
    return call.state is _EXECUTING and call.place is _CLIENT and not call.dies


def is_free(call: Call) -> bool:
    """Whether any client may take the call up."""
    return is_with_clients(call) and not call.held_by


def client_absent(work: Work, event: ClientAbsent) -> None:
    """Nobody is there who offers the tool, or the one who has taken the call up is gone."""
    call, definition = _with_clients(work, event)
    policy = _policy(definition)
    if policy is Absent.WAIT:
        return
    if call.held_by:
        _begin_grace(work, call)
    elif policy is Absent.FAIL:
        work.settle(call, Outcome.UNAVAILABLE, reasons.absent(call, definition))
        work.end(Ending.FAILED, failure=reasons.absent(call, definition))
    elif policy is Absent.RETRY and call.absences < work.run.limits.absent_retries:
        back_off(work, structs.replace(call, absences=call.absences + 1))
    else:
        _begin_grace(work, call)


def client_came(work: Work, event: ClientCame) -> None:
    """The grace is over before its time. One who comes to a call that nobody was missing from changes nothing."""
    call, _ = _with_clients(work, event)
    if call.grace is not None:
        work.put(structs.replace(call, grace=None))


def released(work: Work, event: Released) -> None:
    """Whoever has taken the call up gives it back: the attempt goes on, with its deadline, for whoever takes it up."""
    call, _ = _with_clients(work, event)
    if not call.held_by:
        raise IllegalChange(f"call {call.id!r} was not taken up")
    work.put(structs.replace(call, held_by="", grace=None, given_back=call.given_back + 1))


def grace_over(work: Work, call: Call, definition: Definition) -> None:
    """Nobody came: who had taken the call up is lost, and one that nobody had has no client."""
    if call.held_by:
        recover(work, call, definition)
    else:
        work.settle(call, Outcome.UNAVAILABLE, reasons.absent(call, definition))


def recover(work: Work, call: Call, definition: Definition) -> None:
    """Whoever worked on the call is gone: run it again only if that can do no harm."""
    if definition.policy.effect is SideEffect.ONCE or call.losses >= work.run.limits.max_losses:
        work.settle(call, Outcome.UNKNOWN, reasons.unknown(call))
    else:
        losses = call.losses + 1
        work.put(move(call, Change.RELEASE, losses=losses, deadline=None, grace=None, held_by="", dies=False))


def _begin_grace(work: Work, call: Call) -> None:
    if call.grace is None:
        due = work.at + round(work.run.limits.grace * 1000)
        work.put(structs.replace(call, grace=due))
        work.effects.append(SetTimer(due, call.id, TimerKind.GRACE, call.attempt))


def _with_clients(work: Work, event: ClientAbsent | ClientCame | Released) -> tuple[Call, Definition]:
    call = work.call(event.call_id, event.attempt)
    if not is_with_clients(call):
        raise IllegalChange(f"call {call.id!r} is with no client")
    definition = work.run.definition_of(call)
    assert definition is not None
    return call, definition


def _policy(definition: Definition) -> Absent:
    """What a tool that says nothing means: a call that needs a person waits for one."""
    policy = definition.policy
    return policy.absent or (Absent.FALLBACK if policy.approval is Approval.NEVER else Absent.WAIT)
