"""Signs of life come from a thread of their own, end when nobody believes them, and say so once."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from farhand.core.errors import StoreAway
from farhand.durable.heart import Heart
from farhand.stores.memory import MemoryStore
from farhand.testing.clock import VirtualClock


class Counting(MemoryStore):
    """A memory that counts beats, and can be away or no longer know the worker."""

    def __init__(self, times: int = 3) -> None:
        super().__init__()
        self.beats: list[tuple[str, int, int]] = []
        self.threads: set[str] = set()
        self.enough = threading.Event()
        self.times = times
        self.alive = True
        self.away = False

    async def beat(self, worker: str, now: int, expires: int) -> bool:
        self.beats.append((worker, now, expires))
        self.threads.add(threading.current_thread().name)
        if len(self.beats) >= self.times:
            self.enough.set()
        if self.away:
            raise StoreAway("not now")
        return self.alive


def heart(store: Counting, clock: VirtualClock, on_lost: Callable[[], None], every: float = 0.001) -> Heart:
    return Heart(store, "w", clock, lease=10.0, every=every, on_lost=on_lost)


def never() -> None:
    raise AssertionError("it was not lost")


async def enough(store: Counting) -> None:
    async with asyncio.timeout(10):
        await asyncio.to_thread(store.enough.wait, 10)


async def test_a_busy_event_loop_does_not_keep_it_from_beating() -> None:
    store = Counting()
    beating = heart(store, VirtualClock(), never)
    beating.start()
    assert store.enough.wait(10)  # nothing else runs in this loop meanwhile
    await beating.stop()
    assert store.beats[0] == ("w", 1_000_000, 1_010_000)
    assert store.threads == {"farhand-heart"}


async def test_it_stops_when_it_is_told_to() -> None:
    store = Counting()
    beating = heart(store, VirtualClock(), never)
    beating.start()
    await enough(store)
    await beating.stop()
    assert "farhand-heart" not in {thread.name for thread in threading.enumerate()}


async def test_a_worker_that_was_taken_for_dead_hears_of_it_once_and_in_its_own_loop() -> None:
    store, lost = Counting(), asyncio.Event()
    said: list[str] = []

    def on_lost() -> None:
        said.append(threading.current_thread().name)
        lost.set()

    beating = heart(store, VirtualClock(), on_lost)
    beating.start()
    await enough(store)
    store.alive = False
    async with asyncio.timeout(10):
        await lost.wait()
    count = len(store.beats)
    await beating.stop()
    assert said == [threading.current_thread().name]
    assert len(store.beats) == count


@pytest.mark.parametrize("here", [True, False])
async def test_a_store_that_is_away_for_a_whole_lease_means_that_others_have_the_runs(here: bool) -> None:
    store, lost, clock = Counting(), asyncio.Event(), VirtualClock()
    store.away = True
    beating = heart(store, clock, lost.set)
    beating.start_here() if here else beating.start()
    await enough(store)
    assert not lost.is_set()
    clock.advance(9.999)
    store.enough.clear()
    store.times = len(store.beats) + 2
    await enough(store)
    assert not lost.is_set()
    clock.advance(0.001)
    async with asyncio.timeout(10):
        await lost.wait()
    await beating.stop()


async def test_a_store_that_comes_back_within_the_lease_changes_nothing() -> None:
    store, clock = Counting(), VirtualClock()
    beating = heart(store, clock, never)
    store.away = True
    beating.start_here()
    await enough(store)
    for away in (False, True, False):
        store.enough.clear()
        store.times = len(store.beats) + 3
        store.away = away
        await enough(store)
        clock.advance(6)
    await beating.stop()
