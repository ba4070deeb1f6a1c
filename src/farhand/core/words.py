"""The words of a name or a text as search compares them: parts of names, one form for singular and plural, no accents.

It knows no language but the plural of English, and nothing of what is searched or how words are weighed.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

MAX_WORD: Final = 64
"""Characters of a word that count; nobody types more."""

_SPACED = bytes(code if code < 128 and chr(code).isalnum() else 32 for code in range(256))
# "HTTPServer2" is HTTP, Server and 2.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Thai to Khmer, Han, kana: no space between words. Korean: endings that stick to the word.
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"
_RUN = re.compile(f"[{_DENSE}]+|[^{_DENSE}]+")
_IS_DENSE = re.compile(f"[{_DENSE}]")
_ACCENT = re.compile("[\u0300-\u036f]")
_UNTOUCHED = 3
"""A word of so few letters is its own stem."""


def split(text: str) -> list[str]:
    """The words of a text as they are written."""
    # By bytes, as a table of characters or an expression takes four times as long.
    return (text.encode().translate(_SPACED).decode() if text.isascii() else _plain(text)).split()


def forms(words: Iterable[str]) -> Iterator[str]:
    """The words in their order, in the form in which they are compared; a name of several parts is a word as well."""
    return chain.from_iterable(map(_known.__getitem__, words))


def letters_of(name: str) -> str:
    """What is left of a name however its parts are written: `open_file`, `openFile` and `Open file` are one."""
    return "".join(split(name)).casefold()


def _plain(text: str) -> str:
    """The text without accents, and with spaces for all that is neither letter nor number."""
    bare = _ACCENT.sub("", unicodedata.normalize("NFKD", text))
    whole = unicodedata.normalize("NFKC", bare)[: 2 * len(text)]  # of one character, NFKD can make eighteen
    # Marks belong to their letters: without them, words of Hindi would fall apart.
    return "".join(each if each.isalnum() or unicodedata.category(each)[0] == "M" else " " for each in whole)


class _Known(dict[str, tuple[str, ...]]):
    """The forms of words seen before: finding them out takes ten times as long as asking."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(word) > MAX_WORD:
            return self[word[:MAX_WORD]]
        if len(self) >= _MAX_KNOWN:
            self.clear()
        found = self[word] = _forms_of(word)
        return found


_MAX_KNOWN = 1 << 14
_known = _Known()


def _forms_of(word: str) -> tuple[str, ...]:
    if not word.isascii():
        return tuple(chain.from_iterable(map(_pairs, _RUN.findall(word))))
    parts = _PART.findall(word)
    whole = _stem(word.lower())
    return (whole,) if len(parts) == 1 else (*(_stem(part.lower()) for part in parts), whole)


def _pairs(run: str) -> tuple[str, ...]:
    """Of a run without spaces each two neighbours; any other is a word."""
    if not _IS_DENSE.match(run):
        return _forms_of(run) if run.isascii() else (_stem(run.casefold()),)
    return tuple(run[at : at + 2] for at in range(len(run) - 1)) or (run,)


def _stem(word: str) -> str:
    """One form for both numbers, which need not be a word: `categories` and `category`, `caches` and `cache`."""
    if len(word) <= _UNTOUCHED:
        return word
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if len(word) <= _UNTOUCHED + 1:
        return word
    if word.endswith("ie"):
        return word[:-2] + "y"
    return word[:-1] if word.endswith("e") else word
