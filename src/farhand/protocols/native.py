"""The frames of the native protocol: what is sent, and what comes back, in JSON. `endpoints` says what is asked.

Values only: `asgi` answers the requests, `client` makes them. Fields that are not known are passed over, so that older
and newer programs understand each other; what a client cannot do without it names in `requires`.
"""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from farhand.core.call import CallState, Outcome
from farhand.core.definition import Place
from farhand.core.failure import Failure
from farhand.core.messages import Message, Part
from farhand.core.pieces import Usage
from farhand.core.scene import ContextItem

PREFIX = "/v1"
CAPABILITIES = frozenset({"claims", "targets", "background", "provider", "socket", "edits", "remember"})
"""What `RunRequest.requires` may name."""

MAX_ID = 128
"""Characters of an id in a path, and of whatever a client calls itself or its threads."""

MOST = 1000
"""Rows of a list that are sent at once."""
ID = r"^[^\x00-\x1f\x7f-\x9f]+$"
"""What an id may look like: no control characters."""

Id: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_ID, pattern=ID)]
OptionalId: TypeAlias = Annotated[str, Meta(max_length=MAX_ID, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]

Names: TypeAlias = Annotated[tuple[str, ...], Meta(max_length=MOST)]

_NONE = Raw(b"[]")
_NULL = Raw(b"null")


# What is sent


class RunRequest(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Begin a run with what the user says."""

    input: Annotated[str, Meta(min_length=1)] | Annotated[tuple[Part, ...], Meta(min_length=1)]
    """Text, or parts: `text`, `json`, `binary`."""
    agent: str = ""
    """By name; the server's first one if it is left out."""
    tools: Raw = _NONE
    """Definitions of the client's own tools, plain or as `{"type": "function", "function": …}`."""
    client: OptionalId = ""
    """The client that the answering stream belongs to; see `offers`."""
    offers: tuple[Id, ...] | None = None
    """Tools that this client runs for as long as the stream is open; `*` is all. Left out: those in `tools`."""
    target: OptionalId = ""
    """The one client that may take up the calls of this run."""
    wait: Literal["held", "turn"] = "held"
    """`held`: the stream stays open until the run has ended, and clients are expected to be there. `turn`: the stream
    ends when the run waits, and whoever answers comes back later."""
    key: OptionalId = ""
    """The client's own name for the run. Sent again, it gives the same run and begins no other."""
    busy: Literal["replace", "refuse"] = "replace"
    """What becomes of a run that is still open in the thread: it is called off, or this one is refused."""
    requires: tuple[str, ...] = ()
    """Capabilities without which the client cannot work."""
    groups: Raw = _NONE
    """Groups of the client's tools; they stay with the thread."""
    replace: bool = False
    """Whether these groups take the places of those of their names; otherwise such a name is refused."""
    declared: Raw = _NONE
    """Groups that may come in later, by their names in an `augmentation`."""
    expanded: Names = ()
    """Names of groups to begin with open; they stay open until the client closes them."""
    hidden: Names = ()
    """The client's tools that the model is not shown."""
    context: Raw = _NONE
    """What the model should know of where the user is: a list of `{"description", "value", "key"}`."""
    state: Raw | UnsetType = UNSET
    """Any JSON value of the client's own, kept with the thread."""
    reset_client_state: bool = False
    """Forget what the thread has of the client, and take what comes with this instead."""


class ClaimRequest(Struct, kw_only=True, frozen=True):
    """Take a call up, so that no other client works on it."""

    client: Id


class ReleaseRequest(Struct, kw_only=True, frozen=True):
    """Give a call back that was taken up and not begun."""

    client: Id


class ProgressRequest(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """How far the work on a call is."""

    value: Any
    name: str = "progress"
    client: OptionalId = ""
    attempt: int | None = None


class ToolFailure(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What went wrong, for the model to read."""

    message: str
    code: str = "tool_failed"
    path: str = ""
    retryable: bool = True
    details: Any = None


class ResultRequest(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A client's answer to its call: exactly one of `result`, `content`, `error` and `accepted`."""

    result: Raw | UnsetType = UNSET
    """Any JSON value; `null`, `false`, `0` and `""` are results like any other."""
    content: tuple[Part, ...] | UnsetType = UNSET
    """The same in parts, for texts beside images and files."""
    error: ToolFailure | UnsetType = UNSET
    accepted: str | UnsetType = UNSET
    """Work goes on in the background; a note about it. The run goes on, `report` says later how it ended."""
    client: OptionalId = ""
    """Who answers; while another client has taken the call up, that is a conflict."""
    attempt: int | None = None
    """The attempt that this is the answer to; an older one does not count."""
    augmentation: Raw | UnsetType = UNSET
    """With a result: what the client wishes to be changed besides. All of it is done, or nothing."""


class ReportRequest(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """How work in the background has ended."""

    outcome: Literal["ok", "failed", "cancelled", "unknown"] = "ok"
    result: Raw = _NULL
    message: str = ""


class Decision(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A person's yes or no."""

    approved: bool
    arguments: Raw | UnsetType = UNSET
    """With a yes: arguments that take the place of the model's."""
    payload: Any = None
    """With a yes: something for the tool to know."""
    reason: str = ""
    """With a no: what the model is told."""
    remember: Literal["tool", "arguments"] | None = None
    """Decide alike from now on: for this tool as it is defined now, or for it with these arguments."""
    shown: str | None = None
    """The `arguments_hash` of what the person saw."""


class AnswersRequest(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Several results and decisions about calls of one run, by call id: all of them count, or none."""

    results: dict[str, Raw] = field(default_factory=dict[str, Raw])
    decisions: dict[str, Decision] = field(default_factory=dict[str, Decision])


class CancelRequest(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Why something is called off; the model is told."""

    reason: str = ""


class ProviderRequest(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Offer tools to every thread of yours for as long as the answering stream is open."""

    client: Id
    tools: Raw = _NONE
    """Definitions of the provider's own; runs that begin meanwhile have them."""
    offers: tuple[Id, ...] = ()
    """Tools of the server's that this provider runs as well; `*` is all."""


# What comes back


class RunHandle(Struct, kw_only=True, frozen=True):
    """A run that was begun."""

    run_id: str
    thread_id: str
    seq: int
    """Number of the last update before it: watch the thread from here."""


class CallView(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One call as it stands."""

    id: str
    run_id: str
    thread_id: str
    tool: str
    state: CallState
    place: Place
    turn: int
    attempt: int
    arguments: str
    """JSON text, as the tool gets it."""
    arguments_hash: str = ""
    """While a person has to decide: what `Decision.shown` is compared with."""
    deadline: int | None = None
    held_by: str = ""
    """The client that has taken it up."""
    outcome: Outcome | None = None
    result: Raw = _NULL
    failure: Failure | None = None
    created: int = 0


class RunView(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One run as it stands."""

    id: str
    thread_id: str
    agent: str
    state: str
    """`running`, `ready`, `waiting`, `refused`, or how it ended."""
    seq: int
    created: int
    updated: int
    output: str = ""
    failure: Failure | None = None
    usage: Usage | None = None
    calls: tuple[CallView, ...] = ()
    why: str = ""
    """Why it was put aside."""


class GroupView(Struct, kw_only=True, frozen=True):
    """A group of the client's."""

    name: str
    description: str
    tools: tuple[str, ...]
    """Their names."""
    collapsed: bool
    """Whether it starts closed."""


class ClientStateView(Struct, kw_only=True, frozen=True):
    """What a thread has of its client. While no run is open, it is what the next one begins with."""

    groups: tuple[GroupView, ...]
    expanded: tuple[str, ...]
    """Groups that are open."""
    active: tuple[str, ...]
    """Skills that are active."""
    hidden: tuple[str, ...]
    """Tools that the model is not shown."""
    found: tuple[str, ...]
    """Tools that are shown for themselves, because the model has asked for them."""
    declared: tuple[str, ...]
    """Groups that may come in later."""
    context: tuple[ContextItem, ...]
    state: Raw


class ThreadView(Struct, kw_only=True, frozen=True):
    """A conversation as it stands; the calls are those that wait for a client or a person."""

    id: str
    seq: int
    run_id: str
    messages: tuple[Message, ...]
    calls: tuple[CallView, ...]
    latest_run_id: str = ""
    """The open run, or else the one that has ended last."""
    client_state: ClientStateView | None = None
    """What it has of its client; `null`: nothing."""


class UpdatePage(Struct, kw_only=True, frozen=True):
    """Stored updates. With `more` there are others after the last of these."""

    updates: tuple[Raw, ...]
    seq: int
    more: bool


class RunList(Struct, kw_only=True, frozen=True):
    """Runs, newest first."""

    runs: tuple[RunView, ...]


class CallList(Struct, kw_only=True, frozen=True):
    """Calls that wait for a client or a person, oldest first."""

    calls: tuple[CallView, ...]


class Receipt(Struct, kw_only=True, frozen=True):
    """It counts; `repeated` if it had been said before."""

    call_id: str
    repeated: bool = False
    refused: str = ""
    """Why nothing is done of the `augmentation` that came with it; the result counts all the same."""


class Receipts(Struct, kw_only=True, frozen=True):
    """All of it counts."""

    receipts: tuple[Receipt, ...]


class Claimed(Struct, kw_only=True, frozen=True):
    """The call is yours to work on."""

    call_id: str
    attempt: int
    arguments: str
    deadline: int | None
    repeated: bool = False
    principal: str = ""
    """Whose call it is: yours."""
    payload: Any = None
    """What the person added to the approval."""


class Cancelled(Struct, kw_only=True, frozen=True):
    """It is called off; `repeated` if it had ended before."""

    repeated: bool = False


class ToolView(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A tool of an agent's."""

    name: str
    description: str
    parameters: Raw
    output: Raw = _NULL
    agent: str = ""
    place: Place = Place.SERVER
    approval: str = "never"
    effect: str = "once"
    title: str | None = None
    version: str | None = None
    deprecated: str | None = None
    tags: tuple[str, ...] = ()
    pin: str = ""


class ToolList(Struct, kw_only=True, frozen=True):
    """The tools of the server's agents."""

    tools: tuple[ToolView, ...]


class ServerView(Struct, kw_only=True, frozen=True):
    """What this server is, and who you are to it."""

    version: str
    agents: tuple[str, ...]
    capabilities: tuple[str, ...]
    principal: str
    scopes: tuple[str, ...]


class Health(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Whether the server lives, or is ready to work."""

    status: Literal["ok", "draining", "away"]
    detail: str = ""


class StatusView(Struct, kw_only=True, frozen=True):
    """How the server is doing, for whoever operates it."""

    status: Literal["ok", "draining", "away"]
    """`away`: the store does not answer."""
    worker: str
    """Under which name it holds runs; empty while it is taken for dead."""
    began: int
    """When it was started, in milliseconds since 1970."""
    runs_held: int
    """Runs that it works on."""
    streams: int
    """Event streams that are open."""
    sockets: int
    calls_waiting: int | None
    """Calls in the store that wait for a client or a person, of all processes."""
    store_ms: float | None
    """Milliseconds that the store took to say so."""


# A provider's stream, and the socket


class CallOffered(Struct, frozen=True, kw_only=True, tag="call-offered", tag_field="type"):
    """To a provider: this call may be taken up."""

    call: CallView
    description: str = ""


class CallWithdrawn(Struct, frozen=True, kw_only=True, tag="call-withdrawn", tag_field="type"):
    """To a provider: this call has ended, is somebody else's, or is another attempt by now."""

    call_id: str
    attempt: int


ProviderUpdate: TypeAlias = CallOffered | CallWithdrawn


class SocketRequest(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One request over a socket, as it would be over HTTP. The answer bears its `id`."""

    id: int | str
    method: str
    path: str
    """After `/v1`, with its query."""
    body: Raw = _NULL
    stream: bool = False
    """Have it streamed, as `Accept: text/event-stream` does; the answer comes when the stream has ended."""


class SocketStop(Struct, kw_only=True, frozen=True):
    """End a stream that was begun over this socket."""

    stop: int | str


class SocketAnswer(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The answer to a request; of one that begins a stream, the last frame."""

    id: int | str
    status: int
    body: Raw = _NULL


class SocketUpdates(Struct, kw_only=True, frozen=True):
    """What a stream says, with the position after each update."""

    id: int | str
    updates: tuple[Raw, ...]
    positions: tuple[str, ...]


# What may be asked


class Page(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Which part of a list."""

    limit: Annotated[int, Meta(ge=1, le=MOST)] = 100


class RunQuery(Page, kw_only=True, frozen=True, omit_defaults=True):
    """Which runs."""

    state: str = ""


class CallQuery(Page, kw_only=True, frozen=True, omit_defaults=True):
    """Which calls."""

    thread: str = ""


class WatchQuery(Page, kw_only=True, frozen=True, omit_defaults=True):
    """From where on a thread is watched, and by whom."""

    after: str = ""
    """A position: the number of an update, or the id of an event of the stream. `Last-Event-ID` goes before it."""
    client: OptionalId = ""
    """The client that this stream belongs to."""
    offers: str = ""
    """Tools that it runs while the stream is open, separated by commas; `*` is all."""
