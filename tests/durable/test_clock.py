"""The store's time is counted on here, whatever the machine's own clock says; jumps are believed when they last."""

import asyncio
import logging

import pytest

from farhand.durable.clock import JUMP, StoreClock


class Machine:
    """A counter of milliseconds that only rises."""

    def __init__(self) -> None:
        self.passed = 5_000

    def __call__(self) -> int:
        return self.passed


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def clock(machine: Machine) -> StoreClock:
    clock = StoreClock(machine)
    clock.sync(1_000_000, first=True)
    return clock


def test_time_goes_on_from_what_the_store_said(clock: StoreClock, machine: Machine) -> None:
    assert clock.now() == 1_000_000
    machine.passed += 250
    assert clock.now() == 1_000_250


@pytest.mark.parametrize("off", [1, -1, 1_000, -1_000, JUMP, -JUMP])
def test_a_store_that_is_a_little_ahead_or_behind_is_followed(clock: StoreClock, off: int) -> None:
    assert clock.sync(1_000_000 + off) == off
    assert clock.now() == 1_000_000 + off


@pytest.mark.parametrize("off", [3_600_000, -3_600_000])
def test_a_jump_is_believed_when_the_store_says_it_twice(
    clock: StoreClock, machine: Machine, caplog: pytest.LogCaptureFixture, off: int
) -> None:
    assert clock.sync(1_000_000 + off) == 0
    assert clock.now() == 1_000_000
    assert f"jumped by {off // 1000} s" in caplog.text
    machine.passed += 2_000
    assert clock.sync(1_002_000 + off) == off
    assert clock.now() == 1_002_000 + off


def test_a_jump_that_is_taken_back_was_none(clock: StoreClock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "farhand.durable")
    for _ in range(3):
        clock.sync(5_000_000)
        assert clock.now() == 1_000_000
        clock.sync(1_000_000)
    clock.sync(5_000_000)
    clock.sync(9_000_000)
    assert clock.now() == 1_000_000
    clock.sync(9_000_000)
    assert clock.now() == 9_000_000


def test_the_first_time_is_believed_at_once(machine: Machine) -> None:
    clock = StoreClock(machine)
    assert clock.sync(77, first=True) == 0
    assert clock.now() == 77


async def test_a_timer_fires_at_the_stores_time_and_not_at_the_machines(clock: StoreClock) -> None:
    fired = asyncio.Event()
    async with asyncio.timeout(5):
        clock.call_at(clock.now() - 10, fired.set)
        await fired.wait()
        clock.call_at(clock.now() + 5, fired.set)
        clock.call_at(clock.now() + 3_600_000, fired.clear).cancel()
        await fired.wait()
