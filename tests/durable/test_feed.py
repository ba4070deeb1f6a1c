"""Who watches a thread gets every update once and in order, whatever comes at that moment, and nobody waits for him."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from farhand.core.pieces import Finish, Usage
from farhand.core.updates import ReplyEnded, RunWaiting, TextStreamed, TurnStarted, Update
from farhand.durable import Position
from farhand.durable.feed import CHARACTERS, QUEUE, Feeds, Place, Watcher


def stored(seq: int) -> Update:
    return TurnStarted(seq, 1000 + seq, seq)


def text(seq: int, offset: int, words: str, turn: int = 1) -> TextStreamed:
    return TextStreamed(seq, 1000, turn, offset, words)


class Log:
    """What a store holds of a thread; a look at it can be held up."""

    def __init__(self, *updates: Update) -> None:
        self.updates = list(updates)
        self.under_way: list[Update] = []
        self.looks = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.looking = asyncio.Event()

    async def read(self, after: int, rows: int) -> Sequence[Update]:
        self.looks += 1
        found = [update for update in self.updates if update.seq > after][:rows]
        self.looking.set()
        await self.gate.wait()
        return found

    async def unfinished(self, seq: int) -> list[Update]:
        return [update for update in self.under_way if update.seq == seq]


def watch(feeds: Feeds, log: Log, after: int | Position = 0) -> AsyncGenerator[list[Update], None]:
    place = Position(after) if isinstance(after, int) else after
    return feeds.watch("t", place, log.read, log.unfinished)


async def first(watching: AsyncGenerator[list[Update], None], count: int) -> list[Update]:
    found: list[Update] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            found += await anext(watching)
    return found


# From the store, and live.


async def test_what_was_missed_comes_first_and_then_what_happens() -> None:
    feeds, log = Feeds(), Log(stored(1), stored(2), stored(3))
    async with aclosing(watch(feeds, log, 1)) as watching:
        assert await first(watching, 2) == [stored(2), stored(3)]
        feeds.teller("t")(stored(4))
        feeds.teller("other")(stored(9))
        assert await first(watching, 1) == [stored(4)]


async def test_what_is_written_while_it_looks_is_neither_missed_nor_told_twice() -> None:
    feeds, log = Feeds(), Log(stored(1))
    log.gate.clear()
    async with aclosing(watch(feeds, log)) as watching:
        watched = asyncio.ensure_future(first(watching, 3))
        await log.looking.wait()
        for seq in (1, 2, 3):  # one that the look has found, and two that it has not
            feeds.teller("t")(stored(seq))
        log.gate.set()
        assert await watched == [stored(1), stored(2), stored(3)]


async def test_a_gap_sends_it_back_to_the_store() -> None:
    feeds, log = Feeds(), Log(stored(1))
    async with aclosing(watch(feeds, log)) as watching:
        await first(watching, 1)
        log.updates += [stored(2), stored(3)]
        feeds.teller("t")(stored(3))  # the second was told by another process
        assert await first(watching, 2) == [stored(2), stored(3)]


async def test_it_looks_when_it_is_told_that_others_have_written() -> None:
    feeds, log = Feeds(), Log(stored(1))
    async with aclosing(watch(feeds, log)) as watching:
        await first(watching, 1)
        for seq, thread in ((2, "t"), (3, "")):
            log.updates.append(stored(seq))
            feeds.look("other")
            feeds.look(thread)
            assert await first(watching, 1) == [stored(seq)]


async def test_what_is_ready_together_comes_together() -> None:
    feeds, log = Feeds(), Log()
    async with aclosing(watch(feeds, log)) as watching:
        batch = asyncio.ensure_future(anext(watching))
        await log.looking.wait()
        for seq in (1, 2, 3):
            feeds.teller("t")(stored(seq))
        async with asyncio.timeout(10):
            assert await batch == [stored(1), stored(2), stored(3)]


async def test_a_long_past_is_read_in_pages() -> None:
    feeds, log = Feeds(), Log(*(stored(seq) for seq in range(1, 351)))
    async with aclosing(watch(feeds, log)) as watching:
        assert [update.seq for update in await first(watching, 350)] == list(range(1, 351))
    assert log.looks >= 4


# Text.


async def test_who_comes_in_the_middle_of_a_text_gets_what_there_is_and_then_the_rest() -> None:
    feeds, log = Feeds(), Log(stored(1))
    log.under_way = [text(1, 0, "one two ")]
    async with aclosing(watch(feeds, log)) as watching:
        assert await first(watching, 2) == [stored(1), text(1, 0, "one two ")]
        feeds.teller("t")(text(1, 4, "two "))  # it was on its way
        feeds.teller("t")(text(1, 8, "three"))
        assert await first(watching, 1) == [text(1, 8, "three")]


async def test_who_comes_back_in_the_middle_of_a_text_gets_what_is_new() -> None:
    feeds, log = Feeds(), Log(stored(1))
    log.under_way = [text(1, 0, "one two three")]
    async with aclosing(watch(feeds, log, Position(1, 1, 4))) as watching:
        assert await first(watching, 1) == [text(1, 4, "two three")]


async def test_text_of_a_reply_that_is_over_is_not_told_again() -> None:
    feeds, log = Feeds(), Log(stored(1), ReplyEnded(2, 1000, 1, "one", 0, Finish.STOP, Usage()))
    async with aclosing(watch(feeds, log)) as watching:
        await first(watching, 2)
        feeds.teller("t")(text(1, 0, "one"))
        feeds.teller("t")(text(2, 0, "new", turn=2))
        assert await first(watching, 1) == [text(2, 0, "new", turn=2)]


# Slow ones, and those who go.


async def test_who_is_too_slow_reads_on_in_the_store_and_holds_nothing() -> None:
    feeds, log = Feeds(), Log(stored(1))
    async with aclosing(watch(feeds, log)) as watching:
        await first(watching, 1)
        looks = log.looks
        for seq in range(2, 2 * QUEUE):
            log.updates.append(stored(seq))
            feeds.teller("t")(stored(seq))
        [watcher] = feeds._watchers["t"]
        assert len(watcher.queue) < QUEUE
        assert [update.seq for update in await first(watching, 2 * QUEUE - 2)] == list(range(2, 2 * QUEUE))
        assert log.looks > looks


@pytest.mark.parametrize(
    ("update", "most"),
    [(stored(1), QUEUE), (text(0, 0, "x" * (CHARACTERS // 4)), 4), (text(0, 0, "x" * (CHARACTERS + 1)), 0)],
    ids=["many", "long", "too long"],
)
def test_a_queue_has_an_end_in_updates_and_in_characters(update: Update, most: int) -> None:
    watcher = Watcher()
    watcher.behind = False
    for _ in range(most):
        watcher.put(update)
    assert len(watcher.queue) == most
    assert not watcher.behind
    watcher.put(update)
    assert (len(watcher.queue), watcher.behind) == (0, True)
    assert watcher.take() == []


def test_room_is_there_again_once_the_queue_was_taken() -> None:
    watcher = Watcher()
    half = text(0, 0, "x" * (CHARACTERS // 2))
    for _ in range(5):
        watcher.put(half)
        watcher.put(half)
        assert watcher.take() == [half, half]


async def test_nothing_is_left_of_those_who_went() -> None:
    feeds, log = Feeds(), Log(stored(1))
    one, other = watch(feeds, log), watch(feeds, log)
    await first(one, 1)
    await first(other, 1)
    await one.aclose()
    assert feeds.is_watched("t")
    await other.aclose()
    assert not feeds.is_watched("t")
    waiting = asyncio.ensure_future(anext(watch(feeds, log, 1)))
    await log.looking.wait()
    waiting.cancel()
    await asyncio.wait((waiting,))
    assert not feeds.is_watched("t")


async def test_a_change_is_waited_for_and_not_longer_than_it_was_said() -> None:
    feeds = Feeds()
    async with asyncio.timeout(10):
        await feeds.change("t", 0.001)
        waiting = asyncio.ensure_future(feeds.change("t", 1000))
        await asyncio.sleep(0)
        assert feeds.is_watched("t")
        feeds.teller("t")(RunWaiting(1, 1000, ()))
        await waiting
    assert not feeds.is_watched("t")


# How far somebody is.


def test_an_update_of_the_past_does_not_pass() -> None:
    place = Place(Position(5))
    assert [place.passes(stored(seq)) for seq in (4, 5, 6, 6)] == [False, False, True, False]
    assert place.seq == 6


def test_what_follows_is_not_ahead_and_everything_else_is() -> None:
    place = Place(Position(5))
    assert [place.is_ahead(stored(seq)) for seq in (5, 6, 7)] == [False, False, True]
    assert [place.is_ahead(text(seq, 0, "x")) for seq in (5, 6)] == [False, True]
    assert place.is_ahead(text(5, 3, "x"))


def test_text_counts_from_the_beginning_of_its_turn() -> None:
    place = Place(Position(5))
    assert place.passes(text(5, 0, "abc"))
    assert not place.passes(text(5, 0, "abc"))
    assert place.passes(text(5, 3, "de"))
    assert place.rest(text(5, 0, "abcdefg")) == text(5, 5, "fg")
    assert place.rest(text(5, 0, "abcdefg")) is None
    assert place.passes(text(5, 0, "new", turn=2))
