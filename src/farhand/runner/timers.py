"""The timers of one run, while somebody drives it and really waits; until then its calls say when.

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
    """At most one timer of a kind for each call, as long as somebody drives the run and really waits."""

    __slots__ = ("_armed", "_clock", "_fire")

    def __init__(self, clock: Clock, fire: Fire, run: Run) -> None:
        self._clock = clock
        self._fire = fire
        self._armed: dict[str, dict[TimerKind, Timer]] = {}
        for call in run.open_calls:
            for timer in timers_of(call):
                self.set(timer)

    def set(self, timer: SetTimer) -> None:
        """The run has one more timer."""
        self.take(timer)
        fire = self._fire
        self._armed.setdefault(timer.call_id, {})[timer.kind] = self._clock.call_at(timer.due, lambda: fire(timer))

    def drop(self, call_id: str) -> None:
        """A call has ended, and its timers with it."""
        for armed in self._armed.pop(call_id, {}).values():
            armed.cancel()

    def rest(self) -> None:
        """Nobody drives any more: a paused run holds nothing in the event loop, and no circle that holds itself."""
        for call_id in list(self._armed):
            self.drop(call_id)

    def take(self, timer: SetTimer) -> None:
        """A timer fires now: it shall not do so by itself."""
        armed = self._armed.get(timer.call_id, {}).pop(timer.kind, None)
        if armed is not None:
            armed.cancel()


def is_due(run: Run, now: int) -> bool:
    """Whether a timer of the run should have fired by now."""
    for call_id in run.order:
        call = run.calls[call_id]
        if call.outcome is None and (
            (call.deadline is not None and call.deadline <= now)
            or 0 < call.not_before <= now
            or (call.grace is not None and call.grace <= now)
        ):
            return True
    return False


def overdue(look: Callable[[], Run], now: int) -> Iterator[SetTimer]:
    """Whatever is due in a run that changes with each that fires, oldest first; what is gone meanwhile is left out."""
    due = [timer for call in look().open_calls for timer in timers_of(call) if timer.due <= now]
    for timer in sorted(due, key=lambda timer: timer.due):
        if timer in timers_of(look().calls[timer.call_id]):
            yield timer
