"""How much work a validator may have: reckoned from the schema once, and from a value before it is checked.

The unit is one simple check, 0.1 us at most; the prices of the slow ones were measured. What is too much is decided in
`schema`; what patterns cost, in `patterns`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from farhand.core.schema_graph import subschemas

_HEAVY = 30
_TINY = 1e-30
_EXACT = 53
"""Bits of a whole number that a double holds."""
_WORD = 64

_NEVER_FAILS = frozenset(
    [
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "secret", "$comment"),
        *("properties", "items", "prefixItems", "allOf", "required", "dependentRequired", "$schema", "$defs"),
    ]
)


class Weight(NamedTuple):
    """What a schema may ask of one value, at most."""

    checks: int
    errors: int
    uniques: int
    """Subschemas that hold all items of a list against each other."""


def weigh(schema: object) -> Weight:
    """The weight of a schema with all its subschemas."""
    checks, errors, uniques, rest = 1, 1, 0, [schema]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            members = cast("dict[str, object]", node)
            checks += _division(members["multipleOf"]) if "multipleOf" in members else 1
            errors += _errors_of(members)
            uniques += members.get("uniqueItems") is True
            rest.extend(item for _, item, _ in subschemas(members))
    return Weight(checks, errors, uniques)


def _division(divisor: object) -> int:
    # Done with exact fractions: 1e-300 has a denominator of 300 digits.
    return 20 * _HEAVY if isinstance(divisor, float) and divisor < _TINY else _HEAVY


def _errors_of(node: Mapping[str, object]) -> int:
    """One error for every word that can fail by itself, and one for every name that may be missing."""
    names = [node.get("required"), *_values(node.get("dependentRequired")), *_values(node.get("dependencies"))]
    missing = sum(len(cast("list[object]", item)) for item in names if isinstance(item, list))
    return missing + len(node.keys() - _NEVER_FAILS)


def _values(value: object) -> Iterable[object]:
    return cast("dict[str, object]", value).values() if isinstance(value, dict) else ()


class Size(NamedTuple):
    """How much there is in a value."""

    values: int
    """Checks that one simple subschema may take, counted up to a little above what was asked for."""
    too_deep: bool
    large: list[int]
    """The whole numbers that a double may not hold."""


def measure(value: object, most: int, max_depth: int) -> Size:
    """The size of a value, without recursion."""
    large: list[int] = []
    count, level = 1, [value]
    for _ in range(max_depth + 1):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(cast("dict[str, object]", item).values())
            elif isinstance(item, (list, tuple)):
                below.extend(cast("list[object]", item))
            elif item:
                count += _price(item, large)
        count += len(below)
        if not below or count > most:
            return Size(count, False, large)
        level = below
    return Size(count, True, large)


def _price(item: object, large: list[int]) -> int:
    """What a text or a number costs above one check: long ones, and numbers that need exact arithmetic."""
    if isinstance(item, str):
        return len(item) >> 6
    if isinstance(item, float):
        return 0 if _TINY < abs(item) < 1 / _TINY else _HEAVY
    if isinstance(item, int) and item.bit_length() > _EXACT:
        large.append(item)
        return _HEAVY + _digits(item) if item.bit_length() > _WORD else 0
    return 0


def _digits(number: int) -> int:
    return number.bit_length() ** 2 >> 13


def twins(numbers: Iterable[int]) -> int:
    """Work for pairs of whole numbers that are one double: the validator tells them apart two by two."""
    alike = Counter((_double(number), _digits(number)) for number in numbers)
    return sum(count * (count - 1) // 2 * (5 + digits) for (_, digits), count in alike.items())


def _double(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf
