"""The timers of one run. They are known always, but armed only while somebody drives the run and really waits."""

from collections.abc import Callable

from farhand.core.effects import SetTimer
from farhand.core.events import TimerKind
from farhand.runner.clock import Clock, Timer

_KINDS = tuple(TimerKind)


class Timers:
    """At most one timer of a kind for each call."""

    def __init__(self, clock: Clock, fire: Callable[[SetTimer], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._timers: dict[tuple[str, TimerKind], tuple[SetTimer, Timer | None]] = {}
        self._armed = False

    def __bool__(self) -> bool:
        return bool(self._timers)

    def set(self, timer: SetTimer) -> None:
        """Note a timer. Most calls have ended before anybody waits, so arming it at once would be wasted."""
        key = (timer.call_id, timer.kind)
        self._drop(key)
        self._timers[key] = (timer, self._arm(timer) if self._armed else None)

    def drop(self, call_id: str) -> None:
        """Forget a call's timers."""
        for kind in _KINDS:
            self._drop((call_id, kind))

    def arm(self) -> None:
        """From now on timers fire by themselves."""
        if not self._armed:
            self._armed = True
            for key, (timer, armed) in self._timers.items():
                if armed is None:
                    self._timers[key] = (timer, self._arm(timer))

    def rest(self) -> None:
        """Nobody drives any more: a paused run holds nothing in the event loop."""
        self._armed = False
        for key, (timer, armed) in self._timers.items():
            if armed is not None:
                armed.cancel()
                self._timers[key] = (timer, None)

    def fire_overdue(self) -> None:
        """Fire whatever was due while nobody drove."""
        now = self._clock.now()
        for timer, _ in sorted(self._timers.values(), key=lambda entry: entry[0].due):
            if timer.due <= now:
                self._ring(timer)

    def _arm(self, timer: SetTimer) -> Timer:
        return self._clock.call_at(timer.due, lambda: self._ring(timer))

    def _ring(self, timer: SetTimer) -> None:
        self._drop((timer.call_id, timer.kind))
        self._fire(timer)

    def _drop(self, key: tuple[str, TimerKind]) -> None:
        _, armed = self._timers.pop(key, (None, None))
        if armed is not None:
            armed.cancel()
