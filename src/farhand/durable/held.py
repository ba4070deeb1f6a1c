"""A run that this process works on, and the way of its changes to the store. Nobody hears of one before it is kept.

What the driver does while a write is under way goes with the next one. When the store says that the run is not as
expected, somebody else was faster: his events are taken in, and ours are tried again on top of them. Whoever finds the
run under a newer epoch is out and drops everything.
"""

import asyncio
import logging
from typing import Protocol

from farhand.core.call import Call
from farhand.core.effects import Dispatch
from farhand.core.errors import FarhandError, IllegalChange, RunRefused, StoreAway
from farhand.core.events import Event, Recovered
from farhand.durable.record import Revived, Toolsets, make_rest, make_write, together
from farhand.durable.reply import Reply
from farhand.runner.driver import Change, Driver
from farhand.stores.base import RunRow, Store, ThreadRow, Write

logger = logging.getLogger("farhand.durable")

AGAIN = (0.05, 0.2, 0.5, 1.0)
"""Seconds between tries to reach a store that is away; the last one for ever."""


class Moved(Exception):
    """The run is not as it was when something was said about it: look again, and say it again if it still applies."""


class Home(Protocol):
    """The process that holds a run, as far as the run needs it."""

    @property
    def worker(self) -> str:
        """Under which name it holds runs."""
        ...

    @property
    def store(self) -> Store: ...
    @property
    def toolsets(self) -> Toolsets: ...
    async def read(self, run: str) -> Revived | None:
        """The run as the store has it."""
        ...

    def work_on(self, held: "Held") -> None:
        """See to it that the run is driven."""
        ...

    def drop(self, held: "Held") -> None:
        """The run is not held here any more."""
        ...

    def write(self, write: Write) -> "asyncio.Future[bool]":
        """Have a change written."""
        ...

    def told(self, write: Write) -> None:
        """A write of ours is there."""
        ...

    def has_client(self, held: "Held", call: Call) -> bool:
        """Whether a client is known to be there for a call."""
        ...

    def look_for_client(self, held: "Held", call: Call) -> "asyncio.Task[None]":
        """Find out whether one is there, and have the run told if not."""
        ...


class Step:
    """A change on its way, and who waits for it."""

    __slots__ = ("change", "in_doubt", "waiter")

    def __init__(self, change: Change) -> None:
        self.change = change
        self.waiter: asyncio.Future[None] | None = None
        self.in_doubt = False
        """Whether a write of it may have arrived although nobody was told so, or may yet arrive."""

    def is_known_as(self, event: Event) -> bool:
        """Whether an event in the log is this one. Of equal ones another process may have been the first to say it."""
        return self.in_doubt and self.change.event == event

    def end(self, why: Exception | None = None) -> None:
        """It is kept, or it came to nothing."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(why) if why is not None else self.waiter.set_result(None)


class Held:
    """One run, its driver, and the changes that are on their way."""

    def __init__(self, home: Home, row: RunRow, toolset: str = "", begins: ThreadRow | None = None) -> None:
        self.row = row
        """As the store had it last, as far as is known here."""
        self.worker = home.worker
        self.driver: Driver
        self.out = False
        """It is not held here any more; nothing that still happens here counts."""
        self.lost = False
        """It was taken up from a process that is gone, and nobody has been told."""
        self.reply = Reply()
        self.streamed = False
        """Whether the store may have pieces of a reply."""
        self._home = home
        self._toolset = toolset
        self._begins = begins
        self._queue: list[Step] = []
        self._written: list[Step] = []
        """What the write under way is about."""
        self._busy = False
        self._looks = 0
        """For how many calls it is just being found out whether a client is there."""
        self._waiters: list[asyncio.Future[None]] = []

    # From the driver to the store

    def keep(self, change: Change) -> None:
        """A change was made."""
        if change.after is change.before:  # a timer of a run that has ended
            self.driver.release(change)
            return
        self._queue.append(Step(change))
        if not self._busy and not self.out:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._write)

    def kept(self) -> "asyncio.Future[None]":
        """Done when the newest change is kept; fails with `Moved` if it came to nothing."""
        step = self._queue[-1]
        step.waiter = step.waiter or asyncio.get_running_loop().create_future()
        return step.waiter

    async def settled(self) -> None:
        """Until nothing is on its way."""
        while self._busy:
            await self._woken()

    @property
    def busy(self) -> bool:
        """Whether something is on its way."""
        return self._busy

    def _write(self) -> None:
        """Send what is queued as one commit, as far as it fits into one."""
        if self.out:
            return
        count = together([step.change for step in self._queue])
        self._written, self._queue = self._queue[:count], self._queue[count:]
        changes = [step.change for step in self._written]
        self._send(
            make_write(
                changes,
                self.row,
                holder="" if not self._queue and self._rests() else self.worker,
                toolsets=self._home.toolsets,
                toolset=self._toolset,
                begins=self._begins,
                streamed=self.streamed,
            )
        )

    def _rests(self) -> bool:
        """Whether nothing is to be done here until a client or a person says something."""
        run = self.driver.state
        if run.ending is not None:
            return True
        return run.waiting and not self._looks and not self.driver.works_on(run) and not self._is_to_look()

    # Whether clients are there

    def _is_to_look(self) -> bool:
        """Whether the write that is being made dispatches a call for which no client is known to be there."""
        run = self.driver.state
        if not run.attended:
            return False
        dispatched = [
            run.calls[effect.call_id]
            for step in self._written
            for effect in step.change.effects
            if type(effect) is Dispatch
        ]
        return any(call.outcome is None and self._misses_client(call) for call in dispatched)

    def _misses_client(self, call: Call) -> bool:
        return not self.driver.runs_here(call) and not self._home.has_client(self, call)

    def offered(self, call: Call) -> None:
        """It is kept that a call was dispatched to whatever clients there are."""
        if self.driver.state.attended and self._misses_client(call):
            self._looks += 1
            self._home.look_for_client(self, call).add_done_callback(self._on_looked)

    def _on_looked(self, _: "asyncio.Task[None]") -> None:
        self._looks -= 1
        self._wake()

    async def looked(self) -> None:
        """Until it is known whether clients are there."""
        while self._looks and not self.out:
            await self._woken()

    def _send(self, write: Write) -> None:
        writing = self._home.write(write)
        writing.add_done_callback(lambda done: self._on_written(done, write))

    def _on_written(self, writing: "asyncio.Future[bool]", write: Write) -> None:
        error = StoreAway("the store was closed") if writing.cancelled() else writing.exception()
        if error is not None:
            self._begin_again(
                error if isinstance(error, FarhandError) else StoreAway(f"a write failed: {type(error).__name__}")
            )
        elif writing.result():
            self._advance(write)
        else:
            self._begin_again(None)

    def _advance(self, write: Write) -> None:
        """The commit is there: now it may be told and acted on."""
        if self.out:
            return
        self.row, self._begins = write.run, None
        if write.toolset is not None:
            self._toolset = write.toolset[0]
        self.streamed = self.streamed and not write.streamed
        written, self._written = self._written, []
        for step in written:
            self.driver.release(step.change)
            step.end()
        self._home.told(write)
        self._go_on()

    def _go_on(self) -> None:
        """Write what has come meanwhile, or see what is to be done next."""
        if self._queue:
            self._write()
            return
        if self.row.holder:
            self._busy = False
            self._wake()
            self._home.work_on(self)
        else:
            self._end()

    # When the store says no

    def _begin_again(self, error: FarhandError | None) -> None:
        if self.out:
            return
        if self.row.holder != self.worker or self._begins is not None:
            # Nothing is under way here: whoever said something says it again, to the run as it is by then.
            self.leave(Moved() if error is None else error)
            return
        if error is not None:
            for step in self._written:
                step.in_doubt = True
            for step in (*self._written, *self._queue):
                step.end(error)
        self._catch_up(error)

    def look(self) -> None:
        """Somebody may have written about this run. If a write is under way, it will find out."""
        if not self._busy and not self.out:
            self._busy = True
            self._catch_up(None)

    def _catch_up(self, error: FarhandError | None) -> None:
        reading = asyncio.ensure_future(self._read(error))
        reading.add_done_callback(self._on_read)

    async def _read(self, error: FarhandError | None) -> Revived | None:
        """The run as it is now, as soon as the store can be reached."""
        tries = 0
        while not self.out:
            if error is not None:
                await asyncio.sleep(AGAIN[min(tries, len(AGAIN) - 1)])
            try:
                return await self._home.read(self.row.id)
            except StoreAway as away:
                error, tries = away, tries + 1
        return None

    def _on_read(self, reading: "asyncio.Future[Revived | None]") -> None:
        if self.out or reading.cancelled():
            return
        if (error := reading.exception()) is not None:
            self.leave(error if isinstance(error, RunRefused) else Moved())
            return
        revived = reading.result()
        if revived is None or revived.row.epoch != self.row.epoch:
            logger.warning("run %s is worked on elsewhere; dropped here", self.row.id)
            self.leave(Moved())
            return
        if revived.row.holder != self.worker:
            # Somebody else has ended it, or a write of ours that was in doubt has brought it to rest: nothing that is
            # still under way here applies, and its snapshot is newer than what is known here.
            self.leave(Moved())
            return
        self._take_in(revived)

    def _take_in(self, revived: Revived) -> None:
        """What others wrote comes first; what is left of ours is tried on top of it."""
        ours = [*self._written, *self._queue]
        self._written, self._queue = [], []
        if ours:
            assert ours[0].change.before is not None
            self.driver.rewind(ours[0].change.before, self.row.seq)
        known, self.row, self._toolset = self.row.version, revived.row, revived.toolset
        news = [event for version, event in revived.changes if version > known]
        if news and ours and type(ours[0].change.event) is Recovered and not ours[0].is_known_as(news[0]):
            # It was not taken up yet, and nobody has acted on the news: they are recovered with everything else.
            self.driver.rewind(revived.run, revived.row.seq)
            news.clear()
        for event in news:
            self.driver.accept(event)
            if ours and ours[0].is_known_as(event):
                ours.pop(0).end()
        for step in ours:
            try:
                self.driver.finish(step.change.event)
            except IllegalChange:  # what others did has made an end of it
                step.end(Moved())
            else:
                self._queue[-1].waiter, self._queue[-1].in_doubt = step.waiter, step.in_doubt
        self._go_on()

    # The end

    def rest(self) -> None:
        """The run has come to rest without a change of its own: give it back."""
        if not self._busy and not self._looks and not self.out and self.driver.state.status != "running":
            self._busy = True
            self._send(make_rest(self.row, self.driver.state, self._toolset))

    def leave(self, why: Exception) -> None:
        """Drop everything."""
        if not self.out:
            for step in (*self._written, *self._queue):
                step.end(why)
            self._end()

    def _end(self) -> None:
        """From here on the run is the store's alone."""
        self.out, self._busy = True, False
        self.driver.let_go()
        self._wake()
        self._home.drop(self)

    async def _woken(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
