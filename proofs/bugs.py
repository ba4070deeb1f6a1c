"""Planted bugs: each takes one thing away that a promise rests on. A proof that does not find them proves nothing.

A bug is a context manager that changes one place of the program, and changes it back; some also bring a store that is
wrong. None of this can be switched on in the program itself.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from msgspec import structs

from farhand.core import answers, step
from farhand.core.call import CallState, Change, Outcome, move
from farhand.core.definition import Place
from farhand.core.errors import NotExpected, StoreAway
from farhand.core.events import TimerKind
from farhand.durable import record
from farhand.durable.feed import Feeds, Position
from farhand.durable.held import Held
from farhand.durable.replica import Replica
from farhand.runner.driver import Driver
from farhand.stores.base import Claim, Write
from farhand.stores.memory import MemoryStore

Bug = Callable[[], AbstractContextManager[MemoryStore]]


@contextmanager
def changed(*changes: tuple[Any, str, Any], store: MemoryStore | None = None) -> Iterator[MemoryStore]:
    """Set attributes, and set them back."""
    with ExitStack() as back:
        for where, name, what in changes:
            back.callback(setattr, where, name, getattr(where, name))
            setattr(where, name, what)
        yield MemoryStore() if store is None else store


# On the way to the store


def acknowledged_before_commit() -> AbstractContextManager[MemoryStore]:
    """Whoever says something is told that it counts while the write is under way."""

    def kept(held: Held) -> "asyncio.Future[None]":
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    return changed((Held, "kept", kept))


def performed_before_commit() -> AbstractContextManager[MemoryStore]:
    """Watchers are told and calls are dispatched when a change is made; the write comes after."""
    keep, release = Held.keep, Driver.release

    def early(held: Held, change: Any) -> None:
        keep(held, change)
        held.driver._release(change)

    def late(driver: Driver, change: Any) -> None:
        driver.unkept -= 1
        driver._wake()

    assert release is not late
    return changed((Held, "keep", early), (Driver, "release", late))


def doubt_taken_for_no() -> AbstractContextManager[MemoryStore]:
    """A write of unknown fate is told as one that came to nothing."""
    say = Replica.say

    async def sure(replica: Replica, run: str, decide: Any) -> Any:
        try:
            return await say(replica, run, decide)
        except StoreAway as error:
            raise NotExpected("it does not count") from error

    return changed((Replica, "say", sure))


def doubt_taken_for_yes() -> AbstractContextManager[MemoryStore]:
    """A write of unknown fate is told and acted on as if it were there."""
    again = Held._on_written

    def sure(held: Held, writing: Any, write: Write) -> None:
        if not writing.cancelled() and isinstance(writing.exception(), StoreAway):
            held._advance(write)
        else:
            again(held, writing, write)

    return changed((Held, "_on_written", sure))


def doubt_forgotten() -> AbstractContextManager[MemoryStore]:
    """After a write of unknown fate the holder goes on as if it had never said it."""
    catch_up = Held._catch_up

    def forget(held: Held, error: Any) -> None:
        if error is None:
            catch_up(held, None)
            return
        ours = [*held._written, *held._queue]
        held._written, held._queue = [], []
        held.driver.rewind(ours[0].change.before, held.row.seq)
        held._busy = False
        held._wake()

    # The comparison with the store would find it out, which is what it is for.
    return changed((Held, "_catch_up", forget), (Replica, "_compare", _nothing))


# In the store


class NoVersion(MemoryStore):
    """Writes over whatever is there, as long as nobody has taken the run over."""

    async def write(self, write: Write) -> bool:
        """Commit."""
        known = self._tables.runs.get(write.run.id)
        if known is not None and write.was is not None:
            write = structs.replace(write, was=(known.version, write.was[1]))
        return await super().write(write)


class NoEpoch(MemoryStore):
    """Takes writes of whoever held the run once."""

    async def write(self, write: Write) -> bool:
        """Commit."""
        known = self._tables.runs.get(write.run.id)
        if known is not None and write.was is not None:
            write = structs.replace(write, was=(write.was[0], known.epoch))
        return await super().write(write)


class SameEpoch(MemoryStore):
    """Does not raise the epoch when a run is taken up."""

    async def claim(self, worker: str, agents: Sequence[str], now: int, limit: int) -> Sequence[Claim]:
        """Take up."""
        claims = await super().claim(worker, agents, now, limit)
        for claim in claims:
            row = self._tables.runs[claim.run]
            self._tables.runs[claim.run] = structs.replace(row, epoch=row.epoch - 1)
        return claims


class ParksAnyway(MemoryStore):
    """Brings a run to rest even if somebody has said something meanwhile."""

    async def write(self, write: Write) -> bool:
        """Commit."""
        known = self._tables.runs.get(write.run.id)
        if known is not None and write.was is not None and write.run.state == "waiting":
            write = structs.replace(write, was=(known.version, write.was[1]))
        return await super().write(write)


class AnyThread(MemoryStore):
    """Begins a run in a thread that has one."""

    def _may_begin(self, row: Any, begins: Any) -> bool:
        return begins is not None and row.id not in self._tables.runs


def _with(store: type[MemoryStore]) -> Bug:
    return lambda: changed(store=store())


# In what is decided


def once_again() -> AbstractContextManager[MemoryStore]:
    """After a crash, every call on the server is dispatched again."""

    def recover(work: Any, call: Any, definition: Any) -> None:
        work.put(move(call, Change.RELEASE, losses=call.losses + 1, deadline=None, held_by="", dies=False))

    return changed((step, "_recover_executing", recover))


def owner_not_checked() -> AbstractContextManager[MemoryStore]:
    """Whoever knows the id of a call may answer it."""
    owned = answers._owned

    def anybody(run: Any, principal: str, call_id: str) -> Any:
        return owned(run, run.principal, call_id)

    return changed((answers, "_owned", anybody))


def timers_in_memory() -> AbstractContextManager[MemoryStore]:
    """A run that waits does not say when its next timer is due."""
    return changed((record, "next_due", lambda run: None))


def timeout_overwrites() -> AbstractContextManager[MemoryStore]:
    """A deadline ends a call that has its answer."""
    fired = step.HANDLERS[step.TimerFired]

    def fire(work: Any, event: Any) -> None:
        call = work.calls.get(event.call_id)
        late = event.kind is TimerKind.DEADLINE and call is not None and call.outcome is Outcome.OK
        if late and call.place is Place.CLIENT and call.attempt == event.attempt:
            work.put(structs.replace(call, outcome=Outcome.TIMED_OUT, state=CallState.OUTPUT_ERROR))
        else:
            fired(work, event)

    handlers = {phase: {**kinds, step.TimerFired: fire} for phase, kinds in step._HANDLERS.items()}
    return changed((step, "_HANDLERS", handlers))


# Between processes


def wake_up_lost() -> AbstractContextManager[MemoryStore]:
    """Nobody hears that another process has written, and nobody looks."""
    return changed((Replica, "_on_ring", lambda replica, ring: None), (Replica, "_compare", _nothing))


def answer_without_holder() -> AbstractContextManager[MemoryStore]:
    """An answer is stored, and nobody takes the run up that it lets go on."""
    elsewhere = Replica._say_elsewhere

    async def afresh(replica: Replica, revived: Any, decide: Any) -> Any:
        if revived is None:
            return await known(replica, revived, decide)
        return await elsewhere(replica, revived, decide)

    known = Replica._say_afresh
    return changed((Replica, "_say_afresh", afresh))


async def _nothing(*_: Any) -> None:
    return None


# Watchers


def resumes_one_late() -> AbstractContextManager[MemoryStore]:
    """Whoever comes back misses one."""
    watch = Feeds.watch

    def late(feeds: Feeds, thread: str, after: int, *rest: Any) -> Any:
        return watch(feeds, thread, after + bool(after), *rest)

    return changed((Feeds, "watch", late))


def resumes_one_early() -> AbstractContextManager[MemoryStore]:
    """Whoever comes back is told one again."""
    watch = Feeds.watch

    def early(feeds: Feeds, thread: str, after: int, *rest: Any) -> Any:
        return watch(feeds, thread, max(0, after - 1), *rest)

    return changed((Feeds, "watch", early))


def reads_before_it_listens() -> AbstractContextManager[MemoryStore]:
    """A watcher looks into the store first, and listens after."""
    watch = Feeds.watch

    async def late(feeds: Feeds, thread: str, after: int, read: Any, unfinished: Any) -> AsyncGenerator[Any, None]:
        position = Position(after)
        while page := await read(position.seq, 100):
            for update in page:
                if position.passes(update):
                    yield update

        async def read_before(after: int, limit: int) -> Sequence[Any]:
            return ()

        async for update in watch(feeds, thread, position.seq, read_before, unfinished):
            yield update

    return changed((Feeds, "watch", late))


BUGS: Mapping[str, Bug] = {
    "acknowledged before the commit": acknowledged_before_commit,
    "performed before the commit": performed_before_commit,
    "doubt taken for no": doubt_taken_for_no,
    "doubt taken for yes": doubt_taken_for_yes,
    "doubt forgotten": doubt_forgotten,
    "write without version": _with(NoVersion),
    "write without epoch": _with(NoEpoch),
    "epoch not raised": _with(SameEpoch),
    "parked over an answer": _with(ParksAnyway),
    "two runs in a thread": _with(AnyThread),
    "once dispatched again": once_again,
    "owner not checked": owner_not_checked,
    "timers in memory only": timers_in_memory,
    "timeout overwrites an answer": timeout_overwrites,
    "wake-up lost": wake_up_lost,
    "answer without holder": answer_without_holder,
    "watcher resumes one late": resumes_one_late,
    "watcher resumes one early": resumes_one_early,
    "watcher reads before it listens": reads_before_it_listens,
}
