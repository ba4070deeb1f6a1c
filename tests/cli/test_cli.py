"""The command `farhand` as a person uses it: a real process, lines typed in, lines read."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from farhand import Agent, CallContext, scripted, tool
from farhand.cli.session import Session
from farhand.demo import TRY
from farhand.models import Turn, Use
from farhand.testing import VirtualClock

COMMAND = Path(sys.executable).parent / "farhand"


def farhand(*arguments: str, typed: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [str(COMMAND), *arguments],
        input=typed,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        cwd=folder,
        env=environment,
    )


def demo(*lines: str, manual: bool = False) -> str:
    """What a session shows; it ends without an error and says nothing behind one's back."""
    ran = farhand("demo", *(["--manual"] if manual else []), typed="".join(f"{line}\n" for line in lines))
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_help_lists_the_commands() -> None:
    ran = farhand("--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "AI agents whose tools are defined once and run where they belong." in ran.stdout
    assert {line.split()[1] for line in ran.stdout.splitlines() if line.startswith("│")} >= {"demo", "tools"}


def test_the_version_is_the_packages() -> None:
    from farhand import __version__

    assert farhand("--version").stdout.strip() == __version__


def test_a_command_that_does_not_exist_is_an_error() -> None:
    ran = farhand("fly")
    assert ran.returncode != 0
    assert "demo, tools" in ran.stderr


# The demo


def test_the_demo_tells_what_to_try_and_an_empty_line_ends_it() -> None:
    shown = demo("")
    assert all(text in shown for text in TRY)


def test_the_end_of_the_input_ends_the_demo_at_any_question() -> None:
    for lines in ((), (TRY[2],), (TRY[2], "e")):
        demo(*lines)
    assert "nobody plays the model any more" in demo("hi", manual=True)


def test_a_tool_runs_and_its_result_is_told() -> None:
    shown = demo("what time is it in Tokyo?")
    assert 'what_time at the server {"zone":"Asia/Tokyo"}' in shown
    assert "✓ what_time:" in shown


@pytest.mark.parametrize("word", ["y", "YES", " yes "])
def test_yes_lets_the_call_run(word: str) -> None:
    shown = demo(TRY[2], word)
    assert '? save_note {"text":"buy oat milk"}' in shown
    assert '✓ save_note: "saved, 1 in all"' in shown


@pytest.mark.parametrize(("word", "told"), [("n", "\n"), ("", "\n"), ("Not NOW", " Reason: Not NOW")])
def test_anything_else_denies_with_that_reason(word: str, told: str) -> None:
    shown = demo(TRY[2], word)
    assert f"✗ save_note: The user denied this call.{told}" in shown
    assert "saved" not in shown


def test_edited_arguments_are_what_runs_and_text_that_is_no_json_is_asked_for_again() -> None:
    shown = demo(TRY[2], "e", "{oops", '{"text": "tea"}')
    assert shown.count("arguments [") == 2
    assert 'save_note at the server {"text":"tea"}' in shown


def test_an_empty_edit_changes_nothing() -> None:
    assert 'save_note at the server {"text":"buy oat milk"}' in demo(TRY[2], "edit", "")


def test_an_edit_that_breaks_the_schema_is_told_and_the_question_comes_again() -> None:
    shown = demo(TRY[2], "e", '{"text": 3}', "y")
    assert "text" in shown.split("arguments [")[1]
    assert shown.count("? save_note") == 2
    assert "saved, 1 in all" in shown


def test_always_is_asked_once_and_remembered() -> None:
    shown = demo("save a note: a", "a", "save a note: b")
    assert shown.count("[a]lways") == 1
    assert "saved, 2 in all" in shown


def test_a_client_tool_is_shown_by_the_terminal_itself() -> None:
    shown = demo(TRY[3])
    assert "show_message at the client" in shown
    assert '✓ show_message: "shown"' in shown
    assert "│ the kettle is on" in shown


# You are the model


def test_a_person_plays_the_model_and_sees_what_it_is_told() -> None:
    shown = demo("hi there", '/roll_dice {"count": 2, "sides": 2}', "you rolled something", manual=True)
    assert "── you are the model ── user: hi there ── tools: /what_time, /roll_dice," in shown
    assert "✓ roll_dice: [" in shown
    assert "tool roll_dice: [" in shown
    assert "you rolled something" in shown


def test_arguments_that_are_no_json_are_asked_for_again() -> None:
    shown = demo("hi", "/roll_dice {oops", "/roll_dice", "done", manual=True)
    assert "the arguments are not JSON" in shown
    assert "✓ roll_dice" in shown


def test_what_looks_like_markup_is_shown_as_it_was_typed() -> None:
    shown = demo("hi [/] [red]there", "/no[/x] {}", "fine", manual=True)
    assert "user: hi [/] [red]there" in shown
    assert "✗ no[/x]: Unknown tool: no[/x]" in shown


# Any agent, in this process


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines that a person types."""
    lines: list[str] = []

    def read(prompt: str = "") -> str:
        if not lines:
            raise EOFError
        line = lines.pop(0)
        return line() if callable(line) else line

    monkeypatch.setattr("builtins.input", read)
    return lines


@pytest.fixture
def screen() -> Console:
    return Console(file=io.StringIO(), width=200)


def shown_on(screen: Console) -> str:
    file = screen.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


async def test_any_client_tool_is_answered_with_json(typed: list[Any], screen: Console) -> None:
    pick = tool.define("pick", input={"type": "object"}, output={"type": "integer"}, description="Pick.")
    agent = Agent(scripted([Use("pick", {"a": 1}), "thanks"]), tools=[pick])
    typed += ["go", "{oops", '"text"', "7"]
    await Session(agent, screen).talk()
    shown = shown_on(screen)
    assert shown.count('result of pick({"a":1}) as JSON:') == 3
    assert "integer" in shown
    assert "✓ pick: 7" in shown
    assert "thanks" in shown


async def test_a_question_that_expired_while_the_person_thought_is_told_and_the_session_goes_on(
    typed: list[Any], screen: Console
) -> None:
    clock = VirtualClock()

    def too_late() -> str:
        clock.advance(61)
        return "y"

    @tool(needs_approval=True, approval_timeout=60)
    async def wipe() -> None:
        """Wipe."""
        raise AssertionError

    typed += ["go", too_late]
    agent = Agent(scripted([Use("wipe"), "never mind"]), tools=[wipe], clock=clock)
    await Session(agent, screen).talk()
    assert "✗ wipe: Nobody approved this call in time" in shown_on(screen)
    assert "never mind" in shown_on(screen)


async def test_a_run_that_did_not_end_well_and_a_warning_are_told(typed: list[Any], screen: Console) -> None:
    @tool(deprecated="use new")
    async def old() -> None:
        """Old."""

    typed += ["go", "again", "and again"]
    model = scripted([Turn("", Use("old")), "ok"])
    await Session(Agent(model, tools=[old]), screen).talk()
    shown = shown_on(screen)
    assert "! tool 'old' is deprecated: use new" in shown
    assert "failed the script has 2 turns" in shown


async def test_progress_and_streamed_text_have_lines_of_their_own(typed: list[Any], screen: Console) -> None:
    @tool
    async def count(context: CallContext) -> int:
        """Count."""
        context.progress("half [/] way")
        return 2

    typed += ["go"]
    await Session(Agent(scripted([Turn("Let me see", Use("count")), "done"]), tools=[count]), screen).talk()
    lines = [line.strip() for line in shown_on(screen).splitlines()]
    assert lines == ["you> Let me see", "→ count at the server {}", "half [/] way", "✓ count: 2", "done", "you>"]


async def test_the_conversation_goes_on_from_line_to_line(typed: list[Any], screen: Console) -> None:
    model = scripted(["one", "two"])
    typed += ["first", "second", ""]
    await Session(Agent(model), screen).talk()
    assert len(model.requests[1].messages) == 3


# The list of tools


HOUSE = '''
from farhand import Agent, scripted, tool

@tool(needs_approval=True)
def send_mail(text: str) -> None:
    """Send [/it] to [red]everybody[/red]."""

agent = Agent(scripted([]), tools=[send_mail])
other = Agent(scripted([]), tools=[tool.define("pick")])
'''


def test_the_tools_of_an_agent_are_listed_with_hints_for_their_author(tmp_path: Path) -> None:
    (tmp_path / "house.py").write_text(HOUSE)
    for where in ("house", "house:agent"):
        ran = farhand("tools", where, folder=tmp_path)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.split("\n")[1].split()[:4] == ["send_mail", "server", "always", "once"]
        assert "Send [/it] to [red]everybody[/red]." in ran.stdout
        assert "send_mail /parameters/properties/text has no description" in ran.stdout
    assert "pick" in farhand("tools", "house:other", folder=tmp_path).stdout


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("nowhere:agent", "no agent at 'nowhere:agent': No module named 'nowhere'"),
        (
            "farhand.demo:nothing",
            "no agent at 'farhand.demo:nothing': module 'farhand.demo' has no attribute 'nothing'",
        ),
        ("farhand.demo:TRY", "'farhand.demo:TRY' is a tuple, not an Agent"),
        ("farhand.demo", "no agent at 'farhand.demo': module 'farhand.demo' has no attribute 'agent'"),
        ("", "no agent at '': Empty module name"),
        (":agent", "no agent at ':agent': Empty module name"),
    ],
)
def test_an_agent_that_is_not_there_is_one_line_and_exit_code_1(where: str, why: str) -> None:
    ran = farhand("tools", where)
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (1, "", why)


def test_a_module_that_fails_shows_where(tmp_path: Path) -> None:
    (tmp_path / "house.py").write_text("1 / 0")
    ran = farhand("tools", "house", folder=tmp_path)
    assert ran.returncode == 1
    assert "ZeroDivisionError" in ran.stderr
