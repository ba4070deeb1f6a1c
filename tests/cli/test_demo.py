"""`farhand demo`, which `make run` starts: what it prints to try works when it is pasted into another terminal."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, ROOT, SECONDS, bad, environment, good, serving, told

CURL = shutil.which("curl")


class Demo:
    """One that runs, and the lines it has printed."""

    def __init__(self, process: "subprocess.Popen[str]", lines: list[str]) -> None:
        self.process = process
        self.lines = lines
        self.tries = [
            line.strip() for line in lines if line.startswith("  ") and ("farhand" in line or "curl" in line)
        ][-3:]


@pytest.fixture
def demo(tmp_path: Path) -> Generator[Demo]:
    """As `make run` starts it: not by a name on the path."""
    process = subprocess.Popen(
        [str(COMMAND), "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        cwd=ROOT,
        env=environment({"XDG_CACHE_HOME": str(tmp_path), "PATH": os.environ["PATH"].replace(str(COMMAND.parent), "")}),
    )
    assert process.stdout is not None
    lines = [""]
    try:
        while lines[-1] != "Ctrl-C stops it.\n":
            lines.append(process.stdout.readline())
            assert lines[-1], process.communicate()[1]
        yield Demo(process, lines)
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def pasted(line: str, folder: Path, typed: str = "") -> str:
    """What a line does in the shell of another terminal, which stands elsewhere."""
    ran = subprocess.run(
        ["bash", "--norc", "-c", line],
        input=typed,
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env=environment(),
        timeout=SECONDS,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_three_things_to_try_work_when_they_are_pasted(demo: Demo, tmp_path: Path) -> None:
    chat, curl, runs = demo.tries
    said = pasted(chat, tmp_path, typed="save a note: milk\ny\nshow a warning: hot\n")
    assert '✓ save_note: "saved, 1 in all"' in said
    assert "warning: hot" in said
    if CURL:
        events = [json.loads(line[6:]) for line in pasted(curl, tmp_path).splitlines() if line.startswith("data: ")]
        assert (events[0]["type"], events[-1]["type"], events[-1]["ending"]) == ("run-started", "run-ended", "done")
        assert events[-1]["output"].count("what_time: ") == 2
    assert pasted(runs, tmp_path).splitlines()[-1].split()[2:4] == ["demo", "done"]


def test_it_keeps_its_runs_in_the_cache_of_the_user_and_for_nobody_else(demo: Demo, tmp_path: Path) -> None:
    kept = tmp_path / "farhand" / "demo.db"
    assert f"  runs are kept in sqlite:{kept}\n" in demo.lines
    assert (kept.parent.stat().st_mode & 0o777, kept.stat().st_mode & 0o077) == (0o700, 0)
    demo.process.send_signal(signal.SIGINT)
    said, wrong = demo.process.communicate(timeout=SECONDS)
    assert (demo.process.returncode, wrong) == (0, "")
    assert said.strip() == "stopped; runs that are under way go on at the next start"


@pytest.mark.parametrize(
    ("start", "named"),
    [
        ([str(COMMAND)], "farhand"),
        ([sys.executable, "-m", "farhand"], f"{sys.executable} -m farhand"),
    ],
)
def test_what_to_try_names_the_command_as_it_can_be_called(start: list[str], named: str) -> None:
    process = subprocess.Popen(
        [*start, "demo", "--store", "memory:"],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=environment({"PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"}),
    )
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    while "runs list" not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1]
    process.terminate()
    process.communicate(timeout=SECONDS)
    assert lines[-1].startswith(f"  {named} runs list ")


def test_a_port_that_is_taken_is_no_reason_not_to_start_unless_it_was_asked_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        taken = str(listening.getsockname()[1])
        said = bad(1, "demo", "--store", "memory:", "--port", taken)
    assert said == f"port {taken} of 127.0.0.1 is taken: stop what runs there, or choose another --port"


def test_a_token_of_ones_own_is_taken_from_the_environment_on_both_sides() -> None:
    variables = {"FARHAND_TOKEN": "a-token-of-my-own-here"}
    with serving("demo", "--store", "memory:", **variables) as served:
        assert served.token == ""
        assert told("tools", "list", served.bare, **variables)["tools"][0]["name"] == "what_time"
        assert "Let me see." in good("chat", served.bare, "roll 2 dice", **variables)


def test_an_editor_that_offers_its_tools_is_used_from_a_chat_that_knows_nothing_of_it() -> None:
    with serving("demo", "--store", "memory:") as served:
        editor = subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / "provider.py"), served.url],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            env=environment({"PYTHONUNBUFFERED": "1"}),
        )
        assert editor.stdout is not None
        try:
            assert editor.stdout.readline().startswith("offering open_file, get_selection")
            said = good("chat", served.url, "use open_file main.py and get_selection")
        finally:
            editor.kill()
            editor.communicate(timeout=SECONDS)
    assert "→ open_file at the client" in said
    assert "taken up by editor" in said
    assert '✓ get_selection: "hello"' in said
