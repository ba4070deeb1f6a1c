"""How the server is doing: numbers for Prometheus, and a view for whoever operates it."""

from contextlib import suppress
from time import perf_counter
from typing import Final

from farhand.asgi.streams import Encoder, Streams
from farhand.core.errors import StoreError
from farhand.durable import Runner
from farhand.protocols import native
from farhand.telemetry.metrics import Metrics

SLOW: Final = 5.0
"""Seconds for which a number that the store has to count is not counted again."""


class Board:
    """What is shown of a server."""

    def __init__(self, runner: Runner, metrics: Metrics, streams: Streams, encoder: Encoder) -> None:
        self._runner = runner
        self._metrics = metrics
        self._streams = streams
        self._counted: tuple[float, int | None] = (-SLOW, None)
        self._began = runner.now()
        metrics.know(runner.agents)
        metrics.gauge("farhand_streams_open", "Event streams that are open.", lambda: len(streams))
        metrics.gauge("farhand_sockets_open", "Sockets that are open.", lambda: streams.sockets)
        metrics.reading("farhand_updates_sent_total", "Updates that were sent to readers.", lambda: encoder.sent)
        metrics.gauge("farhand_runs_held", "Runs that this process works on.", lambda: runner.busy)
        metrics.gauge(
            "farhand_calls_waiting",
            "Calls in the store that wait for a client or a person, of all processes.",
            lambda: self._counted[1],
        )

    async def metrics(self) -> str:
        """All numbers."""
        await self._count()
        return self._metrics.text()

    async def status(self, *, draining: bool) -> native.StatusView:
        """What there is to know at a glance."""
        began = perf_counter()
        await self._count(now=True)
        took = perf_counter() - began
        waiting = self._counted[1]
        return native.StatusView(
            status="draining" if draining else "away" if waiting is None else "ok",
            worker=self._runner.worker,
            began=self._began,
            runs_held=self._runner.busy,
            streams=len(self._streams),
            sockets=self._streams.sockets,
            calls_waiting=waiting,
            store_ms=None if waiting is None else round(took * 1000, 3),
        )

    async def _count(self, *, now: bool = False) -> None:
        at = perf_counter()
        if now or at - self._counted[0] >= SLOW:
            self._counted = (at, None)
            with suppress(StoreError):
                self._counted = (at, await self._runner.store.awaited())
