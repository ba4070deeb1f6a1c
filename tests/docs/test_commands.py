"""The page about the command line is true: its shell blocks run in their order, and no command is missing."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from docs_src.commands import arguments_of, commands_of
from farhand.cli.app import app
from tests.cli.command import COMMAND, environment, serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- shell: (\w+) -->\n```bash\n(.*?)```", re.DOTALL)
TOKEN = "a-token-for-the-whole-page"
COMMANDS: list[tuple[str, Any]] = list(commands_of(app, "farhand"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_every_shell_block_of_the_page_runs_in_its_place(tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs_src" / "desk_tools.py", tmp_path)
    [(_, server)] = [block for block in BLOCK.findall(PAGE) if block[0] == "server"]
    variables = {"FARHAND_TOKEN": TOKEN, "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"}
    with serving(*server.split()[1:], folder=tmp_path, **variables) as served:
        for kind, block in BLOCK.findall(PAGE):
            if kind == "run":
                run_block(block, tmp_path, {**variables, "URL": served.bare})


def run_block(block: str, folder: Path, variables: dict[str, str]) -> None:
    ran = subprocess.run(
        ["bash", "--norc", "-eu", "-o", "pipefail", "-c", block],
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env=environment(variables),
        timeout=120,
    )
    assert ran.returncode == 0, f"{block}\n{ran.stdout}\n{ran.stderr}"
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_every_command_has_an_example_that_runs_or_is_told_with_the_server(name: str) -> None:
    prose = PAGE.partition("## Commands")[0]
    if name in {"farhand demo", "farhand runs answer"}:  # one runs until it is stopped, the other wants a client's call
        assert name in prose
    else:
        assert any(name in block for _, block in BLOCK.findall(PAGE))


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_every_command_that_writes_json_has_its_shape_on_the_page(name: str, command: Any) -> None:
    writes = any(argument.name == "--json" for argument in arguments_of(command))
    table = PAGE.partition("## Scripts")[2].partition("## Commands")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `farhand")]
    assert writes == any(f"`{name}`" in line for line in rows)
