"""Facts that enter a run; stored in order; the only thing that changes a run. Times and ids arrive in them."""

from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Raw, Struct

from farhand.core.augmentation import Augmentation
from farhand.core.call import Outcome
from farhand.core.definition import Definition
from farhand.core.failure import Failure
from farhand.core.limits import Limits
from farhand.core.messages import CallRequest, Message, Reasoning, UserMessage
from farhand.core.pieces import Finish, Usage
from farhand.core.scene import Scene


class Remember(StrEnum):
    """How far a decision of a person reaches beyond this call."""

    TOOL = "tool"
    ARGUMENTS = "arguments"


class Memory(Struct, frozen=True, gc=False, omit_defaults=True):
    """A remembered decision: of one principal, for one pin, perhaps for exactly these arguments."""

    pin: str
    allow: bool
    arguments_hash: str = ""


class Started(Struct, frozen=True, gc=False, tag="started", omit_defaults=True):
    """A run begins: who asks, what was said, which tools there are, how far it may go."""

    at: int
    run_id: str
    thread_id: str
    principal: str
    messages: tuple[Message, ...]
    tools: tuple[Definition, ...] = ()
    instructions: str = ""
    limits: Limits = Limits()
    output_schema: Raw = Raw(b"null")
    judged_stop: bool = False
    memory: tuple[Memory, ...] = ()
    refused: tuple[str, ...] = ()
    """What of the client's tools was not taken, and why."""
    attended: bool = False
    """Clients are expected to be connected while it runs: one that is not there is missed."""
    target: str = ""
    """The one client that may take its calls up; empty: any of the principal's."""
    trace: str = ""
    """How whoever began it finds it again, as a W3C `traceparent`; nothing that is done depends on it."""
    scene: Scene | None = None


class Replied(Struct, frozen=True, gc=False, tag="replied", omit_defaults=True):
    """One whole reply of the model."""

    at: int
    text: str = ""
    reasoning: tuple[Reasoning, ...] = ()
    calls: tuple[CallRequest, ...] = ()
    usage: Usage = Usage()
    finish: Finish = Finish.STOP


class ModelFailed(Struct, frozen=True, gc=False, tag="model-failed"):
    """The model gave no usable reply."""

    at: int
    failure: Failure


class StopJudged(Struct, frozen=True, gc=False, tag="stop-judged"):
    """The program's own stop conditions were asked after a turn."""

    at: int
    stop: bool


class ApprovalJudged(Struct, frozen=True, gc=False, tag="approval-judged"):
    """The tool's own function said whether a person must decide, or raised (then `needed` is true)."""

    at: int
    call_id: str
    needed: bool


class Approved(Struct, frozen=True, gc=False, tag="approved", omit_defaults=True):
    """A person allowed a call, perhaps with other arguments."""

    at: int
    call_id: str
    by: str
    arguments: str | None = None
    payload: Any = None
    remember: Remember | None = None


class Denied(Struct, frozen=True, gc=False, tag="denied", omit_defaults=True):
    """A person refused a call."""

    at: int
    call_id: str
    by: str
    reason: str = ""
    remember: Remember | None = None


class Claimed(Struct, frozen=True, gc=False, tag="claimed", omit_defaults=True):
    """One client took a call up and works on it."""

    at: int
    call_id: str
    attempt: int
    holder: str
    dies: bool = False
    """Whether the holder is a function of the process that runs the run, and ends with it."""


class Released(Struct, frozen=True, gc=False, tag="released"):
    """The client that took a call up gave it back untouched."""

    at: int
    call_id: str
    attempt: int


class Answered(Struct, frozen=True, gc=False, tag="answered", omit_defaults=True):
    """The place that runs a call sent its result, already checked."""

    at: int
    call_id: str
    attempt: int
    result: Raw
    multipart: bool = False
    augmentation: Augmentation | None = None
    """What the client wishes to be changed; held against what is allowed when the turn is over."""
    refused: str = ""
    """Why what it wished for could not even be read, or is not allowed."""


class Accepted(Struct, frozen=True, gc=False, tag="accepted", omit_defaults=True):
    """A client took a call on as work in the background: the run goes on, and how the work ends comes later."""

    at: int
    call_id: str
    attempt: int
    note: str = ""


class BackgroundEnded(Struct, frozen=True, gc=False, tag="background-ended", omit_defaults=True):
    """Work in the background has ended, also after its run."""

    at: int
    call_id: str
    outcome: Outcome
    result: Raw = Raw(b"null")
    failure: Failure | None = None


class Noted(Struct, frozen=True, gc=False, tag="noted"):
    """News of a call of an earlier run of this thread, to be told before the model is asked again."""

    at: int
    call_id: str
    message: UserMessage


class Faulted(Struct, frozen=True, gc=False, tag="faulted"):
    """The tool ran and failed, or could not be run."""

    at: int
    call_id: str
    attempt: int
    failure: Failure


class Lost(Struct, frozen=True, gc=False, tag="lost"):
    """Whoever worked on a call is gone, and nobody can tell whether it happened."""

    at: int
    call_id: str
    attempt: int


class ClientAbsent(Struct, frozen=True, gc=False, tag="client-absent"):
    """No client is there that offers the tool, or the one that has taken the call up is gone."""

    at: int
    call_id: str
    attempt: int


class ClientCame(Struct, frozen=True, gc=False, tag="client-came"):
    """A client is there again that offers the tool, or the one that has taken the call up."""

    at: int
    call_id: str
    attempt: int


class TimerKind(StrEnum):
    """What a timer is for."""

    DEADLINE = "deadline"
    BACKOFF = "backoff"
    GRACE = "grace"


class TimerFired(Struct, frozen=True, gc=False, tag="timer-fired"):
    """A time has come. One that no longer matters changes nothing."""

    at: int
    call_id: str
    kind: TimerKind
    attempt: int


class CallCancelled(Struct, frozen=True, gc=False, tag="call-cancelled", omit_defaults=True):
    """Somebody who may do so called a call off."""

    at: int
    call_id: str
    reason: str = ""


class RunCancelled(Struct, frozen=True, gc=False, tag="run-cancelled", omit_defaults=True):
    """Somebody who may do so called the run off."""

    at: int
    reason: str = ""


class Recovered(Struct, frozen=True, gc=False, tag="recovered", omit_defaults=True):
    """A run is taken up again after its process ended, with the definitions of today."""

    at: int
    tools: tuple[Definition, ...]
    unsent: tuple[str, ...] = ()
    """Calls whose dispatch was committed but surely never performed: they may be dispatched again."""


Event: TypeAlias = (
    Started
    | Replied
    | ModelFailed
    | StopJudged
    | ApprovalJudged
    | Approved
    | Denied
    | Claimed
    | Released
    | Answered
    | Accepted
    | BackgroundEnded
    | Noted
    | Faulted
    | Lost
    | ClientAbsent
    | ClientCame
    | TimerFired
    | CallCancelled
    | RunCancelled
    | Recovered
)
