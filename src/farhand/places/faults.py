"""What goes wrong in a tool, as the model is told it: its author's words, and nothing that no author meant for it."""

import traceback

from msgspec import json

from farhand.core.errors import ToolError
from farhand.core.failure import Failure
from farhand.places.values import dump

CAUSES = 10
"""So many exceptions that caused each other are told."""


def said(error: ToolError) -> Failure:
    """What a tool's author says went wrong, as far as it can be written down."""
    try:
        details = json.decode(dump(error.details))
    except (TypeError, ValueError):
        details = None
    text = [str(part).encode("utf-8", "replace").decode() for part in (error.code, error.message, error.path)]
    return Failure(*text, retryable=bool(error.retryable), details=details)


def hidden(tool: str, number: str) -> Failure:
    """An exception that no author meant for the model: only a number, which the log has too."""
    return Failure("tool_failed", f"Tool '{tool}' failed (error {number}).", retryable=True)


def shown(error: BaseException) -> Failure:
    """The same exception with its text, for whoever develops a tool."""
    return Failure("tool_failed", str(error).encode("utf-8", "replace").decode(), retryable=True)


def trail(error: BaseException) -> str:
    """The whole way of an exception, and of what caused it, without any of their texts."""
    said: list[str] = []
    each: BaseException | None = error
    while each is not None and len(said) < CAUSES:
        frames = reversed(list(traceback.walk_tb(each.__traceback__)))
        places = [f"{frame.f_code.co_qualname}:{line}" for frame, line in frames]
        said.append(" < ".join([type(each).__name__, *places]))
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return "; from ".join(said)


def where(error: BaseException, *, text: bool = False) -> str:
    """An exception for the log: its type and place. Its text only if asked for: it may hold what nobody should read."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, line {frames[-1].lineno} of {frames[-1].filename}" if frames else ""
    return f"{type(error).__name__}{place}" + (f": {error}" if text else "")
