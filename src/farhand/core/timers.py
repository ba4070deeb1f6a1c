"""Which timers a run has set. They can be read off its calls at any time, so that none has to be kept beside them."""

from collections.abc import Iterator

from farhand.core.call import Call
from farhand.core.effects import SetTimer
from farhand.core.events import TimerKind
from farhand.core.run import Run

# Reading a member off its enum costs as much as calling a function on Python 3.11; the hot path reads this.
_DEADLINE = TimerKind.DEADLINE


def timers_of(call: Call) -> Iterator[SetTimer]:
    """The timers of one open call."""
    if call.deadline is not None:
        yield SetTimer(call.deadline, call.id, _DEADLINE, call.attempt)
    elif call.not_before:
        yield SetTimer(call.not_before, call.id, TimerKind.BACKOFF, call.attempt)
    if call.grace is not None:
        yield SetTimer(call.grace, call.id, TimerKind.GRACE, call.attempt)


def next_due(run: Run) -> int | None:
    """When the first of a run's timers is to fire."""
    return min((timer.due for call in run.open_calls for timer in timers_of(call)), default=None)
