"""How far somebody has seen a thread, as a text that a client can send back: `12`, or `12.1.340` in mid-reply."""

import re

from msgspec import Struct

from farhand.core.errors import InvalidInput
from farhand.core.updates import (
    CallNamed,
    CallProgress,
    CallStreamed,
    ReasoningStreamed,
    TextStreamed,
    Update,
)

LIVE = frozenset({TextStreamed, ReasoningStreamed, CallNamed, CallStreamed, CallProgress})
"""Updates without a number of their own: they carry that of the stored one before them."""

_TEXT = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,18})\.([0-9]{1,18}))?", re.ASCII)


class Position(Struct, frozen=True, gc=False):
    """After the stored update of a number, and after so many characters of the text that is under way in a turn."""

    seq: int
    turn: int = 0
    length: int = 0

    @classmethod
    def parse(cls, text: str) -> "Position":
        """What `str` of a position gave; nothing at all is the beginning."""
        if not text:
            return cls(0)
        found = _TEXT.fullmatch(text)
        if found is None:
            raise InvalidInput("what was sent as a position in a thread is none")
        return cls(*(int(number or 0) for number in found.groups()))

    @classmethod
    def of(cls, update: Update) -> "Position | None":
        """Where whoever has seen an update is; None if it has moved nobody on, as most live ones."""
        if type(update) is TextStreamed:
            return cls(update.seq, update.turn, update.offset + len(update.text))
        return None if type(update) in LIVE else cls(update.seq)

    def __str__(self) -> str:
        return f"{self.seq}.{self.turn}.{self.length}" if self.length else str(self.seq)
