"""What commands write: text and tables for people, JSON for programs. Text of others is made safe here."""

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import json
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farhand.cli.printable import printable, printable_line

WIDE: Final = 10_000
"""Columns where nobody looks: a pipe or a file is given whole lines."""


def console() -> Console:
    """The standard output, for people. Nothing that is printed is taken for markup."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    return Console(highlight=False, markup=False, emoji=False, width=width)


def write(text: str = "") -> None:
    """A text of others, or of ours."""
    print(printable(text))


def write_json(value: Any) -> None:
    """One line."""
    sys.stdout.write(json.encode(value).decode() + "\n")


def write_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table; the last column takes what room is left."""
    screen = console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(head):
        last = place == len(head) - 1
        table.add_column(name, no_wrap=not last, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable_line(cell)) for cell in row))
    with screen.capture() as captured:
        screen.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def moment(at: int | None) -> str:
    """A time of ours, milliseconds since 1970, as people of this place read it."""
    if not at:
        return ""
    return datetime.fromtimestamp(at / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def pretty(value: bytes) -> str:
    """JSON over several lines."""
    return json.format(value, indent=2).decode()
