"""A clock that stands still until a test moves it, and ids that count."""

from collections.abc import Callable


class _Timer:
    def __init__(self, due: int, callback: Callable[[], None]) -> None:
        self.due = due
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """Never fire."""
        self.cancelled = True


class VirtualClock:
    """Pass it to an agent: `Agent(model, clock=VirtualClock())`. Timers fire in `advance`, in their order."""

    def __init__(self, start: int = 1_000_000) -> None:
        self._now = start
        self._ids = 0
        self._timers: list[_Timer] = []

    def now(self) -> int:
        """The time that was set."""
        return self._now

    def new_id(self) -> str:
        """The next id: `id-1`, `id-2`, …"""
        self._ids += 1
        return f"id-{self._ids}"

    def call_at(self, due: int, callback: Callable[[], None]) -> _Timer:
        """Call back once the clock is moved to `due`."""
        timer = _Timer(due, callback)
        self._timers.append(timer)
        return timer

    @property
    def waiting(self) -> int:
        """How many timers are set."""
        return sum(not timer.cancelled for timer in self._timers)

    def advance(self, seconds: float) -> None:
        """Move the clock; whatever is due on the way fires at its time."""
        end = self._now + round(seconds * 1000)
        while due := [timer for timer in self._timers if timer.due <= end and not timer.cancelled]:
            timer = min(due, key=lambda timer: timer.due)
            self._timers.remove(timer)
            self._now = max(self._now, timer.due)
            timer.callback()
        self._now = end
