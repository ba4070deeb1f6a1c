"""One process among those that share a store: which runs it holds, how it takes them up, and how it gives them back.

Everything that is said about a run goes one way: the core decides on the run as it is, the store takes the event only
if the run is still so, and only then anybody is told.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from farhand.agent import Agent, Callbacks, tools_of_today
from farhand.core.call import Call
from farhand.core.errors import RefusedAnswer, RunRefused, StoreAway, StoreError, UnknownCall, UsageError
from farhand.core.events import Event, Recovered, Started
from farhand.core.run import Run
from farhand.core.step import step
from farhand.core.updates import Update, updates
from farhand.durable.backlog import Backlog
from farhand.durable.clock import StoreClock
from farhand.durable.errands import Errands
from farhand.durable.feed import Feeds
from farhand.durable.heart import Heart
from farhand.durable.held import Held, Moved
from farhand.durable.names import ThreadNames
from farhand.durable.position import Position
from farhand.durable.presence import Presence
from farhand.durable.record import Revived, Toolsets, make_write, revive
from farhand.durable.reports import Reports
from farhand.durable.sight import Sight
from farhand.durable.timing import Timing
from farhand.places.faults import trail
from farhand.runner.clock import Clock
from farhand.runner.driver import Change, Driver, LetGo, Means
from farhand.runner.observer import Observer
from farhand.stores.base import FORMAT, Ring, RunRow, Store, ThreadRow, WorkerRow, Write

logger = logging.getLogger("farhand.durable")

Decide: TypeAlias = Callable[[Run, int], Sequence[Event | None]]
"""What somebody says of a run as it is at a time: the events that it deserves, None where it was said before."""


class Replica:
    """The runs that are worked on here, and all that keeps them so."""

    def __init__(self, agents: Mapping[str, Agent[Any]], store: Store, timing: Timing, clock: Clock | None) -> None:
        self.store = store
        self.toolsets = Toolsets()
        self.feeds = Feeds()
        self.worker = ""
        self.timing = timing
        self.clock: Clock = clock or StoreClock()
        self.errands = Errands()
        self.names = ThreadNames(store)
        self.presence = Presence(self, check=timing.check)
        self.reports = Reports(store, self.errands)
        self._backlog = Backlog(store, self.clock, self._held_in)
        self.agents = agents
        self.sight = Sight()
        self._means = {name: agent.means({}, Callbacks(), clock=self.clock) for name, agent in agents.items()}
        self._held: dict[str, Held] = {}
        self._resting: dict[str, list[asyncio.Future[Held]]] = {}
        self._tasks: dict[Held, asyncio.Task[None]] = {}
        self._tending: asyncio.Task[None] | None = None
        self._heart: Heart | None = None
        self._news = asyncio.Event()
        self._entered = asyncio.Event()
        self._claimed = asyncio.Event()
        """Whether no claim is under way; while one is, runs may be held here that nobody here knows of."""
        self._claimed.set()
        self._check_at = 0.0
        """In seconds of the event loop, as the next one: the store's clock may be put back or forward."""
        self._calm_at = 0.0
        """Until then nobody is too late: the store's clock has jumped, and others may not have noticed yet."""

    def observe(self, *observers: Observer) -> None:
        """Have observers look on from now on."""
        self.sight = Sight((*self.sight.observers, *observers))
        self._means = {name: self.sight.means(name, means) for name, means in self._means.items()}

    @property
    def busy(self) -> int:
        """How many runs are worked on here."""
        return len(self._held)

    # Coming and going

    async def open(self) -> None:
        """Begin to take part."""
        await self.store.open(self._on_ring)
        await self._sync(first=True)
        await self._enter()
        self._tending = asyncio.create_task(self._tend())

    async def _enter(self) -> None:
        worker = self.clock.new_id()
        now = self.clock.now()
        await self.store.enter(
            WorkerRow(
                id=worker,
                host=f"{socket.gethostname()}:{os.getpid()}",
                build=str(FORMAT),
                started=now,
                beat=now,
                expires=now + round(self.timing.lease * 1000),
            )
        )
        self.worker = worker  # from here on: under a name that nobody knows, runs would be taken for lost
        self._entered.set()
        self._heart = Heart(
            self.store,
            self.worker,
            self.clock,
            lease=self.timing.lease,
            every=self.timing.beat,
            on_lost=self._on_lost,
        )
        self._heart.start() if isinstance(self.clock, StoreClock) else self._heart.start_here()

    async def close(self) -> None:
        """Let runs come to rest for a while, give the others back, and leave."""
        self.presence.retire()
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.wait((self._tending,))
            self._tending = None
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=self.timing.drain)
        tasks = list(self._tasks.values())
        self._drop_all()
        if tasks:
            await asyncio.wait(tasks)
        await self.errands.stop()
        if self._heart is not None:
            await self._heart.stop()
        if self.worker:  # otherwise it was taken for dead, and has nothing to give back
            with suppress(StoreError):  # then the runs are taken over after the lease
                await self.store.leave(self.worker)
        await self.store.close()

    async def until_entered(self) -> None:
        """Until runs can be held here: not between being taken for dead and coming back under another name."""
        if self._tending is None:
            raise UsageError("this runner is not open: `async with runner:`")
        try:
            async with asyncio.timeout(self.timing.lease):
                await self._entered.wait()
        except TimeoutError:
            raise StoreAway("this process was taken for dead and cannot come back yet") from None

    def _on_lost(self) -> None:
        """This worker was taken for dead: others have its runs."""
        logger.error("worker %s was taken for dead; dropping %d runs", self.worker, len(self._held))
        self._drop_all()
        self.worker = ""
        self._entered.clear()
        self._news.set()

    def _drop_all(self) -> None:
        for held in list(self._held.values()):
            held.leave(Moved())

    def _on_ring(self, ring: Ring) -> None:
        """Another process has written."""
        self.feeds.look(ring.thread)
        self.presence.feeds.ring(ring.thread)
        held = self._held.get(ring.run)
        if held is not None:
            held.look()
        elif not ring.run:
            self._check_at = 0.0
            self._news.set()

    # Runs as the store has them

    async def read(self, run: str) -> Revived | None:
        """A run; one that cannot be read is put aside."""
        stored = await self.store.load(run)
        if stored is None:
            return None
        if stored.run.state == "refused":
            raise RunRefused(f"run {run} was put aside: {stored.run.why}")
        try:
            return await revive(stored, self.toolsets, self.store.toolset)
        except RunRefused as error:
            logger.error("%s", error)
            await self.store.refuse(stored.run, str(error))
            raise

    def agent(self, name: str) -> Agent[Any]:
        """The agent of that name."""
        try:
            return self.agents[name]
        except KeyError:
            known = ", ".join(map(repr, self.agents)) or "none"
            raise UsageError(f"there is no agent of this name; there are: {known}") from None

    def means(self, name: str) -> Means:
        """What an agent's runs work with."""
        self.agent(name)
        return self._means[name]

    # Taking up

    def _hold(self, row: RunRow, state: Run | None, toolset: str = "", begins: ThreadRow | None = None) -> Held:
        held = Held(self, row, toolset, begins)
        held.driver = Driver(self.means(row.agent), self.sight.perform, state=state, seq=row.seq, keep=held.keep)
        held.driver.offered = held.offered
        held.driver.watchers.add(held.reply.hear)
        held.driver.watchers.add(self.feeds.teller(row.thread))
        self._held[row.id] = held
        return held

    async def begin(self, row: RunRow, thread: ThreadRow, started: Started) -> None:
        """A new run. Raises `Moved` if its thread or its key is taken."""
        await self.until_entered()
        held = self._hold(row, None, begins=thread)
        held.driver.commit(started)
        await held.kept()

    def _take_up(self, revived: Revived, *, lost: bool) -> Held:
        """Hold a run that nobody holds; tell it if its process died or its tools have changed since."""
        held = self._hold(revived.row, revived.run, revived.toolset)
        held.lost = lost
        if revived.run.ending is not None:
            return held
        tools, refused = tools_of_today(self.agent(revived.row.agent).definitions, revived.run.tools.values())
        for text in refused:
            logger.warning("run %s: %s", revived.row.id, text)
        if lost or tools != tuple(revived.run.tools.values()):
            held.streamed = True
            held.driver.commit(Recovered(self.clock.now(), tools))
        elif revived.kept is not None and revived.changes:
            # Whoever said this between our claim and our look has left it to us to do what it asks for.
            held.driver.rewind(revived.kept, revived.kept_seq)
            for _, event in revived.changes:
                held.driver.accept(event)
        return held

    def work_on(self, held: Held) -> None:
        """See to it that a held run is driven."""
        if held not in self._tasks:
            task = asyncio.create_task(self._work(held))
            self._tasks[held] = task
            task.add_done_callback(lambda _: self._tasks.pop(held, None))

    async def _work(self, held: Held) -> None:
        while not held.out:
            try:
                with self.sight.working(held):
                    await held.driver.drive()
            except LetGo:
                return
            except Exception as error:  # noqa: BLE001  a fault of ours or of a callback: the run has been told
                logger.error("run %s was stopped by %s", held.row.id, trail(error))
                await held.settled()
                held.leave(Moved())  # if it has not ended by that, it is found again and taken up as lost
                return
            await held.looked()
            held.rest()
            await held.settled()

    # What held runs ask for

    def write(self, write: Write) -> "asyncio.Future[bool]":
        """Have a change written."""
        return self.sight.write(self.store, write)

    def told(self, write: Write) -> None:
        """A write is there: whoever may take calls up looks what there is."""
        if write.calls:
            self.presence.feeds.hear(write.run.principal, write.run.thread)

    def has_client(self, held: Held, call: Call) -> bool:
        """Whether a client that is connected here runs a call."""
        return self.presence.is_here(held.row.thread, held.driver.state, call)

    def look_for_client(self, held: Held, call: Call) -> "asyncio.Task[None]":
        """Look in the store for one that is connected elsewhere."""
        row = held.row
        return self.presence.look_for(row.id, row.principal, row.thread, call.id)

    def drop(self, held: Held) -> None:
        """A run has come to rest, or is held elsewhere."""
        if self._held.get(held.row.id) is held:
            del self._held[held.row.id]
        for waiter in self._resting.pop(held.row.id, ()):
            if not waiter.done():
                waiter.set_result(held)

    # What is said about runs

    async def say(self, run: str, decide: Decide) -> Sequence[bool]:
        """Have something said count, whoever holds the run; gives what of it was said before."""
        while True:
            said = await self._try_to_say(run, decide)
            if said is not None:
                return said

    async def _try_to_say(self, run: str, decide: Decide) -> Sequence[bool] | None:
        await self.until_entered()
        held = self._held.get(run)
        if held is None:
            revived = await self.read(run)
            held = self._held.get(run)
            if held is None:
                return await self._say_afresh(revived, decide) if self.worker else None
        return await self._say_here(held, decide)

    async def _say_afresh(self, revived: Revived | None, decide: Decide) -> Sequence[bool] | None:
        """About a run that is not held here."""
        if revived is None:
            raise UnknownCall("there is no such call")
        row = revived.row
        if row.holder and row.holder != self.worker:
            return await self._say_elsewhere(revived, decide)
        if row.holder and not self._claimed.is_set():
            await self._claimed.wait()  # it is just being taken up here: as what, is known then
            return None
        lost = row.state in ("ready", "running")
        if not lost:
            events = decide(revived.run, self.clock.now())
            if not any(events):
                return [True] * len(events)
        else:
            _check_owner(revived.run, decide, self.clock.now())
        return await self._say_here(self._take_up(revived, lost=lost), decide)

    async def _say_here(self, held: Held, decide: Decide) -> Sequence[bool] | None:
        """What is refused or repeated is told only when what it was held against lasts."""
        driver = held.driver
        driver.fire_overdue()
        try:
            events = decide(driver.state, self.clock.now())
        except RefusedAnswer:
            if not held.busy:
                raise
            await held.settled()
            return None
        repeated = [event is None for event in events]
        if all(repeated):
            if not held.busy:
                return repeated
            await held.settled()
            return None
        for event in events:
            if event is not None:
                driver.commit(event)
        try:
            await held.kept()
        except Moved:
            return None
        return repeated

    async def _say_elsewhere(self, revived: Revived, decide: Decide) -> Sequence[bool] | None:
        """The event is committed here, and acted on by whoever holds the run."""
        events = decide(revived.run, self.clock.now())
        changes: list[Change] = []
        run, seq = revived.run, revived.row.seq
        for event in events:
            if event is not None:
                after, effects = step(run, event)
                told = updates(run, event, after, seq)
                changes.append(Change(run, event, after, told, effects))
                run, seq = after, seq + len(told)
        if changes:
            holder = "" if run.ending is not None else revived.row.holder
            write = make_write(changes, revived.row, holder=holder, toolsets=self.toolsets, toolset=revived.toolset)
            if not await self.write(write):
                return None
            if not holder:
                self.sight.changed(revived.row.agent, changes)
            self.feeds.look(revived.row.thread)
            self.told(write)
        return [event is None for event in events]

    # Waiting and watching

    async def rested(self, run: str) -> Held | Revived | None:
        """The run once it waits or has ended, wherever it is worked on."""
        while True:
            if run in self._held:
                waiter: asyncio.Future[Held] = asyncio.get_running_loop().create_future()
                self._resting.setdefault(run, []).append(waiter)
                held = await waiter
                if not held.row.holder:
                    return held
            revived = await self.read(run)
            if revived is None or revived.row.state not in ("ready", "running"):
                return revived
            if run not in self._held:
                await self.feeds.change(revived.row.thread, self.timing.check)

    def watch(self, thread: str, after: Position) -> AsyncGenerator[list[Update], None]:
        """Every update of a thread after a position."""
        past = self._backlog
        return self.feeds.watch(thread, after, partial(past.updates, thread), partial(past.unfinished, thread))

    def _held_in(self, thread: str) -> Held | None:
        """The run of a thread that is held here."""
        return next((held for held in self._held.values() if held.row.thread == thread), None)

    # Looking after everything

    async def _tend(self) -> None:
        while True:
            try:
                await self._round()
            except StoreError as error:
                logger.warning("the store cannot be used (%s); trying again", type(error).__name__)
            except Exception as error:  # noqa: BLE001  whatever it is, the next round comes
                logger.error("a round of looking after the runs failed, trying again: %s", trail(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(self.timing.tick):
                    await self._news.wait()
            self._news.clear()

    async def _round(self) -> None:
        if not self.worker:
            if self._heart is not None:
                await self._heart.stop()
            await self._enter()
        now = self.clock.now()
        pieces = [
            piece
            for held in self._held.values()
            if (piece := held.reply.piece(held.row.id, held.row.epoch, now)) is not None
        ]
        if pieces:
            for piece in pieces:
                self._held[piece.run].streamed = True
            await self.store.stream(pieces)
        passed = asyncio.get_running_loop().time()
        if passed >= self._check_at:
            self._check_at = passed + self.timing.check
            await self._sync()
            calm = asyncio.get_running_loop().time() >= self._calm_at
            await self.store.expire(self.clock.now() if calm else 0)
            self.presence.sweep()
            await self._compare()
        if await self._claim() == self.timing.batch:
            self._news.set()  # there may be more

    async def _sync(self, *, first: bool = False) -> None:
        if isinstance(self.clock, StoreClock):
            moved = self.clock.sync(await self.store.time(), first=first)
            if abs(moved) * 2 > self.timing.lease * 1000:
                self._calm_at = asyncio.get_running_loop().time() + self.timing.lease

    async def _compare(self) -> None:
        """What is held here and what the store says is held here can differ after a write of unknown fate."""
        there = await self.store.held(self.worker)
        for run, (version, epoch) in there.items():
            held = self._held.get(run)
            if held is None:
                await self._find_again(run)
            elif (held.row.version, held.row.epoch) != (version, epoch):
                held.look()
        for run, held in list(self._held.items()):
            if run not in there and held.row.holder:
                held.look()

    async def _find_again(self, run: str) -> None:
        with suppress(RunRefused):
            revived = await self.read(run)
            if revived is not None and self._is_ours(revived.row):
                self._take_up(revived, lost=True)

    def _is_ours(self, row: RunRow) -> bool:
        """Whether a run was given to this process, which does not know of it yet."""
        return bool(self.worker) and row.holder == self.worker and row.id not in self._held

    async def _claim(self) -> int:
        """Take up what is ready or due."""
        room = min(self.timing.batch, self.timing.room - len(self._held))
        if room <= 0 or not self.worker:
            return 0
        self._claimed.clear()
        try:
            claims = await self.store.claim(self.worker, list(self.agents), self.clock.now(), room)
            for claim in claims:
                with suppress(RunRefused):
                    revived = await self.read(claim.run)
                    if revived is not None and self._is_ours(revived.row):
                        self.work_on(self._take_up(revived, lost=claim.lost))
        finally:
            self._claimed.set()
        return len(claims)


def _check_owner(run: Run, decide: Decide, now: int) -> None:
    """Whoever has no say in a run does not even have it taken up."""
    try:
        decide(run, now)
    except UnknownCall:
        raise
    except RefusedAnswer:
        return
