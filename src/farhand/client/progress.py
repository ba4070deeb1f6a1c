"""How far a call is, told to the server: the newest value of each name, a few times a second at most."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from msgspec import Raw

from farhand.places.faults import where
from farhand.places.values import dump

logger = logging.getLogger("farhand.client")

EVERY = 0.2
"""Seconds between two reports of one call."""
PATIENCE = 2.0
"""Seconds that a result waits for the last report before it."""

Send = Callable[[str, Raw], Awaitable[Any]]


class Progress:
    """Takes what a tool says, in any thread, and never fails it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._newest: dict[str, Raw] = {}
        self._task: asyncio.Task[None] | None = None
        self._last = False
        self._stopped = False
        self._hurry = asyncio.Event()

    def tell(self, name: str, value: Any) -> None:
        """Something to report."""
        try:
            raw = Raw(dump(value))
        except Exception as error:  # noqa: BLE001  the tool has more important things to do
            logger.warning("progress that is no JSON value is not told: %s", where(error))
            return
        if _loop_here() is self._loop:
            self._note(name, raw)
            return
        with suppress(RuntimeError):  # the loop is closed, and a thread works on
            self._loop.call_soon_threadsafe(self._note, name, raw)

    async def flush(self) -> None:
        """Report what is newest now."""
        self._last = True
        self._hurry.set()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=PATIENCE)

    def stop(self) -> None:
        """Report nothing more."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    def _note(self, name: str, raw: Raw) -> None:
        if self._stopped:
            return
        self._newest[name] = raw
        if self._task is None:
            self._task = asyncio.ensure_future(self._report())

    async def _report(self) -> None:
        while self._newest or not self._last:
            await self._send_newest()
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._hurry.wait()

    async def _send_newest(self) -> None:
        newest, self._newest = self._newest, {}
        for name, raw in newest.items():
            try:
                await self._send(name, raw)
            except Exception as error:  # noqa: BLE001  a report that is lost is followed by another, or by the result
                logger.debug("progress was not told: %s", where(error))


def _loop_here() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
