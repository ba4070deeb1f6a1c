"""What a run tells whoever watches it: numbered, typed, derived from what an event changed. Never a cause of anything.

Updates marked "live" come from a reply or a tool that is under way and are not repeated to later watchers; the stored
ones tell the whole story without them. `seq` counts stored updates; a live one carries the number before it.
"""

from typing import Any, TypeAlias

from msgspec import Raw, Struct, json

from farhand.core.call import Call, CallState, Outcome
from farhand.core.definition import Place
from farhand.core.events import BackgroundEnded, Event, Recovered, Replied, Started
from farhand.core.failure import Failure
from farhand.core.pieces import Finish, Usage
from farhand.core.run import Ending, Phase, Run
from farhand.core.scene import Scene
from farhand.core.secrets import told_arguments, told_result
from farhand.core.shown import open_groups
from farhand.core.tally import Tally, tally


class RunStarted(Struct, frozen=True, gc=False, tag="run-started", tag_field="type"):
    """A run has begun."""

    seq: int
    at: int
    run_id: str
    thread_id: str


class TurnStarted(Struct, frozen=True, gc=False, tag="turn-started", tag_field="type"):
    """The model is being asked; without `tools` it can only answer."""

    seq: int
    at: int
    turn: int
    tools: bool = True
    again: bool = False
    """It was asked before and its process ended: whatever was streamed of this turn's reply is void."""


class TextStreamed(Struct, frozen=True, gc=False, tag="text-streamed", tag_field="type"):
    """Live: more of the answer; `offset` counts characters of the turn's text."""

    seq: int
    at: int
    turn: int
    offset: int
    text: str


class ReasoningStreamed(Struct, frozen=True, gc=False, tag="reasoning-streamed", tag_field="type"):
    """Live: more of the model's thinking."""

    seq: int
    at: int
    turn: int
    offset: int
    text: str


class ReplyEnded(Struct, frozen=True, gc=False, tag="reply-ended", tag_field="type"):
    """The whole text of one reply, and how many calls it holds."""

    seq: int
    at: int
    turn: int
    text: str
    calls: int
    finish: Finish
    usage: Usage


class CallNamed(Struct, frozen=True, gc=False, tag="call-named", tag_field="type"):
    """Live: the model has named a tool (`awaiting-input`)."""

    seq: int
    at: int
    call_id: str
    tool: str
    turn: int
    state: CallState = CallState.AWAITING_INPUT


class CallStreamed(Struct, frozen=True, gc=False, tag="call-streamed", tag_field="type"):
    """Live: more of the arguments' text (`input-streaming`); `offset` counts its characters."""

    seq: int
    at: int
    call_id: str
    offset: int
    text: str
    state: CallState = CallState.INPUT_STREAMING


class CallReady(Struct, frozen=True, gc=False, tag="call-ready", tag_field="type"):
    """The arguments are whole and valid (`input-complete`)."""

    seq: int
    at: int
    call_id: str
    tool: str
    turn: int
    place: Place
    arguments: str
    state: CallState = CallState.INPUT_COMPLETE


class CallWaiting(Struct, frozen=True, gc=False, tag="call-waiting", tag_field="type"):
    """A person must decide (`approval-requested`)."""

    seq: int
    at: int
    call_id: str
    tool: str
    arguments: str
    arguments_hash: str
    expires: int | None
    state: CallState = CallState.APPROVAL_REQUESTED


class CallApproved(Struct, frozen=True, gc=False, tag="call-approved", tag_field="type"):
    """A person said yes (`input-complete`); `arguments` are the ones that will run."""

    seq: int
    at: int
    call_id: str
    by: str
    arguments: str
    edited: bool
    state: CallState = CallState.INPUT_COMPLETE


class CallExecuting(Struct, frozen=True, gc=False, tag="call-executing", tag_field="type"):
    """The call was handed to its place (`executing`)."""

    seq: int
    at: int
    call_id: str
    tool: str
    place: Place
    attempt: int
    arguments: str
    deadline: int | None
    label: str
    """The model's own id for the call."""
    description: str = ""
    """Of a client tool, for whoever shows the call."""
    state: CallState = CallState.EXECUTING


class CallClaimed(Struct, frozen=True, gc=False, tag="call-claimed", tag_field="type"):
    """One client works on the call (`executing`)."""

    seq: int
    at: int
    call_id: str
    attempt: int
    holder: str
    state: CallState = CallState.EXECUTING


class CallUnattended(Struct, frozen=True, gc=False, tag="call-unattended", tag_field="type"):
    """No client is there for the call; one may come until the given time (`executing`)."""

    seq: int
    at: int
    call_id: str
    attempt: int
    until: int
    state: CallState = CallState.EXECUTING


class CallAttended(Struct, frozen=True, gc=False, tag="call-attended", tag_field="type"):
    """A client is there again for the call (`executing`)."""

    seq: int
    at: int
    call_id: str
    attempt: int
    state: CallState = CallState.EXECUTING


class CallProgress(Struct, frozen=True, gc=False, tag="call-progress", tag_field="type"):
    """Live: what the tool says of its progress (`executing`)."""

    seq: int
    at: int
    call_id: str
    value: Any
    name: str = "progress"
    state: CallState = CallState.EXECUTING


class CallReleased(Struct, frozen=True, gc=False, tag="call-released", tag_field="type"):
    """An attempt is over; another one comes, not before the given time (`input-complete`), or this one goes on with
    another client, because the one that had it gave it back (`executing`)."""

    seq: int
    at: int
    call_id: str
    attempt: int
    not_before: int
    state: CallState = CallState.INPUT_COMPLETE


class CallEnded(Struct, frozen=True, gc=False, tag="call-ended", tag_field="type"):
    """The call has its outcome (`output-available`, `output-error` or `cancelled`)."""

    seq: int
    at: int
    call_id: str
    tool: str
    state: CallState
    outcome: Outcome
    result: Raw
    failure: Failure | None
    took: int
    source: str = ""
    """Whose word the result is, unless the agent's own server's: `client`, an MCP server or another agent."""

    @property
    def value(self) -> Any:
        """The result as a JSON value; None without one."""
        return json.decode(self.result)


class CallReported(Struct, frozen=True, gc=False, tag="call-reported", tag_field="type"):
    """The work that a client took on in the background has ended; the call itself ended when it was taken on."""

    seq: int
    at: int
    call_id: str
    tool: str
    outcome: Outcome
    result: Raw
    failure: Failure | None


class RunWaiting(Struct, frozen=True, gc=False, tag="run-waiting", tag_field="type"):
    """Nothing happens until a client or a person answers these calls."""

    seq: int
    at: int
    call_ids: tuple[str, ...]


class RunEnded(Struct, frozen=True, gc=False, tag="run-ended", tag_field="type"):
    """The run is over."""

    seq: int
    at: int
    ending: Ending
    output: str
    limit: str
    failure: Failure | None
    usage: Usage
    turns: int
    tools: dict[str, Tally]
    """How often each tool was called, how that ended, and how long it took."""


class SceneChanged(Struct, frozen=True, gc=False, tag="scene-changed", tag_field="type"):
    """What is open has changed, or what else a client has told of itself. All of it as it is now."""

    seq: int
    at: int
    groups: tuple[str, ...]
    """The client's, and those of the agent."""
    expanded: tuple[str, ...]
    active: tuple[str, ...]
    """The skills that are active."""
    hidden: tuple[str, ...]
    found: tuple[str, ...]
    """Tools that are shown for themselves, because the model has asked for them."""
    context: tuple[str, ...]
    """The names of the context items."""
    state: Raw


class Warned(Struct, frozen=True, gc=False, tag="warned", tag_field="type"):
    """Something a developer should know; the model is not told."""

    seq: int
    at: int
    code: str
    message: str
    call_id: str = ""


Update: TypeAlias = (
    RunStarted
    | TurnStarted
    | TextStreamed
    | ReasoningStreamed
    | ReplyEnded
    | CallNamed
    | CallStreamed
    | CallReady
    | CallWaiting
    | CallApproved
    | CallExecuting
    | CallClaimed
    | CallUnattended
    | CallAttended
    | CallProgress
    | CallReleased
    | CallEnded
    | CallReported
    | RunWaiting
    | RunEnded
    | SceneChanged
    | Warned
)

CallUpdate: TypeAlias = (
    CallNamed
    | CallStreamed
    | CallReady
    | CallWaiting
    | CallApproved
    | CallExecuting
    | CallClaimed
    | CallUnattended
    | CallAttended
    | CallProgress
    | CallReleased
    | CallEnded
    | CallReported
)


# Reading a member off its enum costs as much as calling a function on Python 3.11; the hot path reads these.
_INVALID = Outcome.INVALID
_ASKING = Phase.ASKING
_EXECUTING = CallState.EXECUTING
_APPROVAL_REQUESTED = CallState.APPROVAL_REQUESTED
_INPUT_COMPLETE = CallState.INPUT_COMPLETE
_CLIENT = Place.CLIENT


def updates(before: Run | None, event: Event, after: Run, seq: int) -> list[Update]:
    """What `event` changed, for watchers. `seq` is the number of the last update before these."""
    at = event.at
    if before is None:
        assert isinstance(event, Started)
        return _started(event, after, seq)
    out: list[Update] = []
    if type(event) is Replied:
        calls = len(event.calls)
        out.append(ReplyEnded(seq + 1, at, before.turn, event.text, calls, event.finish, event.usage))
    elif type(event) is BackgroundEnded:
        return _reported(before, event, after, seq)
    if before.order is not after.order:
        for call_id in after.order:
            _new_call(out, after, after.calls[call_id], at, seq)
    elif before.calls is not after.calls:
        for call_id in after.order:
            old, new = before.calls[call_id], after.calls[call_id]
            if old is not new:
                _changed_call(out, after, old, new, at, seq)
    _changed_run(out, before, event, after, seq)
    return out


def _started(event: Started, run: Run, seq: int) -> list[Update]:
    out: list[Update] = [RunStarted(seq + 1, event.at, run.id, run.thread)]
    if run.scene is not None:
        out.append(scene_changed(run.scene, event.at, seq + 2))
    for text in event.refused:
        out.append(Warned(seq + 1 + len(out), event.at, "tool_refused", text))
    out.append(TurnStarted(seq + 1 + len(out), event.at, run.turn, not run.final))
    return out


def current(run: Run, seq: int) -> list[Update]:
    """Where a run stands, for a watcher who comes later: its open calls, and that it waits or has ended."""
    out: list[Update] = []
    for call in run.open_calls:
        if call.state is _APPROVAL_REQUESTED:
            out.append(_call_waiting(call, run.updated, seq))
        elif call.state is _EXECUTING:
            out.append(_call_executing(run, call, run.updated, seq))
            if call.held_by:
                out.append(CallClaimed(seq, run.updated, call.id, call.attempt, call.held_by))
            if call.grace is not None:
                out.append(CallUnattended(seq, run.updated, call.id, call.attempt, call.grace))
        else:
            out.append(_call_ready(call, run.updated, seq))
    if run.scene is not None:
        out.append(scene_changed(run.scene, run.updated, seq))
    if run.ending is not None:
        out.append(_run_ended(run, run.updated, seq))
    elif run.waiting:
        out.append(RunWaiting(seq, run.updated, tuple([call.id for call in run.awaited_calls])))
    return out


def scene_changed(scene: Scene, at: int, seq: int) -> SceneChanged:
    """A scene as it is told."""
    return SceneChanged(
        seq,
        at,
        tuple([group.name for group in scene.groups]),
        tuple(open_groups(scene)),
        tuple(scene.active),
        scene.hidden,
        scene.found,
        tuple([item.name for item in scene.context]),
        scene.state,
    )


def _changed_run(out: list[Update], before: Run, event: Event, after: Run, seq: int) -> None:
    at = event.at
    if after.scene is not before.scene and after.scene is not None:
        out.append(scene_changed(after.scene, at, seq + len(out) + 1))
    if after.ending is not None:
        if before.ending is None:
            out.append(_run_ended(after, at, seq + len(out) + 1))
    elif before.turn != after.turn:
        out.append(TurnStarted(seq + len(out) + 1, at, after.turn, not after.final))
    elif type(event) is Recovered and after.phase is _ASKING:
        out.append(TurnStarted(seq + len(out) + 1, at, after.turn, not after.final, again=True))
    elif after.calls is not before.calls and after.waiting and not before.waiting:
        out.append(RunWaiting(seq + len(out) + 1, at, tuple([call.id for call in after.awaited_calls])))


def _reported(before: Run, event: BackgroundEnded, after: Run, seq: int) -> list[Update]:
    """A run that has ended tells nothing more: what comes after its last update belongs to later runs."""
    if before.ending is not None:
        return []
    call = after.calls[event.call_id]
    assert call.background is not None
    result = Raw(call.background.preview.encode()) if call.background.preview else event.result
    return [CallReported(seq + 1, event.at, event.call_id, call.tool, event.outcome, result, event.failure)]


def _new_call(out: list[Update], run: Run, call: Call, at: int, seq: int) -> None:
    definition = run.tools.get(call.tool)
    if definition is not None and definition.deprecated is not None:
        message = f"tool {call.tool!r} is deprecated: {definition.deprecated}"
        out.append(Warned(seq + len(out) + 1, at, "tool_deprecated", message, call.id))
    if call.outcome is not _INVALID:
        out.append(_call_ready(call, at, seq + len(out) + 1))
    if call.approval is not None:
        out.append(_call_waiting(call, at, seq + len(out) + 1))
    if call.attempt:
        out.append(_call_executing(run, call, at, seq + len(out) + 1))
    if call.outcome is not None:
        out.append(_call_ended(call, at, seq + len(out) + 1))


def _changed_call(out: list[Update], run: Run, old: Call, new: Call, at: int, seq: int) -> None:
    if new.outcome is None or new.approval is not old.approval:  # otherwise nothing has changed but that it ended
        _changed_course(out, run, old, new, at, seq)
    if new.outcome is not None and old.outcome is None:
        out.append(_call_ended(new, at, seq + len(out) + 1))
    if new.refused and not old.refused:
        out.append(Warned(seq + len(out) + 1, at, "augmentation_refused", new.refused, new.id))
    if new.conflict and not old.conflict:
        out.append(Warned(seq + len(out) + 1, at, "augmentation_conflict", new.conflict, new.id))


def _changed_course(out: list[Update], run: Run, old: Call, new: Call, at: int, seq: int) -> None:
    """What a call went through on the way to its end."""
    approval = new.approval
    if approval is not None and old.approval is None:
        out.append(_call_waiting(new, at, seq + len(out) + 1))
    elif approval is not None and approval is not old.approval and approval.decision == "approved":
        out.append(CallApproved(seq + len(out) + 1, at, new.id, approval.by, new.preview or new.arguments, new.edited))
    executed = old.state is _EXECUTING
    if executed and (new.attempt > old.attempt or (new.outcome is None and new.state is _INPUT_COMPLETE)):
        out.append(CallReleased(seq + len(out) + 1, at, new.id, old.attempt, new.not_before))
    if new.attempt > old.attempt:
        out.append(_call_executing(run, new, at, seq + len(out) + 1))
    if new.state is _EXECUTING:
        _changed_holder(out, run, old, new, at, seq)


def _changed_holder(out: list[Update], run: Run, old: Call, new: Call, at: int, seq: int) -> None:
    """Who works on a call, or might."""
    if new.held_by and new.held_by != old.held_by:
        out.append(CallClaimed(seq + len(out) + 1, at, new.id, new.attempt, new.held_by))
    elif new.grace is not None and old.grace is None:
        out.append(CallUnattended(seq + len(out) + 1, at, new.id, new.attempt, new.grace))
    elif new.attempt > old.attempt:
        pass  # nobody has it yet
    elif old.held_by and not new.held_by:
        out.append(CallReleased(seq + len(out) + 1, at, new.id, old.attempt, 0, _EXECUTING))
        out.append(_call_executing(run, new, at, seq + len(out) + 1))
    elif old.grace is not None and new.grace is None:
        out.append(CallAttended(seq + len(out) + 1, at, new.id, new.attempt))


def _call_ready(call: Call, at: int, seq: int) -> CallReady:
    return CallReady(seq, at, call.id, call.tool, call.turn, call.place, call.preview or call.arguments)


def _call_waiting(call: Call, at: int, seq: int) -> CallWaiting:
    assert call.approval is not None
    record = call.approval
    return CallWaiting(seq, at, call.id, call.tool, told_arguments(call), record.arguments_hash, record.expires)


def _call_executing(run: Run, call: Call, at: int, seq: int) -> CallExecuting:
    definition = run.definition_of(call) if call.place is _CLIENT else None
    description = "" if definition is None else definition.description
    arguments = told_arguments(call) if call.preview else call.arguments
    return CallExecuting(
        seq, at, call.id, call.tool, call.place, call.attempt, arguments, call.deadline, call.label, description
    )


def _call_ended(call: Call, at: int, seq: int) -> CallEnded:
    assert call.outcome is not None
    took = call.settled - call.created
    result = told_result(call) if call.result_preview else call.result
    return CallEnded(seq, at, call.id, call.tool, call.state, call.outcome, result, call.failure, took, call.source)


def _run_ended(run: Run, at: int, seq: int) -> RunEnded:
    assert run.ending is not None
    tools = tally(run.calls.values())
    return RunEnded(seq, at, run.ending, run.output, run.limit, run.failure, run.usage, run.turn, tools)
