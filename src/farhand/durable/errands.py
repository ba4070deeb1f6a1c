"""What a process does beside everything else. It ends with the process, and whoever comes next can do it again."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from farhand.places.faults import trail

T = TypeVar("T")

logger = logging.getLogger("farhand.durable")


class Errands:
    """Tasks that nobody has to wait for."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def run(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Do something, until it is done or the process ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def drop(self) -> "list[asyncio.Task[Any]]":
        """Tell all of it to end; gives what may still be ending."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        return tasks

    async def stop(self) -> None:
        """End all of it."""
        if tasks := self.drop():
            await asyncio.wait(tasks)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("an errand failed: %s", trail(error))
