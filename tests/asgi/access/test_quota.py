"""How much one principal may have at once and ask for in a minute."""

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.asgi.access.quota import REFUSALS, Quota, Quotas
from farhand.core.errors import InvalidInput, TooMuch
from farhand.testing import VirtualClock

NO_LIMIT = Quota(**dict.fromkeys(Quota.__struct_fields__))


def quotas(clock: VirtualClock | None = None, principals: int = 1000, **limits: int | None) -> Quotas:
    return Quotas(Quota(**limits), (clock or VirtualClock()).now, principals=principals)


def refused(ask: object, *given: object) -> float:
    """The seconds to wait."""
    with pytest.raises(TooMuch) as error:
        ask(*given)  # type: ignore[operator]
    assert error.value.code == "too_much"
    return error.value.retry_after


def test_a_minutes_worth_may_be_asked_at_once_and_no_more() -> None:
    limited = quotas(requests=3)
    for _ in range(3):
        limited.asked("ann")
    assert refused(limited.asked, "ann") == pytest.approx(20)


def test_of_many_requests_a_minute_a_sixth_may_be_asked_at_once() -> None:
    clock = VirtualClock()
    limited = quotas(clock, requests=600)
    for _ in range(100):
        limited.asked("ann")
    assert refused(limited.asked, "ann") == pytest.approx(0.1)
    clock.advance(3600)
    for _ in range(100):
        limited.asked("ann")
    refused(limited.asked, "ann")


def test_whoever_is_refused_again_and_again_insists() -> None:
    clock = VirtualClock()
    limited = quotas(clock)
    assert not any(limited.insists("ann") for _ in range(REFUSALS))
    assert limited.insists("ann")
    assert not limited.insists("ben")
    clock.advance(60)
    assert not limited.insists("ann")


def test_the_time_that_is_told_is_the_time_to_wait() -> None:
    clock = VirtualClock()
    limited = quotas(clock, requests=7)
    for _ in range(7):
        limited.asked("ann")
    wait = refused(limited.asked, "ann")
    clock.advance(wait - 0.002)
    refused(limited.asked, "ann")
    clock.advance(0.003)
    limited.asked("ann")
    refused(limited.asked, "ann")


def test_what_is_refused_costs_nothing() -> None:
    clock = VirtualClock()
    limited = quotas(clock, requests=1)
    limited.asked("ann")
    for _ in range(100):
        refused(limited.asked, "ann")
    clock.advance(60)
    limited.asked("ann")


def test_nothing_is_saved_up_for_longer_than_a_minute() -> None:
    clock = VirtualClock()
    limited = quotas(clock, requests=2)
    limited.asked("ann")
    clock.advance(3600)
    limited.asked("ann")
    limited.asked("ann")
    refused(limited.asked, "ann")


def test_one_principals_share_is_not_another_ones() -> None:
    limited = quotas(requests=1, registrations=1, bytes=1, streams=1)
    limited.asked("ann")
    limited.registered("ann")
    limited.sent("ann", 1)
    with limited.stream("ann"), limited.stream("ben"):
        limited.asked("ben")
        limited.registered("ben")
        limited.sent("ben", 1)


def test_the_three_shares_of_a_minute_are_apart() -> None:
    limited = quotas(requests=1, registrations=1, bytes=10)
    limited.asked("ann")
    limited.registered("ann")
    limited.sent("ann", 10)
    for ask, given_ in ((limited.asked, ("ann",)), (limited.registered, ("ann",)), (limited.sent, ("ann", 1))):
        refused(ask, *given_)


def test_bytes_are_counted_as_they_are_sent() -> None:
    clock = VirtualClock()
    limited = quotas(clock, bytes=600)
    limited.sent("ann", 400)
    limited.sent("ann", 0)
    assert refused(limited.sent, "ann", 300) == pytest.approx(10)
    clock.advance(10)
    limited.sent("ann", 300)


def test_a_body_that_is_larger_than_its_share_is_taken_once_a_minute_and_paid_for_later() -> None:
    clock = VirtualClock()
    limited = quotas(clock, bytes=600)
    limited.sent("ann", 1200)
    clock.advance(60)
    assert refused(limited.sent, "ann", 1) == pytest.approx(0.1)
    clock.advance(60)
    limited.sent("ann", 1200)


def test_streams_count_as_long_as_they_are_open() -> None:
    limited = quotas(streams=2)
    with ExitStack() as opened:
        opened.enter_context(limited.stream("ann"))
        opened.enter_context(limited.stream("ann"))
        with pytest.raises(TooMuch, match="you may have 2 streams at once"), limited.stream("ann"):
            pass
    with limited.stream("ann"), limited.stream("ann"):
        pass


def test_a_stream_that_broke_is_closed_as_well() -> None:
    limited = quotas(streams=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), limited.stream("ann"):
            raise ZeroDivisionError


@pytest.mark.parametrize("what", ["threads", "runs", "calls"])
def test_what_others_have_counted_is_compared(what: str) -> None:
    limited = quotas(**{what: 2})
    room = getattr(limited, what)
    room(0)
    room(1)
    assert refused(room, 2) == 5
    refused(room, 3)


def test_none_is_no_limit() -> None:
    unlimited = Quotas(NO_LIMIT, VirtualClock().now)
    with ExitStack() as opened:
        for _ in range(10_000):
            opened.enter_context(unlimited.stream("ann"))
            unlimited.asked("ann")
            unlimited.registered("ann")
            unlimited.sent("ann", 1 << 40)
    for room in (unlimited.threads, unlimited.runs, unlimited.calls):
        room(1 << 40)


@pytest.mark.parametrize("name", Quota.__struct_fields__)
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="a limit is at least 1"):
        Quota(**{name: 0})
    assert getattr(Quota(), name) is not None


def test_only_so_many_principals_are_remembered() -> None:
    clock = VirtualClock()
    limited = quotas(clock, principals=3, requests=1)
    for name in ("ann", "ben", "cleo"):
        limited.asked(name)
    refused(limited.asked, "ann")
    limited.asked("dan")  # and ben, who was away for longest, is forgotten
    refused(limited.asked, "ann")
    refused(limited.asked, "cleo")
    limited.asked("ben")
    for number in range(10_000):
        limited.asked(f"somebody {number}")
    assert len(limited._buckets) == 3


def test_a_stream_is_remembered_however_many_others_come() -> None:
    limited = quotas(principals=3, streams=1)
    with limited.stream("ann"):
        for number in range(100):
            limited.asked(f"somebody {number}")
            with limited.stream(f"somebody {number}"):
                pass
        with pytest.raises(TooMuch), limited.stream("ann"):
            pass
    assert limited._streams == {}


def test_a_clock_that_goes_back_gives_nothing_away() -> None:
    times = iter([100_000, 40_000, 40_000, 41_000])
    limited = Quotas(Quota(requests=60), lambda: next(times))
    for _ in range(3):
        limited.asked("ann")
    limited.asked("ann")


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 50)), max_size=200), st.integers(1, 100))
def test_in_no_minute_more_than_two_shares_are_given(asked: list[tuple[int, int]], limit: int) -> None:
    now = 0
    limited = Quotas(Quota(bytes=limit), lambda: now)
    given_out: list[tuple[int, int]] = []
    for wait, size in asked:
        now += wait
        size = min(size, limit)
        try:
            limited.sent("ann", size)
        except TooMuch:
            continue
        given_out.append((now, size))
    for start, _ in given_out:
        assert sum(size for at, size in given_out if start <= at < start + 60_000) <= 2 * limit
