"""The runs that this process has taken up lately, so that a stored run resumed twice goes on once."""

import threading
from collections import OrderedDict
from typing import Any
from weakref import ref

from farhand.core.run import Ending, Run
from farhand.runner.live import LiveRun

_BROKEN = (Ending.FAILED, Ending.CANCELLED)


class RecentRuns:
    """Runs by id: every one that was written down while somebody has it, and the latest that were resumed."""

    def __init__(self, size: int = 256) -> None:
        self._size = size
        self.lock = threading.RLock()
        """Held from looking for a run to keeping it, so that two threads do not both begin with it."""
        self._kept: OrderedDict[str, LiveRun[Any]] = OrderedDict()
        self._noted: dict[str, ref[LiveRun[Any]]] = {}
        self._crowded = 4 * size

    def find(self, stored: Run) -> LiveRun[Any] | None:
        """The run that `stored` is a picture of, if this process has it and nothing speaks for the picture.

        A newer picture wins: another process went on with it. And a run that failed or was called off without having
        dispatched anything since may be tried again from its picture; otherwise a tool could run twice.
        """
        live = self._kept.get(stored.id) or self._alive(stored.id)
        if live is None or live.state.events < stored.events:
            return None
        broken = live.state.ending in _BROKEN and stored.ending is None
        return None if broken and _attempts(live.state) == _attempts(stored) else live

    def note(self, run: LiveRun[Any]) -> None:
        """Know a run as long as somebody has it."""
        with self.lock:
            self._noted[run.id] = ref(run)
            if len(self._noted) > self._crowded:
                # Nobody is told when a run is dropped, which costs more than to look now and then.
                self._noted = {run_id: noted for run_id, noted in self._noted.items() if noted() is not None}
                self._crowded = max(4 * self._size, 2 * len(self._noted))

    def keep(self, run: LiveRun[Any]) -> None:
        """Know a run, and keep it until others have pushed it out."""
        self._kept[run.id] = run
        self._kept.move_to_end(run.id)
        while len(self._kept) > self._size:
            self.note(self._kept.popitem(last=False)[1])

    def _alive(self, run_id: str) -> LiveRun[Any] | None:
        noted = self._noted.get(run_id)
        return None if noted is None else noted()


def _attempts(run: Run) -> dict[str, int]:
    return {call.id: call.attempt for call in run.calls.values() if call.attempt}
