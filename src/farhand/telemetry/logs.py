"""Logs for people and for programs: what happened, to which ids, and never what was said, sent or returned.

`configure_logs()` sets them up for a process that has no logging of its own. A program that has takes `JsonLines` or
`PlainLines` as a formatter, or neither: our own lines hold no payload in any format.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

from msgspec import json

from farhand.places.faults import where
from farhand.telemetry.subject import FIELDS, subject

ABOUT: Final = "farhand"
"""The attribute of a log record that holds further fields: `logger.info("…", extra={"farhand": {"error": number}})`."""
QUIET: Final = ("uvicorn", "websockets", "asyncpg", "httpx", "httpx2", "httpcore", "httpcore2", "asyncio", "hpack")
"""Loggers of others that write headers, addresses or whole frames below INFO."""
RECORD_FIELDS: Final = {
    "time": "UTC, with milliseconds.",
    "level": "`debug`, `info`, `warning`, `error` or `critical`.",
    "logger": "`farhand.asgi`, `farhand.access`, `farhand.durable`, `farhand.runner`, `farhand.stores`, or another's.",
    "message": "What happened.",
    "exception": "Type and place of an exception, without its text.",
}


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as it is written."""
        said: dict[str, object] = {
            "time": _time(record, "milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= fields_of(record)
        if record.exc_info and record.exc_info[1] is not None:
            said["exception"] = where(record.exc_info[1])
        return json.encode(said).decode()


class PlainLines(logging.Formatter):
    """One line for people, with the ids at its end."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as it is written."""
        line = f"{_time(record, 'seconds')} {record.levelname.lower():7} {record.name}: {record.getMessage()}"
        line += "".join(f" {name}={value}" for name, value in fields_of(record).items())
        if record.exc_info and record.exc_info[1] is not None:
            line += f" ({where(record.exc_info[1])})"
        return line.replace("\n", "\\n").replace("\r", "\\r")


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """What a record is about, beside its message."""
    known = subject()
    found: dict[str, object] = {name: known[name] for name in FIELDS if name in known}
    more = getattr(record, ABOUT, None)
    return found | more if isinstance(more, dict) else found


def _time(record: logging.LogRecord, precision: str) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def configure_logs(
    *, json: bool = False, level: int | str = logging.INFO, out: TextIO | None = None
) -> logging.Handler:
    """Write the log of this process from now on: to the standard error, in lines for people or as JSON.

    Below INFO only Farhand's own loggers and your program's say anything: those of the libraries beneath would write
    headers and whole frames.
    """
    handler = logging.StreamHandler(sys.stderr if out is None else out)
    handler.setFormatter(JsonLines() if json else PlainLines())
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known.formatter, JsonLines | PlainLines)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.INFO, root.level))
    return handler
