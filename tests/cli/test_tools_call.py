"""`farhand tools call`: one tool as an agent would run it."""

import pytest
from msgspec import json

from tests.cli.command import HOUSE, bad, farhand, good, told
from tests.cli.typing_person import at_terminal


def test_a_tool_runs_with_the_arguments_that_are_given_and_the_rest_by_default() -> None:
    assert good("tools", "call", HOUSE, "add", '{"a": 40}') == "42\n"
    assert good("tools", "call", HOUSE, "add", "-", typed='{"a": 1, "b": 1}') == "2\n"
    assert good("tools", "call", "tests.cli.house:pick_here", "pick", '{"n": 4}') == "40\n"


def test_for_programs_the_outcome_stands_beside_the_result() -> None:
    said = told("tools", "call", HOUSE, "add", '{"a": 40}')
    assert said == {"tool": "add", "outcome": "ok", "result": 42, "failure": None}


def test_arguments_that_do_not_fit_reach_no_function_and_every_problem_is_told() -> None:
    ran = farhand("tools", "call", HOUSE, "add", '{"a": "x", "c": 1}')
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("invalid: ")
    assert "/a" in ran.stderr
    assert "/c" in ran.stderr


@pytest.mark.parametrize(("text", "why"), [("{oops", "no JSON object"), ("[1]", "Expected `object`, got `array`")])
def test_what_is_no_object_is_told(text: str, why: str) -> None:
    assert why in bad(2, "tools", "call", HOUSE, "add", text)


def test_a_tool_that_fails_ends_with_1_and_cannot_paint_the_terminal() -> None:
    ran = farhand("tools", "call", HOUSE, "fail")
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", "failed: it is \\x1b[31mbroken\n")
    ran = farhand("tools", "call", HOUSE, "fail", "--json")
    assert (ran.returncode, json.decode(ran.stdout)["failure"]["code"]) == (1, "broken")


def test_progress_is_told_beside_the_result() -> None:
    ran = farhand("tools", "call", HOUSE, "count")
    assert (ran.returncode, ran.stdout) == (0, '"counted"\n')
    assert ran.stderr == '{"done":1,"of":2}\n"half [/] way"\n'


def test_a_call_that_needs_approval_needs_somebody_who_agrees() -> None:
    ran = farhand("tools", "call", HOUSE, "pay", '{"amount": 5}')
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "nobody is here to be asked; --yes agrees" in ran.stderr
    assert good("tools", "call", HOUSE, "pay", '{"amount": 5}', "--yes") == '"paid 5"\n'


def test_at_a_terminal_the_person_is_asked() -> None:
    for word, code, shown in (("y", 0, '"paid 5"'), ("", 1, "denied")):
        with at_terminal("tools", "call", HOUSE, "pay", '{"amount": 5}') as person:
            person.see('pay {"amount":5}', "Run it? [y/N] ")
            person.enter(word)
            person.see(shown)
            assert person.end() == code


def test_what_cannot_be_called_is_told() -> None:
    assert "tool 'pick' has no function here: a client runs it" in bad(2, "tools", "call", HOUSE, "pick")
    assert "there is no tool 'fly'" in bad(1, "tools", "call", HOUSE, "fly")
    assert "a server runs tools for its agents only" in bad(2, "tools", "call", "http://127.0.0.1:1", "add")
    assert "there is no module 'nowhere'" in bad(2, "tools", "call", "nowhere", "add")
