"""A small world for runs that are kept: some processes, one store, virtual time, and everything that can go wrong.

Your agents, in one process and one thread; the same seed makes everything happen again:

    def agents() -> list[Agent[Any]]:                    # each life of a process has its own
        return [Agent(scripted([Use("pick"), "done"]), tools=[pick])]

    async def story(world: World) -> None:
        first, second = world.processes
        run = await first.ask(lambda runner: runner.start("hi", key="k"))
        first.kill()
        await world.until(lambda: ...)                    # time passes only while everybody waits
        await first.start()
        await world.rest()                                # no more faults; until nothing is left to be done
        assert not await world.problems()

    World(seed=7, agents=agents, processes=2).run(story)

A process that is killed has no chance to clean up; one that is frozen wakes up when others have its runs. What travels
between a process and the store can be slow, lost, or late (`Faults`). Tools that block a thread take no time here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from random import Random
from typing import Any, TypeVar

from farhand.agent import Agent
from farhand.core.errors import StoreError
from farhand.durable.runner import Runner
from farhand.durable.timing import Timing
from farhand.runner.clock import Timer
from farhand.stores.memory import MemoryStore
from farhand.testing.audit import audit
from farhand.testing.faulty import Faults, FaultyStore, Ledger
from farhand.testing.loop import Lane, VirtualLoop

T = TypeVar("T")

TIMING = Timing(lease=3.0, beat=1.0, tick=0.25, check=1.0, drain=5.0)


LINGER = 6.0
"""Seconds that the work of a process which has left in order may take to notice."""


class Unreachable(Exception):
    """The process is not there, or died before it replied. Whatever was asked of it may have happened."""


class WorldClock:
    """The one time of a world, and ids that its seed gives."""

    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        self._loop = loop
        self._random = random

    def now(self) -> int:
        """Milliseconds."""
        return round(self._loop.time() * 1000)

    def new_id(self) -> str:
        """128 bits of chance."""
        return f"{self._random.getrandbits(128):032x}"

    def call_at(self, due: int, callback: Callable[[], None]) -> Timer:
        """Call back at a time."""
        return self._loop.call_at(due / 1000, callback)


class _Life:
    """From one start of a process to its end."""

    def __init__(self, lane: Lane, runner: Runner, store: FaultyStore) -> None:
        self.lane = lane
        self.runner = runner
        self.store = store
        self.open = False
        self.asked: dict[asyncio.Future[Any], None] = {}
        self.tasks: list[asyncio.Task[Any]] = []
        """What was asked of it from outside."""


class Process:
    """A runner that can be killed, frozen and started again."""

    def __init__(self, world: "World", name: str) -> None:
        self.name = name
        self.lives = 0
        self._world = world
        self._life: _Life | None = None

    @property
    def up(self) -> bool:
        """Whether it can be asked for something; it may be frozen."""
        return self._life is not None and self._life.open

    @property
    def frozen(self) -> bool:
        """Whether it stands still."""
        return self._life is not None and self._life.lane.frozen

    async def start(self) -> None:
        """Begin, or begin again; as often as it takes if the store is away."""
        while self._life is None:
            self.lives += 1
            world = self._world
            lane = world.loop.lane(f"{self.name}-{self.lives}")
            store = world.handle()
            runner = Runner(*world.agents(), store=store, timing=world.timing, clock=world.clock())
            self._life = life = _Life(lane, runner, store)
            try:
                await self._ask(life, lambda runner: runner.open())
            except (StoreError, Unreachable):
                if self._life is life:
                    self.kill()
                await asyncio.sleep(0.1)
            else:
                life.open = True

    def kill(self) -> None:
        """Die at once. Nothing of it runs any more, and the store takes nothing more from it."""
        life, self._life = self._life, None
        if life is None:
            return
        life.store.die()
        life.lane.kill()
        for reply in life.asked:
            if not reply.done():
                reply.set_exception(Unreachable(f"{self.name} died"))

    def freeze(self) -> None:
        """Stand still until `thaw`; the rest of the world goes on, and may take this process for dead."""
        if self._life is not None:
            self._life.lane.freeze()

    def thaw(self) -> None:
        """Go on."""
        if self._life is not None:
            self._life.lane.thaw()

    async def stop(self) -> None:
        """Leave in order, as on a redeploy."""
        life = self._life
        if life is None or not life.open:
            return
        life.open = False
        for task in life.tasks:
            task.cancel()
        with suppress(Unreachable):
            await self._ask(life, lambda runner: runner.close())
            self._life = None
            self._world.left.append(life.lane)

    async def ask(self, what: Callable[[Runner], Awaitable[T]]) -> T:
        """Have it do something, as a request over a network would. Who stops waiting may have been heard or not."""
        life = self._life
        if life is None or not life.open:
            raise Unreachable(f"{self.name} is not there")
        value = await self._ask(life, what)
        if self._world.random.random() < self._world.mute:
            raise Unreachable(f"the reply of {self.name} was lost")
        return value

    async def _ask(self, life: _Life, what: Callable[[Runner], Awaitable[T]]) -> T:
        reply: asyncio.Future[T] = self._world.loop.create_future()
        task = life.lane.spawn(_serve(life.runner, what, reply))
        life.asked[reply] = None
        life.tasks.append(task)
        try:
            return await reply
        finally:
            life.asked.pop(reply)
            if reply.cancelled() and not life.lane.dead and self._world.random.random() < 0.5:
                task.cancel()

    def spawn(self, work: Callable[[Runner], Coroutine[Any, Any, T]]) -> "asyncio.Task[T] | None":
        """Have it do something that ends with it; None if it is not there."""
        if self._life is None or not self._life.open:
            return None
        task = self._life.lane.spawn(work(self._life.runner))
        self._life.tasks.append(task)
        return task


async def _serve(runner: Runner, what: Callable[[Runner], Awaitable[T]], reply: "asyncio.Future[T]") -> None:
    try:
        value = await what(runner)
    except Exception as error:  # noqa: BLE001  it goes to whoever asked
        if not reply.done():
            reply.set_exception(error)
    except asyncio.CancelledError:
        if not reply.done():
            reply.set_exception(Unreachable("the process is leaving"))
        raise
    else:
        if not reply.done():
            reply.set_result(value)


def _ignore(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """The dead have nothing to say."""


class World:
    """Everything there is. `store` is what lasts; its own subclass of `MemoryStore` may keep books, or be wrong."""

    def __init__(
        self,
        seed: int,
        agents: Callable[[], Sequence[Agent[Any]]],
        *,
        processes: int = 2,
        faults: Faults | None = None,
        mute: float = 0.0,
        timing: Timing = TIMING,
        store: MemoryStore | None = None,
    ) -> None:
        self.loop = VirtualLoop(seed)
        self.random = Random(seed)  # noqa: S311  chance that can be repeated is what it is for
        self.agents = agents
        self.timing = timing
        self.faults = Faults() if faults is None else faults
        self.mute = mute
        """Chance that the reply of a process is lost on its way."""
        self.store = MemoryStore() if store is None else store
        self.processes = tuple(Process(self, f"p{number}") for number in range(1, processes + 1))
        self.complaints: list[str] = []
        """What asyncio had to say, such as of exceptions that nobody looked at."""
        self.left: list[Lane] = []
        """Of processes that have left in order."""
        self._ledger = Ledger()

    def run(self, story: Callable[["World"], Coroutine[Any, Any, T]]) -> T:
        """Tell a story, from the start of all processes to its end."""
        self.loop.set_exception_handler(lambda _, context: self.complaints.append(str(context)))
        try:
            return self.loop.run_until_complete(self._tell(story))
        finally:
            for process in self.processes:
                process.thaw()
                process.kill()
            self.loop.set_exception_handler(_ignore)
            self.loop.bury()
            self.loop.close()

    async def _tell(self, story: Callable[["World"], Coroutine[Any, Any, T]]) -> T:
        for process in self.processes:
            await process.start()
        return await story(self)

    def clock(self) -> WorldClock:
        """A clock for one life; its ids are its own."""
        return WorldClock(self.loop, Random(self.random.getrandbits(64)))  # noqa: S311

    def handle(self) -> FaultyStore:
        """A way to the store for one life."""
        random = Random(self.random.getrandbits(64))  # noqa: S311
        return FaultyStore(type(self.store)(self.store), self.faults, random, self.loop.outside.context, self._ledger)

    async def until(self, condition: Callable[[], bool], *, seconds: float = 300.0, every: float = 0.1) -> None:
        """Let time pass until something is so; TimeoutError if it never is."""
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110  nobody rings for what a program asks about
                await asyncio.sleep(every)

    async def rest(self, *, seconds: float = 300.0) -> None:
        """No more faults, everybody is up: until every run has ended, or waits for somebody and not for a timer."""
        self.faults.end()
        self.mute = 0.0
        for process in self.processes:
            process.thaw()
            await process.start()
        with suppress(TimeoutError):  # `problems` says what is still open
            async with asyncio.timeout(seconds):
                while await self._busy():  # noqa: ASYNC110
                    await asyncio.sleep(0.25)
        await asyncio.sleep(2 * max(self.timing.check, self.faults.look))

    async def _busy(self) -> bool:
        rows = [*await self.store.runs("", "", 100_000)]
        return any(
            row.state in ("running", "ready") or (row.state == "waiting" and row.due is not None) for row in rows
        )

    async def problems(self) -> list[str]:
        """Stop all processes in order, and say what is wrong with what is left."""
        for process in self.processes:
            await process.stop()
        now = round(self.loop.time() * 1000)
        await asyncio.sleep(LINGER)
        left = [task.get_name() for lane in self.left for task in self.loop.tasks_of(lane)]
        problems = [*await audit(self.store, now=now, workers=()), *self._ledger.problems, *self.complaints]
        return problems + [f"a task is left: {name}" for name in left]
