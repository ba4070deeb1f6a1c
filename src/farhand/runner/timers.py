"""The timers of one run. They are known always, but armed only while somebody drives the run and really waits."""

from collections.abc import Callable

from farhand.core.effects import SetTimer
from farhand.core.events import TimerKind
from farhand.runner.clock import Clock, Timer


class Timers:
    """At most one timer of a kind for each call."""

    __slots__ = (
        "_armed",
        "_calls",
        "_clock",
        "_fire",
    )

    def __init__(self, clock: Clock, fire: Callable[[SetTimer], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._calls: dict[str, dict[TimerKind, tuple[SetTimer, Timer | None]]] = {}
        self._armed = False

    def set(self, timer: SetTimer) -> None:
        """Note a timer. Most calls have ended before anybody waits, so arming it at once would be wasted."""
        kinds = self._calls.setdefault(timer.call_id, {})
        _cancel(kinds.pop(timer.kind, None))
        kinds[timer.kind] = (timer, self._arm(timer) if self._armed else None)

    def drop(self, call_id: str) -> None:
        """Forget a call's timers."""
        for entry in self._calls.pop(call_id, {}).values():
            _cancel(entry)

    def arm(self) -> None:
        """From now on timers fire by themselves."""
        if not self._armed:
            self._armed = True
            for kinds in self._calls.values():
                for kind, (timer, armed) in kinds.items():
                    kinds[kind] = (timer, armed or self._arm(timer))

    def rest(self) -> None:
        """Nobody drives any more: a paused run holds nothing in the event loop."""
        self._armed = False
        for kinds in self._calls.values():
            for kind, entry in kinds.items():
                _cancel(entry)
                kinds[kind] = (entry[0], None)

    def fire_overdue(self) -> None:
        """Fire whatever was due while nobody drove."""
        if not self._calls:
            return
        now = self._clock.now()
        due = [timer for kinds in self._calls.values() for timer, _ in kinds.values() if timer.due <= now]
        for timer in sorted(due, key=lambda timer: timer.due):
            self._ring(timer)

    def _arm(self, timer: SetTimer) -> Timer:
        return self._clock.call_at(timer.due, lambda: self._ring(timer))

    def _ring(self, timer: SetTimer) -> None:
        entry = self._calls.get(timer.call_id, {}).pop(timer.kind, None)
        if entry is not None:
            _cancel(entry)
            self._fire(timer)


def _cancel(entry: tuple[SetTimer, Timer | None] | None) -> None:
    if entry is not None and entry[1] is not None:
        entry[1].cancel()
