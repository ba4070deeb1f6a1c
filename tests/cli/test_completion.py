"""`farhand completion`: what a shell completes, asked of the shell itself where it is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from farhand.cli.app import COMMANDS
from tests.cli.command import good


def completed(*words: str) -> set[str]:
    """What bash offers when these words stand there, the last of them in the making."""
    program = f"""
source /dev/stdin
COMP_WORDS=({" ".join(f"'{word}'" for word in words)})
COMP_CWORD={len(words) - 1}
_farhand
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    ran = subprocess.run(
        ["bash", "--norc", "-c", program], input=good("completion", "bash"), capture_output=True, encoding="utf-8"
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return {line.strip() for line in ran.stdout.splitlines() if line.strip()}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_options_and_choices() -> None:
    assert completed("farhand", "") >= set(COMMANDS)
    assert completed("farhand", "ru") == {"runs"}
    assert completed("farhand", "runs", "") >= {"list", "show", "watch", "cancel", "approve", "deny", "answer"}
    assert completed("farhand", "serve", "--ho") == {"--host", "--host-name"}
    assert completed("farhand", "serve", "--log", "") == {"plain", "json"}
    assert completed("farhand", "completion", "") >= {"bash", "zsh", "fish"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_that_names_every_command(shell: str, tmp_path: Path) -> None:
    script = good("completion", shell)
    assert all(name in script for name in COMMANDS)
    if shutil.which(shell) is not None:
        (tmp_path / "script").write_text(script)
        assert subprocess.run([shell, "-n", str(tmp_path / "script")], capture_output=True).returncode == 0
