"""A store that behaves badly does so by its seed, tells the truth where it says anything, and loses nothing."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from farhand.core.errors import StoreAway
from farhand.stores.base import Claim, Ring
from farhand.stores.memory import MemoryStore
from farhand.testing.faulty import Faults, FaultyStore, Ledger
from farhand.testing.loop import VirtualLoop
from farhand.testing.store_rows import run_row, start, step


def told(faults: Faults, story: Callable[[FaultyStore, MemoryStore], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    """What comes of a story with a store that has these faults."""
    loop = VirtualLoop(seed)
    inner = MemoryStore()
    store = FaultyStore(MemoryStore(inner), faults, Random(seed), loop.outside.context, Ledger())
    try:
        return loop.run_until_complete(story(store, inner))
    finally:
        loop.bury()
        loop.close()


async def write(store: FaultyStore, name: str) -> bool | None:
    """Whether a run was begun; None: nobody knows."""
    try:
        return await store.write(start(run_row(name, f"thread {name}")))
    except StoreAway:
        return None


async def write_many(store: FaultyStore, inner: MemoryStore) -> tuple[list[bool | None], list[bool]]:
    said = [await write(store, str(number)) for number in range(60)]
    return said, [await inner.load(str(number)) is not None for number in range(60)]


def test_without_faults_it_is_a_store() -> None:
    said, there = told(Faults(), write_many)
    assert said == there == [True] * 60


def test_what_does_not_arrive_is_not_there() -> None:
    said, there = told(Faults(away=0.5), write_many)
    assert {(each, known) for each, known in zip(said, there, strict=True)} == {(True, True), (None, False)}


def test_what_is_in_doubt_is_there() -> None:
    said, there = told(Faults(doubt=0.5), write_many)
    assert {(each, known) for each, known in zip(said, there, strict=True)} == {(True, True), (None, True)}


def test_what_is_late_comes_in_the_end() -> None:
    async def story(store: FaultyStore, inner: MemoryStore) -> tuple[bool | None, bool, bool]:
        said = await write(store, "a")
        at_once = await inner.load("a") is not None
        await asyncio.sleep(10)
        return said, at_once, await inner.load("a") is not None

    found = {told(Faults(late=1.0), story, seed) for seed in range(20)}
    assert (None, False, True) in found
    assert {end for _, _, end in found} == {True}


def test_the_same_seed_is_badly_off_in_the_same_way() -> None:
    faults = Faults(away=0.3, doubt=0.3)
    assert told(faults, write_many, 5) == told(faults, write_many, 5)
    assert told(faults, write_many, 5) != told(faults, write_many, 6)


def test_nothing_more_is_taken_from_the_dead() -> None:
    async def story(store: FaultyStore, inner: MemoryStore) -> bool | None:
        store.die()
        return await write(store, "a")

    assert told(Faults(), story) is None


def test_who_is_deaf_is_told_to_look_everywhere_a_while_later() -> None:
    async def story(store: FaultyStore, inner: MemoryStore) -> list[Ring]:
        heard: list[Ring] = []
        await store.open(heard.append)
        await inner.write(start(run_row("a", "t")))
        await asyncio.sleep(5)
        return heard

    assert told(Faults(), story) == [Ring("t", "a")]
    assert told(Faults(deaf=1.0), story) == [Ring()]


def test_all_is_well_again_when_the_faults_end() -> None:
    faults = Faults(away=1.0, doubt=1.0, late=1.0, deaf=1.0)
    faults.end()
    said, there = told(faults, write_many)
    assert said == there == [True] * 60


def test_a_ledger_notes_who_writes_after_he_was_relieved() -> None:
    ledger = Ledger()
    run = run_row()
    ledger.wrote(start(run))
    ledger.claimed([Claim(run.id, lost=True)])
    assert ledger.problems == []
    ledger.wrote(step(run))
    assert ledger.problems == ["run r1 was written at epoch 1 after 2"]
