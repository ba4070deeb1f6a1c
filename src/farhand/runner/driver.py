"""Drives one run in this process: commits events, tells watchers, and has effects performed. It decides nothing;
`core.step` does.

A single effect is performed in the driver's own task, because a task costs more than a short tool; several run side by
side. Whatever is under way has a `Scope`, so that it can be stopped by name.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from farhand.calls import Call
from farhand.core.call import Call as Record
from farhand.core.call import CallState
from farhand.core.definition import Place
from farhand.core.effects import AskApproval, AskModel, Dispatch, Effect, Memorise, SetTimer, StopModel, Withdraw
from farhand.core.events import Event, RunCancelled, TimerFired, TimerKind
from farhand.core.run import Run
from farhand.core.step import step
from farhand.core.updates import CallEnded, CallProgress, Update, Warned, updates
from farhand.models.base import Model
from farhand.places.functions import Function
from farhand.places.running import CallContext
from farhand.places.values import Codec
from farhand.runner.clock import Clock, Timer
from farhand.runner.decision import Decisions
from farhand.runner.perform import DECIDING, JUDGING, perform
from farhand.runner.scope import Scope, Stopped
from farhand.tool import Tool

logger = logging.getLogger("farhand.runner")

_KINDS = tuple(TimerKind)


class Means(Struct, frozen=True):
    """What a run works with in this process: implementations, callbacks, clock. None of it is stored."""

    model: Model
    tools: Mapping[str, Tool[Any, Any]]
    clock: Clock
    decisions: Decisions
    on_call: Callable[[Call[Any, Any]], Any] | None = None
    on_approval: Callable[[Call[Any, Any]], Any] | None = None
    stop_when: Callable[[Run], Any] | None = None
    output: Codec | None = None
    show_errors: bool = False


class Driver:
    """One run and everything that is under way for it."""

    def __init__(self, means: Means, *, state: Run | None = None, seq: int = 0) -> None:
        self.means = means
        self.seq = seq
        self.log: list[Event] = []
        self.contexts: dict[str, CallContext] = {}
        self._state = state
        self._watchers: list[Callable[[Update], None]] = []
        self._early: list[Update] = []
        self._asked: deque[Effect] = deque()
        self._scopes: dict[tuple[str, int], Scope] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[tuple[str, TimerKind], tuple[SetTimer, Timer | None]] = {}
        self._news: asyncio.Future[None] | None = None
        self._idle: asyncio.Future[None] | None = None
        self._inline = False
        self._waits = False
        self._error: BaseException | None = None

    @property
    def state(self) -> Run:
        """The run as it is now."""
        assert self._state is not None
        return self._state

    @property
    def busy(self) -> bool:
        """Whether somebody drives it."""
        return self._idle is not None

    def view(self, record: Record) -> Call[Any, Any]:
        """A call as a program sees it."""
        return Call(record, self.means.tools.get(record.tool))

    # Events in, updates out

    def commit(self, event: Event) -> None:
        """Take an event from outside. What it leads to starts at once if the driver is held up by other work."""
        self.finish(event)
        if self._asked and self._inline:
            self._spawn_asked()
        self._wake()

    def finish(self, event: Event) -> None:
        """Take the event that a piece of work ends with: step, keep it, tell the watchers, note what is asked for."""
        before = self._state
        after, effects = step(before, event)
        self._state = after
        self.log.append(event)
        told = updates(before, event, after, self.seq)
        self.seq += len(told)
        if self._timers or self._scopes:
            for update in told:
                if type(update) is CallEnded:
                    self._forget(update.call_id)
        self._tell(told)
        for effect in effects:
            self._take(effect)

    def tell_live(self, update: Update) -> None:
        """Pass on an update that is not stored."""
        self._tell((update,))

    def tell_progress(self, call_id: str, name: str, value: Any) -> None:
        """Pass on, in the loop's thread, what a tool says of its progress; a call that has ended says nothing more."""
        if self._idle is None or self.state.calls[call_id].state is not CallState.EXECUTING:
            return
        loop = self._idle.get_loop()
        if asyncio._get_running_loop() is loop:
            self.tell_live(CallProgress(self.seq, self.means.clock.now(), call_id, value, name))
        else:
            loop.call_soon_threadsafe(self.tell_progress, call_id, name, value)

    def warn(self, code: str, message: str) -> None:
        """Tell watchers something that a developer should know."""
        self.seq += 1
        self._tell((Warned(self.seq, self.means.clock.now(), code, message),))

    def watch(self, watcher: Callable[[Update], None]) -> Callable[[], None]:
        """Call `watcher` with every update from now on; returns what ends that.

        What was told while nobody watched or drove (a start, an answer to a paused run) goes to the first watcher.
        """
        early, self._early = self._early, []
        self._watchers = [*self._watchers, watcher]
        self._give(watcher, early)
        return lambda: self._unwatch(watcher)

    def _unwatch(self, watcher: Callable[[Update], None]) -> None:
        self._watchers = [other for other in self._watchers if other is not watcher]

    def _give(self, watcher: Callable[[Update], None], told: Sequence[Update]) -> None:
        try:
            for update in told:
                watcher(update)
        except Exception:
            logger.exception("a watcher failed and is told nothing more")
            self._unwatch(watcher)

    def _tell(self, told: Sequence[Update]) -> None:
        for watcher in self._watchers:
            self._give(watcher, told)
        if not self._watchers and not self.busy:
            self._early += told
        news = self._news
        if news is not None and not news.done():
            news.set_result(None)

    # Effects

    def _take(self, effect: Effect) -> None:
        """Do at once what takes no time, and line up the rest."""
        match effect:
            case AskModel():
                self._asked.append(effect)
            case SetTimer():
                self._set_timer(effect)
            case Withdraw(call_id=call_id, attempt=attempt):
                if call_id in self.contexts:
                    self.contexts[call_id].cancelled = True
                self._stop((call_id, attempt))
            case StopModel(turn=turn):
                self._stop(("", turn))
            case Memorise(principal=principal, memory=memory):
                self.means.decisions.keep(principal, memory)
            case AskApproval() if self.means.on_approval is None:
                pass  # somebody says `approve` or `deny`
            case Dispatch(call_id=call_id) if not self._runs_here(self.state.calls[call_id]):
                pass  # somebody says `answer` or `fail`
            case _:
                self._asked.append(effect)

    def _runs_here(self, call: Record) -> bool:
        return call.place is not Place.CLIENT or self.means.on_call is not None or self.function(call) is not None

    def function(self, call: Record) -> Function | None:
        """The function that runs a call here, if it is the one that the call was made for."""
        tool = self.means.tools.get(call.tool)
        return tool.function if tool is not None and tool.definition.pin == call.pin else None

    def _stop(self, key: tuple[str, int]) -> None:
        scope = self._scopes.get(key)
        if scope is not None:
            scope.stop()

    def _set_timer(self, timer: SetTimer) -> None:
        """Note a timer. It is armed only once the driver really waits: most calls have ended by then."""
        self._drop_timer((timer.call_id, timer.kind))
        self._timers[timer.call_id, timer.kind] = (timer, self._arm(timer) if self._waits else None)

    def _arm(self, timer: SetTimer) -> Timer:
        return self.means.clock.call_at(timer.due, lambda: self._fire(timer))

    def _on_wait(self) -> None:
        """The driver is about to wait: from now on timers must fire by themselves."""
        if not self._waits:
            self._waits = True
            for key, (timer, armed) in self._timers.items():
                if armed is None:
                    self._timers[key] = (timer, self._arm(timer))

    def _fire(self, timer: SetTimer) -> None:
        self._timers.pop((timer.call_id, timer.kind), None)
        self.commit(TimerFired(max(self.means.clock.now(), timer.due), timer.call_id, timer.kind, timer.attempt))

    def fire_overdue(self, now: int) -> None:
        """Let every timer fire whose time has come; a paused run has none that would do so by itself."""
        for timer, _ in sorted(self._timers.values(), key=lambda entry: entry[0].due):
            if timer.due <= now:
                self._drop_timer((timer.call_id, timer.kind))
                self._fire(timer)

    def _drop_timer(self, key: tuple[str, TimerKind]) -> None:
        _, armed = self._timers.pop(key, (None, None))
        if armed is not None:
            armed.cancel()

    def _forget(self, call_id: str) -> None:
        """The call has its outcome: nobody needs to decide about it, and its times do not matter."""
        if self._timers:
            for kind in _KINDS:
                self._drop_timer((call_id, kind))
        self._stop((call_id, JUDGING))
        self._stop((call_id, DECIDING))

    # Driving

    async def drive(self, *, hold: bool = False) -> None:
        """Perform what the run asks for until it ended or, without `hold`, waits for a client or a person."""
        if self._idle is not None:
            await asyncio.shield(self._idle)
            return
        self._begin()
        try:
            while self._error is None and not self._at_rest(hold=hold):
                if len(self._asked) == 1 and not self._tasks:
                    self._inline = True
                    await self._perform(self._asked.popleft())
                    self._inline = False
                elif self._asked:
                    self._spawn_asked()
                else:
                    await self._wait_for_news()
            if self._error is not None:
                raise self._error
        except BaseException:
            self._inline = False
            await self._abort()
            raise
        finally:
            self._rest()

    async def driving(self, *, hold: bool = False) -> AsyncGenerator[None, None]:
        """Drive in a task of its own and yield whenever there is news, also at the beginning and the end."""
        task = asyncio.ensure_future(self.drive(hold=hold))
        try:
            yield
            while not task.done():
                news = self._expect_news()
                await asyncio.wait((task, news), return_when=asyncio.FIRST_COMPLETED)
                yield
            task.result()
            yield
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
                await self._abort()  # a task that had not begun has not done so itself

    def _at_rest(self, *, hold: bool) -> bool:
        if self._asked or self._tasks:
            return False
        return self.state.ending is not None or (self.state.waiting and not hold)

    def _begin(self) -> None:
        self._idle = asyncio.get_running_loop().create_future()
        self._early.clear()
        if self._timers:
            self.fire_overdue(self.means.clock.now())

    def _rest(self) -> None:
        """Nobody drives any more: timers stay known but unarmed, so that a paused run holds nothing."""
        for key, (timer, armed) in list(self._timers.items()):
            if armed is not None:
                armed.cancel()
                self._timers[key] = (timer, None)
        self._waits = False
        assert self._idle is not None
        self._idle.set_result(None)
        self._idle = None
        self._error = None

    async def _abort(self) -> None:
        """The driver was cancelled, or a callback raised: call the run off and leave nothing running."""
        self._asked.clear()
        if self.state.ending is None:
            self.commit(RunCancelled(self.means.clock.now(), "the program stopped the run"))
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _spawn_asked(self) -> None:
        while self._asked:
            task = asyncio.ensure_future(self._perform(self._asked.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._task_done)

    async def _perform(self, effect: Effect) -> None:
        work, key = perform(self, effect)
        scope = self._scopes[key] = Scope()
        try:
            await scope.run(work, self._on_wait)
        except Stopped:
            pass
        finally:
            del self._scopes[key]
            self.contexts.pop(key[0], None)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and self._error is None:
            self._error = task.exception()
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _expect_news(self) -> asyncio.Future[None]:
        if self._news is None or self._news.done():
            self._news = asyncio.get_running_loop().create_future()
        return self._news

    async def _wait_for_news(self) -> None:
        self._on_wait()
        await self._expect_news()
