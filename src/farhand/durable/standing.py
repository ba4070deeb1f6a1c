"""A call as it stands, with the places it belongs to."""

from typing import Any

from msgspec import Struct

from farhand.core.call import Call
from farhand.runner.live import Receipt


class Standing(Struct, frozen=True):
    """A call as it stands, and where."""

    record: Call
    run: str
    thread: str
    """The name of its conversation."""


class Claimed(Receipt, frozen=True, kw_only=True):
    """A call that is yours to work on; `repeated` if it was before."""

    attempt: int
    arguments: str
    """JSON text."""
    deadline: int | None
    payload: Any = None
    """What the person added to the approval."""
