"""Runs become rows and rows become runs again: also rows that were written by the first version, and no others."""

import io
from typing import Any

import pytest
from msgspec import json, structs

from farhand.core.errors import RunRefused, StoreAway, StoreVersion
from farhand.core.events import CallCancelled
from farhand.core.run import Run
from farhand.core.step import step
from farhand.core.updates import updates
from farhand.durable import Runner
from farhand.durable.record import Toolsets, make_rest, make_write, read_updates, revive
from farhand.runner.driver import Change
from farhand.stores import transfer
from farhand.stores.base import FORMAT, LogRow, Stored
from farhand.stores.memory import MemoryStore
from farhand.testing.clock import VirtualClock
from tests.durable.golden import make


@pytest.fixture
async def golden() -> MemoryStore:
    """The store that was written once."""
    store = MemoryStore()
    await transfer.load(store, io.BytesIO(make.STORE.read_bytes()))
    return store


async def stored(store: MemoryStore, run: str) -> Stored:
    found = await store.load(run)
    assert found is not None
    return found


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Where something that was written is not, or is another; what has been added since does not matter."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [each for key in old for each in differences(old[key], new.get(key), f"{path}/{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [each for n, pair in enumerate(zip(old, new, strict=True)) for each in differences(*pair, f"{path}/{n}")]
    return [] if old == new else [f"{path}: {old!r} is {new!r}"]


# What was written once.


async def test_every_run_of_the_first_format_is_read_as_it_was_written(golden: MemoryStore) -> None:
    known = json.decode(make.RUNS.read_bytes())
    found = {name: structs.replace(run, tools={}) for name, run in (await make.read(golden)).items()}
    assert differences(known, json.decode(json.encode(found))) == []
    assert len(known) >= 13


async def test_every_run_of_the_first_format_comes_from_its_log_alone_too(golden: MemoryStore) -> None:
    for name, run in (await make.read(golden)).items():
        whole = await stored(golden, name)
        bare = MemoryStore()
        await bare.take_in([(table, row) async for table, row in golden.export() if table != "snapshots"])
        replayed = await revive(await stored(bare, name), Toolsets(), bare.toolset)
        assert json.encode(replayed.run) == json.encode(run)
        assert replayed.toolset == (await revive(whole, Toolsets(), golden.toolset)).toolset


async def test_the_updates_of_the_first_format_follow_from_its_events(golden: MemoryStore) -> None:
    bare = MemoryStore()
    await bare.take_in([(table, row) async for table, row in golden.export() if table != "snapshots"])
    told = 0
    for row in await bare.runs("", "", 100):
        rows = await stored(bare, row.id)
        revived = await revive(rows, Toolsets(), bare.toolset)
        run: Run | None = None
        events = iter(event for _, event in revived.changes)
        seq = rows.tail[0].seq - len(read_updates(rows.tail[0]))
        for entry in rows.tail:
            found = []
            for _ in range(entry.count):
                before, event = run, next(events)
                run, _ = step(before, event)
                found += updates(before, event, run, seq + len(found))
            assert json.encode(found) == json.encode(read_updates(entry) if entry.updates else [])
            seq, told = entry.seq, told + len(found)
    assert told > 60


async def test_paused_runs_of_the_first_format_go_on(golden: MemoryStore) -> None:
    clock = VirtualClock(start=3_000_000)
    async with Runner(make.agent(), store=golden, timing=make.TIMING, clock=clock) as runner:
        calls = {call.tool: call for call in await runner.pending(thread="one")}
        assert set(calls) == {"pay", "hurry"}
        await runner.approve(calls["pay"].id)
        await runner.answer(calls["hurry"].id, "there")
        run = await runner.find("id-4")
        assert (await run.wait()).output == "All done."
        [mine] = await runner.pending(principal="ann", thread="own")
        await runner.answer(mine.id, 1, principal="ann")
        assert (await (await runner.find("id-23", principal="ann")).wait()).output == "Yours."


# Rows that do not fit.


async def refusal(rows: Stored, store: MemoryStore) -> str:
    with pytest.raises(RunRefused) as caught:
        await revive(rows, Toolsets(), store.toolset)
    return str(caught.value)


def changed(rows: Stored, entry: int, **fields: Any) -> Stored:
    tail = list(rows.tail)
    tail[entry] = structs.replace(tail[entry], **fields)
    return structs.replace(rows, tail=tail)


@pytest.fixture
async def waiting(golden: MemoryStore) -> Stored:
    """A run that waits, from its log alone."""
    bare = MemoryStore()
    await bare.take_in([(table, row) async for table, row in golden.export() if table != "snapshots"])
    return await stored(bare, "id-4")


async def test_a_log_with_a_gap_is_refused(golden: MemoryStore, waiting: Stored) -> None:
    without: list[LogRow] = [entry for entry in waiting.tail if entry is not waiting.tail[1]]
    assert await refusal(structs.replace(waiting, tail=without), golden)
    assert "does not lead to" in await refusal(structs.replace(waiting, tail=waiting.tail[:-1]), golden)
    assert "an event is missing" in await refusal(changed(waiting, -1, version=99), golden)


async def test_a_log_that_says_something_impossible_or_unknown_is_refused(golden: MemoryStore, waiting: Stored) -> None:
    last = waiting.tail[-1]
    for events in (b"[", b"\xff", b'[{"type":"vanished"}]', last.events.replace(b'"call_id":"', b'"call_id":"no-')):
        assert "cannot be read" in await refusal(changed(waiting, -1, events=events), golden)
    assert "does not lead to" in await refusal(changed(waiting, -1, seq=last.seq + 1), golden)


async def test_messages_that_do_not_fit_are_refused(golden: MemoryStore, waiting: Stored) -> None:
    for messages in (waiting.messages[:-1], waiting.messages[1:], [*waiting.messages, b'[{"type":"user","parts":[]}]']):
        assert "messages" in await refusal(structs.replace(waiting, messages=messages), golden)
    assert "cannot be read" in await refusal(structs.replace(waiting, messages=[*waiting.messages[:-1], b"{}"]), golden)


async def test_definitions_that_are_gone_or_others_are_refused(golden: MemoryStore, waiting: Stored) -> None:
    class Forgetful(MemoryStore):
        async def toolset(self, toolset: str) -> bytes | None:
            return self.body

        body: bytes | None = None

    store = Forgetful(golden)
    assert "definitions" in await refusal(waiting, store)
    store.body = b"[]"
    assert "definitions" in await refusal(waiting, store)


async def test_a_snapshot_that_does_not_fit_is_refused(golden: MemoryStore) -> None:
    rows = await stored(golden, "id-4")
    assert rows.snapshot
    for snapshot in (b"{}", rows.snapshot[:-2], rows.snapshot.replace(b'"events":', b'"events":1')):
        assert "cannot be read" in await refusal(structs.replace(rows, snapshot=snapshot), golden)


async def test_rows_of_a_newer_format_are_left_to_a_newer_version(golden: MemoryStore, waiting: Stored) -> None:
    for rows in (
        changed(waiting, 0, format=FORMAT + 1),
        structs.replace(waiting, run=structs.replace(waiting.run, format=FORMAT + 1)),
    ):
        with pytest.raises(StoreVersion, match=f"format {FORMAT + 1}"):
            await revive(rows, Toolsets(), golden.toolset)


async def test_a_run_bears_the_newest_format_that_is_in_its_rows(golden: MemoryStore, waiting: Stored) -> None:
    revived = await revive(waiting, Toolsets(), golden.toolset)
    event = CallCancelled(revived.run.updated, revived.run.open_calls[0].id, "by a test")
    after, effects = step(revived.run, event)
    change = Change(revived.run, event, after, updates(revived.run, event, after, waiting.run.seq), effects)
    for known in (FORMAT - 1, FORMAT, FORMAT + 1):
        row = structs.replace(waiting.run, format=known)
        write = make_write([change], row, holder="w", toolsets=Toolsets(), toolset=revived.toolset)
        assert write.log is not None
        assert (write.run.format, write.log.format) == (max(known, FORMAT), FORMAT)


async def test_a_store_that_is_away_is_no_reason_to_refuse_a_run(waiting: Stored) -> None:
    async def away(_: str) -> bytes | None:
        raise StoreAway("not now")

    with pytest.raises(StoreAway):
        await revive(waiting, Toolsets(), away)


# Definitions and rest.


async def test_definitions_are_read_once_and_encoded_once() -> None:
    toolsets, fetched = Toolsets(), 0
    tools = tuple(make.agent().definitions)
    name, body = toolsets.keep(tools)
    assert toolsets.keep(tools) == (name, body)
    fresh = Toolsets()

    async def fetch(_: str) -> bytes | None:
        nonlocal fetched
        fetched += 1
        return body

    assert await fresh.get(name, fetch) == tools
    assert await fresh.get(name, fetch) is await fresh.get(name, fetch)
    assert fetched == 1


async def test_giving_a_run_back_changes_nothing_but_who_holds_it(golden: MemoryStore, waiting: Stored) -> None:
    revived = await revive(waiting, Toolsets(), golden.toolset)
    row = structs.replace(waiting.run, state="running", holder="w", due=None)
    write = make_rest(row, revived.run, revived.toolset)
    assert (write.run, write.was) == (waiting.run, (row.version, row.epoch))
    assert (write.log, list(write.calls), write.ends) == (None, [], False)
    again = structs.replace(waiting, snapshot=write.snapshot, tail=[])
    assert (await revive(again, Toolsets(), golden.toolset)).run == revived.run
