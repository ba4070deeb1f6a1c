"""A piece of work that can be stopped from outside, in the task of whoever runs it.

Most work of a run never waits: a model that is there, a tool that computes. So the first stretch runs as a plain call,
and only what really suspends is given a task to cancel and timers to watch over it.
"""

import asyncio
import contextvars
import types
from collections.abc import Coroutine, Generator
from typing import Any

_ENDED = object()


class Stopped(Exception):
    """The work was stopped; what it would have said is not wanted any more."""


class Scope:
    """Runs one coroutine in the current task: `begin` it, and `finish` it if it waits. `stop` cancels just that."""

    __slots__ = ("_before", "_cancelled", "_context", "_task", "_waits_for", "_work", "stopped")

    _before: int
    _cancelled: bool

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self.stopped = False

    def begin(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do the first stretch of the work; true if it has to wait and `finish` must do the rest."""
        context = contextvars.copy_context()  # what a tool sets there stays with it
        # Not `work.send`: to catch the StopIteration of work that never waits takes longer than to begin with it.
        waits_for = context.run(next, work.__await__(), _ENDED)
        if waits_for is _ENDED:
            return False
        self._work, self._context, self._waits_for, self._cancelled = work, context, waits_for, False
        return True

    def stop(self) -> None:
        """Cancel the work if it waits, or as soon as it does."""
        self.stopped = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._cancel(self._task)

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped the work or cancelled its task: then a `CancelledError` in it is theirs."""
        return self.stopped or (self._task is not None and self._task.cancelling() > self._before)

    def _cancel(self, task: asyncio.Task[Any]) -> None:
        if self.stopped and not self._cancelled:
            self._cancelled = True
            task.cancel()

    @types.coroutine
    def finish(self) -> Generator[Any, Any, None]:
        """Do the rest of the work. Raises `Stopped` when it was stopped."""
        task = asyncio.current_task()
        assert task is not None
        self._task, self._before = task, task.cancelling()
        try:
            yield from self._go_on(task)
        except asyncio.CancelledError as error:
            if self.stopped and task.cancelling() - self._cancelled <= self._before:
                raise Stopped from error
            raise
        finally:
            self._task = None
            if self._cancelled:
                task.uncancel()
        if task.cancelling() > self._before:  # the work swallowed what was meant for whoever runs it
            raise asyncio.CancelledError
        if self.stopped:  # it ended in spite of being cancelled
            raise Stopped

    def _go_on(self, task: asyncio.Task[Any]) -> Generator[Any, Any, None]:
        """Do what `await` would do with the work, in the work's own context."""
        work, context, waits_for = self._work, self._context, self._waits_for
        while True:
            self._cancel(task)  # if it stopped itself: earlier, that could hit the task where it waits next
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001  passed on to the work
                resume, value = work.throw, error
            else:
                resume, value = work.send, sent
            try:
                waits_for = context.run(resume, value)
            except StopIteration:
                return
