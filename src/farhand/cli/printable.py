"""Text of others, made safe for a terminal: nothing in it moves the cursor, colours, hides, or turns the direction."""

import re
from typing import Final

# Controls but tab and newline; marks of direction; what takes no room but joins nothing; tags and variation
# selectors, in which whole sentences can be hidden; halves of characters.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def printable(text: str) -> str:
    """The text with everything that cannot be seen spelt out. Line breaks and tabs stay."""
    return _HIDDEN.sub(_spelt, text.replace("\r\n", "\n"))


def printable_line(text: str, most: int = 0) -> str:
    """The same on one line, cut to so many characters."""
    line = printable(text).replace("\n", "⏎").replace("\t", " ")
    return line if not most or len(line) <= most else line[: most - 1] + "…"


def _spelt(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
