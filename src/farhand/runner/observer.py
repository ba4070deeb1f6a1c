"""The contract of those who look on while requests are answered and runs are worked on: counts, traces, logs.

They have no say in anything. What one of them raises is logged, and goes no further.
"""

import logging
from collections.abc import Collection, Iterable
from time import perf_counter
from types import TracebackType
from typing import Self

from farhand.core.events import Event
from farhand.core.run import Run
from farhand.places.faults import where
from farhand.runner.activity import Activity, Answering, Asking, Running, Working, Writing

logger = logging.getLogger("farhand.runner")


class Observer:
    """Looks on. Override what you want to see; everything here does nothing, and has to be quick."""

    kinds: Collection[type[Activity]] = (Answering, Working, Asking, Running, Writing)
    """Activities that it is told of."""

    def began(self, activity: Activity) -> None:
        """Something begins. What is set here in the context holds for the work, and for nothing else."""

    def ended(self, activity: Activity, error: BaseException | None) -> None:
        """It has ended; with the exception, if one went through it."""

    def changed(self, agent: str, before: Run | None, event: Event, after: Run) -> None:
        """A change of a run lasts: it is stored, if runs are stored. Every change is told to one process."""

    def trace(self) -> str:
        """How a run that is started now is to be found; it is stored with the run as `Run.trace`."""
        return ""


class Onlookers:
    """Several observers, seen from the work as one. Nobody is told what he does not listen to."""

    __slots__ = ("_began", "_changed", "_ended", "_trace")

    def __init__(self, observers: Iterable[Observer]) -> None:
        known = tuple(observers)
        began = [each for each in known if type(each).began is not Observer.began]
        ended = [each for each in reversed(known) if type(each).ended is not Observer.ended]
        self._began = {kind: [each.began for each in began if kind in each.kinds] for kind in Observer.kinds}
        self._ended = {kind: [each.ended for each in ended if kind in each.kinds] for kind in Observer.kinds}
        self._changed = [each.changed for each in known if type(each).changed is not Observer.changed]
        self._trace = [each.trace for each in known if type(each).trace is not Observer.trace]

    def during(self, activity: Activity) -> "During":
        """Enter it while the activity lasts."""
        return During(self, activity)

    def changed(self, agent: str, before: Run | None, event: Event, after: Run) -> None:
        """A change of a run lasts."""
        for tell in self._changed:
            try:
                tell(agent, before, event, after)
            except Exception as error:  # noqa: BLE001  whoever looks on has no say
                _failed(error)

    def trace(self) -> str:
        """Of the first observer that has one."""
        for ask in self._trace:
            try:
                trace = ask()
            except Exception as error:  # noqa: BLE001  whoever looks on has no say
                _failed(error)
            else:
                if trace:
                    return trace
        return ""

    def began(self, activity: Activity) -> None:
        """An activity begins."""
        for tell in self._began[type(activity)]:
            try:
                tell(activity)
            except Exception as error:  # noqa: BLE001  whoever looks on has no say
                _failed(error)
        activity.since = perf_counter()

    def ended(self, activity: Activity, error: BaseException | None = None) -> None:
        """An activity has ended."""
        activity.took = perf_counter() - activity.since
        for tell in self._ended[type(activity)]:
            try:
                tell(activity, error)
            except Exception as failed:  # noqa: BLE001  whoever looks on has no say
                _failed(failed)


class During:
    """One activity, for as long as it lasts."""

    __slots__ = ("_activity", "_onlookers")

    def __init__(self, onlookers: Onlookers, activity: Activity) -> None:
        self._onlookers = onlookers
        self._activity = activity

    def __enter__(self) -> Self:
        self._onlookers.began(self._activity)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._onlookers.ended(self._activity, error)


def _failed(error: Exception) -> None:
    logger.error("an observer failed: %s", where(error))
