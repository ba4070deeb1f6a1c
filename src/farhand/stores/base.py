"""The contract of a store, and the rows it keeps. A store moves bytes and compares numbers; it decides nothing.

Whatever changes a run is one `Write`: conditional on the version and the epoch the run was at, whole or not at all. The
suite in `farhand.testing.stores` is what a store has to pass.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from farhand.stores.presence import PresenceStore

FORMAT = 1
"""Of events, updates and snapshots. A row of a newer format is left to a build that can read it."""


class ThreadRow(Struct, frozen=True, kw_only=True):
    """One conversation. The numbers are those after its last finished run; an open run has newer ones."""

    id: str
    owner: str
    name: str
    run: str = ""
    """The run that is open; at most one is."""
    seq: int = 0
    said: int = 0
    scene: str = ""
    """The last finished run, if it has left something of its client; the next one begins with that."""
    created: int
    updated: int


class RunRow(Struct, frozen=True, kw_only=True):
    """One run: where it stands, who holds it, when it has to be looked at."""

    id: str
    thread: str
    agent: str
    principal: str
    key: str = ""
    """The caller's own name for the run; unique for its principal unless empty."""
    request: str = ""
    """Hash of what the run was started with, so that a second start under the same key can be told apart."""
    state: str
    """`running` (held), `ready` (to be taken up), `waiting`, `refused`, or how it ended."""
    version: int
    """How many events made it."""
    epoch: int = 1
    """Raised whenever somebody takes the run up: who knows an older one is out."""
    holder: str = ""
    due: int | None = None
    """When its next timer is to fire; set while it waits."""
    seq: int
    """Number of its last update, in its thread."""
    said: int
    """How many messages its thread has after it."""
    format: int = FORMAT
    why: str = ""
    """Why it was refused."""
    created: int
    updated: int


class LogRow(Struct, frozen=True, kw_only=True):
    """The events of one commit, what they told watchers, and what they added to the conversation; JSON arrays."""

    thread: str
    run: str
    version: int
    """Of the run after the last of the events."""
    count: int
    seq: int
    """Number of the last update so far; the same as in the row before if these events told nothing."""
    said: int
    events: bytes
    updates: bytes
    messages: bytes
    toolset: str = ""
    """Under which the definitions are kept that one of the events brought."""
    format: int = FORMAT
    at: int


class CallRow(Struct, frozen=True, kw_only=True):
    """One call, to be found by its id, its owner and its state. The run has the whole truth."""

    id: str
    run: str
    thread: str
    principal: str
    tool: str
    state: str
    awaited: bool
    """Whether a client or a person has to say something."""
    record: bytes
    """All there is to know about it while it is open; empty once it has ended."""
    updated: int


class MemoryRow(Struct, frozen=True, kw_only=True):
    """A person's lasting decision."""

    principal: str
    pin: str
    arguments_hash: str
    allow: bool
    at: int


class WorkerRow(Struct, frozen=True, kw_only=True):
    """A process that works on runs, for as long as it says so in time."""

    id: str
    host: str
    build: str
    formats: int = FORMAT
    started: int
    beat: int
    expires: int


class PieceRow(Struct, frozen=True, kw_only=True):
    """A piece of the reply that a run's model is giving right now; gone once the reply is stored."""

    run: str
    epoch: int
    turn: int
    offset: int
    text: str


class Write(Struct, frozen=True, kw_only=True):
    """One commit of one run."""

    run: RunRow
    """As it shall be."""
    was: tuple[int, int] | None
    """The version and the epoch that it has to be at; None: there is no run of this id, nor one under its key."""
    begins: ThreadRow | None = None
    """With a new run: its thread as it shall be. The thread must have no open run and be at its `seq`, or be new."""
    ends: bool = False
    """The thread is free again; it takes the run's `seq` and `said`."""
    scene: bool = False
    """Whether the thread then names this run as its `scene`; it names none otherwise."""
    log: LogRow | None = None
    """None: nothing has happened, the run is only given back."""
    calls: Sequence[CallRow] = ()
    snapshot: bytes = b""
    """The run's whole value at its new version, without messages and definitions; empty: it is not due."""
    toolset: tuple[str, bytes] | None = None
    """Definitions to be kept under their hash, if they are not yet."""
    memories: Sequence[MemoryRow] = ()
    streamed: bool = False
    """Pieces of a reply were stored; they have had their time."""


class Stored(Struct, frozen=True, kw_only=True):
    """A run as it was read, in one consistent look."""

    run: RunRow
    thread: ThreadRow
    snapshot: bytes
    """Empty if there is none yet."""
    tail: Sequence[LogRow]
    """What came after the snapshot, oldest first."""
    messages: Sequence[bytes]
    """Of its thread, up to the end of the run; JSON arrays, oldest first."""


class Claim(Struct, frozen=True):
    """A run that was taken up for a worker."""

    run: str
    lost: bool
    """Whoever held it is gone; it was not left in order."""


class Ring(Struct, frozen=True):
    """Another process has written something: where to look, never what happened. Empty: look everywhere."""

    thread: str = ""
    run: str = ""


class Holdings(Struct, frozen=True, kw_only=True):
    """How much of everything one principal has."""

    threads: int
    runs: int
    """That are open."""
    calls: int
    """That wait for a client or a person."""


class Summary(Struct, frozen=True, kw_only=True):
    """What is in a store, in numbers."""

    id: str
    """Of the store; drawn when it was set up."""
    threads: int
    runs: Mapping[str, int]
    """By state."""
    open_calls: int
    awaited_calls: int
    """Those of them that wait for a client or a person."""


OnRing: TypeAlias = Callable[[Ring], None]
Row: TypeAlias = Mapping[str, Any]


class Store(PresenceStore, Protocol):
    """Where runs are kept. Raises `StoreAway` when it cannot be reached; then nothing is known of what was asked."""

    async def open(self, on_ring: OnRing | None = None) -> None:
        """Check the schema and begin; from then on tell of what other processes wrote."""
        ...

    async def close(self) -> None: ...
    async def time(self) -> int:
        """The one time that all who share the store go by."""
        ...

    # Runs

    def write(self, write: Write) -> Awaitable[bool]:
        """Commit; false if the run (or with a new run: its thread or its key) is not as expected."""
        ...

    async def load(self, run: str) -> Stored | None: ...
    async def run_of(self, call: str) -> str | None:
        """The run that a call belongs to."""
        ...

    async def standing(self, call: str) -> tuple[CallRow, int] | None:
        """A call, and the number of its run's last update."""
        ...

    async def run_under(self, principal: str, key: str) -> RunRow | None: ...
    async def thread(self, thread: str) -> ThreadRow | None: ...
    async def messages(self, thread: str) -> Sequence[bytes]: ...
    async def toolset(self, toolset: str) -> bytes | None: ...
    async def log(self, thread: str, after: int, limit: int) -> Sequence[LogRow]:
        """Rows with updates above `after`, oldest first."""
        ...

    async def waiting(self, principal: str, thread: str, limit: int) -> Sequence[CallRow]:
        """Calls that wait for somebody, oldest first; of one thread, or with an empty one of all."""
        ...

    async def awaited(self) -> int:
        """How many calls wait for somebody, whoever they belong to."""
        ...

    async def runs(self, principal: str, state: str, limit: int) -> Sequence[RunRow]:
        """Newest first; an empty principal or state is any."""
        ...

    async def holdings(self, principal: str) -> Holdings: ...
    async def memories(self, principal: str) -> Sequence[MemoryRow]: ...
    async def forget(self, principal: str) -> None: ...

    # Who works on what

    async def enter(self, worker: WorkerRow) -> None: ...
    async def beat(self, worker: str, now: int, expires: int) -> bool:
        """Say that the worker lives; false if it was taken for dead. Called from a thread of its own."""
        ...

    async def leave(self, worker: str) -> None:
        """The worker is going; whatever it holds is ready for others."""
        ...

    async def expire(self, now: int) -> int:
        """Strike out workers that are dead; whatever they held is ready. Gives the number of such runs."""
        ...

    async def claim(self, worker: str, agents: Sequence[str], now: int, limit: int) -> Sequence[Claim]:
        """Take up runs that are ready, or wait and are due; oldest first, nobody else gets the same."""
        ...

    async def held(self, worker: str) -> Mapping[str, tuple[int, int]]:
        """Version and epoch of every run that the worker holds."""
        ...

    async def refuse(self, run: RunRow, why: str) -> bool:
        """Put a run that cannot be read aside, if it is still as in `run`."""
        ...

    async def readmit(self, run: RunRow) -> bool:
        """Have a run that was put aside taken up again, if it is still as in `run`."""
        ...

    # The reply that is under way

    async def stream(self, pieces: Sequence[PieceRow]) -> None:
        """Keep pieces of runs that are still at the epoch they name."""
        ...

    async def streamed(self, run: str) -> Sequence[PieceRow]: ...

    # Housekeeping

    async def version(self) -> int:
        """Of the tables that are there; 0: there are none, and none are made. The store need not be open."""
        ...

    async def migrate(self) -> int:
        """Bring the tables to the version that this build reads; gives how many steps it took. It need not be open."""
        ...

    async def summary(self) -> Summary:
        """How much there is of everything."""
        ...

    async def prune(self, before: int, limit: int) -> int:
        """Delete threads without an open run that nothing has happened to since; gives how many."""
        ...

    def export(self) -> AsyncIterator[tuple[str, Row]]:
        """Every row, with the name of its table, in an order in which it can be taken in."""
        ...

    async def take_in(self, rows: Iterable[tuple[str, Row]]) -> None:
        """Fill an empty store with exported rows, all of them or none; raises `StoreError` if it is not empty."""
        ...


TABLES: Mapping[str, type[Struct]] = {
    "threads": ThreadRow,
    "runs": RunRow,
    "log": LogRow,
    "calls": CallRow,
    "memories": MemoryRow,
}
"""What an export holds, beside `toolsets` (id, body) and `snapshots` (run, version, body)."""
