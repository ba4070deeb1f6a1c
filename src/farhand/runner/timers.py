"""The timers of one run. They are known always, but armed only while somebody drives the run and really waits."""

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TypeAlias

from farhand.core.effects import SetTimer
from farhand.core.events import TimerKind
from farhand.runner.clock import Clock, Timer

Fire: TypeAlias = Callable[[SetTimer], None]


class Timers:
    """At most one timer of a kind for each call.

    Who is to be told is known only while armed: a run that holds itself in a circle would wait for the collector.
    """

    __slots__ = ("_calls", "_clock", "_fire", "_first")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fire: Fire | None = None
        self._calls: dict[str, dict[TimerKind, tuple[SetTimer, Timer | None]]] = {}
        self._first = inf
        """No timer is due before this."""

    def set(self, timer: SetTimer) -> None:
        """Note a timer. Most calls have ended before anybody waits, so arming it at once would be wasted."""
        if timer.due < self._first:
            self._first = timer.due
        kinds = self._calls.setdefault(timer.call_id, {})
        if timer.kind in kinds:
            _cancel(kinds.pop(timer.kind))
        kinds[timer.kind] = (timer, None if self._fire is None else self._arm(timer, self._fire))

    def drop(self, call_id: str) -> None:
        """Forget a call's timers."""
        kinds = self._calls.pop(call_id, None)
        if kinds is not None:
            for entry in kinds.values():
                _cancel(entry)

    def arm(self, fire: Fire) -> None:
        """From now on timers fire by themselves."""
        if self._fire is None:
            self._fire = fire
            for kinds in self._calls.values():
                for kind, (timer, armed) in kinds.items():
                    kinds[kind] = (timer, armed or self._arm(timer, fire))

    def rest(self) -> None:
        """Nobody drives any more: a paused run holds nothing in the event loop."""
        if self._fire is None:
            return
        self._fire = None
        for kinds in self._calls.values():
            for kind, entry in kinds.items():
                _cancel(entry)
                kinds[kind] = (entry[0], None)

    def overdue(self) -> Iterable[SetTimer]:
        """Take out whatever was due while nobody drove, oldest first; one that is dropped meanwhile does not come."""
        if not self._calls:
            return ()
        now = self._clock.now()
        return self._take_overdue(now) if self._first <= now else ()

    def _take_overdue(self, now: int) -> Iterator[SetTimer]:
        due = [timer for kinds in self._calls.values() for timer, _ in kinds.values() if timer.due <= now]
        for timer in sorted(due, key=lambda timer: timer.due):
            if self._take(timer):
                yield timer

    def _arm(self, timer: SetTimer, fire: Fire) -> Timer:
        def ring() -> None:
            if self._take(timer):
                fire(timer)

        return self._clock.call_at(timer.due, ring)

    def _take(self, timer: SetTimer) -> bool:
        """Take a timer out, if it is still wanted."""
        entry = self._calls.get(timer.call_id, {}).pop(timer.kind, None)
        _cancel(entry)
        return entry is not None


def _cancel(entry: tuple[SetTimer, Timer | None] | None) -> None:
    if entry is not None and entry[1] is not None:
        entry[1].cancel()
