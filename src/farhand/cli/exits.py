"""How a command ends: the exit codes, and the one line that is said of an error. All of it is decided here."""

import traceback
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path

from msgspec import Struct, json

from farhand.core.errors import (
    ConnectionLost,
    FarhandError,
    NotAllowed,
    NotAuthenticated,
    StoreAway,
    UsageError,
)
from farhand.core.problem import Problem


class Exit(IntEnum):
    """What a shell sees."""

    OK = 0
    NO = 1
    USAGE = 2
    UNREACHABLE = 3
    UNKNOWN = 4
    NOT_ALLOWED = 5
    INTERRUPTED = 130


MEANINGS: Mapping[Exit, str] = {
    Exit.OK: "It is done.",
    Exit.NO: "No: it was refused, it is not there, a check found something, or a run did not end well.",
    Exit.USAGE: "The command cannot be understood, or asks for something that cannot be.",
    Exit.UNREACHABLE: "The server or the store cannot be reached.",
    Exit.UNKNOWN: "The server knows nobody by this token, or none was given.",
    Exit.NOT_ALLOWED: "The server knows who asks, who may not do this.",
    Exit.INTERRUPTED: "Ctrl-C.",
}

_OF: Mapping[type[FarhandError], tuple[Exit, str]] = {
    NotAuthenticated: (Exit.UNKNOWN, "give a token: $FARHAND_TOKEN, --token-file, or the URL as the server printed it"),
    NotAllowed: (Exit.NOT_ALLOWED, "ask whoever runs the server for a token with this scope"),
    ConnectionLost: (Exit.UNREACHABLE, "is a server running there? `farhand doctor URL` has a look"),
    StoreAway: (Exit.UNREACHABLE, "is it running, and may you read and write it?"),
    UsageError: (Exit.USAGE, ""),
    FarhandError: (Exit.NO, ""),
}
"""The code of each class of errors, and what to do where the error itself does not say."""


class Said(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as `--json` writes it, on the standard error."""

    code: str
    detail: str
    exit: int
    fix: str = ""
    problems: tuple[Problem, ...] = ()

    def line(self) -> str:
        """For people."""
        return f"farhand: {self.detail}" + (f" ({self.fix})" if self.fix else "")

    def json(self) -> str:
        """For programs."""
        return json.encode(self).decode()


def said(error: BaseException) -> Said:
    """What is said of an error, and the code that the command ends with."""
    if isinstance(error, FarhandError):
        return _said_of(error)
    if isinstance(error, KeyboardInterrupt):
        return Said(code="interrupted", detail="interrupted", exit=Exit.INTERRUPTED)
    if isinstance(error, OSError):
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return Said(code="os", detail=text, exit=Exit.NO)
    return Said(code="failed", detail=where(error), fix="--debug shows all of it", exit=Exit.NO)


def where(error: BaseException) -> str:
    """An exception in a line: the place that raised it, its type and its text."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{Path(error.filename).name}, line {error.lineno}: "
    else:
        place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: " if frames else ""
    text = _line(error.msg if isinstance(error, SyntaxError) else str(error))
    return f"{place}{type(error).__name__}" + (f": {text}" if text else "")


def _said_of(error: FarhandError) -> Said:
    code, fix = next(_OF[kind] for kind in type(error).__mro__ if kind in _OF)
    notes: list[str] = getattr(error, "__notes__", [])
    problems = tuple(each for each in getattr(error, "problems", ()) if isinstance(each, Problem))
    return Said(
        code=error.code, detail=_line(str(error)), exit=code, fix=fix or _line(" ".join(notes)), problems=problems
    )


def _line(text: str) -> str:
    return " ".join(text.split())
