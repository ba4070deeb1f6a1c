"""The suite for stores finds a store that breaks its promises, and lets one pass that keeps them."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec import structs

from farhand.stores.base import Claim, LogRow, PieceRow, Stored, Write
from farhand.stores.memory import MemoryStore
from farhand.testing.stores import StoreSuite
from proofs import bugs


class Forgetful(MemoryStore):
    """Keeps a write only in part: its definitions are lost."""

    async def write(self, write: Write) -> bool:
        return await super().write(structs.replace(write, toolset=None))


class Unsorted(MemoryStore):
    """Gives the log in any order."""

    async def log(self, thread: str, after: int, limit: int) -> Sequence[LogRow]:
        return (await super().log(thread, after, limit))[::-1]


class Generous(MemoryStore):
    """Gives a run to whoever asks."""

    async def claim(self, worker: str, agents: Sequence[str], now: int, limit: int) -> Sequence[Claim]:
        return await super().claim(worker, ["helper", "else"], now, limit)


class Whole(MemoryStore):
    """Gives the log of the thread and not of the run."""

    async def load(self, run: str) -> Stored | None:
        stored = await super().load(run)
        return None if stored is None else structs.replace(stored, tail=self._tables.log[stored.run.thread])


class Trusting(MemoryStore):
    """Keeps pieces of those who lost the run."""

    async def stream(self, pieces: Sequence[PieceRow]) -> None:
        known = self._tables.runs
        await super().stream(
            [structs.replace(each, epoch=known[each.run].epoch) for each in pieces if each.run in known]
        )


class Eternal(MemoryStore):
    """Deletes nothing."""

    async def prune(self, before: int, limit: int) -> int:
        return 0


BROKEN = (
    *(bugs.NoVersion, bugs.NoEpoch, bugs.SameEpoch, bugs.AnyThread),
    *(Forgetful, Unsorted, Generous, Whole, Trusting, Eternal),
)


async def failed(kind: type[MemoryStore]) -> list[str]:
    """The sentences of the suite that are not true of a store."""
    suite, found = StoreSuite(), []
    tests: list[tuple[str, Callable[..., Any]]] = inspect.getmembers(suite, inspect.iscoroutinefunction)
    for name, test in tests:
        store = kind()
        await store.open()
        handles = {"store": store, "other": kind(store)}
        try:
            await test(**{handle: handles[handle] for handle in inspect.signature(test).parameters})
        except (AssertionError, LookupError):
            found.append(name)
        await store.close()
    return found


async def test_a_store_that_keeps_its_promises_passes() -> None:
    assert await failed(MemoryStore) == []


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
async def test_a_store_that_breaks_a_promise_is_found(kind: type[MemoryStore]) -> None:
    assert await failed(kind) != []
