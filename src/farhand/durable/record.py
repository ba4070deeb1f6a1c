"""A run as rows, and rows as a run. What is big and the same in many runs (messages, definitions) is stored once.

A log that does not fit is a `RunRefused`; nothing is guessed at.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import sha256

from msgspec import DecodeError, Struct, ValidationError, json, structs

from farhand.core.call import Call
from farhand.core.content_cache import ContentCache
from farhand.core.definition import Definition
from farhand.core.effects import Memorise
from farhand.core.errors import FarhandError, RunRefused, StoreAway, StoreVersion
from farhand.core.events import Event, Recovered, Started
from farhand.core.messages import Message
from farhand.core.opening import leaves_something
from farhand.core.run import Run, awaits_somebody
from farhand.core.step import step
from farhand.core.timers import next_due
from farhand.core.updates import Update
from farhand.runner.driver import Change
from farhand.stores.base import FORMAT, CallRow, LogRow, MemoryRow, RunRow, Stored, ThreadRow, Write


class Snapshot(Struct, frozen=True):
    """A run's value without its messages and definitions, and where to find those."""

    run: Run
    said: int
    seq: int
    toolset: str


class Revived(Struct, frozen=True):
    """A run that was read from a store."""

    row: RunRow
    thread: ThreadRow
    run: Run
    toolset: str
    changes: Sequence[tuple[int, Event]]
    """What came after the snapshot: each event with the version of the run after it."""
    kept: Run | None
    """The run as the snapshot has it, before these."""
    kept_seq: int


_EVENTS = json.Decoder(list[Event])
_UPDATES = json.Decoder(list[Update])
_MESSAGES = json.Decoder(list[Message])
_SNAPSHOT = json.Decoder(Snapshot)
_encode = json.Encoder().encode

Fetch = Callable[[str], Awaitable[bytes | None]]


def read_updates(row: LogRow) -> list[Update]:
    """What the events of a row told watchers."""
    return _UPDATES.decode(row.updates)


def read_messages(bodies: Iterable[bytes]) -> tuple[Message, ...]:
    """A conversation."""
    messages: list[Message] = []
    for body in bodies:
        messages += _MESSAGES.decode(body)
    return tuple(messages)


class Toolsets:
    """Definitions by the hash of what they say. The latest are kept decoded, since every run of an agent has them."""

    def __init__(self, max_bytes: int = 16 << 20) -> None:
        self._decoded: ContentCache[tuple[Definition, ...]] = ContentCache(max_bytes)
        self._encoded: ContentCache[tuple[tuple[Definition, ...], str, bytes]] = ContentCache(max_bytes)

    def keep(self, tools: tuple[Definition, ...]) -> tuple[str, bytes]:
        """The hash of some definitions, and their bytes."""
        pins = tuple([tool.pin for tool in tools])
        known = self._encoded.get(pins)
        if known is not None and known[0] == tools:  # a pin does not cover everything that a definition says
            return known[1], known[2]
        body = _encode(tools)
        toolset = sha256(body).hexdigest()
        self._encoded.put(pins, (tools, toolset, body), len(body))
        self._decoded.put(toolset, tools, len(body))
        return toolset, body

    async def get(self, toolset: str, fetch: Fetch) -> tuple[Definition, ...]:
        """The definitions behind a hash."""
        known = self._decoded.get(toolset)
        if known is None:
            body = await fetch(toolset)
            if body is None or sha256(body).hexdigest() != toolset:
                raise RunRefused("the definitions of a stored run are not there, or are not the ones it was made with")
            known = json.decode(body, type=tuple[Definition, ...])
            self._decoded.put(toolset, known, len(body))
        return known


# Writing


def together(changes: Sequence[Change]) -> int:
    """How many of them go into one commit: a commit names one set of definitions at most."""
    brought = [at for at, change in enumerate(changes) if _brings(change)]
    return brought[1] if len(brought) > 1 else len(changes)


def _brings(change: Change) -> bool:
    """Whether the run has other definitions after it: it begins, is taken up again, or a client has changed its own."""
    if isinstance(change.event, Started | Recovered):
        return True
    return change.before is None or change.after.tools is not change.before.tools


def make_write(
    changes: Sequence[Change],
    row: RunRow,
    *,
    holder: str,
    toolsets: Toolsets,
    toolset: str,
    begins: ThreadRow | None = None,
    streamed: bool = False,
) -> Write:
    """The commit of some changes to the run that stands as in `row`; `holder` is who holds it afterwards."""
    before, after = changes[0].before, changes[-1].after
    ended = after.ending is not None
    brought: tuple[str, bytes] | None = None
    for change in changes:
        if _brings(change):
            brought = toolsets.keep(tuple(change.after.tools.values()))
    told = [update for change in changes for update in change.told]
    known = row.said if before is None else len(before.messages)
    said = after.messages[known:]
    log = LogRow(
        thread=row.thread,
        run=row.id,
        version=after.events,
        count=len(changes),
        seq=row.seq + len(told),
        said=len(after.messages),
        events=_encode([_slim(change.event, known) for change in changes]),
        updates=_encode(told) if told else b"",
        messages=_encode(said) if said else b"",
        toolset="" if brought is None else brought[0],
        at=after.updated,
    )
    rests = not holder
    return Write(
        run=structs.replace(
            row,
            state=after.status if rests else "running",
            version=after.events,
            epoch=row.epoch + int(bool(holder) and not row.holder),
            holder=holder,
            due=next_due(after) if rests and not ended else None,
            seq=log.seq,
            said=log.said,
            format=max(row.format, FORMAT),
            updated=after.updated,
        ),
        was=None if before is None else (row.version, row.epoch),
        begins=begins,
        ends=ended and (before is None or before.ending is None),
        scene=ended and leaves_something(after.scene),
        log=log,
        calls=_calls(before, after, row),
        snapshot=_snapshot(after, log.said, log.seq, toolset if brought is None else brought[0]) if rests else b"",
        toolset=brought,
        memories=[
            _memory(effect, after.updated)
            for change in changes
            for effect in change.effects
            if isinstance(effect, Memorise)
        ],
        streamed=streamed,
    )


def make_rest(row: RunRow, run: Run, toolset: str) -> Write:
    """Give a run back that has come to rest without a change of its own."""
    return Write(
        run=structs.replace(row, state=run.status, holder="", due=next_due(run)),
        was=(row.version, row.epoch),
        snapshot=_snapshot(run, row.said, row.seq, toolset),
    )


def _slim(event: Event, history: int) -> Event:
    match event:
        case Started():
            return structs.replace(event, tools=(), messages=event.messages[history:])
        case Recovered():
            return structs.replace(event, tools=())
        case _:
            return event


def _snapshot(run: Run, said: int, seq: int, toolset: str) -> bytes:
    return _encode(Snapshot(structs.replace(run, messages=(), tools={}), said, seq, toolset))


def _calls(before: Run | None, after: Run, row: RunRow) -> list[CallRow]:
    if before is not None and before.calls is after.calls:
        return []
    known = {} if before is None else before.calls
    return [_call(call, after, row) for call in after.calls.values() if known.get(call.id) is not call]


def _call(call: Call, run: Run, row: RunRow) -> CallRow:
    return CallRow(
        id=call.id,
        run=run.id,
        thread=row.thread,
        principal=run.principal,
        tool=call.tool,
        state=call.state,
        awaited=call.open and awaits_somebody(call),
        record=_encode(call) if call.open else b"",
        updated=run.updated,
    )


def _memory(effect: Memorise, at: int) -> MemoryRow:
    memory = effect.memory
    return MemoryRow(
        principal=effect.principal,
        pin=memory.pin,
        arguments_hash=memory.arguments_hash,
        allow=memory.allow,
        at=at,
    )


# Reading


async def revive(stored: Stored, toolsets: Toolsets, fetch: Fetch) -> Revived:
    """The run that rows lead to. Raises `RunRefused`, or `StoreVersion` if only a newer build can read them."""
    newest = max([stored.run.format, *(entry.format for entry in stored.tail)])
    if newest > FORMAT:
        raise StoreVersion(f"run {stored.run.id} has format {newest}; this version reads format {FORMAT}")
    try:
        return await _revive(stored, toolsets, fetch)
    except StoreAway:
        raise
    except (ValidationError, DecodeError, UnicodeDecodeError, RecursionError, FarhandError) as error:
        raise RunRefused(f"run {stored.run.id} cannot be read: {error}") from error


async def _revive(stored: Stored, toolsets: Toolsets, fetch: Fetch) -> Revived:
    row = stored.run
    messages = read_messages(stored.messages)
    if len(messages) != row.said:
        raise RunRefused(f"its conversation should have {row.said} messages and has {len(messages)}")
    run: Run | None = None
    toolset, seq = "", 0
    if stored.snapshot:
        kept = _SNAPSHOT.decode(stored.snapshot)
        toolset, seq = kept.toolset, kept.seq
        tools = await toolsets.get(toolset, fetch)
        run = structs.replace(kept.run, messages=messages[: kept.said], tools={tool.name: tool for tool in tools})
    before, before_seq = run, seq
    changes: list[tuple[int, Event]] = []
    for entry in stored.tail:
        tools = await toolsets.get(entry.toolset, fetch) if entry.toolset else ()
        toolset = entry.toolset or toolset
        for event in _EVENTS.decode(entry.events):
            whole = _full(event, tools, messages, entry)
            run, _ = step(run, whole)
            changes.append((run.events, whole))
        if run is None or run.events != entry.version:
            raise RunRefused("an event is missing in its log")
        seq = entry.seq
    if run is None or (run.events, len(run.messages), seq) != (row.version, row.said, row.seq):
        raise RunRefused("its log does not lead to the state that it should have")
    return Revived(row, stored.thread, run, toolset, changes, before, before_seq)


def _full(event: Event, tools: tuple[Definition, ...], messages: tuple[Message, ...], entry: LogRow) -> Event:
    match event:
        case Started():
            own = len(_MESSAGES.decode(entry.messages))
            return structs.replace(event, tools=tools, messages=messages[: entry.said - own] + event.messages)
        case Recovered():
            return structs.replace(event, tools=tools)
        case _:
            return event
