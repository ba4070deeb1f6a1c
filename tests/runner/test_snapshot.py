"""A run as JSON: everything comes back, and what was not written by `to_json` is refused."""

from typing import Any

import pytest
from msgspec import json

from farhand import Agent, Binary, Limits, LiveRun, scripted, tool
from farhand.core.errors import InvalidInput
from farhand.core.messages import Json, Text
from farhand.core.pieces import Usage
from farhand.models import Turn, Use
from farhand.runner.snapshot import FORMAT, Snapshot, read_snapshot

pick = tool.define("pick", input={"type": "object"}, description="Pick.", needs_approval=True, timeout=5.0)


@tool
async def shot() -> Any:
    """Take a picture."""
    return [Text("a"), Json({"n": 1.0}), Binary("image/png", data=b"\x00\xff")]


async def make_run() -> LiveRun[str]:
    turns = [
        Turn("so", Use("shot"), Use("nothing"), reasoning="hm", usage=Usage(1, 2)),
        Turn("", Use("pick", {"a": 1})),
    ]
    agent = Agent(scripted(turns), tools=[shot, pick], instructions="Be brief.", limits=Limits(max_turns=9))
    return await agent.run(["look", Binary("text/plain", url="https://x.test/a")], principal="ann", thread="th")


async def test_a_run_comes_back_as_it_was() -> None:
    run = await make_run()
    snapshot = read_snapshot(run.to_json())
    assert json.encode(snapshot.run) == json.encode(run.state)
    assert (snapshot.run.status, snapshot.run.messages) == ("waiting", run.state.messages)
    assert [call.outcome for call in snapshot.run.calls.values()] == [call.outcome for call in run.calls]
    assert read_snapshot(run.to_json().decode()) == snapshot


async def test_a_snapshot_says_its_format_and_the_number_of_its_last_update() -> None:
    run = await make_run()
    written = json.decode(run.to_json())
    numbers = [update.seq async for update in run.updates()]
    assert (written["farhand"], written["seq"]) == (FORMAT, numbers[-1] if numbers else written["seq"])
    assert written["seq"] > 0
    assert set(written) == {"farhand", "seq", "run", "unsent"}


async def test_written_twice_it_is_the_same_text() -> None:
    run = await make_run()
    again = read_snapshot(run.to_json())
    assert json.encode(again) == run.to_json()


@pytest.mark.parametrize(
    "data",
    ["", b"", "{", b"\xff", b'"\xff"', "[]", "{}", "null", "3", '{"farhand":1,"seq":1}', '{"seq":1,"run":{"id":"a"}}'],
)
def test_what_is_no_snapshot_is_refused(data: Any) -> None:
    with pytest.raises(InvalidInput, match="not a run written by to_json"):
        read_snapshot(data)


async def test_a_snapshot_of_another_format_is_refused_by_its_number() -> None:
    run = await make_run()
    other = json.encode(Snapshot(farhand=FORMAT + 1, seq=1, run=run.state))
    with pytest.raises(InvalidInput, match=f"has format {FORMAT + 1}; this version reads format {FORMAT}"):
        read_snapshot(other)
