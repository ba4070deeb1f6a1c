"""Watching a thread: what was missed, then what happens, without gap or repeat, from any process."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from farhand import Agent
from farhand.core.errors import InvalidInput
from farhand.core.pieces import Done, TextDelta
from farhand.core.updates import ReplyEnded, RunEnded, RunWaiting, TextStreamed, Update
from farhand.durable import Position, Runner
from farhand.durable.feed import QUEUE
from farhand.models import Use
from farhand.stores.memory import MemoryStore
from tests.durable.story import QUICK, by_rule


class Slow:
    """A model that says a word whenever it is told to go on."""

    name = "slow"

    def __init__(self) -> None:
        self.words: asyncio.Queue[str | None] = asyncio.Queue()

    async def stream(self, _: Any) -> AsyncIterator[Any]:
        while (word := await self.words.get()) is not None:
            yield TextDelta(word)
        yield Done()


class Seen(list[Update]):
    """What a watcher has seen; it can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.more = asyncio.Event()

    async def reach(self, words: str) -> None:
        async with asyncio.timeout(10):
            while text(self) != words:
                self.more.clear()
                await self.more.wait()


async def collect(updates: AsyncIterator[Update], into: list[Update]) -> None:
    async for update in updates:
        into.append(update)
        if isinstance(into, Seen):
            into.more.set()
        if isinstance(update, RunEnded):
            return


def text(updates: list[Update]) -> str:
    """The streamed text, which must have neither gap nor repeat."""
    said = ""
    for update in updates:
        if isinstance(update, TextStreamed):
            assert update.offset == len(said)
            said += update.text
    return said


async def test_a_watcher_who_comes_in_the_middle_of_a_reply_gets_all_of_it() -> None:
    model = Slow()
    async with asyncio.timeout(20), Runner(Agent(model), store=MemoryStore()) as runner:
        await runner.start("hi", thread="t")
        first = Seen()
        watching = asyncio.create_task(collect(runner.watch("t"), first))
        for word in ("one ", "two "):
            model.words.put_nowait(word)
        await first.reach("one two ")
        second = Seen()
        late = asyncio.create_task(collect(runner.watch("t"), second))
        await second.reach("one two ")
        for word in ("three", None):
            model.words.put_nowait(word)
        await asyncio.gather(watching, late)
        assert text(first) == text(second) == "one two three"
        told = [update for update in second if not isinstance(update, TextStreamed)]
        assert [update.seq for update in told] == list(range(1, len(told) + 1))


async def test_a_watcher_elsewhere_sees_the_unfinished_text_and_then_the_reply() -> None:
    model, rows = Slow(), MemoryStore()
    async with (
        asyncio.timeout(20),
        Runner(Agent(model), store=rows, timing=QUICK) as runner,
        Runner(Agent(model), store=MemoryStore(rows), timing=QUICK) as other,
    ):
        await runner.start("hi", thread="t")
        seen = Seen()
        watching = asyncio.create_task(collect(other.watch("t"), seen))
        model.words.put_nowait("one ")
        await seen.reach("one ")
        for word in ("two", None):
            model.words.put_nowait(word)
        await watching
        [reply] = [update for update in seen if isinstance(update, ReplyEnded)]
        assert reply.text == "one two"
        told = [update for update in seen if not isinstance(update, TextStreamed)]
        assert [update.seq for update in told] == list(range(1, len(told) + 1))


@pytest.mark.parametrize("after", range(9))
async def test_a_watcher_goes_on_after_any_number(after: int) -> None:
    async with asyncio.timeout(20), Runner(by_rule(Use("pick"), "ok"), store=MemoryStore()) as runner:
        run = await runner.start("hi", thread="t")
        await run.wait()
        [call] = await runner.pending()
        await runner.answer(call.id, 1)
        await run.wait()
        everything: list[Update] = []
        await collect(runner.watch("t"), everything)
        rest: list[Update] = []
        if after < len(everything):
            await collect(runner.watch("t", after=after), rest)
        assert rest == everything[after:]


async def test_a_slow_watcher_holds_nobody_up_and_misses_nothing_that_is_kept() -> None:
    model = Slow()
    async with asyncio.timeout(20), Runner(Agent(model), store=MemoryStore()) as runner:
        run = await runner.start("hi", thread="t")
        watching = runner.watch("t")
        first = await anext(watching)
        for number in range(4 * QUEUE):
            model.words.put_nowait(f"{number} ")
        model.words.put_nowait(None)
        view = await run.wait()
        [watchers] = runner._replica.feeds._watchers.values()
        assert len(watchers[0].queue) <= QUEUE
        seen = [first]
        await collect(watching, seen)
        await watching.aclose()
        assert [type(update).__name__ for update in seen if not isinstance(update, TextStreamed)] == [
            "RunStarted",
            "TurnStarted",
            "ReplyEnded",
            "RunEnded",
        ]
        assert view.output == "".join(f"{number} " for number in range(4 * QUEUE))


async def test_nothing_is_left_of_a_watcher_who_went_away() -> None:
    async with asyncio.timeout(20), Runner(by_rule("ok"), store=MemoryStore()) as runner:
        await runner.run("hi", thread="t")
        watching = runner.watch("t")
        await anext(watching)
        await watching.aclose()
        assert runner._replica.feeds._watchers == {}


async def test_what_is_ready_together_comes_together() -> None:
    async with asyncio.timeout(20), Runner(by_rule(Use("pick"), "ok"), store=MemoryStore()) as runner:
        await runner.run("hi", thread="t")
        batches = runner.watch_many("t")
        first = await anext(batches)
        assert [update.seq for update in first] == list(range(1, len(first) + 1))
        assert isinstance(first[-1], RunWaiting)
        [call] = await runner.pending()
        await runner.answer(call.id, 1)
        assert len(await anext(batches)) > 1
        await batches.aclose()


async def test_a_watcher_who_comes_back_in_the_middle_of_a_text_gets_the_rest_of_it() -> None:
    model = Slow()
    async with asyncio.timeout(20), Runner(Agent(model), store=MemoryStore()) as runner:
        await runner.start("hi", thread="t")
        first = Seen()
        watching = asyncio.create_task(collect(runner.watch("t"), first))
        model.words.put_nowait("one ")
        await first.reach("one ")
        place = Position.of(first[-1])
        assert place is not None
        model.words.put_nowait("two ")
        await first.reach("one two ")
        later = runner.watch("t", after=Position.parse(str(place)))
        rest = await anext(later)
        assert isinstance(rest, TextStreamed)
        assert (rest.offset, rest.text) == (4, "two ")
        for word in ("three", None):
            model.words.put_nowait(word)
        told: list[Update] = []
        await collect(later, told)
        await watching
        assert "".join(update.text for update in told if isinstance(update, TextStreamed)) == "three"
        assert [update.seq for update in told if not isinstance(update, TextStreamed)] == [3, 4]


async def test_a_position_in_a_text_that_has_ended_meanwhile_goes_on_with_the_reply() -> None:
    async with asyncio.timeout(20), Runner(by_rule("ok"), store=MemoryStore()) as runner:
        await runner.run("hi", thread="t")
        told: list[Update] = []
        await collect(runner.watch("t", after=Position.parse("2.1.1")), told)
        assert [type(update).__name__ for update in told] == ["ReplyEnded", "RunEnded"]


@pytest.mark.parametrize("place", [Position(0), Position(12), Position(12, 1, 340)])
def test_a_position_is_read_as_it_was_written(place: Position) -> None:
    assert Position.parse(str(place)) == place


def test_no_position_is_the_beginning() -> None:
    assert Position.parse("") == Position(0)


@pytest.mark.parametrize("text", ["x", "-1", "1.2", "1.2.3.4", "1..2", " 1", "1\n", "٣", "1" * 19, "1e3", "+1"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Position.parse(text)
