"""One use of one tool: its states, the table that moves it, and its record. Nothing else changes a call's state.

The diagram in docs/calls.md is drawn from `TABLE`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Raw, Struct, structs

from farhand.core.augmentation import Augmentation
from farhand.core.definition import Place
from farhand.core.errors import IllegalChange
from farhand.core.failure import Failure


class CallState(StrEnum):
    """Where a call stands; the eight values that every watcher sees."""

    AWAITING_INPUT = "awaiting-input"
    INPUT_STREAMING = "input-streaming"
    INPUT_COMPLETE = "input-complete"
    APPROVAL_REQUESTED = "approval-requested"
    EXECUTING = "executing"
    OUTPUT_AVAILABLE = "output-available"
    OUTPUT_ERROR = "output-error"
    CANCELLED = "cancelled"


class Outcome(StrEnum):
    """How a call ended; each call has exactly one in the end."""

    OK = "ok"
    FAILED = "failed"
    INVALID = "invalid"
    DENIED = "denied"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"


class Change(StrEnum):
    """What can happen to a call. The last eight settle it and are named like the outcome they bring."""

    STREAM = "stream"
    COMPLETE = "complete"
    ASK = "ask"
    APPROVE = "approve"
    DISPATCH = "dispatch"
    RELEASE = "release"
    OK = "ok"
    FAILED = "failed"
    INVALID = "invalid"
    DENIED = "denied"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"


_FAULT = CallState.OUTPUT_ERROR
_OFF = CallState.CANCELLED

TABLE: Mapping[CallState, Mapping[Change, CallState]] = {
    CallState.AWAITING_INPUT: {
        Change.STREAM: CallState.INPUT_STREAMING,
        Change.COMPLETE: CallState.INPUT_COMPLETE,
        Change.INVALID: _FAULT,
        Change.CANCELLED: _OFF,
    },
    CallState.INPUT_STREAMING: {
        Change.STREAM: CallState.INPUT_STREAMING,
        Change.COMPLETE: CallState.INPUT_COMPLETE,
        Change.INVALID: _FAULT,
        Change.CANCELLED: _OFF,
    },
    CallState.INPUT_COMPLETE: {
        Change.ASK: CallState.APPROVAL_REQUESTED,
        Change.DISPATCH: CallState.EXECUTING,
        Change.UNAVAILABLE: _FAULT,
        Change.DENIED: _OFF,
        Change.CANCELLED: _OFF,
    },
    CallState.APPROVAL_REQUESTED: {
        Change.APPROVE: CallState.INPUT_COMPLETE,
        Change.DENIED: _OFF,
        Change.CANCELLED: _OFF,
        Change.TIMED_OUT: _FAULT,
        Change.UNAVAILABLE: _FAULT,
    },
    CallState.EXECUTING: {
        Change.RELEASE: CallState.INPUT_COMPLETE,
        Change.OK: CallState.OUTPUT_AVAILABLE,
        Change.FAILED: _FAULT,
        Change.TIMED_OUT: _FAULT,
        Change.UNAVAILABLE: _FAULT,
        Change.UNKNOWN: _FAULT,
        Change.CANCELLED: _OFF,
    },
    CallState.OUTPUT_AVAILABLE: {},
    CallState.OUTPUT_ERROR: {},
    CallState.CANCELLED: {},
}

# Reading a member off its enum costs as much as calling a function on Python 3.11; the hot path reads these.
_APPROVAL_REQUESTED = CallState.APPROVAL_REQUESTED
_INPUT_COMPLETE = CallState.INPUT_COMPLETE
_NO_RESULT = Raw(b"null")

ENDED = frozenset(state for state, changes in TABLE.items() if not changes)


class ApprovalRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """A person's decision and what exactly it was about: these arguments, this definition. It counts once.

    Before the decision the hash is of what was shown, after it of what was decided on, edited arguments included.
    """

    arguments_hash: str
    pin: str
    asked: int
    expires: int | None = None
    decision: str = ""
    by: str = ""
    reason: str = ""
    payload: Any = None
    remember: str = ""
    because: str = ""
    """Why a person is asked although the tool does not ask for it."""


class Background(Struct, frozen=True, gc=False, omit_defaults=True):
    """Work that a client took on to end it later. The call has ended with that; this is how the work ends."""

    note: str = ""
    outcome: Outcome | None = None
    result: Raw = Raw(b"null")
    failure: Failure | None = None
    ended: int = 0
    preview: str = ""
    """The result as everybody may read it, if something in it is secret."""


class Call(Struct, frozen=True, gc=False, omit_defaults=True):
    """All there is to know about one call between two events. Times are milliseconds since 1970."""

    id: str
    label: str
    tool: str
    turn: int
    state: CallState = CallState.AWAITING_INPUT
    arguments: str = ""
    written: str | None = None
    pin: str = ""
    place: Place = Place.CLIENT
    judging: bool = False
    approval: ApprovalRecord | None = None
    attempt: int = 0
    absences: int = 0
    losses: int = 0
    """Attempts whose holder was lost."""
    held_by: str = ""
    given_back: int = 0
    """How often whoever had taken it up gave it back."""
    dies: bool = False
    """Whoever holds it ends with the process that runs the run."""
    not_before: int = 0
    deadline: int | None = None
    grace: int | None = None
    """Until when a client may still come; set while none is there."""
    outcome: Outcome | None = None
    result: Raw = _NO_RESULT
    multipart: bool = False
    failure: Failure | None = None
    background: Background | None = None
    """Set when the call's result is that a client works on in the background."""
    created: int = 0
    settled: int = 0
    preview: str = ""
    """The arguments as everybody may read them, if something in them is secret."""
    result_preview: str = ""
    """And the result."""
    source: str = ""
    """Where its result comes from, unless from the agent's own server: it is marked for the model."""
    augmentation: Augmentation | None = None
    """What its client wishes to be changed once the turn is over."""
    refused: str = ""
    """Why nothing of that was done."""
    conflict: str = ""
    """What of it undid something that another client's result had asked for in the same turn."""

    @property
    def open(self) -> bool:
        """Whether its outcome is still to come."""
        return self.outcome is None

    @property
    def edited(self) -> bool:
        """Whether a person changed the arguments; `written` holds what the model wrote."""
        return self.written is not None

    @property
    def undecided(self) -> bool:
        """Whether it still has to be said if it may run."""
        return self.judging or self.state is _APPROVAL_REQUESTED

    @property
    def ready(self) -> bool:
        """Whether it may be dispatched."""
        return self.state is _INPUT_COMPLETE and not self.judging


def state_after(call: Call, change: Change) -> CallState:
    """The call's state after `change`, or `IllegalChange` when the table has no such move."""
    state = TABLE[call.state].get(change)
    if state is None:
        raise IllegalChange(f"call {call.id!r} cannot {change} while {call.state}")
    return state


def move(call: Call, change: Change, **fields: Any) -> Call:
    """The call after `change`. The hot path replaces the fields itself: to pass them on takes four times as long."""
    return structs.replace(call, state=state_after(call, change), **fields)


def settle(
    call: Call,
    outcome: Outcome,
    at: int,
    failure: Failure | None = None,
    result: Raw = _NO_RESULT,
    multipart: bool = False,
) -> Call:
    """The call with its outcome; deadlines and back-off end with it."""
    state = _ENDS[call.state].get(outcome)
    if state is None:
        raise IllegalChange(f"call {call.id!r} cannot end {outcome} while {call.state}")
    if call.not_before or call.grace is not None or call.judging:
        call = structs.replace(call, not_before=0, grace=None, judging=False)
    return structs.replace(
        call,
        state=state,
        outcome=outcome,
        settled=at,
        deadline=None,
        failure=failure,
        result=result,
        multipart=multipart,
    )


_ENDS: Mapping[CallState, Mapping[Outcome, CallState]] = {
    state: {outcome: changes[Change(outcome)] for outcome in Outcome if Change(outcome) in changes}
    for state, changes in TABLE.items()
}
