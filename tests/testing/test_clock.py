"""The clock of tests stands still until it is moved, and fires what is due on the way at its time."""

import pytest

from farhand.testing import VirtualClock


def test_the_time_moves_only_when_a_test_moves_it() -> None:
    clock = VirtualClock(start=1000)
    assert (clock.now(), clock.now()) == (1000, 1000)
    clock.advance(1.5)
    assert clock.now() == 2500
    clock.advance(0)
    assert clock.now() == 2500


def test_ids_count() -> None:
    clock = VirtualClock()
    assert [clock.new_id() for _ in range(3)] == ["id-1", "id-2", "id-3"]
    assert VirtualClock().new_id() == "id-1"


def test_timers_fire_in_their_order_each_at_its_own_time() -> None:
    clock = VirtualClock(start=0)
    fired: list[tuple[str, int]] = []
    for name, due in (("late", 3000), ("early", 1000), ("never", 9000)):
        clock.call_at(due, lambda name=name: fired.append((name, clock.now())))
    assert clock.waiting == 3
    clock.advance(5)
    assert fired == [("early", 1000), ("late", 3000)]
    assert (clock.now(), clock.waiting) == (5000, 1)


def test_a_timer_that_was_called_off_neither_waits_nor_fires() -> None:
    clock = VirtualClock(start=0)
    timer = clock.call_at(1, lambda: pytest.fail("it fired"))
    timer.cancel()
    assert clock.waiting == 0
    clock.advance(1)


def test_a_timer_set_by_a_timer_fires_in_the_same_move_when_it_is_due() -> None:
    clock = VirtualClock(start=0)
    fired: list[int] = []

    def again() -> None:
        fired.append(clock.now())
        if len(fired) < 3:
            clock.call_at(clock.now() + 1000, again)

    clock.call_at(1000, again)
    clock.advance(2)
    assert fired == [1000, 2000]
    clock.advance(1)
    assert fired == [1000, 2000, 3000]


def test_a_timer_that_is_overdue_fires_at_the_next_move_and_does_not_turn_the_clock_back() -> None:
    clock = VirtualClock(start=5000)
    fired: list[int] = []
    clock.call_at(1000, lambda: fired.append(clock.now()))
    clock.advance(0)
    assert (fired, clock.now()) == ([5000], 5000)


def test_timers_of_one_time_fire_in_the_order_in_which_they_were_set() -> None:
    clock = VirtualClock(start=0)
    fired: list[str] = []
    for name in "abc":
        clock.call_at(1000, lambda name=name: fired.append(name))
    clock.advance(1)
    assert fired == ["a", "b", "c"]
