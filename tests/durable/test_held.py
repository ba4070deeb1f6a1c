"""What becomes of a change whose write goes wrong: it counts once, whatever the store made of it."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import json

from farhand import tool
from farhand.core.call import Outcome
from farhand.core.errors import StoreAway, StoreError
from farhand.core.events import Event
from farhand.durable import Runner
from farhand.models import Use
from farhand.stores.base import Write
from farhand.stores.memory import MemoryStore
from tests.durable.story import QUICK, by_rule

LOST, DOUBT, LATE = "lost", "doubt", "late"


class Unreliable(MemoryStore):
    """A memory with a fate for each of the next writes: not made, made without a word of it, or made later."""

    def __init__(self) -> None:
        super().__init__()
        self.fates: list[str] = []
        self.late: list[Write] = []
        self.met: list[str] = []

    def next(self, *fates: str) -> None:
        self.fates = list(fates)

    async def write(self, write: Write) -> bool:
        if self.late:
            await super().write(self.late.pop())  # it comes just before the one that was to make it good
        fate = self.fates.pop(0) if self.fates else ""
        if not fate:
            return await super().write(write)
        self.met.append(fate)
        if fate == DOUBT:
            await super().write(write)
        elif fate == LATE:
            self.late.append(write)
        raise StoreAway("the connection broke")


async def events(store: MemoryStore, run: str) -> list[str]:
    stored = await store.load(run)
    assert stored is not None
    rows: Iterable[Any] = await store.log(stored.run.thread, 0, 100)
    return [type(event).__name__ for row in rows for event in json.decode(row.events, type=list[Event])]


@pytest.mark.parametrize("fate", [LOST, DOUBT, LATE])
@pytest.mark.parametrize("how_often", [1, 3])
async def test_a_result_whose_write_went_wrong_counts_once_and_the_tool_is_not_run_again(
    fate: str, how_often: int
) -> None:
    entered = 0
    store = Unreliable()

    @tool
    async def work() -> int:
        """Work."""
        nonlocal entered
        entered += 1
        store.next(*[fate] * how_often)
        return 7

    async with (
        asyncio.timeout(20),
        Runner(by_rule(Use("work"), "done", tools=(work,)), store=store, timing=QUICK) as runner,
    ):
        run = await runner.start("go")
        view = await run.wait()
        assert (view.output, view.calls[0].outcome, view.calls[0].output, entered) == ("done", Outcome.OK, 7, 1)
        assert store.met[0] == fate
        assert await events(store, run.id) == ["Started", "Replied", "Answered", "Replied"]


@pytest.mark.parametrize(("fate", "repeated"), [(LOST, False), (DOUBT, True)])
async def test_who_says_something_in_vain_or_in_doubt_is_told_so_and_may_say_it_again(
    fate: str, repeated: bool
) -> None:
    store = Unreliable()
    async with (
        asyncio.timeout(20),
        Runner(by_rule(Use("pick"), "picked"), store=store, timing=QUICK) as runner,
    ):
        run = await runner.start("go")
        [call] = (await run.wait()).pending
        store.next(fate)
        with pytest.raises(StoreAway):
            await runner.answer(call.id, 1)
        receipt = await runner.answer(call.id, 1)
        view = await run.wait()
        while view.state.ending is None:
            view = await run.wait()
        assert receipt.repeated or not repeated  # a write that was lost may have been made again meanwhile
        assert (view.output, view.calls[0].output) == ("picked", 1)
        assert (await events(store, run.id)).count("Answered") == 1


async def test_a_start_in_doubt_is_found_again_under_its_key() -> None:
    store = Unreliable()
    async with asyncio.timeout(20), Runner(by_rule("hello"), store=store, timing=QUICK) as runner:
        store.next(DOUBT)
        with pytest.raises(StoreAway):
            await runner.start("hi", key="k")
        run = await runner.start("hi", key="k")
        view = await run.wait()
        while view.state.ending is None:
            view = await run.wait()
        assert view.output == "hello"
        assert len(await store.runs("", "", 10)) == 1


class Broken(MemoryStore):
    """A memory in which one write fails as no store should fail."""

    error: Exception | None = None

    async def write(self, write: Write) -> bool:
        error, self.error = self.error, None
        if error is not None:
            raise error
        return await super().write(write)


@pytest.mark.parametrize("error", [StoreError("it cannot be asked this"), ValueError("whisper")])
async def test_a_store_that_fails_otherwise_is_asked_again_too(error: Exception) -> None:
    store = Broken()

    @tool
    async def work() -> int:
        """Work."""
        store.error = error
        return 7

    async with (
        asyncio.timeout(20),
        Runner(by_rule(Use("work"), "done", tools=(work,)), store=store, timing=QUICK) as runner,
    ):
        assert (await runner.run("go")).output == "done"
