"""Who may say what about a call: turns an answer, a decision or a cancellation into the event it deserves.

The first valid answer wins; an equal repeat gets `None` (nothing to do, same reply), a different one `AnswerConflict`,
a late one `CallGone`; a foreign call is answered exactly like an unknown one. `step` trusts the events made here.
"""

from typing import Any

from msgspec import Raw, ValidationError, json

from farhand.core import reasons
from farhand.core.augmentation import Augmentation, augmented, read_augmentation
from farhand.core.call import ApprovalRecord, Call, CallState, Outcome
from farhand.core.compiled import output_of
from farhand.core.definition import Definition, InvalidToolDefinitions, Place
from farhand.core.errors import AnswerConflict, CallGone, InvalidAnswer, NotExpected, UnknownCall
from farhand.core.events import (
    Accepted,
    Answered,
    Approved,
    BackgroundEnded,
    CallCancelled,
    Claimed,
    Denied,
    Faulted,
    Released,
    Remember,
    RunCancelled,
)
from farhand.core.failure import Failure
from farhand.core.messages import decode_parts, plain_value
from farhand.core.run import Run
from farhand.core.secrets import restored
from farhand.core.strict_json import BadJson, parse
from farhand.core.turn import argument_failure, arguments_hash
from farhand.core.wishes import foreseen

# Reading a member off its enum costs as much as calling a function on Python 3.11; the hot path reads these.
_OK = Outcome.OK
_ANSWERED = (Outcome.OK, Outcome.FAILED)
_CLIENT = Place.CLIENT
_EXECUTING = CallState.EXECUTING

REASON_BYTES = 4096
"""So much may be said beside a result even where results have to be smaller."""


def answer(
    run: Run,
    principal: str,
    call_id: str,
    result: bytes,
    *,
    at: int,
    attempt: int | None = None,
    multipart: bool = False,
    client: str = "",
    augmentation: bytes | None = None,
) -> Answered | None:
    """A client's result for its call, with what it wishes to be changed besides; that may be refused on its own."""
    call = _owned(run, principal, call_id)
    if call.outcome is _OK and multipart == call.multipart and _equal(bytes(call.result), result):
        return None
    _expect_client(run, call, client, attempt)
    failure = result_failure(run.definition_of(call), result, run.limits.result_bytes, multipart=multipart)
    if failure is not None:
        raise InvalidAnswer(failure.message, failure.problems)
    # What stands around a value is lost when the run is stored; a run must not change by that.
    wish, refused = (None, "") if augmentation is None else wish_of(run, call_id, augmentation)
    return Answered(at, call_id, call.attempt, Raw(result.strip()), multipart, wish, refused)


def wish_of(run: Run, call_id: str, augmentation: bytes) -> tuple[Augmentation | None, str]:
    """What can be done of a wish as things are; or why it cannot."""
    try:
        wish = read_augmentation(augmentation)
        augmented(*foreseen(run, call_id), wish)
    except InvalidToolDefinitions as refusal:
        return None, str(refusal)
    return wish, ""


def fail(
    run: Run,
    principal: str,
    call_id: str,
    failure: Failure,
    *,
    at: int,
    attempt: int | None = None,
    client: str = "",
) -> Faulted | None:
    """A client's word that its call failed."""
    call = _owned(run, principal, call_id)
    _expect_words(run, failure)
    if call.failure == failure and (call.outcome is Outcome.FAILED or _is_over(call, attempt)):
        return None
    _expect_client(run, call, client, attempt)
    return Faulted(at, call_id, call.attempt, failure)


def accept(
    run: Run,
    principal: str,
    call_id: str,
    *,
    at: int,
    note: str = "",
    attempt: int | None = None,
    client: str = "",
) -> Accepted | None:
    """A client's word that it works on in the background; how that ends it says with `report`."""
    call = _owned(run, principal, call_id)
    _expect_words(run, note)
    if call.background is not None and call.background.note == note:
        return None
    _expect_client(run, call, client, attempt)
    return Accepted(at, call_id, call.attempt, note)


def progress(
    run: Run, principal: str, call_id: str, value: Any, *, attempt: int | None = None, client: str = ""
) -> Call:
    """The call that a client may say this of: how far it is. Nothing of it enters the run."""
    call = _owned(run, principal, call_id)
    _expect_words(run, value)
    _expect_client(run, call, client, attempt)
    return call


def report(
    run: Run,
    principal: str,
    call_id: str,
    *,
    at: int,
    outcome: Outcome = Outcome.OK,
    result: bytes = b"null",
    message: str = "",
) -> BackgroundEnded | None:
    """How background work has ended: with a result, or `failed`, `cancelled` or `unknown` and a reason."""
    call = _owned(run, principal, call_id)
    _expect_words(run, message)
    if call.background is None:
        raise NotExpected(f"nobody took call {call_id!r} on as background work")
    failure = _background_failure(call, outcome, message)
    known = call.background
    if known.outcome is outcome and known.failure == failure and _equal(bytes(known.result), result):
        return None
    if known.outcome is not None:
        raise AnswerConflict(f"the background work of call {call_id!r} has ended already: {known.outcome}")
    if failure is None:
        fault = result_failure(run.definition_of(call), result, run.limits.result_bytes)
        if fault is not None:
            raise InvalidAnswer(fault.message, fault.problems)
    return BackgroundEnded(at, call_id, outcome, Raw(result.strip()), failure)


def _background_failure(call: Call, outcome: Outcome, message: str) -> Failure | None:
    match outcome:
        case Outcome.OK:
            return None
        case Outcome.FAILED:
            return Failure("tool_failed", message)
        case Outcome.CANCELLED:
            return reasons.cancelled(call, message, running=True)
        case Outcome.UNKNOWN:
            return reasons.unknown(call)
        case _:
            raise InvalidAnswer(f"background work ends ok, failed, cancelled or unknown, not {outcome}")


def claim(run: Run, principal: str, call_id: str, holder: str, *, at: int, dies: bool = False) -> Claimed | None:
    """One client takes a call up; the others see that it is taken."""
    call = _owned(run, principal, call_id)
    if not holder:  # nobody's call looks just like that
        raise InvalidAnswer("whoever takes a call up needs a name")
    _expect_executing(call, None)
    if not dies:  # a function of the process is nobody's client
        _expect_target(run, call, holder)
    if call.held_by == holder:
        return None
    _expect_free(call, holder)
    return Claimed(at, call_id, call.attempt, holder, dies)


def release(run: Run, principal: str, call_id: str, *, holder: str, at: int) -> Released | None:
    """Whoever has taken a call up gives it back: nothing of it was done, and any client may take it up."""
    call = _owned(run, principal, call_id)
    _expect_executing(call, None)
    if call.dies:
        raise NotExpected(f"call {call_id!r} runs in the process of its run")
    if not call.held_by:
        return None
    _expect_free(call, holder)
    return Released(at, call_id, call.attempt)


def approve(
    run: Run,
    principal: str,
    call_id: str,
    *,
    at: int,
    arguments: str | None = None,
    shown: str | None = None,
    payload: Any = None,
    remember: Remember | None = None,
) -> Approved | None:
    """A person's yes. `arguments` are edited ones; `shown` is the hash of the arguments the person saw."""
    call = _owned(run, principal, call_id)
    _expect_words(run, payload)
    if call.approval is None:
        raise NotExpected(f"call {call_id!r} does not wait for an approval")
    if shown is not None and shown != _shown(call, call.approval):
        raise AnswerConflict(f"call {call_id!r} has other arguments than the ones that were approved")
    definition = run.definition_of(call)
    if arguments is not None and definition is not None:
        arguments = restored(definition, arguments, call)
    if call.approval.decision == "approved" and _same_yes(call, arguments, payload, remember):
        return None
    _expect_undecided(call, at)
    assert definition is not None  # only a call that has ended outlives its tool
    if arguments is not None:
        failure = argument_failure(definition, arguments, run.limits.argument_bytes)
        if failure is not None:
            raise InvalidAnswer(failure.message, failure.problems)
    return Approved(at, call_id, principal, arguments, payload, remember)


def deny(
    run: Run, principal: str, call_id: str, *, at: int, reason: str = "", remember: Remember | None = None
) -> Denied | None:
    """A person's no."""
    call = _owned(run, principal, call_id)
    _expect_words(run, reason)
    if call.approval is None:
        raise NotExpected(f"call {call_id!r} does not wait for an approval")
    if call.approval.decision == "denied" and (call.approval.reason, call.approval.remember) == (
        reason,
        remember or "",
    ):
        return None
    _expect_undecided(call, at)
    return Denied(at, call_id, principal, reason, remember)


def cancel_call(run: Run, principal: str, call_id: str, *, at: int, reason: str = "") -> CallCancelled | None:
    """Call one call off."""
    call = _owned(run, principal, call_id)
    _expect_words(run, reason)
    if call.outcome is Outcome.CANCELLED:
        return None
    if call.outcome is not None:
        raise CallGone(f"call {call_id!r} has ended: {call.outcome}", call.outcome)
    return CallCancelled(at, call_id, reason)


def cancel_run(run: Run, principal: str, *, at: int, reason: str = "") -> RunCancelled | None:
    """Call the run off; a run that has ended stays as it is."""
    if principal != run.principal:
        raise UnknownCall("there is no such run")
    _expect_words(run, reason)
    return None if run.ending is not None else RunCancelled(at, reason)


def result_failure(
    definition: Definition | None, result: bytes, max_bytes: int, *, multipart: bool = False
) -> Failure | None:
    """Why this result cannot be taken, or None. Parts are held against the schema by what they say."""
    if len(result) > max_bytes:
        return Failure("result_too_large", f"The result has {len(result)} bytes; {max_bytes} are allowed.")
    try:
        value = parse(result, max_bytes=max_bytes)
        if multipart:
            value = plain_value(decode_parts(result))
    except BadJson as error:
        return Failure("invalid_result", f"The result is not JSON: {error.reason}")
    except (ValidationError, ValueError) as error:
        return Failure("invalid_result", f"The result is no list of parts: {error}")
    if definition is None or definition.output is None:
        return None
    problems = output_of(definition).problems(value)
    return reasons.bad_result(problems) if problems else None


def _owned(run: Run, principal: str, call_id: str) -> Call:
    call = run.calls.get(call_id)
    if call is None or principal != run.principal:
        raise UnknownCall("there is no such call")
    return call


def _expect_words(run: Run, said: Any) -> None:
    """What is said beside a result is stored and read too: it can be written down, and has an end."""
    try:
        size = len(json.encode(said))
    except (UnicodeError, TypeError) as error:
        raise InvalidAnswer("what was said cannot be written down") from error
    most = max(run.limits.result_bytes, REASON_BYTES)
    if size > most:
        raise InvalidAnswer(f"what was said has {size} bytes; {most} are allowed")


def _expect_executing(call: Call, attempt: int | None) -> None:
    if call.outcome in _ANSWERED:
        raise AnswerConflict(f"call {call.id!r} has its answer already")
    if call.outcome is not None:
        raise CallGone(f"call {call.id!r} has ended: {call.outcome}", call.outcome)
    if call.place is _CLIENT and attempt is not None and call.attempt and _is_over(call, attempt):
        raise CallGone(f"attempt {attempt} of call {call.id!r} is over")
    if call.place is not _CLIENT or call.state is not _EXECUTING:
        raise NotExpected(f"call {call.id!r} does not wait for a client's answer ({call.state}, at the {call.place})")
    if attempt is not None and attempt != call.attempt:
        raise NotExpected(f"call {call.id!r} is at attempt {call.attempt}, not {attempt}")


def _expect_client(run: Run, call: Call, client: str, attempt: int | None) -> None:
    """A client that says who it is counts only if nobody else has the call, or is to have it."""
    _expect_executing(call, attempt)
    if client:
        _expect_target(run, call, client)
        _expect_free(call, client)


def _expect_target(run: Run, call: Call, client: str) -> None:
    if run.target and client != run.target:
        raise NotExpected(f"call {call.id!r} is for another client")


def _expect_free(call: Call, client: str) -> None:
    if call.held_by and client != call.held_by:
        raise AnswerConflict(f"call {call.id!r} is taken by another client")


def _is_over(call: Call, attempt: int | None) -> bool:
    """Whether `attempt`, or the newest one, has ended without settling the call."""
    if attempt is not None and call.open and attempt != call.attempt:
        return attempt < call.attempt
    return call.state is CallState.INPUT_COMPLETE


def _shown(call: Call, record: ApprovalRecord) -> str:
    """The hash of what the person saw, also after an edit."""
    return record.arguments_hash if call.written is None else arguments_hash(call.written)


def _same_yes(call: Call, arguments: str | None, payload: Any, remember: Remember | None) -> bool:
    record = call.approval
    assert record is not None
    said = call.written or call.arguments if arguments is None else arguments
    return (
        _equal(said.encode(), call.arguments.encode())
        and record.remember == (remember or "")
        and json.encode(payload, order="sorted") == json.encode(record.payload, order="sorted")
    )


def _expect_undecided(call: Call, at: int) -> None:
    assert call.approval is not None
    if call.approval.decision:
        raise AnswerConflict(f"call {call.id!r} was {call.approval.decision} already")
    if call.outcome is not None:
        raise CallGone(f"call {call.id!r} has ended: {call.outcome}", call.outcome)
    if call.approval.expires is not None and call.approval.expires <= at:  # its timer has not come yet
        raise CallGone(f"call {call.id!r} was to be decided earlier", Outcome.TIMED_OUT)


def _equal(one: bytes, other: bytes) -> bool:
    """Whether two JSON texts say the same; 1, 1.0 and true are three different things."""
    if one == other:
        return True
    try:
        return json.encode(parse(one), order="sorted") == json.encode(parse(other), order="sorted")
    except BadJson:
        return False
