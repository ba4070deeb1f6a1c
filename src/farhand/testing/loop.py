"""An event loop with virtual time, shared by simulated processes. The same seed makes everything happen again.

Time stands still while anything can be done, and then jumps to the next timer; there is no I/O. Each simulated process
has a `Lane`: its callbacks run in their order, as in any event loop, and between lanes the seed decides. A lane that is
frozen runs nothing for a while; one that is dead never runs anything again, clean-up included.

    loop = VirtualLoop(seed=7)
    lane = loop.lane("first")
    lane.spawn(serve())                 # whatever this starts belongs to the lane, too
    loop.run_until_complete(story())    # may call lane.freeze(), lane.thaw(), lane.kill()
    loop.bury()
    loop.close()
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

BEGIN = 1_000_000.0
"""Seconds at which virtual time begins."""
AT_ONCE = 300_000
"""So many callbacks without any time passing are taken for a circle."""
ROUNDS = 1000
"""So often a dead lane's tasks are told to end."""


class NothingLeft(RuntimeError):
    """Whatever is waited for will never come: nothing is ready, and no timer is set."""


class _Callback(asyncio.TimerHandle):
    __slots__ = ("lane",)

    def __init__(
        self,
        lane: "Lane",
        when: float,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        loop: "VirtualLoop",
        context: Context,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.lane = lane

    def run(self) -> None:
        """Call it."""
        self._run()


class Lane:
    """The callbacks of one simulated process. `VirtualLoop.lane` makes one."""

    def __init__(self, loop: "VirtualLoop", name: str) -> None:
        self.name = name
        self.ready: deque[_Callback] = deque()
        self.frozen = False
        self.dead = False
        self.remains: list[asyncio.Task[Any]] = []
        """Tasks that will never go on. They are kept, since to let go of them would run their clean-up; see `bury`."""
        self._loop = loop
        self.context = copy_context()
        """Whatever runs in it belongs to the lane."""
        self.context.run(_LANE.set, self)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do something as this process."""
        return self._loop.create_task(work, context=self.context.copy())

    def freeze(self) -> None:
        """Run nothing until `thaw`; what becomes due meanwhile runs then."""
        self.frozen = True

    def thaw(self) -> None:
        """Go on, late."""
        self.frozen = False

    def kill(self) -> None:
        """Never run anything again."""
        self.dead = True
        self.remains = self._loop.tasks_of(self)
        self._loop.forget(self)


_LANE: ContextVar[Lane] = ContextVar("lane")


class VirtualLoop(asyncio.BaseEventLoop):
    """The event loop. What is started outside any lane belongs to `outside`."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._random = Random(seed)  # noqa: S311  chance that can be repeated is what it is for
        self._now = BEGIN
        self._timers: list[tuple[float, int, _Callback]] = []
        self._made = 0
        self._stood = 0
        self.outside = Lane(self, "outside")
        self._lanes = [self.outside]
        self._dead: list[Lane] = []

    def lane(self, name: str) -> Lane:
        """A new simulated process."""
        lane = Lane(self, name)
        self._lanes.append(lane)
        return lane

    def forget(self, lane: Lane) -> None:
        """A lane has died."""
        self._lanes = [other for other in self._lanes if other is not lane]
        self._dead.append(lane)

    def tasks_of(self, lane: Lane) -> list[asyncio.Task[Any]]:
        """The tasks of a lane that have not ended, by their names."""
        mine = [task for task in asyncio.all_tasks(self) if task.get_name().startswith(f"{lane.name}:")]
        return sorted(mine, key=lambda task: task.get_name())

    def bury(self) -> None:
        """At the very end: let what is left of the dead clean up after itself, where nobody sees it any more."""
        for lane in self._dead:
            lane.dead = lane.frozen = False
            lane.remains.clear()
        self._lanes += self._dead
        self._dead.clear()
        self._stood = 0  # the circle that may have ended it is none of this
        for _ in range(ROUNDS):
            left = asyncio.all_tasks(self)
            if not left:
                break
            for task in left:
                task.cancel()
            self.run_until_complete(asyncio.sleep(0.001))
        else:
            raise NothingLeft("there are tasks that cannot be cancelled")
        self.run_until_complete(self.shutdown_asyncgens())

    # What asyncio asks of an event loop

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> asyncio.Task[Any]:
        """A task, named after its lane."""
        lane = copy_context().get(_LANE, self.outside) if context is None else context.get(_LANE, self.outside)
        self._made += 1
        name = name or getattr(coro, "__qualname__", "")
        return super().create_task(coro, name=f"{lane.name}:{self._made:08}:{name}", context=context)

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        """Call back as soon as it is this lane's turn."""
        context = copy_context() if context is None else context
        lane = context.get(_LANE, self.outside)
        handle = _Callback(lane, self._now, callback, args, self, context)
        lane.ready.append(handle)
        return handle

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        """The same; there are no threads."""
        return self.call_soon(callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        """Call back at a time."""
        context = copy_context() if context is None else context
        lane = context.get(_LANE, self.outside)
        handle = _Callback(lane, when, callback, args, self, context)
        self._made += 1
        heappush(self._timers, (when, self._made, handle))
        return handle

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":
        """Blocking functions take no time here, and hold nobody up."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  whoever waits for it gets it
            done.set_exception(error)
        return done

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is dropped when its time comes."""

    def _run_once(self) -> None:
        """One callback of one lane."""
        able = [lane for lane in self._lanes if lane.ready and not lane.frozen]
        if not able:
            self._jump()
            return
        self._stood += 1
        if self._stood > AT_ONCE:
            raise NothingLeft(f"{AT_ONCE} callbacks without any time passing")
        lane = able[0] if len(able) == 1 else able[int(self._random.random() * len(able))]
        callback = lane.ready.popleft()
        if not callback.cancelled():
            callback.run()

    def _jump(self) -> None:
        """To the next timer, and to all that are due with it."""
        while self._timers and self._timers[0][2].cancelled():
            heappop(self._timers)
        if not self._timers:
            raise NothingLeft("nothing is ready, and no timer is set")
        self._now, self._stood = max(self._now, self._timers[0][0]), 0
        while self._timers and self._timers[0][0] <= self._now:
            _, _, callback = heappop(self._timers)
            callback.lane.ready.append(callback)
