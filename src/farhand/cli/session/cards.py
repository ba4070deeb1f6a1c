"""Calls in words: one line for where a call stands, one for how it ended, one for how a run ended."""

from typing import Any

from msgspec import json

from farhand.cli.printable import printable_line
from farhand.cli.session.story import Card
from farhand.core.call import CallState, Outcome
from farhand.core.run import Ending
from farhand.core.updates import RunEnded

SHORT = 160
"""Characters of arguments and results in a line."""
MARKS = {Outcome.OK: "✓", Outcome.DENIED: "✗", Outcome.CANCELLED: "✗"}
GREEN, YELLOW, RED = "green", "yellow", "red"
COLOURS = {Outcome.OK: GREEN, Outcome.DENIED: YELLOW, Outcome.CANCELLED: YELLOW}


def mark(card: Card) -> str:
    """A sign for its outcome."""
    return MARKS.get(card.outcome, "✗") if card.outcome is not None else "→"


def colour(card: Card) -> str:
    """A colour for its outcome."""
    return COLOURS.get(card.outcome, RED) if card.outcome is not None else ""


def standing(card: Card, *, most: int = SHORT) -> str:
    """Where an open call stands."""
    called = f"{printable_line(card.tool)} {_arguments(card, most)}".rstrip()
    if card.state in {CallState.AWAITING_INPUT, CallState.INPUT_STREAMING}:
        return f"{called} …"
    if card.state is CallState.APPROVAL_REQUESTED:
        return f"{called} waits for a person"
    if card.state is not CallState.EXECUTING:
        return called
    where = f"{printable_line(card.tool)} at the {card.place} {_arguments(card, most)}".rstrip()
    if card.until is not None:
        return f"{where} - nobody is there to run it"
    return f"{where} - taken up by {printable_line(card.holder, 40)}" if card.holder else where


def ending(card: Card, *, most: int = 0) -> str:
    """How a call ended."""
    text = card.failure.message if card.failure is not None else bytes(card.result).decode("utf-8", "replace")
    return f"{printable_line(card.tool)}: {printable_line(text, most)}"


def progress(value: Any) -> str:
    """What a tool says of its progress."""
    return printable_line(value if isinstance(value, str) else json.encode(value).decode(), SHORT)


def over(end: RunEnded) -> str:
    """How a run ended, if there is anything to be said about it."""
    if end.ending is Ending.DONE:
        return ""
    why = end.failure.message if end.failure is not None else end.limit
    return f"{end.ending}: {printable_line(why)}" if why else str(end.ending)


def _arguments(card: Card, most: int) -> str:
    return printable_line(card.arguments, most)
