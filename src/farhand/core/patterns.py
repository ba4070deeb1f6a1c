"""Regular expressions of schemas: taken only by the linear engine, and weighed, since linear can be slow as well.

What a pattern may weigh in a definition is decided in `admission`; what becomes of a value, in `schema`.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import cast

import jsonschema_rs

from farhand.core.schema_graph import Json, Token, subschemas

LARGEST = 1 << 20
_SMALLEST = 1 << 10

OPTIONS = jsonschema_rs.RegexOptions(size_limit=LARGEST, dfa_size_limit=1 << 16)
"""The linear engine. Its cache of states is small: where states are made faster than used, a large one costs more."""


@lru_cache(maxsize=4096)
def _compiles(pattern: str, limit: int) -> bool:
    # The meta-schema's own check takes lookahead and back references; only a compile with our engine tells.
    options = jsonschema_rs.RegexOptions(size_limit=limit)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options, offline=True)
    except ValueError:
        return False
    return True


def weigh(pattern: str, most: int = LARGEST) -> int | None:
    """Bytes it compiles to, in doubling steps; None if they are more than `most`, or the engine does not take it."""
    limit = _SMALLEST
    while limit <= min(most, LARGEST):
        if _compiles(pattern, limit):
            return limit
        limit *= 2
    return None


def patterns_of(schema: Mapping[str, object]) -> Iterator[tuple[tuple[Token, ...], str]]:
    """The patterns of one schema object, without those of its subschemas, each with its way there."""
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        yield ("pattern",), pattern
    by_pattern = schema.get("patternProperties")
    if isinstance(by_pattern, dict):
        for key in cast("dict[str, object]", by_pattern):
            yield ("patternProperties", key), key


class Matching:
    """What it may take to match the texts of a value: bytes of patterns times bytes of text, about 0.2 ns each."""

    def __init__(self, schema: object) -> None:
        self.weight = _weight_below(schema)
        properties = cast("Json", schema).get("properties") if isinstance(schema, dict) else None
        # One property's patterns see that property's texts only; all others may see any text.
        self._own: dict[str, int] = {}
        if isinstance(properties, dict):
            weights = ((name, _weight_below(item)) for name, item in cast("Json", properties).items())
            self._own = {name: weight for name, weight in weights if weight}
        self._rest = self.weight - sum(self._own.values())

    def work(self, value: object) -> int:
        """An upper bound for this value."""
        if not isinstance(value, dict):
            return self.weight and self.weight * _text(value)
        members = cast("dict[str, object]", value)
        own = sum(weight * _text(members[name]) for name, weight in self._own.items() if name in members)
        return own + (self._rest and self._rest * _text(members))


def _weight_below(schema: object) -> int:
    weight, rest = 0, [schema]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            members = cast("Json", node)
            weight += sum(weigh(pattern) or LARGEST for _, pattern in patterns_of(members))
            rest.extend(item for _, item, _ in subschemas(members))
    return weight


def _text(value: object) -> int:
    """Bytes of all keys and texts in a value that is not too deep."""
    size, rest = 0, [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            size += len(item.encode(errors="replace"))
        elif isinstance(item, dict):
            members = cast("dict[object, object]", item)
            rest.extend(members)
            rest.extend(members.values())
        elif isinstance(item, (list, tuple)):
            rest.extend(cast("list[object]", item))
    return size
