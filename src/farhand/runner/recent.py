"""The runs that this process has taken up lately, so that a stored run resumed twice goes on once."""

from collections import OrderedDict
from typing import Any

from farhand.runner.live import LiveRun


class RecentRuns:
    """Runs by id, the oldest forgotten first. A second `resume` of a run gets the one that is already on its way."""

    def __init__(self, size: int = 1000) -> None:
        self._size = size
        self._runs: OrderedDict[str, LiveRun[Any]] = OrderedDict()

    def get(self, run_id: str) -> LiveRun[Any] | None:
        """The run, if this process has it."""
        return self._runs.get(run_id)

    def add(self, run: LiveRun[Any]) -> None:
        """Remember a run."""
        self._runs[run.id] = run
        self._runs.move_to_end(run.id)
        while len(self._runs) > self._size:
            self._runs.popitem(last=False)
