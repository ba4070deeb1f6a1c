"""The loop with virtual time: hours pass at once, chance comes from the seed, the frozen and the dead stand still."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from farhand.testing.loop import BEGIN, NothingLeft, VirtualLoop

Play = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop(seed=7)
    yield loop
    loop.bury()
    loop.close()


def test_time_passes_only_while_everybody_waits(loop: VirtualLoop) -> None:
    async def story() -> tuple[float, float]:
        for _ in range(100):
            await asyncio.sleep(0)
        stood = loop.time()
        await asyncio.sleep(36_000)
        return stood, loop.time()

    assert loop.run_until_complete(story()) == (BEGIN, BEGIN + 36_000)


def test_timers_fire_in_their_order_and_cancelled_ones_do_not(loop: VirtualLoop) -> None:
    heard: list[str] = []

    async def story() -> None:
        for delay, name in ((3, "c"), (1, "a"), (2, "b")):
            loop.call_later(delay, heard.append, name)
        loop.call_later(1.5, heard.append, "never").cancel()
        await asyncio.sleep(4)

    loop.run_until_complete(story())
    assert heard == ["a", "b", "c"]


async def say(heard: list[str], word: str) -> None:
    for _ in range(5):
        heard.append(word)
        await asyncio.sleep(0)


def told(seed: int) -> list[str]:
    loop, heard = VirtualLoop(seed), []
    for name in ("a", "b", "c"):
        loop.lane(name).spawn(say(heard, name))
    loop.run_until_complete(asyncio.wait_for(asyncio.sleep(1), 2))
    loop.close()
    return heard


def test_between_processes_the_seed_decides_and_always_in_the_same_way() -> None:
    assert told(1) == told(1)
    assert len({tuple(told(seed)) for seed in range(10)}) > 3
    assert sorted(told(2)) == sorted("abc" * 5)


def test_what_a_lane_starts_belongs_to_it(loop: VirtualLoop) -> None:
    lane = loop.lane("first")

    async def parent() -> None:
        task = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.wait((task,))

    async def story() -> list[str]:
        lane.spawn(parent())
        await asyncio.sleep(1)
        return [task.get_name().split(":")[0] for task in loop.tasks_of(lane)]

    assert loop.run_until_complete(story()) == ["first", "first"]


def test_the_frozen_go_on_late(loop: VirtualLoop) -> None:
    lane, heard = loop.lane("first"), list[float]()

    async def tick() -> None:
        await asyncio.sleep(1)
        heard.append(loop.time() - BEGIN)

    async def story() -> None:
        lane.spawn(tick())
        await asyncio.sleep(0.5)
        lane.freeze()
        await asyncio.sleep(10)
        assert heard == []
        lane.thaw()
        await asyncio.sleep(0.5)

    loop.run_until_complete(story())
    assert heard == [10.5]


def test_the_dead_do_not_even_clean_up_before_they_are_buried(loop: VirtualLoop) -> None:
    lane, heard = loop.lane("first"), list[str]()

    async def work() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            heard.append("cleaned up")

    async def story() -> None:
        lane.spawn(work())
        await asyncio.sleep(0.5)
        lane.kill()
        gc.collect()
        await asyncio.sleep(10)

    loop.run_until_complete(story())
    assert heard == []
    loop.bury()
    assert heard == ["cleaned up"]


def test_waiting_for_what_will_never_come_is_told(loop: VirtualLoop) -> None:
    with pytest.raises(NothingLeft, match="no timer is set"):
        loop.run_until_complete(asyncio.Event().wait())


def test_a_circle_in_which_no_time_passes_is_told(loop: VirtualLoop) -> None:
    def again() -> None:
        if rounds:
            loop.call_soon(again)

    rounds = [1]
    again()
    with pytest.raises(NothingLeft, match="without any time passing"):
        loop.run_until_complete(asyncio.sleep(1))
    rounds.clear()


def test_blocking_functions_take_no_time(loop: VirtualLoop) -> None:
    def fail() -> None:
        raise ValueError("no")

    async def story() -> int:
        with pytest.raises(ValueError, match="no"):
            await asyncio.to_thread(fail)
        return await asyncio.to_thread(lambda: 3)

    assert loop.run_until_complete(story()) == 3
    assert loop.time() == BEGIN
