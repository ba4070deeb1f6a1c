"""How often each tool of a run was called, how that ended and how long it took. It counts; nothing is sent anywhere."""

from collections.abc import Iterable

from msgspec import Struct

from farhand.core.call import Call, Outcome


class Tally(Struct, frozen=True):
    """Of one tool in one run. `took` adds up milliseconds from the model's reply to the outcome, waiting included."""

    calls: int
    outcomes: dict[Outcome, int]
    took: int


def tally(calls: Iterable[Call]) -> dict[str, Tally]:
    """Counts by tool, of the calls that have ended."""
    counts: dict[str, Tally] = {}
    for call in calls:
        if call.outcome is None:
            continue
        known = counts.get(call.tool)
        took = call.settled - call.created
        if known is None:
            counts[call.tool] = Tally(1, {call.outcome: 1}, took)
        else:
            outcomes = {**known.outcomes, call.outcome: known.outcomes.get(call.outcome, 0) + 1}
            counts[call.tool] = Tally(known.calls + 1, outcomes, known.took + took)
    return counts
