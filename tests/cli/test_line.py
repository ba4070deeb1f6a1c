"""One command line: help, what goes wrong in one line, exit codes, and what is loaded for it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from farhand import __version__
from farhand.cli.app import COMMANDS, app
from farhand.cli.exits import MEANINGS, Exit
from tests.cli.command import COMMAND, HOUSE, bad, farhand, good
from tests.cli.test_optional import BLOCKER

HEAVY = {"pydantic", "starlette", "uvicorn", "httpx2", "asyncpg", "jwt", "cryptography", "markdown_it", "docutils"}


def test_help_lists_the_commands() -> None:
    shown = good("--help")
    assert "AI agents whose tools are defined once and run where they belong." in shown
    assert {line.split()[1] for line in shown.splitlines() if line.startswith("│")} >= set(COMMANDS)


def test_no_words_at_all_are_help() -> None:
    assert good() == good("--help")


def test_the_version_is_the_packages() -> None:
    assert good("--version").strip() == __version__


def test_python_runs_it_as_a_module_too() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "farhand", "--version"], capture_output=True, encoding="utf-8", timeout=30
    )
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, __version__, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_begins_with_what_the_list_says_of_it(name: str) -> None:
    _, line, more = COMMANDS[name]
    shown = " ".join(good(name, "--help").split())
    assert f"{line} {more}".strip() in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fly"], 'Unknown command "fly". Available commands: chat, completion,'),
        (["runs", "fly"], "see `farhand runs --help`"),
        (["runs", "show"], 'Command "runs show" parameter SERVER requires an argument.'),
        (["serve", HOUSE, "--prot", "1"], "Unknown option: --prot"),
        (["serve", HOUSE, "--port", "x"], 'Invalid value for --port: unable to convert "x" into int.'),
        (["serve"], "serve what? name an agent as `module:name`"),
        (["completion", "ksh"], '"ksh"'),
    ],
)
def test_what_cannot_be_understood_is_one_line_and_code_2(words: list[str], said: str) -> None:
    assert said in bad(2, *words)


def test_an_error_is_json_for_programs() -> None:
    ran = farhand("tools", "list", "nowhere:agent", "--json")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert json.decode(ran.stderr) == {
        "code": "usage",
        "detail": "there is no module 'nowhere' here or among what is installed",
        "exit": 2,
    }
    assert json.decode(farhand("fly", "--json").stderr)["code"] == "usage"


def test_an_error_that_nobody_foresaw_is_one_line_too_and_debug_shows_where(tmp_path: Path) -> None:
    (tmp_path / "sick.py").write_text("def agent():\n    1 / 0\n")
    said = bad(2, "tools", "list", "sick", folder=tmp_path)
    assert said == "'sick' makes nothing: sick.py, line 2: ZeroDivisionError: division by zero"
    for words in (["--debug", "tools", "list", "sick"], ["tools", "list", "sick", "--debug"]):
        ran = farhand(*words, folder=tmp_path)
        assert ran.returncode == 1
        assert "Traceback" in ran.stderr
        assert "1 / 0" in ran.stderr


def test_a_reader_who_has_had_enough_is_no_error() -> None:
    listing = subprocess.Popen(
        [str(COMMAND), "completion", "bash"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )
    assert listing.stdout is not None
    listing.stdout.readline()
    listing.stdout.close()
    assert listing.stderr is not None
    assert (listing.wait(timeout=30), listing.stderr.read()) == (0, "")
    listing.stderr.close()


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Exit)


# What is loaded


def loaded_by(*words: str) -> set[str]:
    """The packages that are loaded when a command line has been done."""
    program = f"""
import json, sys
from farhand.cli.line import run
code = run({list(words)!r})
assert code in (0, 1), code
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})), len(sys.modules), file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=30)
    assert ran.returncode == 0, ran.stderr
    listed, _, number = ran.stderr.rpartition(" ")
    assert int(number) < 700
    return set(json.decode(listed))


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["serve", "--help"],
        ["chat", "--help"],
        ["runs", "--help"],
        ["completion", "bash"],
        ["store", "--help"],
    ],
)
def test_help_loads_nothing_that_only_the_work_needs(words: list[str]) -> None:
    assert loaded_by(*words) & HEAVY == set()


def test_help_of_the_whole_loads_no_command_and_little_else() -> None:
    program = (
        "import sys; from farhand.cli.line import run; run(['--help']); "
        "assert len(sys.modules) < 450, len(sys.modules); print([n for n in sys.modules if n in %r])"
    )
    modules = {path.partition(":")[0] for path, *_ in COMMANDS.values()}
    ran = subprocess.run([sys.executable, "-c", program % modules], capture_output=True, encoding="utf-8", timeout=30)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_commands_can_be_told_about_where_their_extras_are_missing() -> None:
    program = BLOCKER.format(blocked=tuple(HEAVY)) + "from farhand.cli import main; main()"
    for words in (["--help"], ["fly"], ["completion", "bash"], ["serve", "--help"], ["doctor", "--help"]):
        ran = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, encoding="utf-8", timeout=30)
        assert "Error" not in ran.stderr, ran.stderr
        assert ran.returncode == (2 if words == ["fly"] else 0)


def test_every_command_says_what_it_does_and_what_each_of_its_options_does() -> None:
    silent: list[str] = []
    for name, command in commands():
        first = (command.default_command.__doc__ or "").strip().partition("\n")[0]
        if not first or first != command.help.partition("\n")[0]:
            silent.append(name)
        arguments: Any = command.assemble_argument_collection(parse_docstring=True) if command.default_command else []
        silent += [f"{name} {argument.name}" for argument in arguments if argument.show and not argument.parameter.help]
    assert silent == []


def commands(level: Any = app, name: str = "farhand") -> list[tuple[str, Any]]:
    """Every command that does something, with its name."""
    found: list[tuple[str, Any]] = []
    for word in level:
        if word.startswith("-"):
            continue
        below = level[word]
        found += [(f"{name} {word}", below)] if below.default_command else commands(below, f"{name} {word}")
    return found
