"""One thing that is wrong with a JSON value, and where. It knows neither schemas nor definitions."""

from collections.abc import Iterable
from itertools import islice

import msgspec

MAX_PROBLEMS = 100
_MAX_TEXT = 32_768


class Problem(msgspec.Struct, frozen=True):
    """`path` is a JSON Pointer ("" is the whole value), `rule` the keyword or limit that was broken."""

    path: str
    message: str
    rule: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def first_of(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The first problems, bounded in number and in text: every path repeats the keys on its way, which may be long."""
    kept: list[Problem] = []
    text = 0
    for problem in islice(problems, MAX_PROBLEMS):
        text += len(problem.path) + len(problem.message)
        if kept and text > _MAX_TEXT:
            break
        kept.append(problem)
    return tuple(kept)


def pointer(tokens: Iterable[str | int]) -> str:
    """The JSON Pointer that these keys and positions make."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def json_type(value: object) -> str:
    """What JSON calls this value's type; `undefined` is a value that JSON does not have."""
    return _NAMES.get(type(value), "undefined")


_NAMES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "array",
    tuple: "array",
    dict: "object",
    type(None): "null",
}
