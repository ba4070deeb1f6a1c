"""Who is told what a run does: in order, whatever a watcher does meanwhile, and however much of it."""

import asyncio

import pytest

from farhand.core.updates import Update, Warned
from farhand.runner.watchers import Watchers


def news(number: int) -> Warned:
    return Warned(number, 0, "news", "")


def test_a_watcher_that_raises_what_ends_a_task_leaves_the_others_to_be_told() -> None:
    watchers, seen = Watchers(), list[Update]()

    def leave(update: Update) -> None:
        raise asyncio.CancelledError

    unwatch = watchers.add(leave)
    with pytest.raises(asyncio.CancelledError):
        watchers.tell([news(1)], keep=False)
    unwatch()
    watchers.add(seen.append)
    watchers.tell([news(2)], keep=False)
    assert seen == [news(2)]


def test_a_watcher_may_cause_any_number_of_further_updates() -> None:
    watchers, seen = Watchers(), list[int]()

    def cause(update: Update) -> None:
        if update.seq == 0:
            for number in range(1, 5000):
                watchers.tell([news(number)], keep=False)

    watchers.add(cause)
    watchers.add(lambda update: seen.append(update.seq))
    watchers.tell([news(0)], keep=False)
    assert seen == list(range(5000))


def test_what_is_told_after_the_last_watcher_left_is_kept_for_the_next() -> None:
    watchers, seen = Watchers(), list[Update]()

    def leave(update: Update) -> None:
        watchers.tell([news(2)], keep=True)
        unwatch()

    unwatch = watchers.add(leave)
    watchers.tell([news(1)], keep=True)
    watchers.add(seen.append)
    assert seen == [news(2)]
