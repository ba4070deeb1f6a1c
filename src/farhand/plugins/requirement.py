"""What one plugin needs of another: its name, and the versions that will do."""

import operator
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from farhand.core.errors import UsageError

_TEXT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*((?:(?:>=|<=|==|!=|>|<)\s*[0-9][0-9.]*\s*(?:,\s*)?)*)", re.ASCII)
_BOUND = re.compile(r"(>=|<=|==|!=|>|<)\s*([0-9][0-9.]*)")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


class Requirement(Struct, frozen=True):
    """A plugin by name, and bounds of its version that all have to hold."""

    name: str
    bounds: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """Read `"files"`, `"files>=1.2"` or `"files>=1,<2"`."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise UsageError(f'{text!r} is no requirement; write a name and perhaps versions: "files>=1.2"')
        return cls(found[1], tuple((sign, version.rstrip(".")) for sign, version in _BOUND.findall(found[2])))

    def accepts(self, version: str) -> bool:
        """Whether this version will do."""
        return all(_COMPARE[sign](*_alike(version, bound)) for sign, bound in self.bounds)

    def __str__(self) -> str:
        return self.name + ",".join(f"{sign}{version}" for sign, version in self.bounds)


def _alike(one: str, other: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two versions as numbers, equally long: 1.0 is 1. What follows the numbers (`-beta`, `+build`) does not count."""
    left, right = _numbers(one), _numbers(other)
    length = max(len(left), len(right))
    return left + (0,) * (length - len(left)), right + (0,) * (length - len(right))


def _numbers(version: str) -> tuple[int, ...]:
    leading = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return () if leading is None else tuple(int(part) for part in leading[0].split("."))
