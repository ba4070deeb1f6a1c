"""A run between two events: the value, its phases, and what can be read off it. Only `step` changes it."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Raw, Struct

from farhand.core.call import Call, CallState
from farhand.core.definition import Definition, Place
from farhand.core.events import Memory
from farhand.core.failure import Failure
from farhand.core.limits import Limits
from farhand.core.messages import Message, UserMessage
from farhand.core.pieces import Finish, Usage
from farhand.core.scene import Scene


class Phase(StrEnum):
    """What a run is doing."""

    ASKING = "asking"
    CALLING = "calling"
    JUDGING = "judging"
    ENDED = "ended"


# Reading a member off its enum costs as much as calling a function on Python 3.11; the hot path reads these.
_CALLING = Phase.CALLING
_CLIENT = Place.CLIENT
_EXECUTING = CallState.EXECUTING
_APPROVAL_REQUESTED = CallState.APPROVAL_REQUESTED


class Ending(StrEnum):
    """Why a run ended."""

    DONE = "done"
    LIMIT = "limit"
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Run(Struct, frozen=True, gc=False, omit_defaults=True):
    """All there is to know about one run between two events."""

    id: str
    thread: str
    principal: str
    phase: Phase
    messages: tuple[Message, ...]
    tools: dict[str, Definition]
    limits: Limits
    instructions: str = ""
    said_before: int = 0
    """How many of the messages are from before this run, its input included."""
    events: int = 1
    """How many events made this run; a later one has more."""
    calls: dict[str, Call] = {}
    order: tuple[str, ...] = ()
    """The calls of the newest reply that had any, in call order."""
    turn: int = 1
    final: bool = False
    """The model was asked for its last word, without tools."""
    usage: Usage = Usage()
    memory: tuple[Memory, ...] = ()
    pinned: dict[str, Definition] = {}
    """Definitions that are not offered any more, of calls that were dispatched under them."""
    judged_stop: bool = False
    output_schema: Raw = Raw(b"null")
    repairs: int = 0
    news: tuple[UserMessage, ...] = ()
    """What the model has yet to be told of work in the background."""
    noted: tuple[str, ...] = ()
    """The calls of earlier runs that there was news of."""
    attended: bool = False
    """Clients are expected to be connected while it runs."""
    target: str = ""
    """The one client that may take its calls up; empty: any."""
    trace: str = ""
    """How whoever began it finds it again."""
    scene: Scene | None = None
    """What of the tools is open, and what else the client has told of itself; None: there is nothing of the kind."""
    wishes: tuple[str, ...] = ()
    """The calls of this turn whose results ask for a change of the scene."""
    touched: tuple[str, ...] = ()
    """What kinds of data the model has been told in it: `private`, `untrusted`."""
    finish: Finish | None = None
    ending: Ending | None = None
    limit: str = ""
    """Which limit ended the run."""
    output: str = ""
    failure: Failure | None = None
    created: int = 0
    updated: int = 0

    @property
    def open_calls(self) -> tuple[Call, ...]:
        """Calls whose outcome is still to come, in call order."""
        return tuple([call for call in map(self.calls.__getitem__, self.order) if call.outcome is None])

    @property
    def turn_calls(self) -> tuple[Call, ...]:
        """The calls of the newest reply that had any, in call order."""
        return tuple([self.calls[call_id] for call_id in self.order])

    @property
    def awaited_calls(self) -> tuple[Call, ...]:
        """The open calls that a client or a person has to answer."""
        calls = map(self.calls.__getitem__, self.order)
        return tuple([call for call in calls if call.outcome is None and awaits_somebody(call)])

    @property
    def waiting(self) -> bool:
        """Whether nothing happens until a client or a person answers."""
        if self.phase is not _CALLING:
            return False
        for call_id in self.order:
            if _under_way(self.calls[call_id]):
                return False
        return True

    @property
    def status(self) -> str:
        """`running`, `waiting`, or how it ended."""
        if self.ending is not None:
            return self.ending.value
        return "waiting" if self.waiting else "running"

    def definition_of(self, call: Call) -> Definition | None:
        """The definition that `call` was made under, also when the tool has changed since."""
        definition = self.tools.get(call.tool)
        if definition is not None and definition.pin == call.pin:
            return definition
        return self.pinned.get(call.pin)


def still_needed(run: Run, tools: Mapping[str, Definition]) -> dict[str, Definition]:
    """The definitions that are kept though they are not offered: the end of background work is held against its own."""
    pinned = dict(run.pinned)
    for call in run.calls.values():
        if call.background is not None and call.background.outcome is None:
            definition, offered = run.definition_of(call), tools.get(call.tool)
            if definition is not None and (offered is None or offered.pin != call.pin):
                pinned[call.pin] = definition
    return pinned


def awaits_somebody(call: Call) -> bool:
    """Whether a client or a person has to say something about an open call."""
    return call.place is _CLIENT if call.state is _EXECUTING else call.state is _APPROVAL_REQUESTED


def _under_way(call: Call) -> bool:
    """Whether something will happen to the call without a client or a person."""
    if call.outcome is not None:
        return False
    if call.state is _EXECUTING:
        return call.place is not _CLIENT
    return call.judging or call.not_before > 0
