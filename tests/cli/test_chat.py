"""`farhand chat` without a terminal: lines in, lines out; with an agent of this machine and with one at a server."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from farhand.demo import TRY
from tests.cli.command import HOUSE, Served, bad, farhand, good, serving, told

DEMO = "farhand.demo:demo_agent"


@pytest.fixture(scope="module")
def server() -> Generator[Served]:
    with serving("serve", HOUSE, "--store", "memory:") as served:
        yield served


@pytest.fixture(params=["here", "there"])
def house(request: pytest.FixtureRequest) -> str:
    """The house, in this process and at a server."""
    return HOUSE if request.param == "here" else request.getfixturevalue("server").url


def chat(where: str, *lines: str, words: tuple[str, ...] = (), code: int = 0) -> str:
    """What a conversation shows."""
    ran = farhand("chat", where, *words, typed="".join(f"{line}\n" for line in lines))
    assert (ran.returncode, ran.stderr) == (code, ""), ran.stdout + ran.stderr
    return ran.stdout


# Talking


def test_what_is_said_and_done_is_shown_in_lines(house: str) -> None:
    assert chat(house, "add", "hello").splitlines() == [
        "you> add",
        "Let me see. ",
        '  → add at the server {"a":1}',
        "  ✓ add: 3",
        "so: 3",
        "you> hello",
        "hello",
    ]


def test_a_message_is_one_run(house: str) -> None:
    assert good("chat", house, "hello") == "hello\n"


def test_each_thing_that_the_demo_says_to_try_works() -> None:
    shown = chat(DEMO, TRY[0], TRY[1], TRY[2], "y", TRY[3])
    assert shown.count("✓ what_time") == 2
    assert '"done":4,"of":4' in shown
    assert '✓ save_note: "saved, 1 in all"' in shown
    assert "warning: the kettle is on" in shown
    assert '✓ show_message: "shown"' in shown


def test_progress_and_failures_are_lines_of_their_own_and_cannot_paint(house: str) -> None:
    shown = chat(house, "count fail", "evil")
    assert '    {"done":1,"of":2}\n    half [/] way\n' in shown
    assert "  ✗ fail: it is \\x1b[31mbroken\n" in shown
    assert "\\x1b[31mred\\x07 \\u202egnirts\n" in shown
    assert "\x1b" not in shown


def test_the_conversation_goes_on_from_line_to_line_and_from_chat_to_chat(server: Served) -> None:
    chat(server.url, "one", "two", words=("--thread", "long"))
    assert good("chat", server.url, "three", "--thread", "long") == "three\n"
    said = [message["parts"][0]["text"] for message in told("thread", "show", server.url, "long")["messages"][::2]]
    assert said == ["one", "two", "three"]


def test_for_programs_every_update_is_a_line_of_json(house: str) -> None:
    ran = farhand("chat", house, "--json", typed="pay\ny\n")
    updates = [json.decode(line) for line in ran.stdout.splitlines()]
    kinds = [update["type"] for update in updates if update["type"] not in {"text-streamed", "call-streamed"}]
    assert kinds[0] == "run-started"
    assert kinds[-1] == "run-ended"
    assert {"call-waiting", "call-approved", "call-executing", "call-ended"} <= set(kinds)
    assert updates[-1]["output"] == "so: paid 5"


# Deciding


@pytest.mark.parametrize("word", ["y", "YES", " yes "])
def test_yes_lets_the_call_run(house: str, word: str) -> None:
    shown = chat(house, "pay", word)
    assert '? pay {"amount":5}' in shown
    assert '✓ pay: "paid 5"' in shown


@pytest.mark.parametrize(("word", "told"), [("n", "\n"), ("", "\n"), ("Not NOW", " Reason: Not NOW")])
def test_anything_else_denies_with_that_reason(house: str, word: str, told: str) -> None:
    shown = chat(house, "pay", word)
    assert f"✗ pay: The user denied this call.{told}" in shown
    assert "paid" not in shown


def test_edited_arguments_are_what_runs_and_text_that_is_no_json_is_asked_for_again(house: str) -> None:
    shown = chat(house, "pay", "e", "{oops", '{"amount": 7}')
    assert "the arguments are not JSON" in shown
    assert '→ pay at the server {"amount":7}' in shown


def test_an_empty_edit_changes_nothing(house: str) -> None:
    assert '→ pay at the server {"amount":5}' in chat(house, "pay", "edit", "")


def test_an_edit_that_breaks_the_schema_is_told_and_the_question_comes_again(house: str) -> None:
    shown = chat(house, "pay", "e", '{"amount": "much"}', "y")
    assert "amount" in shown.split("arguments: ")[1]
    assert shown.count("? pay") == 2
    assert '✓ pay: "paid 5"' in shown


def test_always_is_asked_once_and_remembered() -> None:
    shown = chat(HOUSE, "pay", "a", "pay")
    assert shown.count("[a]lways") == 1
    assert shown.count("paid 5") >= 2


def test_the_end_of_the_input_leaves_a_run_to_wait_and_says_how_to_come_back(server: Served) -> None:
    shown = chat(server.url, "pay", words=("--thread", "left"), code=1)
    [run] = [run for run in told("runs", "list", server.url)["runs"] if run["thread_id"] == "left"]
    assert run["state"] == "waiting"
    assert f"run {run['id']} goes on; `farhand chat … --thread left` comes back to it" in shown
    shown = chat(server.url, "y", words=("--thread", "left"))
    assert shown.startswith("a run is open here\n")
    assert "so: paid 5" in shown
    assert told("runs", "show", server.url, run["id"])["state"] == "done"


def test_the_end_of_the_input_ends_a_chat_at_any_question() -> None:
    for lines in ((), ("pay",), ("pay", "e")):
        assert "goes on" not in chat(HOUSE, *lines, code=0 if not lines else 1)
    assert "✗ pick: the person who could have done this has left" in chat(HOUSE, "pick")


# Tools that run here


def test_tools_and_plugins_of_this_machine_are_used_by_the_agent(house: str) -> None:
    words = ("--tools", "tests.cli.house:tools", "--plugin", "tests.cli.house:drawing")
    shown = chat(house, "pick draw", words=words)
    assert '→ pick at the client {"n":3}' in shown
    assert "✓ pick: 30" in shown
    assert '✓ draw: "a house"' in shown
    assert "taken up by" not in shown


def test_a_call_that_nobody_runs_is_the_persons(house: str) -> None:
    shown = chat(house, "pick", "{oops", '"text"', "7")
    assert '? nobody runs pick {"n":3}' in shown
    assert "that is not JSON" in shown
    assert "✓ pick: 7" in shown
    assert "so: 7" in shown
    shown = chat(house, "pick", "fail I do not want to")
    assert "✗ pick: I do not want to" in shown


def test_what_cannot_be_brought_is_told(house: str) -> None:
    said = bad(2, "chat", house, "hi", "--tools", "tests.cli.house:pick")
    assert said == "tool 'pick' of 'tests.cli.house:pick' has no function that could run it here"
    assert "is a Agent, not a Plugin" in bad(2, "chat", house, "hi", "--plugin", HOUSE)


# Asking the chat itself


def test_slash_commands(house: str) -> None:
    shown = chat(
        house, "/help", "/thread", "/thread other", "/thread", "/tools", "/cancel", "/fly", "//fly", "/quit", "no"
    )
    assert "/cancel  call the open run off" in shown
    assert "you> /thread\nthread chat-" in shown
    assert "you> /thread\nthread other" in shown
    assert "pick: client: Pick a number." in shown
    assert "no run is open here" in shown
    assert "there is no /fly; there are /help, /thread" in shown
    assert "you> //fly\n/fly" in shown
    assert "you> no" not in shown


# You are the model


def manual(*lines: str) -> str:
    return chat(DEMO, *lines, words=("--manual",))


def test_a_person_plays_the_model_and_sees_what_it_is_told() -> None:
    shown = manual("hi there", '/roll_dice {"count": 2, "sides": 2}', "you rolled something")
    assert "── you are the model ── user: hi there ── tools: /what_time, /roll_dice," in shown
    assert "✓ roll_dice: [" in shown
    assert "tool roll_dice: [" in shown
    assert shown.endswith("you rolled something\n")


def test_arguments_of_a_played_model_that_are_no_json_are_asked_for_again() -> None:
    shown = manual("hi", "/roll_dice {oops", "/roll_dice", "done")
    assert "the arguments are not JSON" in shown
    assert "✓ roll_dice" in shown


def test_what_looks_like_markup_is_shown_as_it_was_typed() -> None:
    shown = manual("hi [/] [red]there", "/no[/x] {}", "fine")
    assert "user: hi [/] [red]there" in shown
    assert "✗ no[/x]: Unknown tool: no[/x]" in shown


def test_nobody_in_the_place_of_the_model_is_a_run_that_fails() -> None:
    ran = farhand("chat", DEMO, "--manual", typed="hi\n")
    assert ran.returncode == 1
    assert "nobody plays the model any more" in ran.stdout


# Where to


def test_an_agent_of_this_machine_keeps_its_runs_where_it_is_told(tmp_path: Path) -> None:
    words: tuple[Any, ...] = ("--store", f"sqlite:{tmp_path}/runs.db", "--thread", "kept")
    chat(HOUSE, "pay", words=words, code=1)
    assert "so: paid 5" in chat(HOUSE, "y", words=words)


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["nowhere:agent"], 2, "there is no module 'nowhere'"),
        (["http://127.0.0.1:1"], 3, "is a server running there? `farhand doctor URL` has a look"),
        (["http://127.0.0.1:1", "--manual"], 2, "--store and --manual are for agents of this machine"),
        (["http://"], 2, "the URL of a server begins with http:// or https:// and has a host"),
        ([HOUSE, "--store", "mysql://x"], 1, "names no store"),
    ],
)
def test_a_chat_that_cannot_begin_is_one_line(words: list[str], code: int, why: str) -> None:
    assert why in bad(code, "chat", *words)


def test_a_token_for_another_server_is_none_of_the_business_of_an_agent_of_this_machine() -> None:
    assert good("chat", HOUSE, "hello", FARHAND_TOKEN="a-token-for-another-server") == "hello\n"


def test_a_token_that_does_not_count_is_told(server: Served) -> None:
    assert "give a token" in bad(4, "chat", server.bare, "hello")
    assert "give a token" in bad(4, "chat", server.bare, "hello", "--token", "x" * 30)
    assert good("chat", server.bare, "hello", "--token", server.token) == "hello\n"
    assert good("chat", server.bare, "hello", FARHAND_TOKEN=server.token) == "hello\n"
