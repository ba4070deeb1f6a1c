"""Planted bugs: each takes one thing away that a promise rests on. A proof that does not find them proves nothing.

A bug is a context manager that changes one place of the program, and changes it back; some also bring a store that is
wrong. None of this can be switched on in the program itself. `python -m proofs.bugs` plants them all.
"""

import asyncio
import logging
import re
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple

from msgspec import structs

from farhand.core import answers, presence, step
from farhand.core.call import CallState, Change, Outcome, move
from farhand.core.definition import Place
from farhand.core.errors import NotExpected, StoreAway
from farhand.core.events import TimerKind
from farhand.core.updates import Update
from farhand.durable import record
from farhand.durable.feed import Feeds
from farhand.durable.held import Held
from farhand.durable.position import Position
from farhand.durable.replica import Replica
from farhand.runner.driver import Driver
from farhand.stores.base import Claim, Write
from farhand.stores.memory import MemoryStore
from proofs.crash_points import die_everywhere
from proofs.world import search, tell

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
        held.driver.unkept += 1
        release(held.driver, change)

    def late(driver: Driver, change: Any) -> None:
        driver.unkept -= 1
        driver._wake()

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
        work.put(move(call, Change.RELEASE, losses=call.losses + 1, deadline=None, grace=None, held_by="", dies=False))

    return changed((step, "recover", recover), (presence, "recover", recover))


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

    def late(feeds: Feeds, thread: str, after: Position, *rest: Any) -> Any:
        return watch(feeds, thread, structs.replace(after, seq=after.seq + bool(after.seq)), *rest)

    return changed((Feeds, "watch", late))


def resumes_one_early() -> AbstractContextManager[MemoryStore]:
    """Whoever comes back is told one again."""
    watch = Feeds.watch

    def early(feeds: Feeds, thread: str, after: Position, *rest: Any) -> Any:
        return watch(feeds, thread, structs.replace(after, seq=max(0, after.seq - 1)), *rest)

    return changed((Feeds, "watch", early))


def reads_before_it_listens() -> AbstractContextManager[MemoryStore]:
    """A watcher looks into the store first and listens after; what is written in between he may never hear of."""
    watch = Feeds.watch

    async def late(
        feeds: Feeds, thread: str, after: Position, read: Any, unfinished: Any
    ) -> AsyncGenerator[list[Update], None]:
        pages: list[Sequence[Update]] = []
        seq = after.seq
        while page := await read(seq, 100):
            pages.append(page)
            seq = page[-1].seq
        pages.append(())  # so far it has looked

        async def known(seq: int, limit: int) -> Sequence[Update]:
            return pages.pop(0) if pages else await read(seq, limit)

        async for batch in watch(feeds, thread, after, known, unfinished):
            yield batch

    return changed((Feeds, "watch", late))


class Planted(NamedTuple):
    """A bug, and as what it has to be found: otherwise it may be its own clumsiness that is found."""

    plant: Bug
    seen_as: str


BUGS: Mapping[str, Planted] = {
    "acknowledged before the commit": Planted(acknowledged_before_commit, "was started, and is not there|is not so"),
    "performed before the commit": Planted(performed_before_commit, "a watcher was told|was made|was asked"),
    "doubt taken for no": Planted(doubt_taken_for_no, "it was refused, and counts|nobody gave|by nobody"),
    "doubt taken for yes": Planted(doubt_taken_for_yes, "a watcher was told|was asked|is not there|2 outcomes"),
    "doubt forgotten": Planted(doubt_forgotten, "nothing happens any more"),
    "write without version": Planted(_with(NoVersion), "its updates are numbered|2 outcomes"),
    "write without epoch": Planted(_with(NoEpoch), "was written at epoch"),
    "epoch not raised": Planted(_with(SameEpoch), "was written at epoch"),
    "parked over an answer": Planted(_with(ParksAnyway), "its updates are numbered|2 outcomes"),
    "two runs in a thread": Planted(_with(AnyThread), "its updates are numbered|runs have started"),
    "once dispatched again": Planted(once_again, "was made again"),
    "owner not checked": Planted(owner_not_checked, "a stranger was heard"),
    "timers in memory only": Planted(timers_in_memory, "its next timer is"),
    "timeout overwrites an answer": Planted(timeout_overwrites, "has timed_out, and watchers were told ok"),
    "wake-up lost": Planted(wake_up_lost, "a watcher was told|nothing happens any more"),
    "answer without holder": Planted(answer_without_holder, "nothing happens any more"),
    "watcher resumes one late": Planted(resumes_one_late, "was told after"),
    "watcher resumes one early": Planted(resumes_one_early, "was told after"),
    "watcher reads before it listens": Planted(reads_before_it_listens, "a watcher was told"),
}
BUDGET = 1200
"""Stories within which each has to be found."""
IN_A_CRASH = ("acknowledged before the commit", "performed before the commit", "once dispatched again")
"""These have to be found as well by dying at every point."""


def find(bug: str) -> tuple[int, str] | None:
    """How many stories it takes until a bug is found, and as what; None if it is not found."""
    plant, seen_as = BUGS[bug]
    for seed in range(BUDGET):
        with plant() as store:
            told = tell(seed, store)
        for problem in told.problems:
            if re.search(seen_as, problem):
                return seed + 1, problem
    return None


def main() -> int:
    """Plant them all, one at a time; the program without any has to survive the same stories."""
    logging.getLogger("farhand").setLevel(logging.CRITICAL)
    missed, longest = 0, 0
    for bug in BUGS:
        found = find(bug)
        missed += found is None
        longest = max(longest, 0 if found is None else found[0])
        told = f"NOT FOUND in {BUDGET} stories" if found is None else f"story {found[0]:>4}: {found[1][:80]}"
        sys.stdout.write(f"{bug:<32} {told}\n")
    _, broken = search(range(longest))
    if broken is not None:
        sys.stdout.write(f"without any bug, story {broken.seed} has problems: {broken.problems}\n")
    for bug in IN_A_CRASH:
        with BUGS[bug].plant():
            survived = die_everywhere("memory")
        died = sum(len(found.broken) for found in survived.values())
        missed += not died
        sys.stdout.write(f"{bug:<32} {f'{died} crash points not survived' if died else 'SURVIVED every crash point'}\n")
    planted = len(BUGS) + len(IN_A_CRASH)
    sys.stdout.write(f"{planted - missed} of {planted} planted bugs found\n")
    return int(missed > 0 or broken is not None)


if __name__ == "__main__":
    sys.exit(main())
