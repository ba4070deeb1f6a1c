"""A compiled JSON Schema: admitted, compiled once, kept by content, and able to name every fault of a value.

Whether a schema may come in is decided in `admission`; what a definition is, in `definition`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice
from typing import cast

import jsonschema_rs

from farhand.core.admission import OUTSIDE, AdmissionLimits, check_schema
from farhand.core.content_cache import ContentCache
from farhand.core.effort import Size, measure, twins, weigh
from farhand.core.errors import UsageError
from farhand.core.marks import marks_of
from farhand.core.patterns import OPTIONS, Matching
from farhand.core.problem import MAX_PROBLEMS, Problem, json_type, pointer
from farhand.core.schema_graph import Token, is_recursive
from farhand.core.strict_json import BadJson, parse

__all__ = ["BadSchema", "Problem", "Schema", "argument_problems", "compile_schema"]

CACHE_BYTES = 64 << 20
# Errors are all made before the first can be read, at about 15 us each: 100,000 would hold up everybody for seconds.
_MAX_REPORTED_VALUES = 2000
_MAX_REPORTED_ERRORS = 50_000
# Checks of one value. 130,000 numbers under 20 subschemas take 0.15 s.
_MAX_WORK = 3_000_000
_MAX_TEXT = 200
_MASK = "\0"
_GOT = re.compile(r", got: [^;]*")

Path = tuple[Token, ...]
Fault = tuple[Path, str, str]


class BadSchema(UsageError):
    """The schema is not taken; `problems` says why, each with its path."""

    code = "bad_schema"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


class Schema:
    """One compiled schema. It is immutable and may be shared."""

    __slots__ = (
        *("_matching", "_max_depth", "_max_matching", "_max_values", "_reports", "_required", "_uniques"),
        *("_unmeasured", "_validator", "marks", "raw", "size"),
    )

    def __init__(self, raw: bytes, schema: object, validator: jsonschema_rs.Validator, limits: AdmissionLimits) -> None:
        self.raw = raw
        """The author's bytes, unchanged."""
        self.marks = marks_of(schema, raw)
        """Where its values are secret, if they are anywhere."""
        self._validator = validator
        self._max_depth = limits.instance_depth
        weight = weigh(schema)
        self._reports = weight.errors
        self._uniques = weight.uniques
        self._max_values = _MAX_WORK // weight.checks
        self._matching = Matching(schema)
        self._max_matching = limits.matching
        self.size = 4096 + 30 * len(raw) + 4 * self._matching.weight
        """About how many bytes it holds: measured, 20 to 30 times its text, and its patterns beside."""
        # Only a recursive schema follows a value down, and only a heavy one can be slow: the others need no measuring.
        light = (
            limits.instance_bytes // 2 <= self._max_values
            and not self._uniques
            and limits.instance_bytes * self._matching.weight <= self._max_matching
        )
        self._unmeasured = light and not (limits.whole_standard and is_recursive(schema))
        required = cast("dict[str, object]", schema).get("required") if isinstance(schema, dict) else None
        names = cast("list[str]", required) if isinstance(required, list) else []
        self._required = {name: at for at, name in enumerate(names)}

    def is_valid(self, value: object) -> bool:
        """Whether `value`, made of what a JSON parser makes, fits."""
        if not self._unmeasured:
            size = measure(value, self._max_values, self._max_depth)
            if size.too_deep or self._is_too_large(value, size):
                return False
        try:
            return self._validator.is_valid(value)
        except ValueError:  # no JSON value, or one nested beyond the validator's own limit
            return False

    def problems(self, value: object) -> tuple[Problem, ...]:
        """Everything that is wrong with `value`; top level first, then by path."""
        if self.is_valid(value):
            return ()
        return tuple(Problem(pointer(path), message, rule) for path, message, rule in self.faults(value))

    def faults(self, value: object) -> list[Fault]:
        """What is wrong with a value that is not valid, in order."""
        size = measure(value, self._max_values, self._max_depth)
        if size.too_deep:
            return [((), f"is nested deeper than {self._max_depth} levels", "depth")]
        if self._is_too_large(value, size):
            return [((), "is too large to be checked against this schema", "work")]
        try:
            if size.values > _MAX_REPORTED_VALUES or size.values * self._reports > _MAX_REPORTED_ERRORS:
                errors = self._first_error(value)
            else:
                errors = list(self._validator.iter_errors(value))
        except ValueError:
            return [((), "is not a JSON value", "json")]
        places = _places(value)
        faults = sorted(_faults_of(errors, value), key=lambda fault: self._rank(fault, places))
        faults = list(dict.fromkeys(faults)) or [((), "does not fit the schema", "schema")]
        if self.marks is not None:  # the one text that repeats a value
            faults = [(path, _GOT.sub("", message), rule) for path, message, rule in faults]
        if len(faults) > MAX_PROBLEMS:
            left = len(faults) - MAX_PROBLEMS
            faults[MAX_PROBLEMS:] = [((), f"and {left} more problems", "limit")]
        return faults

    def _is_too_large(self, value: object, size: Size) -> bool:
        return (
            size.values > self._max_values
            or self._matching.work(value) > self._max_matching
            or (self._uniques > 0 and self._uniques * twins(size.large) > _MAX_WORK)
        )

    def _first_error(self, value: object) -> list[jsonschema_rs.ValidationError]:
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [error]
        return []

    def _rank(self, fault: Fault, places: Mapping[str, int]) -> tuple[int, tuple[tuple[bool, int, str], ...]]:
        path, message, rule = fault
        if len(path) == 1 and rule == "required":
            name = str(path[0])
            return 0, ((False, self._required.get(name, len(self._required)), name),)
        if len(path) == 1 and path[0] in places:
            at = (False, places[str(path[0])], "")
            if rule in ("additionalProperties", "unevaluatedProperties"):
                return 1, (at,)
            if rule == "type":
                return (3 if message.startswith("must be an integer") else 2), (at,)
        return 4, tuple((False, token, "") if isinstance(token, int) else (True, 0, token) for token in path)


_cache: ContentCache[Schema | tuple[Problem, ...]] = ContentCache(CACHE_BYTES)


def compile_schema(raw: bytes, limits: AdmissionLimits = OUTSIDE) -> Schema:
    """The schema of these bytes, from the cache if they were seen before; raises BadSchema, also from the cache."""
    key = (sha256(raw).digest(), limits)
    known = _cache.get(key)
    if known is None:
        try:
            known = _compile(raw, limits)
        except BadSchema as error:
            known = error.problems
        _cache.put(key, known, known.size if isinstance(known, Schema) else 1024 + 300 * len(known))
    if isinstance(known, Schema):
        return known
    raise BadSchema(known)


def _compile(raw: bytes, limits: AdmissionLimits) -> Schema:
    try:
        schema = parse(raw, max_bytes=limits.definition_bytes, max_depth=limits.json_depth)
    except BadJson as error:
        raise BadSchema((Problem("", f"schema is not JSON: {error.reason}", "json"),)) from None
    problems = check_schema(schema, limits)
    if problems:
        raise BadSchema(problems)
    try:
        validator = jsonschema_rs.validator_for(
            cast("dict[str, object]", schema),
            validate_formats=True,
            mask=_MASK,
            pattern_options=OPTIONS,
            offline=True,
        )
    except ValueError as error:
        path = cast("list[Token]", getattr(error, "instance_path", []))
        message = f"cannot be compiled: {getattr(error, 'message', 'unknown reason')}"
        raise BadSchema((Problem(pointer(path), message[:_MAX_TEXT], "compile"),)) from None
    return Schema(raw, schema, validator, limits)


def _places(value: object) -> dict[str, int]:
    members = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    return {name: at for at, name in enumerate(members)}


def argument_problems(schema: Schema, value: object) -> tuple[Problem, ...]:
    """What is wrong with a call's arguments, in whole sentences that a model can act on."""
    arguments = value
    if not isinstance(value, dict):
        return (Problem("", "Arguments are not valid: must be an object.", "type"),)
    if schema.is_valid(arguments):
        return ()
    faults = schema.faults(arguments)
    return tuple(Problem(pointer(path), _sentence(path, message, rule), rule) for path, message, rule in faults)


def _sentence(path: Path, message: str, rule: str) -> str:
    if not path:
        return f"Arguments are not valid: {message}."
    if len(path) == 1 and rule == "required":
        return f"Missing required parameter: {_shown(path)}"
    if len(path) == 1 and rule in ("additionalProperties", "unevaluatedProperties"):
        return f"Unknown parameter: {_shown(path)}"
    return f"Parameter {_shown(path)} {message}"


def _shown(path: Path) -> str:
    text = "".join(f"[{token}]" if isinstance(token, int) else f".{token}" for token in path)
    return _cut(text.removeprefix("."))


def _cut(text: str, limit: int = _MAX_TEXT) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _faults_of(errors: Iterable[jsonschema_rs.ValidationError], value: object) -> Iterator[Fault]:
    for error in errors:
        path, found = _at(value, error.instance_path)
        kind = error.kind
        rule = kind.name
        match kind:
            case jsonschema_rs.ValidationErrorKind.Required(property=name):
                if name not in _members(found):  # of a closed object it also names some that are there
                    yield (*path, name), "is required", rule
            case jsonschema_rs.ValidationErrorKind.FalseSchema() if _members(found) and _closes(error):
                yield from (((*path, name), "is not allowed", "additionalProperties") for name in _members(found))
            case jsonschema_rs.ValidationErrorKind.AdditionalProperties(unexpected=names):
                yield from (((*path, name), "is not allowed", rule) for name in names)
            case jsonschema_rs.ValidationErrorKind.UnevaluatedProperties(unexpected=names):
                yield from (((*path, name), "is not allowed", rule) for name in names)
            case jsonschema_rs.ValidationErrorKind.Type(types=types):
                yield path, _type_reason(types, found), rule
            case jsonschema_rs.ValidationErrorKind.AnyOf(context=branches):
                yield path, _branch_reason(branches, value, path, found), rule
            case jsonschema_rs.ValidationErrorKind.OneOfNotValid(context=branches):
                yield path, _branch_reason(branches, value, path, found), rule
            case _:
                yield path, _reason(rule, error), rule


def _members(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _closes(error: jsonschema_rs.ValidationError) -> bool:
    """Whether an object without declared properties lets none in: the validator then blames the object as a whole."""
    return list(error.schema_path)[-1:] == ["additionalProperties"]


def _at(value: object, reported: Iterable[Token]) -> tuple[Path, object]:
    """The true path and what lies there: the validator reports a key of digits as a number."""
    path: list[Token] = []
    for token in reported:
        if isinstance(value, dict):
            members = cast("dict[str, object]", value)
            key = str(token)
            if key not in members:  # "007" is reported as 7, "+7" too
                key = next((name for name in members if name.lstrip("+0") == key.lstrip("0")), key)
            path.append(key)
            value = members.get(key)
        else:
            path.append(token)
            value = cast("list[object]", value)[cast("int", token)]
    return tuple(path), value


def _type_reason(types: list[str], value: object) -> str:
    got = json_type(value)
    if types == ["integer"] and got == "number":
        return f"must be an integer, got: {_cut(repr(value), 40)}"
    return f"has wrong type: expected {' or '.join(types)}, got {got}"


def _branch_reason(
    branches: list[list[jsonschema_rs.ValidationError]], value: object, path: Path, found: object
) -> str:
    """Why no branch fits: the types if only they are wrong (a value or null), else the first fault of each branch."""
    firsts = [fault for branch in branches[:4] for fault in islice(_faults_of(branch, value), 1)]
    types = [branch[0].kind for branch in branches if len(branch) == 1 and len(branch[0].instance_path) == len(path)]
    kinds = [kind for kind in types if isinstance(kind, jsonschema_rs.ValidationErrorKind.Type)]
    expected = [name for kind in kinds for name in kind.types]
    if kinds and len(kinds) == len(branches):
        return _type_reason(list(dict.fromkeys(expected)), found)
    reasons = [_cut(f"{_shown(at[len(path) :])} {message}".strip(), 80) for at, message, _ in firsts]
    return _cut(f"fits none of {len(branches)} forms: " + "; ".join(dict.fromkeys(reasons)), 320)


_REASONS = {
    "not": "has a form that is not allowed",
    "falseSchema": "is not allowed",
    "contains": "does not hold the right number of fitting items",
    "oneOf": "fits more than one form where exactly one must fit",
}


def _reason(rule: str, error: jsonschema_rs.ValidationError) -> str:
    """The validator's own words without the value, which may be large or secret."""
    if rule in _REASONS:
        return _REASONS[rule]
    return _cut(error.message.replace(f"{_MASK} ", "").replace(_MASK, "the value"))
