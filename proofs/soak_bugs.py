"""Faults that a worker of the soak can be given, each a promise broken on purpose: the soak has to find every one."""

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import structs

from farhand.core import presence, step
from farhand.core.call import Change, move
from farhand.durable.held import Held
from farhand.durable.record import Revived
from farhand.durable.replica import Replica
from farhand.stores.base import Write

LATE = 0.03
"""Seconds between an acknowledgement and the commit that it should have waited for."""


def _acknowledge_early() -> None:
    """Whoever answers is told so at once; the commit comes a moment later."""
    send, kept_in_time = Held._send, Held.kept  # pyright: ignore[reportPrivateUsage]

    def kept(self: Held) -> "asyncio.Future[None]":
        if self._begins is not None:  # pyright: ignore[reportPrivateUsage]
            return kept_in_time(self)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def send_late(self: Held, write: Write) -> None:
        asyncio.get_running_loop().call_later(LATE, send, self, write)

    Held.kept = kept
    Held._send = send_late  # pyright: ignore[reportPrivateUsage]


def _dispatch_again() -> None:
    """After a crash every call is run again, whatever it does to the world."""

    def recover(work: Any, call: Any, definition: Any) -> None:
        work.put(move(call, Change.RELEASE, losses=call.losses + 1, deadline=None, grace=None, held_by="", dies=False))

    step.recover = presence.recover = recover


def _forget_epoch() -> None:
    """Who was taken for dead does not notice, and goes on with what it held under whatever epoch it finds."""
    on_read = Held._on_read  # pyright: ignore[reportPrivateUsage]

    def on_read_again(self: Held, reading: "asyncio.Future[Revived | None]") -> None:
        if not reading.cancelled() and reading.exception() is None and (found := reading.result()) is not None:
            self.row = structs.replace(self.row, epoch=found.row.epoch)
            self.worker = found.row.holder or self.worker
        on_read(self, reading)

    Held._on_read = on_read_again  # pyright: ignore[reportPrivateUsage]
    Replica._on_lost = lambda self: None  # pyright: ignore[reportPrivateUsage]


BUGS: dict[str, Callable[[], None]] = {
    "acknowledge-early": _acknowledge_early,
    "dispatch-again": _dispatch_again,
    "forget-epoch": _forget_epoch,
}


def plant(bug: str) -> None:
    """Give this process a fault; an empty name is none."""
    if bug:
        BUGS[bug]()
