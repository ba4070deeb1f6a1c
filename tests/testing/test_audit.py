"""The audit of a store finds what is not as it should be: each kind of damage is done on purpose here."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import json, structs

from farhand.durable import Runner
from farhand.models import Use
from farhand.stores.memory import MemoryStore
from farhand.testing.audit import audit
from tests.durable.story import by_rule


async def kept() -> MemoryStore:
    """A store with a run that waits, one that is done, and nothing wrong."""
    store = MemoryStore()
    async with Runner(by_rule(Use("pick"), "picked"), store=store) as runner:
        await runner.run("go", thread="waits")
        done = await runner.start("go", thread="done")
        [call] = (await done.wait()).pending
        await runner.answer(call.id, 1)
        view = await done.wait()
        while view.state.ending is None:
            view = await done.wait()
    return store


async def test_there_is_nothing_wrong_with_what_a_runner_leaves() -> None:
    assert await audit(await kept(), now=0, workers=()) == []


Tables = Any


def row_of(tables: Tables, state: str) -> Any:
    return next(row for row in tables.runs.values() if row.state == state)


def change_run(which: str, **fields: Any) -> Callable[[Tables], None]:
    def change(tables: Tables) -> None:
        row = row_of(tables, which)
        tables.runs[row.id] = structs.replace(row, **fields)

    return change


def drop_entry(tables: Tables) -> None:
    rows = tables.log[row_of(tables, "done").thread]
    del rows[1]


def repeat_numbers(tables: Tables) -> None:
    rows = tables.log[row_of(tables, "done").thread]
    rows[-1] = structs.replace(rows[-1], updates=rows[-2].updates)


def forget_call(tables: Tables) -> None:
    del tables.calls[next(call.id for call in tables.calls.values() if call.awaited)]


def close_call(tables: Tables) -> None:
    call = next(call for call in tables.calls.values() if call.awaited)
    tables.calls[call.id] = structs.replace(call, state="output-available", record=b"")


def change_snapshot(tables: Tables) -> None:
    row = row_of(tables, "waiting")
    version, body = tables.snapshots[row.id]
    kept = json.decode(body)
    kept["run"]["created"] += 1
    tables.snapshots[row.id] = (version, json.encode(kept))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (change_run("waiting", holder="nobody"), "who is not there"),
        (change_run("waiting", state="ready"), "nobody holds it"),
        (change_run("waiting", due=None), "its next timer is"),
        (change_run("waiting", state="refused", why="why not"), "put aside: why not"),
        (change_run("done", state="cancelled"), "and done in its log"),
        (change_run("done", version=99), "does not lead to"),
        (drop_entry, "numbered|missing|cannot be read"),
        (repeat_numbers, "numbered"),
        (forget_call, "the row of call"),
        (close_call, "the row of call"),
        (change_snapshot, "its snapshot is not what its log leads to"),
    ],
)
async def test_damage_is_found(damage: Callable[[Tables], None], words: str) -> None:
    store = await kept()
    damage(store._tables)
    problems = await audit(store, now=0, workers=())
    assert any(any(word in problem for word in words.split("|")) for problem in problems), problems


async def test_what_is_overdue_is_found_when_the_time_is_known() -> None:
    store = await kept()
    due = row_of(store._tables, "waiting").due
    assert await audit(store, now=due, workers=()) == []
    [problem] = await audit(store, now=due + 5, workers=())
    assert "overdue by 5 ms" in problem
    assert await audit(store) == []
