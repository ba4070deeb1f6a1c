"""The machine's clock: milliseconds, ids that nobody guesses, and calls at their time on the event loop."""

import asyncio
import time

import pytest

from farhand.runner.clock import Clock, SystemClock
from farhand.testing import VirtualClock


def test_the_time_is_in_milliseconds_since_1970() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= SystemClock().now() <= time.time_ns() // 1_000_000


def test_ids_are_128_random_bits() -> None:
    ids = {SystemClock().new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert {len(bytes.fromhex(one)) for one in ids} == {16}


def test_an_id_is_there_although_another_thread_took_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class TakenMeanwhile(list[str]):
        def __bool__(self) -> bool:
            return True

    monkeypatch.setattr("farhand.runner.clock._ids", TakenMeanwhile())
    assert len({SystemClock().new_id() for _ in range(200)}) == 200


async def test_a_time_that_has_passed_calls_back_at_once_and_in_order() -> None:
    clock, order, done = SystemClock(), [], asyncio.Event()
    clock.call_at(0, lambda: order.append("first"))
    clock.call_at(clock.now() + 1, done.set)
    async with asyncio.timeout(5):
        await done.wait()
    assert order == ["first"]


async def test_a_timer_that_was_called_off_does_not_fire() -> None:
    clock, fired, done = SystemClock(), [], asyncio.Event()
    clock.call_at(0, lambda: fired.append(1)).cancel()
    clock.call_at(clock.now() + 2, done.set)
    async with asyncio.timeout(5):
        await done.wait()
    assert fired == []


def test_both_clocks_are_clocks() -> None:
    clocks: list[Clock] = [SystemClock(), VirtualClock()]
    assert all(isinstance(clock.now(), int) for clock in clocks)
