"""The timers of one run, armed only while somebody drives it and really waits; until then its calls say when.

Most calls have ended before anybody waits, so that to note each timer beforehand would be wasted.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from farhand.core.effects import SetTimer
from farhand.core.events import TimerKind
from farhand.core.run import Run
from farhand.core.timers import timers_of
from farhand.runner.clock import Clock, Timer

Fire: TypeAlias = Callable[[SetTimer], None]


class Timers:
    """At most one timer of a kind for each call.

    Who is to be told is known only while armed: a run that holds itself in a circle would wait for the collector.
    """

    __slots__ = ("_armed", "_clock", "_fire")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fire: Fire | None = None
        self._armed: dict[str, dict[TimerKind, Timer]] = {}

    def set(self, timer: SetTimer) -> None:
        """The run has one more timer."""
        if self._fire is not None:
            self._arm(timer, self._fire)

    def drop(self, call_id: str) -> None:
        """A call has ended, and its timers with it."""
        if self._armed:
            for armed in self._armed.pop(call_id, {}).values():
                armed.cancel()

    def arm(self, fire: Fire, run: Run) -> None:
        """From now on timers fire by themselves."""
        if self._fire is None:
            self._fire = fire
            for call in run.open_calls:
                for timer in timers_of(call):
                    self._arm(timer, fire)

    def rest(self) -> None:
        """Nobody drives any more: a paused run holds nothing in the event loop."""
        if self._fire is not None:
            self._fire = None
            for call_id in list(self._armed):
                self.drop(call_id)

    def take(self, timer: SetTimer) -> None:
        """A timer fires now: it shall not do so by itself."""
        armed = self._armed.get(timer.call_id, {}).pop(timer.kind, None)
        if armed is not None:
            armed.cancel()

    def _arm(self, timer: SetTimer, fire: Fire) -> None:
        self.take(timer)
        self._armed.setdefault(timer.call_id, {})[timer.kind] = self._clock.call_at(timer.due, lambda: fire(timer))


def overdue(look: Callable[[], Run], now: int) -> Iterator[SetTimer]:
    """Whatever is due in a run that changes with each that fires, oldest first; what is gone meanwhile is left out."""
    due = [timer for call in look().open_calls for timer in timers_of(call) if timer.due <= now]
    for timer in sorted(due, key=lambda timer: timer.due):
        if timer in timers_of(look().calls[timer.call_id]):
            yield timer
