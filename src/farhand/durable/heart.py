"""Says at intervals that this process lives, from a thread of its own: a busy event loop must not lose its runs."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from farhand.core.errors import StoreError
from farhand.runner.clock import Clock
from farhand.stores.base import Store

logger = logging.getLogger("farhand.durable")


class Heart:
    """Beats for one worker until it is stopped, or until the worker has been taken for dead; then it says so once."""

    def __init__(
        self, store: Store, worker: str, clock: Clock, *, lease: float, every: float, on_lost: Callable[[], None]
    ) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock
        self._lease = lease
        self._every = every
        self._on_lost = on_lost
        self._last = clock.now()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Beat in a thread."""
        home, on_lost = asyncio.get_running_loop(), self._on_lost
        self._on_lost = lambda: _say(home, on_lost)
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self.beat())
        self._thread = threading.Thread(target=self._run, name="farhand-heart", daemon=True)
        self._thread.start()

    def start_here(self) -> None:
        """Beat in this event loop, for a world whose time is not real."""
        self._task = asyncio.ensure_future(self.beat())

    async def stop(self) -> None:
        """Beat no more."""
        assert self._task is not None
        if self._loop is not None and self._thread is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
            await asyncio.to_thread(self._thread.join)
        else:
            self._task.cancel()
            await asyncio.wait((self._task,))

    def _run(self) -> None:
        loop, task = self._loop, self._task
        assert loop is not None
        assert task is not None

        async def live() -> None:
            await asyncio.wait((task,))

        with asyncio.Runner(loop_factory=lambda: loop) as runner:  # it ends whatever the store has begun in this loop
            runner.run(live())

    async def beat(self) -> None:
        """Beat until it is over. Without a beat for a whole lease others have the runs, whether they say so or not."""
        while True:
            now = self._clock.now()
            try:
                alive = await self._store.beat(self._worker, now, now + round(self._lease * 1000))
            except StoreError as error:
                alive = now - self._last < self._lease * 1000
                logger.warning("worker %s cannot say that it lives (%s)", self._worker, type(error).__name__)
            else:
                self._last = now
            if not alive:
                self._on_lost()
                return
            await asyncio.sleep(self._every)


def _say(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(what)
