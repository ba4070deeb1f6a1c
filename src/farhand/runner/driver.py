"""Drives one run in this process: commits events, tells watchers, and has effects performed. It decides nothing;
`core.step` does.

A single effect is performed in the driver's own task, because a task costs more than a short tool; several run side by
side. Whatever is under way has a `Scope`, so that it can be stopped by name.
"""

import asyncio
import contextvars
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeAlias, cast

from msgspec import Struct

from farhand.calls import Call
from farhand.core.call import Call as Record
from farhand.core.call import CallState
from farhand.core.definition import Place
from farhand.core.effects import (
    AskApproval,
    AskModel,
    Dispatch,
    Effect,
    JudgeApproval,
    Memorise,
    SetTimer,
    StopModel,
    Withdraw,
)
from farhand.core.events import Event, RunCancelled, TimerFired
from farhand.core.run import Run
from farhand.core.step import step
from farhand.core.updates import CallApproved, CallEnded, CallProgress, RunWaiting, Update, Warned, current, updates
from farhand.models.base import Model
from farhand.places.functions import Function
from farhand.places.running import CallContext
from farhand.places.values import Codec
from farhand.runner.clock import Clock
from farhand.runner.decision import Decisions
from farhand.runner.observer import Onlookers
from farhand.runner.scope import Scope, Stopped
from farhand.runner.timers import Timers, is_due, overdue
from farhand.runner.watchers import Watcher, Watchers
from farhand.tool import Tool

logger = logging.getLogger("farhand.runner")

Key: TypeAlias = tuple[str, int]
"""What is under way is named by its call and attempt; the model's reply by its turn."""
Perform: TypeAlias = Mapping[type, Callable[["Driver", Any], Coroutine[Any, Any, None]]]
"""The work that an effect asks for, by its type."""

_CLIENT = Place.CLIENT
_SERVER = Place.SERVER

DECIDING = 0
JUDGING = -1
"""In place of an attempt, for what is done about a call before it is dispatched."""

OnCall: TypeAlias = Callable[[Call[Any, Any]], Any] | Callable[[Call[Any, Any], CallContext], Any]
"""Runs client tools that have no function here. With a second parameter it is told where it works, as a tool is."""

LINGER = 5.0
"""Seconds that stopped work may take to notice, once the run is over; then it is left behind."""


class Means(Struct, frozen=True):
    """What a run works with in this process: implementations, callbacks, clock. None of it is stored."""

    model: Model
    tools: Mapping[str, Tool[Any, Any]]
    clock: Clock
    decisions: Decisions
    on_call: OnCall | None = None
    on_approval: Callable[[Call[Any, Any]], Any] | None = None
    stop_when: Callable[[Run], Any] | None = None
    output: Codec | None = None
    show_errors: bool = False
    agent: str = ""
    onlookers: Onlookers | None = None
    """Who looks on; nothing is done for them if there is nobody."""


class Change(Struct, frozen=True, gc=False):
    """One step of a run, from the moment it is made until it is told."""

    before: Run | None
    event: Event
    after: Run
    told: list[Update]
    effects: tuple[Effect, ...]


class LetGo(Exception):
    """The run is somebody else's now: whatever is under way for it here is dropped, and nothing is said about it."""


class Driver:
    """One run and everything that is under way for it."""

    __slots__ = (
        "_asked",
        "_busy",
        "_context",
        "_do",
        "_error",
        "_followers",
        "_hushed",
        "_inline",
        "_keep",
        "_loop",
        "_news",
        "_tasks",
        "_thread",
        "_timers",
        "contexts",
        "lock",
        "log",
        "means",
        "offered",
        "scopes",
        "seq",
        "state",
        "unkept",
        "watchers",
    )

    def __init__(
        self,
        means: Means,
        perform: Perform,
        *,
        state: Run | None = None,
        seq: int = 0,
        keep: Callable[[Change], None] | None = None,
    ) -> None:
        self.means = means
        self.seq = seq
        self.log: list[Event] = []
        self.watchers = Watchers()
        self.lock = threading.RLock()
        """Held by whoever takes the run up, or says something about it, so that two threads cannot do so at once."""
        self.contexts: dict[Key, CallContext] = {}
        self.scopes: dict[Key, Scope] = {}
        self.state = cast("Run", state)
        """The run as it is now; there from the first event on."""
        self.unkept = 0
        """Changes that were given to `keep` and not yet released."""
        self.offered: Callable[[Record], None] | None = None
        """Is told of each call that nobody here runs, once it is kept that it was dispatched."""
        self._do = perform
        self._keep = keep
        """Takes every change to where it lasts. Nobody is told of it and nothing is done for it before `release`."""
        self._asked: deque[Effect] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: Timers | None = None
        """There once somebody waits."""
        self._news: asyncio.Future[None] | None = None
        self._busy = False
        self._followers: list[Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: contextvars.Context
        self._thread = 0
        self._inline = False
        self._hushed = False
        self._error: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether somebody drives it."""
        return self._busy

    @property
    def elsewhere(self) -> bool:
        """Whether another thread drives it: then only that one may say anything about it."""
        return self._busy and threading.get_ident() != self._thread

    @property
    def unsent(self) -> tuple[str, ...]:
        """The calls whose dispatch nobody has performed yet."""
        return tuple(effect.call_id for effect in self._asked if isinstance(effect, Dispatch))

    def view(self, record: Record) -> Call[Any, Any]:
        """A call as a program sees it."""
        return Call(record, self.means.tools.get(record.tool))

    def function(self, call: Record) -> Function | None:
        """The function that runs a call here, if it is the one that the call was made for."""
        tool = self.means.tools.get(call.tool)
        return tool.function if tool is not None and tool.definition.pin == call.pin else None

    # Events in, updates out

    def commit(self, event: Event) -> None:
        """Take an event from outside. What it leads to starts at once if the driver is held up by other work."""
        self.finish(event)
        if self._asked and self._inline:
            self._spawn_asked()

    def finish(self, event: Event) -> None:
        """Take the event that a piece of work ends with: step, and keep what came of it."""
        before = self.state
        after, effects = step(before, event)
        told = updates(before, event, after, self.seq)
        self.state = after
        self.seq += len(told)
        if self._keep is None:
            self.log.append(event)
            self._release(before, event, after, told, effects)
        else:
            self.unkept += 1
            self._keep(Change(before, event, after, told, effects))

    def release(self, change: Change) -> None:
        """A change lasts now: tell the watchers, and do what it asks for."""
        self.unkept -= 1
        self._release(change.before, change.event, change.after, change.told, change.effects)
        self._wake()

    def accept(self, event: Event) -> Change:
        """Take an event that somebody else has kept already."""
        before = self.state
        after, effects = step(before, event)
        told = updates(before, event, after, self.seq)
        self.state = after
        self.seq += len(told)
        self._release(before, event, after, told, effects)
        return Change(before, event, after, told, effects)

    def rewind(self, state: Run, seq: int) -> None:
        """Forget the changes that came to nothing: the run is as it was kept."""
        self.state, self.seq, self.unkept = state, seq, 0

    def _release(
        self, before: Run | None, event: Event, after: Run, told: Sequence[Update], effects: tuple[Effect, ...]
    ) -> None:
        if self.means.onlookers is not None:
            self.means.onlookers.changed(self.means.agent, before, event, after)
        for effect in effects:
            # What most effects are, and without a call: on this path, that costs more than the rest of it.
            if type(effect) is AskModel or (type(effect) is Dispatch and after.calls[effect.call_id].place is _SERVER):
                self._asked.append(effect)
            elif type(effect) is not SetTimer or self._timers is not None:
                self._take(effect)
        if before is not None and after.calls is not before.calls:
            self._let_go(told)
        if after.ending is not None and self.scopes:
            self._stop_all()
        if self._hushed or (told and type(told[-1]) is RunWaiting):
            told = self._hush(told, after)
        if told:
            self.watchers.tell(told, not self._busy)
        if self._news is not None:
            self._wake()

    def _hush(self, told: Sequence[Update], after: Run) -> Sequence[Update]:
        """That the run waits is not told as long as somebody in this process may still answer."""
        if told and type(told[-1]) is RunWaiting:
            self._hushed = bool(self._asked)
            return told[:-1] if self._hushed else told
        self._hushed = self._hushed and after.waiting
        return told

    def tell(self, told: Sequence[Update]) -> None:
        """Pass updates on, and let whoever waits for news look."""
        if told:
            self.watchers.tell(told, not self._busy)
        self._wake()

    def tell_live(self, update: Update) -> None:
        """Pass on a piece of the reply that is under way."""
        self.watchers.tell((update,), False)
        if self._news is not None:
            self._wake()

    def tell_progress(self, key: Key, name: str, value: Any) -> None:
        """Pass on what a tool says of its progress, from whatever thread it says so; too late is too late."""
        if self._loop is not None and threading.get_ident() != self._thread:
            with suppress(RuntimeError):  # the loop is closed; a thread that outlives it still has work to finish
                self._loop.call_soon_threadsafe(self.tell_progress, key, name, value)
            return
        call = self.state.calls[key[0]]
        if call.state is CallState.EXECUTING and call.attempt == key[1]:
            self.tell((CallProgress(self.seq, self.means.clock.now(), call.id, value, name),))

    def join(self, watcher: Watcher) -> Callable[[], None]:
        """Add a watcher who comes late: first it alone is told where the run stands."""
        unwatch = self.watchers.add(watcher)
        self.watchers.tell_one(watcher, current(self.state, self.seq))
        return unwatch

    def warn(self, code: str, message: str) -> None:
        """Tell watchers something that a developer should know and that the run does not."""
        self.tell((Warned(self.seq, self.means.clock.now(), code, message),))

    # Effects

    def _take(self, effect: Effect) -> None:
        """Do at once what takes no time, and line up the rest."""
        # Not `match`: each class that a value is not of takes it several times as long as looking at the type.
        if type(effect) is Dispatch:
            self._hand_out(effect)
        elif type(effect) is SetTimer:
            if self._timers is not None:
                self._timers.set(effect)
        elif type(effect) is AskApproval:
            if self.means.on_approval is not None:  # otherwise somebody says `approve` or `deny`
                self._asked.append(effect)
        elif type(effect) is Withdraw:
            self._stop((effect.call_id, effect.attempt))
        elif type(effect) is StopModel:
            self._stop(("", effect.turn))
        elif type(effect) is Memorise:
            self._memorise(effect)
        else:
            self._asked.append(effect)

    def _hand_out(self, effect: Dispatch) -> None:
        call = self.state.calls[effect.call_id]
        if self.runs_here(call):
            self._asked.append(effect)
        elif self.offered is not None:  # somebody else says `answer` or `fail`
            self.offered(call)

    def _memorise(self, effect: Memorise) -> None:
        if self._keep is None:  # otherwise whoever keeps the change keeps this with it
            self.means.decisions.keep(effect.principal, effect.memory)

    def runs_here(self, call: Record) -> bool:
        """Whether a call is run by this process."""
        return call.place is not _CLIENT or self.means.on_call is not None or self.function(call) is not None

    def _stop(self, key: Key) -> None:
        if key in self.contexts:
            self.contexts[key].cancelled = True
        if key in self.scopes:
            self.scopes[key].stop()

    def _stop_all(self) -> None:
        for key in list(self.scopes):
            self._stop(key)

    def _let_go(self, told: Sequence[Update]) -> None:
        """Stop whatever still works on calls that have their outcome, and asks about calls that are decided."""
        for update in told:
            if type(update) is CallApproved:
                self._stop((update.call_id, DECIDING))
            elif type(update) is CallEnded:
                if self._timers is not None:
                    self._timers.drop(update.call_id)
                if self.scopes:
                    for key in [key for key in self.scopes if key[0] == update.call_id]:
                        self._stop(key)

    def _fire(self, timer: SetTimer) -> None:
        if self._timers is not None:
            self._timers.take(timer)
        self.commit(TimerFired(max(self.means.clock.now(), timer.due), timer.call_id, timer.kind, timer.attempt))

    def let_go(self) -> None:
        """Stop everything; the run goes on elsewhere."""
        self._error = LetGo()
        self._stop_all()
        self._wake()

    def works_on(self, run: Run) -> bool:
        """Whether a client call of a run that waits is one that is run here."""
        return any(call.state is CallState.EXECUTING and self.runs_here(call) for call in run.awaited_calls)

    def fire_overdue(self) -> None:
        """Let every timer fire whose time has come; a paused run has none that would do so by itself."""
        now = self.means.clock.now() if self.state.order else 0
        if now and is_due(self.state, now):
            for timer in overdue(lambda: self.state, now):
                self._fire(timer)

    def _arm(self) -> None:
        """From now on timers fire by themselves."""
        if self._timers is None:
            self._timers = Timers(self.means.clock, self._fire, self.state)

    # Driving

    async def drive(self, *, hold: bool = False) -> None:
        """Perform what the run asks for until it ended or, without `hold`, waits for a client or a person."""
        while not self._begin():
            await self.other_driver()
        try:
            self.fire_overdue()
            while self._error is None and (self.state.ending is None or self.unkept):
                if self._asked:
                    if len(self._asked) == 1 and not self._tasks:
                        self._inline = True
                        effect = self._asked.popleft()
                        scope = self._start(effect)
                        if scope is not None:
                            await self._see_through(scope, _key_of(effect))
                        self._inline = False
                    else:
                        self._spawn_asked()
                elif not await self._idle(hold=hold):
                    break
            if self._error is not None:
                raise self._error
            if self._tasks:
                await self._leave_behind()
        except BaseException as error:
            self._inline = False
            await self._abort(error)
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
                await self._abort(None)  # a task that had not begun has not done so itself
            if not task.cancelled():
                task.exception()  # nobody reads on: asyncio would log the text of an error that was never looked at

    async def _idle(self, *, hold: bool) -> bool:
        """Nothing can be begun with: wait for news, unless others have to go on and nobody holds the run."""
        if self._hushed and self._waits_for_others():
            self._tell_waiting()
        elif not hold and not self.unkept and self._waits_for_others():
            return False
        else:
            await self._wait_for_news()
        return True

    def _waits_for_others(self) -> bool:
        """Whether nothing that is under way in this process can go on until a client or a person answers."""
        return not self._tasks and self.state.waiting

    def _tell_waiting(self) -> None:
        """Nobody here has answered after all: now it is true that the run waits."""
        self._hushed = False
        call_ids = tuple([call.id for call in self.state.awaited_calls])
        self.tell((RunWaiting(self.seq, self.means.clock.now(), call_ids),))

    def _begin(self) -> bool:
        """Take the run up, unless somebody drives it already."""
        with self.lock:
            if self._busy:
                return False
            self._busy = True
            self._thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self.watchers.forget()
        return True

    async def other_driver(self) -> None:
        """Wait until whoever drives the run has ended, be it on another thread's event loop."""
        ended: Future[None] = Future()
        self._followers.append(ended)
        if self._busy:  # otherwise it ended just now
            await asyncio.wrap_future(ended)

    def _rest(self) -> None:
        if self._timers is not None:
            self._timers.rest()
            self._timers = None
        del self._context  # it may hold whatever the caller holds
        self._error = None
        self._busy = False
        while self._followers:
            follower = self._followers.pop(0)
            if follower.set_running_or_notify_cancel():
                follower.set_result(None)

    async def _abort(self, error: BaseException | None) -> None:
        """The driver was cancelled, or a callback raised: leave nothing running.

        A run that nobody keeps is called off with its driver; one that is kept goes on elsewhere.
        """
        self._asked.clear()
        known = isinstance(error, Exception)
        if self.state.ending is None and (self._keep is None or (known and not isinstance(error, LetGo))):
            reason = f"{type(error).__name__} in the program" if known else "the program stopped waiting"
            self.commit(RunCancelled(self.means.clock.now(), reason))
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await self._leave_behind()

    async def _leave_behind(self) -> None:
        """The run is over: what still runs for it was told to stop, and is not waited for without end."""
        _, pending = await asyncio.wait(self._tasks, timeout=LINGER)
        if pending:
            logger.warning("%d pieces of work of run %s do not stop; left behind", len(pending), self.state.id)
            self._tasks.clear()

    def _spawn_asked(self) -> None:
        """Begin with everything at once, in the context of whoever drives: the one who speaks may be somebody else."""
        while self._asked:
            task = self._context.copy().run(asyncio.ensure_future, self._perform(self._asked.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._task_done)

    async def _perform(self, effect: Effect) -> None:
        scope = self._start(effect)
        if scope is not None:
            await self._see_through(scope, _key_of(effect))

    def _start(self, effect: Effect) -> Scope | None:
        """Do the first stretch of what an effect asks for; the scope of the rest, if it has to wait."""
        scope, waits = Scope(), False
        try:
            waits = scope.begin(self._do[type(effect)](self, effect))
        finally:
            if not waits and self.contexts:
                self.contexts.pop(_key_of(effect), None)
        return scope if waits else None

    async def _see_through(self, scope: Scope, key: Key) -> None:
        """Work really waits: from now on it can be stopped, and timers fire by themselves."""
        self.scopes[key] = scope
        self._arm()
        if not self._is_wanted(key):  # it was called off by its own doing, before it waited
            scope.stop()
        try:
            await scope.finish()
        except Stopped:
            pass
        finally:
            if self.scopes.get(key) is scope:
                del self.scopes[key]
            self.contexts.pop(key, None)

    def _is_wanted(self, key: Key) -> bool:
        run = self.state
        if not key[0]:
            return run.ending is None
        call = run.calls[key[0]]
        return call.open and (key[1] <= 0 or call.attempt == key[1])

    def interrupted(self, key: Key) -> bool:
        """Whether work was stopped or its task cancelled, so that a `CancelledError` in it is not its own."""
        scope = self.scopes.get(key)
        return scope is not None and scope.interrupted

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and self._error is None:
            self._error = task.exception()
        elif self._asked and self._inline:  # the driver itself is held up, and nobody else would begin with it
            self._spawn_asked()
        self._wake()

    def _wake(self) -> None:
        """Whoever waits for news looks."""
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _expect_news(self) -> asyncio.Future[None]:
        if self._news is None or self._news.done():
            self._news = asyncio.get_running_loop().create_future()
        return self._news

    async def _wait_for_news(self) -> None:
        self._arm()
        await self._expect_news()


def _key_of(effect: Effect) -> Key:
    """The name under which the work that an effect asks for can be stopped."""
    match effect:
        case Dispatch():
            return effect.call_id, effect.attempt
        case AskModel():
            return "", effect.turn
        case AskApproval():
            return effect.call_id, DECIDING
        case JudgeApproval():
            return effect.call_id, JUDGING
        case _:
            return "", JUDGING
