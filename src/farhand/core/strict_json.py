"""Strict JSON: one text in, one value out, or a reason that never repeats the text.

It is not a schema check and it does not stream; growing texts belong to `partial_json`.
"""

import gc
import json
from itertools import chain
from typing import Any, cast

import msgspec

MAX_DEPTH = 32
MAX_DIGITS = 1000
_HALF_RUN = MAX_DIGITS // 2

_LAID_OUT = 1 << 16

_NOT_UTF8 = "not valid UTF-8"
_TOO_DEEP = "nested too deeply"
_TWICE = "the same key twice in one object"
_BAD_NUMBER = "a number that is out of range"


class BadJson(ValueError):
    """The text is not JSON as Farhand accepts it; `reason` is safe to show to anybody."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def parse(text: bytes | str, *, max_bytes: int = 1 << 20, max_depth: int = MAX_DEPTH) -> object:
    """Parse one JSON text; refuses what two parsers could read in two ways, and what is too large or too deep."""
    # Characters first: a huge str is refused before it is encoded.
    if len(text) > max_bytes:
        raise BadJson(f"larger than {max_bytes} bytes")
    try:
        data = text.encode() if isinstance(text, str) else text
        value: object = msgspec.json.decode(data) if len(data) <= _LAID_OUT else _decode_many(data)
    except (UnicodeError, RecursionError, msgspec.DecodeError) as error:
        raise BadJson(_reason(error)) from None
    size = len(data)
    if size > _HALF_RUN:
        if size > max_bytes:
            raise BadJson(f"larger than {max_bytes} bytes")
        if _has_long_run_of_digits(data):
            _parse_exactly(data)
    if size > max_depth and data.count(b"[") + data.count(b"{") > max_depth:
        _refuse_depth(data, value, max_depth)
    colons = data.count(b":")
    members: Any = value
    # As many keys as colons: no key was lost. Otherwise (nested objects, times and addresses) count on both sides.
    if colons > 1 and not (type(members) is dict and len(members) == colons):  # pyright: ignore[reportUnknownArgumentType]
        _refuse_lost_keys(data, value, colons)
    return value


def _decode_many(data: bytes) -> object:
    """A large text may hold as many containers as it has brackets. The collector would look at them again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return msgspec.json.decode(data)
    finally:
        if collects:
            gc.enable()


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return _NOT_UTF8
    if isinstance(error, RecursionError):
        return _TOO_DEEP
    if isinstance(error, msgspec.ValidationError):
        return _BAD_NUMBER
    # msgspec names the fault and the byte, never the content.
    return str(error).removeprefix("JSON is malformed: ").replace("Input data was truncated", "it ends too early")


def _refuse_depth(data: bytes, value: object, max_depth: int) -> None:
    """Laid out one level a blank, a deep text has a line that begins with so many blanks: a proof that runs in C.

    Above _LAID_OUT the layout of a hostile text could become very large, so the value is walked instead.
    """
    if len(data) <= _LAID_OUT and b"\n" + b" " * max_depth not in msgspec.json.format(data, indent=1):
        return
    level = [value]
    for _ in range(max_depth):
        lists = [cast("list[object]", item) for item in level if type(item) is list and item]
        dicts = [cast("dict[str, object]", item).values() for item in level if type(item) is dict and item]
        if not lists and not dicts:
            return
        level = [*chain.from_iterable(lists), *chain.from_iterable(dicts)]
    if any(isinstance(item, (list, dict)) for item in level):
        raise BadJson(_TOO_DEEP)


def _has_long_run_of_digits(data: bytes) -> bool:
    """Whether a run of more than MAX_DIGITS digits is possible: such a run covers one aligned half run entirely."""
    return any(data[at : at + _HALF_RUN].isdigit() for at in range(0, len(data) - _HALF_RUN + 1, _HALF_RUN))


def _refuse_lost_keys(data: bytes, value: object, colons: int) -> None:
    """Every lost member takes at least one colon with it; only a colon written as an escape could hide that."""
    if b"\\u003" in data or msgspec.json.encode(value).count(b":") != colons:
        _parse_exactly(data)


def _parse_exactly(data: bytes) -> None:
    """The slow proof, for the few texts that the counts could not settle; only ever called on well-formed JSON."""
    json.loads(data, object_pairs_hook=_unique_members, parse_int=_bounded_int)


def _unique_members(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise BadJson(_TWICE)


def _bounded_int(digits: str) -> None:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise BadJson(_BAD_NUMBER)
