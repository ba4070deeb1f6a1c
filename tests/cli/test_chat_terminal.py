"""`farhand chat` at a real pseudo-terminal: what a person sees, types and presses."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.command import HOUSE, ROOT, Served, good, serving, told
from tests.cli.typing_person import Typist, at_terminal

DEMO = "farhand.demo:demo_agent"
ASKED = "reason to deny: "


@pytest.fixture(scope="module")
def server() -> Generator[Served]:
    with serving("serve", HOUSE, "--store", "memory:") as served:
        yield served


@pytest.fixture
def person() -> Generator[Typist]:
    """At a chat with the house, asked for the first line."""
    with at_terminal("chat", HOUSE, folder=ROOT) as typist:
        typist.see("house - thread chat-", "/help", "you> ")
        yield typist


def test_a_conversation_with_calls_that_move_and_a_bar_that_grows() -> None:
    with at_terminal("chat", DEMO, folder=ROOT) as person:
        person.see("you> ")
        person.enter("what time is it in Tokyo? then count to 3")
        person.see("Let me see.", "✓ what_time", "Asia/Tokyo")
        person.see('count_slowly at the server {"to":3}', "━━", '✓ count_slowly {"to":3}: "counted to 3"')
        person.see("counted to 3.", "you> ")
        person.enter("show a warning: the kettle is on")
        person.see("warning: the kettle is on", "you> ")
        person.press("d")
        assert person.end() == 0
        assert [line.split()[0] for line in person.screen if line] == [
            *("demo", "you>", "Let", "✓", "✓", "what_time:", "you>", "Let", "warning:", "✓", "show_message:", "you>")
        ]


def test_long_text_wraps_at_words_and_stands_there_once(person: Typist) -> None:
    person.enter("long")
    person.see("word59", "you> ")
    at = person.screen.index("you> long")
    said = person.screen[at + 1 : person.screen.index("you>", at)]
    assert len(said) > 3
    assert " ".join(said) == " ".join(f"word{number}" for number in range(60))


def test_yes_is_asked_for_and_what_was_typed_before_the_question_is_no_answer(person: Typist) -> None:
    person.type("pay\ny\n")  # the second line comes before anything was asked
    person.see('? pay {"amount":5}', ASKED)
    person.enter("not today")
    person.see("✗ pay", "The user denied this call. Reason: not today", "you> ")
    person.enter("pay")
    person.see(ASKED)
    person.enter("y")
    person.see('✓ pay {"amount":5}: "paid 5"', "you> ")


def test_arguments_are_edited_where_they_stand(person: Typist) -> None:
    person.enter("pay")
    person.see(ASKED)
    person.enter("e")
    person.see("arguments: ", '{"amount":5}')
    person.type("\x7f\x7f70}\n")
    person.see('✓ pay {"amount":70}: "paid 70"')


def test_arguments_are_edited_in_the_editor_of_the_person(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf \'{"amount": 9\' > "$1"\ntest -e again && echo "}" >> "$1"\ntouch again\n')
    editor.chmod(0o700)
    with at_terminal(
        "chat", HOUSE, folder=ROOT, environment={"EDITOR": str(editor), "PYTHONPATH": str(ROOT)}
    ) as person:
        person.see("you> ")
        person.enter("pay")
        person.see(ASKED)
        person.enter("e")
        person.see("the arguments are not JSON", "Enter opens the editor again: ")
        person.enter("")
        try:
            person.see('✓ pay {"amount":9}: "paid 9"')
        finally:
            (ROOT / "again").unlink(missing_ok=True)


@pytest.mark.parametrize("editor", ["false", "no-such-editor"])
def test_an_editor_that_fails_gives_way_to_the_line(editor: str) -> None:
    with at_terminal("chat", HOUSE, folder=ROOT, environment={"VISUAL": editor}) as person:
        person.see("you> ")
        person.enter("pay")
        person.see(ASKED)
        person.enter("e")
        person.see(f"{editor}: ", "arguments: ", '{"amount":5}')
        person.type("\x7f\x7f8}\n")
        person.see('✓ pay {"amount":8}: "paid 8"')


def test_ctrl_c_calls_the_run_off_and_at_the_prompt_a_second_one_leaves(person: Typist) -> None:
    person.enter("hang")
    person.see("hang at the server")
    person.press("c")
    person.see("calling it off; Ctrl-C once more leaves it", "cancelled", "you> ")
    person.press("c")
    person.see("Ctrl-C once more leaves, and so do Ctrl-D and /quit", "you> ")
    person.enter("hello")
    person.see("hello", "you> ")
    person.press("c")
    person.see("once more leaves", "you> ")
    person.press("c")
    assert person.end() == 0


@pytest.mark.parametrize("second", [signal.SIGUSR1, signal.SIGUSR2], ids=["take back", "poke"])
def test_ctrl_c_and_another_signal_in_the_same_moment_are_both_taken(person: Typist, second: signal.Signals) -> None:
    for number in (signal.SIGSTOP, signal.SIGINT, second, signal.SIGCONT):
        person.process.send_signal(number)
    person.see("Ctrl-C once more leaves", "you> ")
    person.enter("hello")
    person.see("hello", "you> ")


def test_ctrl_c_at_a_question_calls_the_run_off(person: Typist) -> None:
    person.enter("pay")
    person.see(ASKED)
    person.press("c")
    person.see("calling it off", "✗ pay", "cancelled", "you> ")


def test_ctrl_d_at_a_question_leaves_the_run_to_wait(server: Served) -> None:
    with at_terminal("chat", server.url, "--thread", "left") as person:
        person.see("you> ")
        person.enter("pay")
        person.see(ASKED)
        person.press("d")
        person.see("goes on; `farhand chat … --thread left` comes back to it")
        assert person.end() == 0
    with at_terminal("chat", server.url, "--thread", "left") as person:
        person.see("a run is open here", '? pay {"amount":5}', ASKED)
        person.enter("y")
        person.see("so: paid 5", "you> ")


def test_a_decision_of_somebody_else_takes_the_question_back(server: Served) -> None:
    with at_terminal("chat", server.url, "--thread", "shared") as person:
        person.see("you> ")
        person.enter("pay")
        person.see(ASKED)
        person.type("perhaps")
        [call] = [
            each for run in told("runs", "list", server.url)["runs"] for each in [run] if run["thread_id"] == "shared"
        ]
        good("runs", "approve", server.url, call["id"])
        person.see('✓ pay {"amount":5}: "paid 5"', "so: paid 5", "you> ")
        person.enter("hello")
        person.see("hello", "you> ")


def test_what_is_typed_while_the_agent_works_is_not_shown_and_the_terminal_is_given_back_as_it_was(
    person: Typist,
) -> None:
    person.enter("hang")
    person.see("hang at the server")
    assert not person.echoes
    os.kill(person.process.pid, signal.SIGTERM)
    assert person.end() == 128 + signal.SIGTERM
    assert person.echoes
    assert person.raw.rindex("\x1b[?25h") > person.raw.rindex("\x1b[?25l")  # the cursor is there again


def test_a_server_that_comes_back_is_gone_on_with(tmp_path: Path) -> None:
    words = ("serve", HOUSE, "--store", f"sqlite:{tmp_path}/runs.db", "--token", "a-token-that-is-long-enough")
    with serving(*words) as served:
        port = int(served.bare.rpartition(":")[2])
        with at_terminal("chat", served.bare, environment={"FARHAND_TOKEN": "a-token-that-is-long-enough"}) as person:
            person.see("you> ")
            person.enter("pay")
            person.see(ASKED)
            served.stop()
            person.enter("y")
            person.see("no connection: ")
            with serving(*words, port=port):
                person.see("connected again", '✓ pay {"amount":5}: "paid 5"', "so: paid 5", "you> ")


def test_text_of_others_cannot_paint_the_terminal(person: Typist) -> None:
    person.enter("evil")
    person.see("\\x1b[31mred\\x07 \\u202egnirts", "you> ")
    assert "\x1b[31m" not in person.raw
    assert "\x07" not in person.raw


def test_a_message_at_a_terminal_is_one_run() -> None:
    with at_terminal("chat", HOUSE, "pay", folder=ROOT) as person:
        person.see(ASKED)
        person.enter("n")
        person.see("✗ pay")
        assert person.end() == 0


def test_a_terminal_that_can_do_no_more_gets_lines() -> None:
    with at_terminal("chat", HOUSE, "add", folder=ROOT, environment={"TERM": "dumb"}) as person:
        person.see("→ add at the server", "✓ add: 3", "so: 3")
        assert person.end() == 0
        assert "\x1b[" not in person.raw
