"""A store as JSON lines: what was written down is taken in as it was, by a store of whatever kind."""

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from farhand.core.errors import StoreError
from farhand.stores import open_store, transfer
from farhand.stores.base import MemoryRow, Store
from farhand.stores.memory import MemoryStore
from farhand.testing.store_rows import call_row, done, exported, row_of, run_row, start, step, worker_row


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/runs.db"


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    await store.open()
    yield store
    await store.close()


async def filled() -> MemoryStore:
    store = MemoryStore()
    await store.enter(worker_row("w1"))
    run = run_row(key="k", holder="w1")
    memory = MemoryRow(principal="ann", pin="p", arguments_hash="", allow=True, at=1)
    await done(
        store,
        start(run, calls=[call_row("c1", run)], toolset=("h1", '[{"name":"é"}]'.encode()), memories=[memory]),
        step(run, log={"events": b'[1, {"a": 1.50}]', "updates": b"", "messages": b"\xff\x00"}, snapshot=b"\x80"),
        start(run_row("r2", "t2", state="waiting", due=7, created=1_001)),
    )
    return store


async def written(store: Store) -> bytes:
    file = io.BytesIO()
    await transfer.dump(store, file)
    return file.getvalue()


async def test_a_store_of_any_kind_takes_in_what_another_wrote_down(store: Store) -> None:
    lines = await written(await filled())
    await transfer.load(store, io.BytesIO(lines))
    assert sorted((await written(store)).splitlines()) == sorted(lines.splitlines())
    assert await store.runs("", "", 9) == [await row_of(store, "r2"), await row_of(store, "r1")]


async def test_a_run_that_was_held_is_ready_where_it_is_taken_in() -> None:
    before, after = await filled(), MemoryStore()
    await transfer.load(after, io.BytesIO(await written(before)))
    held = await row_of(before, "r1")
    assert (held.state, held.holder) == ("running", "w1")
    assert await row_of(after, "r1") == structs.replace(held, state="ready", holder="")
    assert await row_of(after, "r2") == await row_of(before, "r2")


async def test_json_can_be_read_in_the_file_and_other_bytes_are_marked() -> None:
    lines = [json.loads(line) for line in (await written(await filled())).splitlines()]
    assert lines[0] == {"holds": "farhand store", "format": 1}
    assert lines[-1] == {"rows": len(lines) - 2}
    first, second = [line["row"] for line in lines if line.get("table") == "log"][:2]
    assert first["events"] == [["event r1-2"]]
    assert (second["updates"], second["messages"]) == (None, {"$base64": "/wA="})


@given(
    st.binary()
    | st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner)).map(msgspec.json.encode)
    | st.sampled_from(
        [b"null", b" [1]", b"[1]\n", b'{"$base64":"x"}', b'{"$base64" :1}', b"[1,\n2]", b"[" * 5_000, b'"\xff"']
    )
)
async def test_any_bytes_come_back_as_they_were(body: bytes) -> None:
    before, after = MemoryStore(), MemoryStore()
    await done(before, start(run_row(), toolset=("h1", body)))
    lines = await written(before)
    await transfer.load(after, io.BytesIO(lines))
    assert await after.toolset("h1") == body
    assert lines.count(b"\n") == 6  # the first line, four rows, the last line


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: lines[:-1], "ends in the middle"),
        (lambda lines: lines[:-2] + lines[-1:], "should have"),
        (lambda lines: [*lines[:-2], lines[-2][:-9]], "cannot be read"),
        (lambda lines: [*lines, b"{}"], "goes on after its end"),
        (lambda lines: lines[1:], "no export of a store"),
        (lambda lines: [], "no export of a store"),
        (lambda lines: [b'{"holds":"farhand store","format":2}', *lines[1:]], "format 2"),
        (lambda lines: [lines[0], b'{"table":"toolsets","row":{"id":"x","body":{"$base64":"?"}}}'], "line 2"),
    ],
)
async def test_of_a_file_that_is_not_whole_nothing_is_taken_in(change: Any, said: str, store: Store) -> None:
    lines = change((await written(await filled())).splitlines())
    with pytest.raises(StoreError, match=said):
        await transfer.load(store, io.BytesIO(b"\n".join(lines)))
    assert await exported(store) == []
