"""A store that lives as long as its process: for tests, demos and whoever can lose everything. Nothing is shared."""

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import islice
from time import time_ns

import msgspec
from msgspec import structs

from farhand.core.errors import StoreError
from farhand.stores.base import (
    FORMAT,
    TABLES,
    CallRow,
    Claim,
    Holdings,
    LogRow,
    MemoryRow,
    OnRing,
    PieceRow,
    Ring,
    Row,
    RunRow,
    Stored,
    Summary,
    ThreadRow,
    WorkerRow,
    Write,
)
from farhand.stores.memory_presence import MemoryPresence, PresenceTables


class _Tables(PresenceTables):
    def __init__(self) -> None:
        super().__init__()
        self.id = secrets.token_hex(8)
        self.threads: dict[str, ThreadRow] = {}
        self.runs: dict[str, RunRow] = {}
        self.keys: dict[tuple[str, str], str] = {}
        self.log: dict[str, list[LogRow]] = {}
        self.calls_of: dict[str, list[str]] = {}
        self.snapshots: dict[str, tuple[int, bytes]] = {}
        self.toolsets: dict[str, bytes] = {}
        self.memories: dict[str, dict[tuple[str, str], MemoryRow]] = {}
        self.pieces: dict[str, list[PieceRow]] = {}
        self.hearers: dict[int, OnRing] = {}


class MemoryStore(MemoryPresence):
    """The contract in dictionaries. `MemoryStore(other)` is another handle of the same rows, as a replica has one."""

    def __init__(self, other: "MemoryStore | None" = None) -> None:
        self._tables = _Tables() if other is None else other._tables

    @property
    def _there(self) -> PresenceTables:
        return self._tables

    async def open(self, on_ring: OnRing | None = None) -> None:
        """Hear of what is written through other handles."""
        if on_ring is not None:
            self._tables.hearers[id(self)] = on_ring

    async def close(self) -> None:
        """Hear nothing more; what it holds stays, for whoever opens it again."""
        self._tables.hearers.pop(id(self), None)

    async def time(self) -> int:
        """The machine's clock."""
        return time_ns() // 1_000_000

    # Runs

    async def write(self, write: Write) -> bool:
        """Commit, if everything is as expected."""
        row, begins = write.run, write.begins
        if write.was is None:
            if not self._may_begin(row, begins):
                return False
        elif (known := self._tables.runs.get(row.id)) is None or (known.version, known.epoch) != write.was:
            return False
        self._tables.runs[row.id] = row
        if begins is not None:
            self._tables.threads[begins.id] = begins
            if row.key:
                self._tables.keys[row.principal, row.key] = row.id
        if write.ends:
            thread = self._tables.threads[row.thread]
            self._tables.threads[row.thread] = structs.replace(
                thread,
                run="",
                seq=row.seq,
                said=row.said,
                scene=row.id if write.scene else "",
                updated=row.updated,
            )
        if write.log is not None:
            self._tables.log.setdefault(row.thread, []).append(write.log)
        self._keep_beside(write)
        self._ring(Ring(row.thread, row.id))
        return True

    def _keep_beside(self, write: Write) -> None:
        row = write.run
        for call in write.calls:
            self._put_call(call)
        if write.snapshot:
            self._tables.snapshots[row.id] = (row.version, write.snapshot)
        if write.toolset is not None:
            self._tables.toolsets.setdefault(*write.toolset)
        for memory in write.memories:
            kept = self._tables.memories.setdefault(memory.principal, {})
            kept.pop((memory.pin, memory.arguments_hash), None)
            kept[memory.pin, memory.arguments_hash] = memory
        if write.streamed:
            self._tables.pieces.pop(row.id, None)

    def _put_call(self, call: CallRow) -> None:
        if call.id not in self._tables.calls:
            self._tables.calls_of.setdefault(call.run, []).append(call.id)
        self._tables.calls[call.id] = call

    def _may_begin(self, row: RunRow, begins: ThreadRow | None) -> bool:
        if begins is None or row.id in self._tables.runs or (row.key and (row.principal, row.key) in self._tables.keys):
            return False
        known = self._tables.threads.get(begins.id)
        return begins.seq == 0 if known is None else (not known.run and known.seq == begins.seq)

    async def load(self, run: str) -> Stored | None:
        """The run, what came after its snapshot, and its conversation."""
        row = self._tables.runs.get(run)
        if row is None:
            return None
        version, snapshot = self._tables.snapshots.get(run, (0, b""))
        log = self._tables.log[row.thread]
        return Stored(
            run=row,
            thread=self._tables.threads[row.thread],
            snapshot=snapshot,
            tail=[entry for entry in log if entry.run == run and entry.version > version],
            messages=[entry.messages for entry in log if entry.messages and entry.said <= row.said],
        )

    async def run_of(self, call: str) -> str | None:
        """The run of a call."""
        row = self._tables.calls.get(call)
        return None if row is None else row.run

    async def standing(self, call: str) -> tuple[CallRow, int] | None:
        """A call, and where its run is."""
        row = self._tables.calls.get(call)
        return None if row is None else (row, self._tables.runs[row.run].seq)

    async def run_under(self, principal: str, key: str) -> RunRow | None:
        """The run that was started under a key."""
        run = self._tables.keys.get((principal, key))
        return None if run is None else self._tables.runs[run]

    async def thread(self, thread: str) -> ThreadRow | None:
        """A conversation."""
        return self._tables.threads.get(thread)

    async def messages(self, thread: str) -> Sequence[bytes]:
        """What was said."""
        return [entry.messages for entry in self._tables.log.get(thread, ()) if entry.messages]

    async def toolset(self, toolset: str) -> bytes | None:
        """Definitions by their hash."""
        return self._tables.toolsets.get(toolset)

    async def log(self, thread: str, after: int, limit: int) -> Sequence[LogRow]:
        """Rows that told something after a number."""
        told = (entry for entry in self._tables.log.get(thread, ()) if entry.seq > after and entry.updates)
        return list(islice(told, limit))

    async def waiting(self, principal: str, thread: str, limit: int) -> Sequence[CallRow]:
        """Calls that wait for somebody."""
        calls: Iterable[CallRow] = self._tables.calls.values()
        if thread:
            known = self._tables.threads.get(thread)
            calls = [self._tables.calls[call] for call in self._tables.calls_of.get(known.run if known else "", ())]
        mine = (call for call in calls if call.awaited and call.principal == principal)
        return list(islice(mine, limit))

    async def awaited(self) -> int:
        """How many calls wait for somebody."""
        return sum(call.awaited for call in self._tables.calls.values())

    async def runs(self, principal: str, state: str, limit: int) -> Sequence[RunRow]:
        """Newest first."""
        found = (
            row
            for row in reversed(self._tables.runs.values())
            if principal in ("", row.principal) and state in ("", row.state)
        )
        return list(islice(found, limit))

    async def holdings(self, principal: str) -> Holdings:
        """How much somebody has."""
        threads = [thread for thread in self._tables.threads.values() if thread.owner == principal]
        calls = sum(call.awaited and call.principal == principal for call in self._tables.calls.values())
        return Holdings(threads=len(threads), runs=sum(thread.run != "" for thread in threads), calls=calls)

    async def memories(self, principal: str) -> Sequence[MemoryRow]:
        """Lasting decisions, oldest first."""
        return list(self._tables.memories.get(principal, {}).values())

    async def forget(self, principal: str) -> None:
        """Ask again about everything."""
        self._tables.memories.pop(principal, None)

    # Who works on what

    async def enter(self, worker: WorkerRow) -> None:
        """A worker begins."""
        self._tables.workers[worker.id] = worker

    async def beat(self, worker: str, now: int, expires: int) -> bool:
        """A worker lives."""
        row = self._tables.workers.get(worker)
        if row is None:
            return False
        self._tables.workers[worker] = structs.replace(row, beat=now, expires=expires)
        return True

    async def leave(self, worker: str) -> None:
        """A worker goes."""
        self._tables.workers.pop(worker, None)
        self._free(worker)

    async def expire(self, now: int) -> int:
        """Strike out the dead."""
        for worker in [row.id for row in self._tables.workers.values() if row.expires < now]:
            del self._tables.workers[worker]
        self._forget_progress()
        lost = {
            row.holder for row in self._tables.runs.values() if row.holder and row.holder not in self._tables.workers
        }
        return sum(self._free(worker) for worker in lost)

    def _free(self, worker: str) -> int:
        held = [row for row in self._tables.runs.values() if row.holder and row.holder == worker]
        for row in held:
            self._tables.runs[row.id] = structs.replace(row, state="ready", holder="")
        if held:
            self._ring(Ring())
        return len(held)

    async def claim(self, worker: str, agents: Sequence[str], now: int, limit: int) -> Sequence[Claim]:
        """Take up what is ready or due."""
        found = [
            row
            for row in self._tables.runs.values()
            if row.agent in agents
            and row.format <= FORMAT
            and (row.state == "ready" or (row.state == "waiting" and row.due is not None and row.due <= now))
        ]
        found.sort(key=lambda row: row.updated)
        claims: list[Claim] = []
        for row in found[:limit]:
            self._tables.runs[row.id] = structs.replace(row, state="running", holder=worker, epoch=row.epoch + 1)
            claims.append(Claim(row.id, row.state == "ready"))
        return claims

    async def held(self, worker: str) -> Mapping[str, tuple[int, int]]:
        """What a worker holds."""
        return {
            row.id: (row.version, row.epoch)
            for row in self._tables.runs.values()
            if row.holder and row.holder == worker
        }

    async def refuse(self, run: RunRow, why: str) -> bool:
        """Put a run aside."""
        known = self._tables.runs.get(run.id)
        if known is None or (known.version, known.epoch) != (run.version, run.epoch):
            return False
        self._tables.runs[run.id] = structs.replace(known, state="refused", holder="", due=None, why=why)
        return True

    async def readmit(self, run: RunRow) -> bool:
        """Have a run taken up again."""
        known = self._tables.runs.get(run.id)
        if known is None or (known.state, known.version, known.epoch) != ("refused", run.version, run.epoch):
            return False
        self._tables.runs[run.id] = structs.replace(known, state="ready", why="")
        self._ring(Ring())
        return True

    # The reply that is under way

    async def stream(self, pieces: Sequence[PieceRow]) -> None:
        """Keep pieces."""
        for piece in pieces:
            run = self._tables.runs.get(piece.run)
            if run is not None and run.epoch == piece.epoch:
                self._tables.pieces.setdefault(piece.run, []).append(piece)
                self._ring(Ring(run.thread, piece.run))

    async def streamed(self, run: str) -> Sequence[PieceRow]:
        """The pieces of a run."""
        return list(self._tables.pieces.get(run, ()))

    # Housekeeping

    async def version(self) -> int:
        """Tables in memory are always new."""
        return FORMAT

    async def migrate(self) -> int:
        """Nothing to do."""
        return 0

    async def summary(self) -> Summary:
        """How much there is of everything."""
        calls = self._tables.calls.values()
        return Summary(
            id=self._tables.id,
            threads=len(self._tables.threads),
            runs=Counter(row.state for row in self._tables.runs.values()),
            open_calls=sum(bool(call.record) for call in calls),
            awaited_calls=sum(call.awaited for call in calls),
        )

    async def prune(self, before: int, limit: int) -> int:
        """Delete what is over and old."""
        old = [row.id for row in self._tables.threads.values() if not row.run and row.updated < before][:limit]
        for thread in old:
            gone = {row.id for row in self._tables.runs.values() if row.thread == thread}
            self._tables.runs = {run: row for run, row in self._tables.runs.items() if run not in gone}
            self._tables.keys = {key: run for key, run in self._tables.keys.items() if run not in gone}
            self._tables.calls = {call: row for call, row in self._tables.calls.items() if row.run not in gone}
            for run in gone:
                self._tables.snapshots.pop(run, None)
                self._tables.pieces.pop(run, None)
                self._tables.calls_of.pop(run, None)
            del self._tables.threads[thread], self._tables.log[thread]
        return len(old)

    async def export(self) -> AsyncIterator[tuple[str, Row]]:
        """Every row."""
        for toolset, body in self._tables.toolsets.items():
            yield "toolsets", {"id": toolset, "body": body}
        for row in self._tables.threads.values():
            yield "threads", structs.asdict(row)
        for row in self._tables.runs.values():
            yield "runs", structs.asdict(row)
        for entries in self._tables.log.values():
            for row in entries:
                yield "log", structs.asdict(row)
        for row in self._tables.calls.values():
            yield "calls", structs.asdict(row)
        for run, (version, body) in self._tables.snapshots.items():
            yield "snapshots", {"run": run, "version": version, "body": body}
        for kept in self._tables.memories.values():
            for row in kept.values():
                yield "memories", structs.asdict(row)

    async def take_in(self, rows: Iterable[tuple[str, Row]]) -> None:
        """Add exported rows."""
        if self._tables.threads or self._tables.toolsets or self._tables.memories:
            raise StoreError("rows can be taken in by an empty store only")
        filled = MemoryStore()
        for table, fields in rows:
            filled._take_in(table, fields)
        filled._tables.hearers, filled._tables.workers = self._tables.hearers, self._tables.workers
        filled._tables.clients = self._tables.clients
        filled._tables.id = self._tables.id
        vars(self._tables).update(vars(filled._tables))

    def _take_in(self, table: str, fields: Row) -> None:
        if table == "toolsets":
            self._tables.toolsets[fields["id"]] = fields["body"]
            return
        if table == "snapshots":
            self._tables.snapshots[fields["run"]] = (fields["version"], fields["body"])
            return
        match row := _row(table, fields):
            case ThreadRow():
                self._tables.threads[row.id] = row
            case RunRow():
                self._tables.runs[row.id] = row
                if row.key:
                    self._tables.keys[row.principal, row.key] = row.id
            case LogRow():
                self._tables.log.setdefault(row.thread, []).append(row)
            case CallRow():
                self._put_call(row)
            case MemoryRow():
                self._tables.memories.setdefault(row.principal, {})[row.pin, row.arguments_hash] = row
            case _:
                raise AssertionError(table)

    def _ring(self, ring: Ring) -> None:
        for handle, hear in list(self._tables.hearers.items()):
            if handle != id(self):
                hear(ring)


def _row(table: str, fields: Row) -> msgspec.Struct:
    if table not in TABLES:
        raise StoreError(f"there is no table {table!r}")
    try:
        return msgspec.convert(fields, TABLES[table], builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise StoreError(f"a row cannot be taken in: {error}") from None
