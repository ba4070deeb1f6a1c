"""A piece of work that can be stopped from outside, in a task of its own or in the middle of somebody else's."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Stopped(Exception):
    """The work was stopped; what it would have said is not wanted any more."""


class Scope:
    """Runs one coroutine in the current task. `stop` cancels just that, as `asyncio.timeout` does."""

    __slots__ = ("_cancelling", "_requested", "_task", "stopped")

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._requested = False
        self.stopped = False

    def stop(self) -> None:
        """Cancel the work if it is under way, or keep it from starting."""
        self.stopped = True
        if self._task is not None and self._task is not _current_task():
            self._requested = True
            self._task.cancel()

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work; raises `Stopped` when it was stopped, and lets every other cancellation through."""
        if self.stopped:
            work.close()
            raise Stopped
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        try:
            await work
        except asyncio.CancelledError as error:
            if self._requested and task.uncancel() <= self._cancelling:
                raise Stopped from error
            raise
        else:
            if self._requested:  # the work swallowed its cancellation
                task.uncancel()
                raise Stopped
        finally:
            self._task = None


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
