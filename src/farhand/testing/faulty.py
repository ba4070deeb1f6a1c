"""A store that behaves badly, by a seed: slow, out of order, away, in doubt, hard of hearing. Nothing is lost in it.

It is one simulated process's way to a `MemoryStore`. What was asked travels outside the process: it may arrive after
whoever asked was told that the store is away, or after he is dead.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from random import Random
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct

from farhand.core.errors import StoreAway
from farhand.stores.base import (
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
from farhand.stores.memory import MemoryStore
from farhand.stores.presence import ClientRow, ProgressRow

T = TypeVar("T")


class Faults(Struct, kw_only=True):
    """How bad it is; chances are between 0 and 1. It can be changed at any time, for all handles that share it."""

    slow: float = 0.01
    """Seconds that a way to the store, or back, takes at most."""
    away: float = 0.0
    """Chance that nothing arrives, and the caller is told so."""
    doubt: float = 0.0
    """Chance that it is done, and the caller is told that the store is away."""
    late: float = 0.0
    """Chance that it is done only after the caller was told that the store is away."""
    deaf: float = 0.0
    """Chance that a ring is lost. A listener finds out within `look` seconds, and is told to look everywhere."""
    look: float = 1.0

    def end(self) -> None:
        """From now on everything goes well."""
        self.away = self.doubt = self.late = self.deaf = 0.0


class Ledger:
    """Who has held a run, as far as the store has said so: whoever was relieved of it must not write about it again."""

    def __init__(self) -> None:
        self._epochs: dict[str, int] = {}
        self.problems: list[str] = []

    def wrote(self, write: Write) -> None:
        """The store has taken this."""
        known = self._epochs.get(write.run.id, 0)
        if write.run.epoch < known:
            self.problems.append(f"run {write.run.id} was written at epoch {write.run.epoch} after {known}")
        self._epochs[write.run.id] = max(known, write.run.epoch)

    def claimed(self, claims: Iterable[Claim]) -> None:
        """The store has given these to somebody."""
        for claim in claims:
            self._epochs[claim.run] = self._epochs.get(claim.run, 0) + 1


class _Letter(Generic[T]):
    """What somebody asks of the store."""

    def __init__(
        self, work: Callable[[], Coroutine[Any, Any, T]], reply: "asyncio.Future[T]", process: Context
    ) -> None:
        self.work = work
        self.reply = reply
        self.process = process

    def give(self, value: T | None, error: Exception | None) -> None:
        """Reply to whoever asked, if he still waits."""
        if self.reply.done():
            return
        if error is None:
            self.reply.set_result(cast("T", value))
        else:
            self.reply.set_exception(error)


class FaultyStore:
    """The contract of a store, kept as badly as a network keeps it."""

    def __init__(self, inner: MemoryStore, faults: Faults, random: Random, outside: Context, ledger: Ledger) -> None:
        self._inner = inner
        self._faults = faults
        self._random = random
        self._outside = outside
        self._ledger = ledger
        self._dead = False
        self._looking = False
        self._process: Context | None = None
        self._on_ring: OnRing | None = None

    def die(self) -> None:
        """Its process is gone: nothing more is taken from it. What is on its way may still arrive, or not."""
        self._dead = True
        self._on_ring = None

    def _ask(self, work: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Future[T]":
        if self._dead:
            raise StoreAway("this process is dead")
        loop, faults, chance = asyncio.get_running_loop(), self._faults, self._random.random
        letter = _Letter(work, loop.create_future(), copy_context())
        there, back, fate = chance() * faults.slow, chance() * faults.slow, chance()
        if fate >= faults.away + faults.late:
            away = StoreAway("nobody knows") if fate < faults.away + faults.late + faults.doubt else None
            loop.call_later(there, self._arrive, letter, back, away, context=self._outside)
            return letter.reply
        loop.call_later(there + back, letter.give, None, StoreAway("not reached"), context=letter.process)
        if fate >= faults.away:
            loop.call_later(there + back + chance() * faults.look, self._arrive, letter, 0, None, context=self._outside)
        return letter.reply

    def _arrive(self, letter: "_Letter[T]", back: float, error: Exception | None) -> None:
        """It is with the store. The reply is on its way, which does not matter if the caller has given up."""
        if self._dead and self._random.random() < 0.5:
            return
        value: T | None = None
        try:
            value = _at_once(letter.work())
        except Exception as problem:  # noqa: BLE001  whoever asked gets it
            error = error or problem
        asyncio.get_running_loop().call_later(back, letter.give, value, error, context=letter.process)

    # Rings

    async def open(self, on_ring: OnRing | None = None) -> None:
        """Hear of what is written through other handles, if all goes well."""
        self._on_ring, self._process = on_ring, copy_context()
        await self._inner.open(self._hear)

    async def close(self) -> None:
        """Hear nothing more."""
        self._on_ring = None
        await self._inner.close()

    def _hear(self, ring: Ring) -> None:
        if self._on_ring is None:
            return
        loop, random = asyncio.get_running_loop(), self._random
        if random.random() >= self._faults.deaf:
            loop.call_later(random.random() * self._faults.slow, self._ring, ring, context=self._process)
        elif not self._looking:
            self._looking = True
            loop.call_later(random.random() * self._faults.look, self._look, context=self._process)

    def _look(self) -> None:
        self._looking = False
        self._ring(Ring())

    def _ring(self, ring: Ring) -> None:
        if self._on_ring is not None:
            self._on_ring(ring)

    # The contract

    async def time(self) -> int:
        """Virtual milliseconds."""
        return round(asyncio.get_running_loop().time() * 1000)

    def write(self, write: Write) -> "asyncio.Future[bool]":
        """Commit, perhaps."""
        return self._ask(lambda: self._write(write))

    async def _write(self, write: Write) -> bool:
        done = await self._inner.write(write)
        if done:
            self._ledger.wrote(write)
        return done

    async def load(self, run: str) -> Stored | None:
        """A run."""
        return await self._ask(lambda: self._inner.load(run))

    async def run_of(self, call: str) -> str | None:
        """The run of a call."""
        return await self._ask(lambda: self._inner.run_of(call))

    async def standing(self, call: str) -> tuple[CallRow, int] | None:
        """A call."""
        return await self._ask(lambda: self._inner.standing(call))

    async def run_under(self, principal: str, key: str) -> RunRow | None:
        """The run under a key."""
        return await self._ask(lambda: self._inner.run_under(principal, key))

    async def thread(self, thread: str) -> ThreadRow | None:
        """A conversation."""
        return await self._ask(lambda: self._inner.thread(thread))

    async def messages(self, thread: str) -> Sequence[bytes]:
        """What was said."""
        return await self._ask(lambda: self._inner.messages(thread))

    async def toolset(self, toolset: str) -> bytes | None:
        """Definitions."""
        return await self._ask(lambda: self._inner.toolset(toolset))

    async def log(self, thread: str, after: int, limit: int) -> Sequence[LogRow]:
        """Rows of the log."""
        return await self._ask(lambda: self._inner.log(thread, after, limit))

    async def waiting(self, principal: str, thread: str, limit: int) -> Sequence[CallRow]:
        """Calls that wait."""
        return await self._ask(lambda: self._inner.waiting(principal, thread, limit))

    async def awaited(self) -> int:
        """How many calls wait."""
        return await self._ask(lambda: self._inner.awaited())

    async def runs(self, principal: str, state: str, limit: int) -> Sequence[RunRow]:
        """Runs."""
        return await self._ask(lambda: self._inner.runs(principal, state, limit))

    async def holdings(self, principal: str) -> Holdings:
        """How much somebody has."""
        return await self._ask(lambda: self._inner.holdings(principal))

    async def memories(self, principal: str) -> Sequence[MemoryRow]:
        """Lasting decisions."""
        return await self._ask(lambda: self._inner.memories(principal))

    async def forget(self, principal: str) -> None:
        """Forget them."""
        await self._ask(lambda: self._inner.forget(principal))

    async def enter(self, worker: WorkerRow) -> None:
        """A worker begins."""
        await self._ask(lambda: self._inner.enter(worker))

    async def beat(self, worker: str, now: int, expires: int) -> bool:
        """A worker lives."""
        return await self._ask(lambda: self._inner.beat(worker, now, expires))

    async def leave(self, worker: str) -> None:
        """A worker goes."""
        await self._ask(lambda: self._inner.leave(worker))

    async def expire(self, now: int) -> int:
        """Strike out the dead."""
        return await self._ask(lambda: self._inner.expire(now))

    async def claim(self, worker: str, agents: Sequence[str], now: int, limit: int) -> Sequence[Claim]:
        """Take up runs."""
        return await self._ask(lambda: self._claim(worker, agents, now, limit))

    async def _claim(self, worker: str, agents: Sequence[str], now: int, limit: int) -> Sequence[Claim]:
        claims = await self._inner.claim(worker, agents, now, limit)
        self._ledger.claimed(claims)
        return claims

    async def held(self, worker: str) -> Mapping[str, tuple[int, int]]:
        """What a worker holds."""
        return await self._ask(lambda: self._inner.held(worker))

    async def refuse(self, run: RunRow, why: str) -> bool:
        """Put a run aside."""
        return await self._ask(lambda: self._inner.refuse(run, why))

    async def stream(self, pieces: Sequence[PieceRow]) -> None:
        """Keep pieces."""
        await self._ask(lambda: self._inner.stream(pieces))

    async def streamed(self, run: str) -> Sequence[PieceRow]:
        """Pieces of a run."""
        return await self._ask(lambda: self._inner.streamed(run))

    async def attach(self, row: ClientRow) -> None:
        """A connection is open."""
        await self._ask(lambda: self._inner.attach(row))

    async def detach(self, connection: str) -> None:
        """Nothing is left of it."""
        await self._ask(lambda: self._inner.detach(connection))

    async def clients(self, principal: str, thread: str) -> Sequence[ClientRow]:
        """Who is there."""
        return await self._ask(lambda: self._inner.clients(principal, thread))

    async def orphans(self, worker: str, limit: int) -> Sequence[ClientRow]:
        """Connections whose worker is gone."""
        return await self._ask(lambda: self._inner.orphans(worker, limit))

    async def tell(self, row: ProgressRow) -> None:
        """How far a call is."""
        await self._ask(lambda: self._inner.tell(row))

    async def told(self, run: str) -> Sequence[ProgressRow]:
        """How far calls are."""
        return await self._ask(lambda: self._inner.told(run))

    async def readmit(self, run: RunRow) -> bool:
        """Have a run taken up again."""
        return await self._ask(lambda: self._inner.readmit(run))

    async def version(self) -> int:
        """Of the tables."""
        return await self._inner.version()

    async def migrate(self) -> int:
        """Nothing to do."""
        return await self._inner.migrate()

    async def summary(self) -> Summary:
        """How much there is."""
        return await self._ask(self._inner.summary)

    async def prune(self, before: int, limit: int) -> int:
        """Delete what is old."""
        return await self._ask(lambda: self._inner.prune(before, limit))

    def export(self) -> AsyncIterator[tuple[str, Row]]:
        """Every row."""
        return self._inner.export()

    async def take_in(self, rows: Iterable[tuple[str, Row]]) -> None:
        """Fill an empty store."""
        await self._inner.take_in(rows)


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """What a store in memory gives; it never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise AssertionError("a store in memory has nothing to wait for")
