"""The command `farhand` as a person uses it: a real process, lines typed in, lines read; and servers of its own."""

import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import json

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).parent / "farhand"
HOUSE = "tests.cli.house:agent"
SECONDS = 60


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of a command: nothing of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FARHAND_")}
    return {**kept, "COLUMNS": "200", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", **(more or {})}


def farhand(
    *words: str | Path, typed: str = "", folder: Path | None = None, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """What the command does."""
    return subprocess.run(
        [str(COMMAND), *map(str, words)],
        input=typed,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        cwd=folder or ROOT,
        env=environment(variables),
    )


def good(*words: str | Path, typed: str = "", folder: Path | None = None, **variables: str) -> str:
    """What it writes when all is well."""
    ran = farhand(*words, typed=typed, folder=folder, **variables)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def told(*words: str | Path, typed: str = "", folder: Path | None = None, **variables: str) -> Any:
    """What it writes with `--json`."""
    return json.decode(good(*words, "--json", typed=typed, folder=folder, **variables))


def bad(code: int, *words: str | Path, typed: str = "", folder: Path | None = None, **variables: str) -> str:
    """The one line that it says when it ends with this code, without the name of the program."""
    ran = farhand(*words, typed=typed, folder=folder, **variables)
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stdout + ran.stderr
    [line] = ran.stderr.splitlines()
    assert line.startswith("farhand: ")
    return line.removeprefix("farhand: ")


class Served:
    """A server that a command has started."""

    def __init__(self, process: "subprocess.Popen[str]", ready: dict[str, Any]) -> None:
        self.process = process
        self.bare: str = ready["url"]
        self.token: str = ready.get("token", "")
        self.ready = ready

    @property
    def url(self) -> str:
        """With the token, as it is printed."""
        return f"{self.bare}/#token={self.token}" if self.token else self.bare

    def stop(self) -> tuple[int, str]:
        """Tell it to stop; gives its exit code and what it said on the standard error."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said


@contextmanager
def serving(*words: str | Path, port: int = 0, folder: Path | None = None, **variables: str) -> Generator[Served]:
    """`farhand serve …` or `farhand demo …` at a port, or any free one, ready."""
    process = subprocess.Popen(
        [str(COMMAND), *map(str, words), "--port", str(port), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        cwd=folder or ROOT,
        env=environment(variables),
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        if not first:
            raise AssertionError(process.communicate(timeout=SECONDS)[1])
        yield Served(process, json.decode(first))
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)
