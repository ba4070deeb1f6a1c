"""What a run asks of the world. A runner performs them after the event that caused them is committed."""

from typing import TypeAlias

from msgspec import Struct

from farhand.core.events import Memory, TimerKind


class AskModel(Struct, frozen=True, gc=False, tag="ask-model"):
    """Have the model reply to the run's messages; without `tools` it can only answer."""

    turn: int
    tools: bool = True


class StopModel(Struct, frozen=True, gc=False, tag="stop-model"):
    """Close the model's stream: its reply is not wanted any more."""

    turn: int


class JudgeStop(Struct, frozen=True, gc=False, tag="judge-stop"):
    """Ask the program's own stop conditions; answer with `StopJudged`."""

    turn: int


class JudgeApproval(Struct, frozen=True, gc=False, tag="judge-approval"):
    """Ask the tool's own function whether a person must decide; answer with `ApprovalJudged`."""

    call_id: str


class AskApproval(Struct, frozen=True, gc=False, tag="ask-approval"):
    """Have a person decide; answer with `Approved` or `Denied`."""

    call_id: str


class Dispatch(Struct, frozen=True, gc=False, tag="dispatch"):
    """Have the call's place run attempt `attempt`."""

    call_id: str
    attempt: int


class Withdraw(Struct, frozen=True, gc=False, tag="withdraw"):
    """Tell the place that works on the call to stop."""

    call_id: str
    attempt: int


class SetTimer(Struct, frozen=True, gc=False, tag="set-timer"):
    """Give back `TimerFired` at `due`."""

    due: int
    call_id: str
    kind: TimerKind
    attempt: int


class Memorise(Struct, frozen=True, gc=False, tag="memorise"):
    """Keep a person's decision for the principal's later runs."""

    principal: str
    memory: Memory


Effect: TypeAlias = (
    AskModel | StopModel | JudgeStop | JudgeApproval | AskApproval | Dispatch | Withdraw | SetTimer | Memorise
)
