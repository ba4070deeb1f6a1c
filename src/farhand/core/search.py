"""Search over tools by what a model or a person calls them: a ranking over names, parameters and descriptions.

The rarer a word, the more it counts, as in BM25F. What a tool is worth for a word depends on its own texts alone: on
the best field that has it, and less the more other words stand beside it. So repetition adds nothing, and a long list
of words takes away from each of them.

It decides nothing about who may see which tool.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from heapq import nsmallest
from itertools import islice, takewhile
from math import log
from operator import itemgetter
from typing import Final, NamedTuple, cast

from msgspec import Struct, json

from farhand.core.content_cache import ContentCache
from farhand.core.definition import Definition
from farhand.core.words import forms, letters_of, split

MAX_QUERY: Final = 400
"""Characters of a query that are read."""
MAX_WORDS: Final = 24
"""Words of a query that are looked for."""
MAX_LOOKS: Final = 2500
"""How many entries with one of the words are looked at: the rarest words first, frequent ones while this lasts."""
CUT: Final = 0.25
"""What has a smaller part of the best score is no hit: it is there for words that say little."""
MAX_NODES: Final = 200
"""Subschemas of one tool that are read, those nearest to the top first."""

_SPREAD = 0.75
"""How much of a field's share the number of its words takes away."""


class _Field(NamedTuple):
    weight: float
    words: int
    """So many are usual; with more of them each is worth less."""
    characters: int
    """Nothing after them is read."""


_NAME = _Field(1.0, 5, 128)
_PARAMETERS = _Field(0.75, 12, 800)
_DESCRIPTION = _Field(0.7, 25, 1024)
_DETAILS = _Field(0.35, 40, 1600)
_EXTRA = _Field(0.25, 20, 512)

_PARTIAL = 0.8
"""What a word is worth that begins with the one asked for, before its length counts."""
_ALIKE = 0.55
"""Which part of two words must be the same beginning, if the one asked for is nowhere."""
_MIN_PARTIAL = 3
_MIN_ALIKE = 4
_MAX_KIN = 12
_MAX_LOOKED_AT = 64
_FULL_LENGTH = 4
"""Shorter words of Latin letters are worth less: what is short and frequent says little in most languages."""


class Entry(Struct, frozen=True, kw_only=True):
    """What is known of one thing that can be found."""

    name: str
    description: str = ""
    parameters: bytes = b"{}"
    """A JSON Schema."""
    extra: str = ""
    """Whatever else it may be found by, such as the name and description of its group."""

    @classmethod
    def of(cls, definition: Definition, *extra: str) -> "Entry":
        """A tool, with texts that belong to it."""
        return cls(
            name=definition.name,
            description=definition.description,
            parameters=bytes(definition.parameters),
            extra=" ".join(filter(None, (definition.title, *definition.tags, *extra))),
        )


class Hit(NamedTuple):
    """Something that was found; scores of one search can be compared."""

    name: str
    score: float


class ToolIndex:
    """Entries that can be searched. It is built with the first search, out of what is known of entries seen before."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(entries)

    def search(self, query: str, *, limit: int = 10) -> list[Hit]:
        """The best entries for a query in free words, the best first; of equals, the first name in the alphabet."""
        query = query[:MAX_QUERY]
        scores: defaultdict[int, float] = defaultdict(float)
        for weight, column in self._columns(query):
            for at, share in column.items():
                scores[at] += weight * share
        if limit < 1 or not scores:
            return []
        best = max(scores.values())
        for at in self._named.get(letters_of(query), ()):
            scores[at] += best
        # Numbers alone are sorted in a fraction of the time that all hits with their names would take.
        least = max(sorted(scores.values(), reverse=True)[:limit][-1], CUT * best)
        hits = [Hit(self.entries[at].name, score) for at, score in scores.items() if score >= least]
        return sorted(hits, key=lambda hit: (-hit.score, hit.name))[:limit]

    @cached_property
    def _shares(self) -> list[Mapping[str, float]]:
        return [_shares_of(entry) for entry in self.entries]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Of each word, where the entries are that have it."""
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, shares in enumerate(self._shares):
            for word in shares:
                places[word].append(at)
        return dict(places)

    @cached_property
    def _words(self) -> list[str]:
        return sorted(self._places)

    @cached_property
    def _named(self) -> dict[str, list[int]]:
        """The entries by their names, however those are written."""
        named: defaultdict[str, list[int]] = defaultdict(list)
        for at, entry in enumerate(self.entries):
            named[letters_of(entry.name)].append(at)
        return dict(named)

    def _columns(self, query: str) -> Iterator[tuple[float, Mapping[int, float]]]:
        """Of each word that counts, its weight and what every entry is worth for it."""
        found: list[tuple[int, str, list[tuple[str, float]]]] = []
        for word in islice(dict.fromkeys(forms(split(query))), MAX_WORDS):
            kin = self._kin(word)
            if kin:
                found.append((sum(len(self._places[known]) for known, _ in kin), word, kin))
        left = MAX_LOOKS
        for size, word, kin in sorted(found):
            if size > left < MAX_LOOKS:
                return
            left -= size
            column = self._column(kin)
            yield self._weight(word, len(column)), column

    def _weight(self, word: str, known: int) -> float:
        """The rarer, the more."""
        length = min(1.0, len(word) / _FULL_LENGTH) if word.isascii() else 1.0
        return length * log(1 + (len(self.entries) - known + 0.5) / (known + 0.5))

    def _column(self, kin: list[tuple[str, float]]) -> Mapping[int, float]:
        """Of forms of one word what each entry is worth at best; who has it in many forms has it once."""
        best: dict[int, float] = {}
        for known, weight in kin:
            for at in self._places[known]:
                worth = weight * self._shares[at][known]
                if worth > best.get(at, 0.0):
                    best[at] = worth
        return best

    def _kin(self, word: str) -> list[tuple[str, float]]:
        """The word, those it begins, or, if there is none, those that begin alike; each with what it counts."""
        kin: dict[str, float] = {}
        whole = len(word) < _MIN_PARTIAL and word.isascii()
        for known in self._beginning_with(word):
            if known == word or not whole:
                kin[known] = 1.0 if known == word else _PARTIAL * len(word) / len(known)
        if not kin and len(word) >= _MIN_ALIKE:
            for known in self._beginning_with(word[: max(_MIN_ALIKE, int(_ALIKE * len(word)))]):
                alike = _common(word, known) / max(len(word), len(known))
                if alike >= _ALIKE:
                    kin[known] = alike * alike
        return nsmallest(_MAX_KIN, kin.items(), key=lambda item: (-item[1], item[0]))

    def _beginning_with(self, start: str) -> Iterator[str]:
        first = bisect_left(self._words, start)
        return takewhile(lambda word: word.startswith(start), self._words[first : first + _MAX_LOOKED_AT])


def _common(one: str, other: str) -> int:
    """How many letters at the beginning are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


_known: ContentCache[Mapping[str, float]] = ContentCache(32 << 20)


def _shares_of(entry: Entry) -> Mapping[str, float]:
    known = _known.get(entry)
    if known is None:
        known = _shares(entry)
        # A number and a place in the table for each word, and the texts that are its key.
        _known.put(entry, known, 1024 + 150 * len(known) + len(entry.parameters) + 2 * len(entry.description))
    return known


def _shares(entry: Entry) -> Mapping[str, float]:
    """What the entry is worth for each of its words: the best of the fields that have it."""
    names, details = _texts_in(json.decode(entry.parameters))
    fields: list[tuple[float, list[str]]] = []
    for field, text in (
        (_NAME, entry.name),
        (_PARAMETERS, names),
        (_DESCRIPTION, entry.description),
        (_DETAILS, details),
        (_EXTRA, entry.extra),
    ):
        words = list(forms(split(text[: field.characters])))
        fields.append((field.weight / max(1.0, 1 - _SPREAD + _SPREAD * len(words) / field.words), words))
    fields.sort(key=itemgetter(0))
    shares: dict[str, float] = {}
    for share, words in fields:
        shares.update(dict.fromkeys(words, share))
    return shares


def _texts_in(schema: object) -> tuple[str, str]:
    """The names of all parameters, and what is said of them; those nearest to the top first."""
    names: list[str] = []
    details: list[str] = []
    nodes = [schema]
    for node in nodes:  # grows on the way
        if isinstance(node, dict):
            members = cast("dict[str, object]", node)
            said = members.get("description")
            if isinstance(said, str):
                details.append(said)
            properties = members.get("properties")
            if isinstance(properties, dict):
                names += cast("dict[str, object]", properties)
            if not _HOLDING.isdisjoint(members):
                nodes += _below(members)
                del nodes[MAX_NODES:]
    return " ".join(names), " ".join(details)


_HOLD_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_HOLD_SOME = ("items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf", "if", "then", "else")
_HOLDING = frozenset((*_HOLD_NAMED, *_HOLD_SOME))


def _below(schema: Mapping[str, object]) -> Iterator[object]:
    """The subschemas of a schema; whatever else comes along is no object, and says nothing."""
    for key in _HOLD_NAMED:
        named = schema.get(key)
        if isinstance(named, dict):
            yield from cast("dict[str, object]", named).values()
    for key in _HOLD_SOME:
        some = schema.get(key)
        if isinstance(some, list):
            yield from cast("list[object]", some)
        else:
            yield some
