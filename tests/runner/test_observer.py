"""Whoever looks on sees all there is, in order, and can neither change nor stop anything."""

import asyncio
from typing import Any

import pytest
from msgspec import json

from farhand import Agent, scripted, tool
from farhand.core.events import Event, Replied, Started
from farhand.core.run import Run
from farhand.durable import Runner
from farhand.models import Use
from farhand.runner.activity import Activity, Answering, Asking, Running, Working, Writing
from farhand.runner.observer import Observer, Onlookers
from farhand.stores.memory import MemoryStore


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Notes(Observer):
    """Writes everything down."""

    def __init__(self) -> None:
        self.began_with: list[str] = []
        self.ended_with: list[str] = []
        self.errors: list[BaseException] = []
        self.changes: list[tuple[Run | None, Event, Run]] = []
        self.seen: list[Activity] = []

    def began(self, activity: Activity) -> None:
        self.began_with.append(type(activity).__name__)

    def ended(self, activity: Activity, error: BaseException | None) -> None:
        self.ended_with.append(type(activity).__name__)
        self.seen.append(activity)
        if error is not None:
            self.errors.append(error)

    def changed(self, agent: str, before: Run | None, event: Event, after: Run) -> None:
        self.changes.append((before, event, after))


class Faulty(Observer):
    """Raises whatever it is asked."""

    def began(self, activity: Activity) -> None:
        raise KeyError("canary")

    def ended(self, activity: Activity, error: BaseException | None) -> None:
        raise KeyError("canary")

    def changed(self, agent: str, before: Run | None, event: Event, after: Run) -> None:
        raise KeyError("canary")

    def trace(self) -> str:
        raise KeyError("canary")


class Traced(Observer):
    def trace(self) -> str:
        return "00-1-2-01"


def adding() -> Agent[Any]:
    return Agent(scripted([Use("add", {"a": 1, "b": 2}), "3"]), tools=[add])


async def test_every_piece_of_work_begins_and_ends_before_the_eyes_of_all() -> None:
    notes = Notes()
    async with Runner(adding(), store="memory:", observers=[notes]) as runner:
        run = await runner.run("hi")
    kinds = {kind: notes.began_with.count(kind) for kind in set(notes.began_with)}
    assert kinds == {"Working": 1, "Asking": 2, "Running": 1, "Writing": notes.began_with.count("Writing")}
    assert sorted(notes.ended_with) == sorted(notes.began_with)
    assert notes.errors == []
    [work] = [seen for seen in notes.seen if isinstance(seen, Working)]
    assert (work.agent, work.run.id, work.run.status, work.lost) == ("agent", run.state.id, "done", False)
    [ran] = [seen for seen in notes.seen if isinstance(seen, Running)]
    assert ran.event is not None
    assert ran.took >= 0
    asked = [seen for seen in notes.seen if isinstance(seen, Asking)]
    assert all(isinstance(seen.event, Replied) for seen in asked)
    assert all(seen.kept for seen in notes.seen if isinstance(seen, Writing))


async def test_each_change_that_lasts_is_told_once_and_in_order() -> None:
    notes = Notes()
    async with Runner(adding(), store="memory:", observers=[notes]) as runner:
        await runner.run("hi")
    assert isinstance(notes.changes[0][1], Started)
    assert notes.changes[0][0] is None
    for (_, _, earlier), (before, _, _) in zip(notes.changes, notes.changes[1:], strict=False):
        assert before is earlier
    assert notes.changes[-1][2].status == "done"


async def test_whoever_looks_on_and_raises_stops_nothing_and_its_words_are_in_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notes = Notes()
    async with Runner(adding(), store="memory:", observers=[Faulty(), notes]) as runner:
        assert (await runner.run("hi")).output == "3"
    assert "Working" in notes.ended_with
    assert "an observer failed: KeyError" in caplog.text
    assert "canary" not in caplog.text


async def test_a_run_keeps_where_whoever_began_it_finds_it() -> None:
    async with Runner(adding(), store="memory:", observers=[Faulty(), Observer(), Traced()]) as runner:
        run = await runner.run("hi")
    assert run.state.trace == "00-1-2-01"


async def test_a_run_that_nobody_looks_at_keeps_nothing() -> None:
    async with Runner(adding(), store="memory:") as runner:
        run = await runner.run("hi")
    assert run.state.trace == ""
    assert b"trace" not in json.encode(run.state)


async def test_an_end_that_another_process_brings_about_is_seen_by_that_one() -> None:
    one, other = Notes(), Notes()
    started, never = asyncio.Event(), asyncio.Event()

    @tool
    async def hang() -> None:
        """Never ends."""
        started.set()
        await never.wait()

    agent = Agent(scripted([Use("hang"), "ok"]), tools=[hang])
    rows = MemoryStore()
    async with (
        Runner(agent, store=rows, observers=[one]) as first,
        Runner(agent, store=MemoryStore(rows), observers=[other]) as second,
    ):
        run = await first.start("hi")
        await started.wait()
        await second.cancel(run.id)
        view = await run.wait()
    assert view.status == "cancelled"
    assert [after.status for _, _, after in one.changes + other.changes].count("cancelled") == 1


def test_an_exception_goes_through_and_is_seen() -> None:
    notes = Notes()
    with (
        pytest.raises(ValueError, match="mine"),
        Onlookers([notes]).during(Answering(id="1", method="GET", headers={})),
    ):
        raise ValueError("mine")
    assert [type(error) for error in notes.errors] == [ValueError]
