"""What goes wrong in a tool, as the model is told it: its author's words, and nothing that no author meant for it."""

import traceback

from msgspec import json

from farhand.core.errors import ToolError
from farhand.core.failure import Failure
from farhand.places.values import dump


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


def where(error: BaseException, *, text: bool = False) -> str:
    """An exception for the log: its type and place. Its text only if asked for: it may hold what nobody should read."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, line {frames[-1].lineno} of {frames[-1].filename}" if frames else ""
    return f"{type(error).__name__}{place}" + (f": {error}" if text else "")
