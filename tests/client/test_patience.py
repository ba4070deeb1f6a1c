"""How long a client waits, and for what."""

import pytest

from farhand.client.patience import Outage, Patience, insist
from farhand.core.errors import ConnectionLost, NotFound, StoreAway, TooMuch

NOW = Patience(total=10.0, first=0.0001, most=0.001)


def ignore(attempt: int, delay: float, error: Exception) -> None:
    """Nobody listens."""


def test_delays_double_up_to_the_longest_and_differ_by_chance() -> None:
    patience = Patience(first=1.0, most=8.0)
    for attempt, longest in ((1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (1000, 8)):
        delays = {patience.delay(attempt) for _ in range(20)}
        assert len(delays) > 1
        assert all(longest / 2 <= delay <= longest for delay in delays)


async def test_what_goes_by_is_asked_again() -> None:
    errors = [ConnectionLost("gone"), StoreAway("away"), TooMuch("slowly", retry_after=0.002)]
    told: list[tuple[int, str]] = []

    async def ask() -> str:
        if errors:
            raise errors.pop(0)
        return "at last"

    answer = await insist(NOW, lambda attempt, delay, error: told.append((attempt, type(error).__name__)), ask)
    assert answer == "at last"
    assert told == [(1, "ConnectionLost"), (2, "StoreAway"), (3, "TooMuch")]


async def test_what_does_not_go_by_is_raised_at_once() -> None:
    async def ask() -> None:
        raise NotFound("nothing")

    with pytest.raises(NotFound):
        await insist(NOW, ignore, ask)


async def test_patience_ends_with_the_error_itself() -> None:
    asked: list[int] = []

    async def ask() -> None:
        asked.append(1)
        raise ConnectionLost("gone")

    with pytest.raises(ConnectionLost, match="gone"):
        await insist(Patience(total=0.02, first=0.001, most=0.002), ignore, ask)
    assert len(asked) > 1


async def test_a_server_that_says_when_is_not_asked_before() -> None:
    delays: list[float] = []
    outage = Outage(NOW, lambda attempt, delay, error: delays.append(delay))
    await outage.bear(TooMuch("slowly", retry_after=0.01))
    assert delays == [0.01]
    with pytest.raises(TooMuch):
        await outage.bear(TooMuch("much more slowly", retry_after=60.0))


async def test_an_outage_that_is_over_begins_anew() -> None:
    attempts: list[int] = []
    outage = Outage(NOW, lambda attempt, delay, error: attempts.append(attempt))
    await outage.bear(ConnectionLost("gone"))
    await outage.bear(ConnectionLost("gone"))
    outage.over()
    await outage.bear(ConnectionLost("gone"))
    assert attempts == [1, 2, 1]
