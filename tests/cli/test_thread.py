"""`farhand thread`: a conversation to look at, to keep, and to see again, with its server and without."""

import stat
from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec import json

from farhand.protocols.native import ThreadView
from tests.cli.command import HOUSE, Served, bad, farhand, good, serving, told
from tests.cli.typing_person import at_terminal


@pytest.fixture(scope="module")
def server() -> Generator[Served]:
    with serving("serve", HOUSE, "--store", "memory:") as served:
        good("chat", served.url, "--thread", "told", typed="add\nhello\n")
        farhand("chat", served.url, "pay", "--thread", "open")
        yield served


@pytest.fixture(scope="module")
def file(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The conversation that was told, exported."""
    path = tmp_path_factory.mktemp("export") / "told.jsonl"
    assert good("thread", "export", server.url, "told", path) == ""
    return path


# Show


def test_what_was_said_and_what_waits_is_shown(server: Served) -> None:
    said = good("thread", "show", server.url, "told").splitlines()
    assert said[0].startswith("thread told, updates up to ")
    assert said[1:] == ["you> add", "Let me see. ", '  → add {"a":1}', "  ✓ add: 3", "so: 3", "you> hello", "hello"]
    said = good("thread", "show", server.url, "open").splitlines()
    assert " is open" in said[0]
    assert said[-1].endswith(' pay {"amount":5}: approval-requested')


def test_for_programs_it_is_as_the_protocol_has_it(server: Served) -> None:
    view = json.decode(good("thread", "show", server.url, "open", "--json"), type=ThreadView)
    assert (view.id, [call.tool for call in view.calls]) == ("open", ["pay"])


def test_a_conversation_that_was_never_begun_is_told(server: Served) -> None:
    for verb in ("show", "export", "replay"):
        assert bad(1, "thread", verb, server.url, "never").startswith("there is no such thread")


# Export


def test_an_export_holds_messages_and_updates_and_counts_them(server: Served, file: Path) -> None:
    first, *lines, last = [json.decode(line) for line in file.read_text().splitlines()]
    messages = [line["message"] for line in lines if "message" in line]
    updates = [line["update"] for line in lines if "update" in line]
    assert first == {"holds": "farhand thread", "format": 1, "thread": "told", "seq": updates[-1]["seq"]}
    assert last == {"messages": len(messages), "updates": len(updates)}
    assert messages == told("thread", "show", server.url, "told")["messages"]
    assert [update["seq"] for update in updates] == list(range(1, first["seq"] + 1))
    assert good("thread", "export", server.url, "told") == file.read_text()


def test_an_export_is_for_nobody_elses_eyes_and_whole_or_not_there(server: Served, file: Path, tmp_path: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = tmp_path / "kept.jsonl"
    kept.write_text("yesterday's")
    bad(1, "thread", "export", server.url, "never", kept)
    assert kept.read_text() == "yesterday's"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.jsonl"]
    assert "No such file or directory" in bad(1, "thread", "export", server.url, "told", tmp_path / "no" / "kept")


# Replay


STORY = ["you> add", "Let me see. ", '  → add at the server {"a":1}', "  ✓ add: 3", "so: 3", "you> hello", "hello"]


def test_a_story_is_the_same_from_its_server_and_from_a_file(server: Served, file: Path) -> None:
    assert good("thread", "replay", server.url, "told", "--speed", "0").splitlines() == STORY
    assert good("thread", "replay", file, "--speed", "0").splitlines() == STORY
    assert good("thread", "replay", file, "--speed", "1000").splitlines() == STORY


def test_for_programs_a_replay_is_the_updates(file: Path) -> None:
    updates = [json.decode(line) for line in good("thread", "replay", file, "--speed", "0", "--json").splitlines()]
    assert [update["type"] for update in updates if update["type"].startswith("run-")] == [
        "run-started",
        "run-ended",
    ] * 2


def test_waits_are_as_long_as_they_were_divided_by_the_speed_and_never_longer_than_the_pause(tmp_path: Path) -> None:
    path = tmp_path / "slow.jsonl"
    updates = [
        {"type": "run-started", "seq": 1, "at": 0, "run_id": "r", "thread_id": "t"},
        {"type": "warned", "seq": 2, "at": 400, "code": "x", "message": "first"},
        {"type": "warned", "seq": 3, "at": 3_600_000, "code": "x", "message": "an hour later"},
    ]
    head = {"holds": "farhand thread", "format": 1, "thread": "t", "seq": 3}
    lines = [head, *({"update": update} for update in updates), {"messages": 0, "updates": 3}]
    path.write_text("".join(json.encode(line).decode() + "\n" for line in lines))
    with at_terminal("thread", "replay", path, "--pause", "0.5") as person:
        person.see("! first")
        assert "an hour later" not in person.shown
        person.see("! an hour later")
        assert person.end() == 0


def test_any_moment_can_be_looked_at(server: Served, file: Path) -> None:
    updates = [line["update"] for line in map(json.decode, file.read_text().splitlines()) if "update" in line]
    executing = next(update["seq"] for update in updates if update["type"] == "call-executing")
    for where in ((server.url, "told"), (file,)):
        head, *lines = good("thread", "replay", *where, "--at", str(executing)).splitlines()
        assert head.startswith(f"after update {executing} (CallExecuting), ")
        assert lines == ["you> add", "Let me see. ", '  → add {"a":1}', '  → add at the server {"a":1}']
        moment = told("thread", "replay", *where, "--at", str(executing))
        assert (moment["seq"], moment["update"]["type"]) == (executing, "call-executing")
        assert [(call["tool"], call["state"]) for call in moment["calls"]] == [("add", "executing")]
    ended = good("thread", "replay", file, "--at", "9999").splitlines()
    assert ended[1:] == ["you> add", "Let me see. ", '  → add {"a":1}', "  ✓ add: 3", "so: 3", "you> hello", "hello"]


def test_what_cannot_be_replayed_is_told(server: Served, file: Path, tmp_path: Path) -> None:
    assert "there is no update 0; they are numbered 1 to" in bad(2, "thread", "replay", file, "--at", "0")
    assert "--speed and --pause are 0 or more" in bad(2, "thread", "replay", file, "--speed", "-1")
    assert "which conversation?" in bad(2, "thread", "replay", server.url)
    assert "No such file or directory" in bad(1, "thread", "replay", tmp_path / "no.jsonl")
    half = tmp_path / "half.jsonl"
    for text, why in [
        ("hello\n", "cannot be read"),
        ("", "cannot be read"),
        (file.read_text().rpartition('{"messages"')[0], "cannot be read"),
        (file.read_text().replace('{"message"', '{"missing"', 1), "cannot be read"),
        (
            '{"holds":"farhand store","format":1,"thread":"t","seq":1}\n{}\n',
            "is no conversation that `farhand thread export`",
        ),
    ]:
        half.write_text(text)
        assert why in bad(2, "thread", "replay", half)
    lines = file.read_text().splitlines(keepends=True)
    half.write_text("".join([lines[0], *lines[2:]]))
    assert bad(2, "thread", "replay", half).endswith("is not whole")
