"""A command on a pseudo-terminal, and a person who types into it: waits for what is shown, then types."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

COMMAND = Path(sys.executable).parent / "farhand"
PATIENCE = 20.0
PIECES = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|[\r\n\b])|([^\x1b\r\n\b]+)")
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[=>]|\r")


class Typist:
    """Sits at the terminal of one process."""

    def __init__(self, process: "subprocess.Popen[bytes]", terminal: int) -> None:
        self.process = process
        self.raw = ""
        self._terminal = terminal
        self._from = 0

    @property
    def shown(self) -> str:
        """Everything so far, without what moves the cursor and colours."""
        return CODES.sub("", self.raw)

    @property
    def screen(self) -> list[str]:
        """The lines as they stand there now, those that have scrolled away included."""
        lines, row, column = [""], 0, 0
        for code, text in PIECES.findall(self.raw):
            if code in {"\r", "\n", "\b"}:
                row += code == "\n"
                column = {"\r": 0, "\n": column, "\b": column - 1}[code]
                lines += [""] * (row + 1 - len(lines))
            elif code.endswith("A"):
                row -= int(code[2:-1] or 1)
            elif code.endswith("K"):
                lines[row] = "" if code == "\x1b[2K" else lines[row][:column]
            elif text:
                lines[row] = lines[row].ljust(column)[:column] + text + lines[row][column + len(text) :]
                column += len(text)
        return [line.rstrip() for line in lines]

    def see(self, *texts: str) -> str:
        """Wait for each text, in this order, behind what was waited for before. Gives what was shown until then."""
        until = monotonic() + PATIENCE
        since = self._from
        for text in texts:
            while (at := self.shown.find(text, self._from)) < 0:
                if not self._read(until - monotonic()):
                    raise AssertionError(f"{text!r} was not shown; what was is {self.shown[self._from :]!r}")
            self._from = at + len(text)
        return self.shown[since : self._from]

    def type(self, text: str) -> None:
        """Type, without Enter."""
        os.write(self._terminal, text.encode())

    def enter(self, line: str) -> None:
        """Type a line."""
        self.type(line + "\n")

    def press(self, key: str) -> None:
        """A letter with Ctrl."""
        self.type(chr(ord(key.upper()) - 64))

    def end(self) -> int:
        """Wait for the end of the process; gives its exit code."""
        until = monotonic() + PATIENCE
        while self._read(until - monotonic()):
            pass
        return self.process.wait(timeout=max(0.1, until - monotonic()))

    @property
    def echoes(self) -> bool:
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self._terminal)[3] & termios.ECHO)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], max(0.0, seconds))
        if not ready:
            return False
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # the other side is closed
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)


@contextmanager
def at_terminal(
    *arguments: str | Path, folder: Path | None = None, environment: Mapping[str, str] | None = None, columns: int = 120
) -> Generator[Typist]:
    """`farhand` with these words, on a terminal of its own."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, columns))
    given = {"TERM": "xterm", "LANG": "C.UTF-8", "INPUTRC": os.devnull, **(environment or {})}
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "EDITOR", "VISUAL"}}
    process = subprocess.Popen(
        [str(COMMAND), *map(str, arguments)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=folder,
        env={**kept, **given},
        start_new_session=True,
        preexec_fn=lambda: _take_terminal(slave),
    )
    os.close(slave)
    try:
        yield Typist(process, master)
    finally:
        if process.poll() is None:  # once it is waited for, its number may be somebody else's
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=PATIENCE)
        os.close(master)


def _take_terminal(slave: int) -> None:
    """Be the terminal's process, so that Ctrl-C reaches it."""
    import fcntl

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
