"""The beginning of a JSON text, read as far as it is certain: for watchers of arguments that are still arriving.

What it returns is for display. A call's arguments are parsed by `strict_json`, once, when they are whole.
"""

import re

import msgspec

MAX_DEPTH = 64

# All that is whole in a string: half an escape or surrogate pair is left out. Possessive: nothing is tried twice.
_STRING = re.compile(
    r'"(?:[^"\\\x00-\x1f\ud800-\udfff]|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+"
)
# A number is whole only when something follows it.
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?=[ \t\n\r,\]}])|true|false|null")
_NOT_BLANK = re.compile(r"[^ \t\n\r]|\Z")

_CLOSERS = {"{": "}", "[": "]"}


def parse_partial(text: str) -> object:
    """The value that `text` begins, without what is only half there; None as long as nothing is there. Never raises."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        closed = _Scan(text).run()
    try:
        return msgspec.json.decode(closed)
    except (ValueError, RecursionError):  # nothing yet, or a number that is out of range
        return None


class _Scan:
    """Walks a text once and remembers the last place where it could be closed, and how."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open: list[str] = []
        self.closing = ""
        self.safe = (0, "")

    def run(self) -> str:
        """The text, cut at the last safe place and closed."""
        more = self._value()
        while more and self.open:
            more = self._member()
        end, closing = self.safe
        return self.text[:end] + closing

    def _peek(self) -> str:
        found = _NOT_BLANK.search(self.text, self.at)
        self.at = found.start() if found else len(self.text)
        return self.text[self.at : self.at + 1]

    def _keep(self, quote: str = "") -> bool:
        self.safe = (self.at, quote + self.closing)
        return True

    def _value(self) -> bool:
        """Go over one scalar, or into one container; False where the text ends or makes no sense."""
        sign = self._peek()
        if sign == '"':
            whole = self._string()
            return self._keep("" if whole else '"') and whole
        if sign in _CLOSERS and len(self.open) < MAX_DEPTH:
            self.at += 1
            self.open.append(sign)
            self.closing = _CLOSERS[sign] + self.closing
            return self._keep()
        scalar = _SCALAR.match(self.text, self.at)
        if scalar is None:
            return False
        self.at = scalar.end()
        return self._keep()

    def _string(self) -> bool:
        """Go over one string, as far as it is whole; whether its end was there."""
        found = _STRING.match(self.text, self.at)
        self.at = found.end() if found else self.at
        whole = self.text[self.at : self.at + 1] == '"'
        self.at += whole
        return whole

    def _member(self) -> bool:
        """Go over a comma or a closing bracket, and the next member if there is one."""
        first = self.text[self.at - 1] == self.open[-1] and self.safe[0] == self.at
        sign = self._peek()
        if sign == _CLOSERS[self.open[-1]]:
            self.at += 1
            self.open.pop()
            self.closing = self.closing[1:]
            return self._keep()
        if not first:
            if sign != ",":
                return False
            self.at += 1
        return (self.open[-1] == "[" or self._key()) and self._value()

    def _key(self) -> bool:
        if self._peek() != '"' or not self._string() or self._peek() != ":":
            return False
        self.at += 1
        return True


class PartialArguments:
    """Arguments that grow by pieces. They are read again only when the text has doubled, so that all work is linear."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._read_at = 0
        self._value: object = None

    def feed(self, delta: str) -> bool:
        """Take one piece; whether `value` will be read anew, and is worth showing again."""
        self._pieces.append(delta)
        self._length += len(delta)
        return self._is_due()

    @property
    def value(self) -> object:
        """What is there so far, at most half a text behind."""
        if self._is_due():
            self._read_at = self._length
            self._value = parse_partial(self.text)
        return self._value

    @property
    def text(self) -> str:
        """All pieces joined."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def _is_due(self) -> bool:
        return self._length > 0 and self._length >= 2 * self._read_at
