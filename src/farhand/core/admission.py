"""Which schemas and which texts may come in: limits, the check before any compiler, and every reason for a refusal.

It does not compile and does not know definitions. References inside a document are judged in `schema_graph`.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import cast

import jsonschema_rs
import msgspec
from msgspec import structs

from farhand.core.patterns import patterns_of, weigh
from farhand.core.problem import MAX_PROBLEMS, Problem, first_of, json_type, pointer
from farhand.core.schema_graph import Step, graph_problems, subschemas
from farhand.core.strict_json import MAX_DEPTH

DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


class AdmissionLimits(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """How much a definition may be; also the profile under which a compiled schema is cached."""

    tools: int = 64
    """Definitions in one list."""
    name: int = 64
    description: int = 1024
    definition_bytes: int = 16_384
    client_text: int = 16_384
    """Characters that a reader of one list sees: names, descriptions, enum texts, defaults; not JSON's own signs."""
    depth: int = 5
    """Levels of values inside values; combinators of one value add none."""
    chain: int = 32
    """Levels of subschemas that apply to one and the same value."""
    properties: int = 20
    """Properties of one object."""
    nodes: int = 200
    """Subschemas of one schema."""
    enum: int = 100
    pattern: int = 256
    pattern_bytes: int = 1 << 18
    """What all patterns of one schema may compile to, in bytes."""
    matching: int = 1 << 29
    """Bytes of compiled patterns times bytes of text, for one value; 2^29 can take 0.1 s."""
    cost: int = 10_000
    """Subschemas that references can make of the schema: what one value may cost."""
    json_depth: int = MAX_DEPTH
    """Levels of JSON in the document that holds the schema."""
    instance_bytes: int = 262_144
    instance_depth: int = MAX_DEPTH
    whole_standard: bool = False
    """All of JSON Schema 2020-12 and draft 7, with references that stay in the document; else a closed list."""
    plain_text: bool = True
    """Refuse invisible, controlling and unnormalised characters."""
    require_type: bool = True
    """A schema must say its type, or have a combinator, `enum` or `const` in its place."""
    require_description: bool = True
    require_properties: bool = False
    """`parameters` must have `properties`, even empty ones."""


OUTSIDE = AdmissionLimits()
"""For definitions of clients, remote agents, MCP servers and plugins."""

STRICT = AdmissionLimits(tools=10, require_properties=True)
"""Ten tools, and nothing left unsaid."""

OWNER = AdmissionLimits(
    tools=1024,
    description=65_536,
    definition_bytes=1 << 20,
    client_text=1 << 22,
    depth=64,
    properties=5000,
    nodes=5000,
    enum=100_000,
    pattern=4096,
    pattern_bytes=1 << 24,
    matching=1 << 40,
    json_depth=256,
    whole_standard=True,
    plain_text=False,
    require_type=False,
    require_description=False,
)
"""For tools that the server's owner writes."""

ADMITTED = structs.replace(OWNER, matching=OUTSIDE.matching)
"""For definitions from outside that were admitted before, whatever the limits were then."""

_JSON_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
_BAD_TYPE = "Invalid option: expected one of " + "|".join(f'"{name}"' for name in _JSON_TYPES)
_TYPE_STANDS = frozenset({"type", "enum", "const", "anyOf", "oneOf", "allOf"})

_ONLY_2020_12 = frozenset({"prefixItems", "dependentRequired", "minContains", "maxContains"})
_OUTSIDE_WORDS = _ONLY_2020_12 | frozenset(
    [
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "secret", "$comment"),
        *("type", "enum", "const", "format", "contentEncoding", "contentMediaType", "anyOf", "oneOf", "allOf"),
        *("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
        *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "items", "contains"),
        *("maxProperties", "minProperties", "required", "properties", "additionalProperties", "propertyNames"),
    ]
)
_STEP_WORDS = _OUTSIDE_WORDS | frozenset({"$schema"})

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[\x20-\x7e\n\t]*")
# Drawn as nothing, although Unicode does not call them format characters; those of the last line are not assigned.
_BLANKS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U00016fe4\U0001d159"
    "\u2065\ufff0\ufff1\ufff2\ufff3\ufff4\ufff5\ufff6\ufff7\ufff8"
)


def name_problem(name: object, limits: AdmissionLimits = OUTSIDE) -> str | None:
    """What is wrong with a tool's name, or None."""
    if not isinstance(name, str):
        return f"Invalid input: expected string, received {json_type(name)}"
    if not name:
        return "Too small: expected string to have >=1 characters"
    if len(name) > limits.name:
        return f"Too big: expected string to have <={limits.name} characters"
    if not _NAME.fullmatch(name):
        return "Tool name must contain only alphanumeric characters, underscores, and hyphens"
    return None


def text_problem(text: str) -> str | None:
    """The first character of `text` that a reader would not see, or that changes what he sees; or None."""
    if _PLAIN.fullmatch(text):
        return None
    before = ""
    for character in text:
        if character not in "\n\t" and not character.isascii() and _is_hidden(character, before):
            return f"has the invisible or direction-changing character U+{ord(character):04X}"
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t":
            return f"has the control character U+{ord(character):04X}"
        before = character
    return None if unicodedata.is_normalized("NFC", text) else "is not in the Unicode normal form NFC"


def _is_hidden(character: str, before: str) -> bool:
    if unicodedata.category(character) in ("Cf", "Zl", "Zp") or character in _BLANKS:
        return True
    if "\ufe00" <= character <= "\ufe0f":
        # One selector after a symbol, digit or sign makes it an emoji; anywhere else it carries hidden data.
        drawn = before in "#*0123456789" if before.isascii() else unicodedata.category(before) in ("So", "Sm", "Po")
        return character < "\ufe0e" or not before or not drawn
    return "\U000e0000" <= character <= "\U000e0fff"


def check_schema(schema: object, limits: AdmissionLimits = OUTSIDE) -> tuple[Problem, ...]:
    """Every reason why this schema is not taken, each with its path; empty if it is."""
    found = list(text_problems(schema, limits))
    if any(problem.rule in ("depth", "json") for problem in found):
        return first_of(found)
    walk = _Walk(limits)
    walk.run(schema)
    found += walk.found
    if not found:
        found += _meta_problems(schema)
    if not found and limits.whole_standard:
        found += graph_problems(schema, cost=limits.cost, chain=limits.chain)
    return first_of(found)


def readable_size(value: object) -> int:
    """How many characters of a definition somebody reads: texts, and keys that are not words of JSON Schema."""
    size, rest = 0, [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, list):
            rest.extend(cast("list[object]", item))
        elif isinstance(item, dict):
            for key, below in cast("dict[str, object]", item).items():
                size += 0 if key in _STEP_WORDS else len(key)
                if key != "type":
                    rest.append(below)
    return size


def text_problems(value: object, limits: AdmissionLimits, base: str = "") -> Iterator[Problem]:
    """Walk all of a JSON value, without recursion: depth, foreign Python values, forbidden characters."""
    rest: list[tuple[object, str, int]] = [(value, base, 0)]
    found = 0
    while rest and found < MAX_PROBLEMS:
        item, path, depth = rest.pop()
        problem = _value_problem(item, path, depth, limits)
        if problem is not None:
            found += 1
            yield problem
            continue
        if isinstance(item, dict):
            members = cast("dict[str, object]", item)
            rest.extend((below, path + pointer((key,)), depth + 1) for key, below in reversed(members.items()))
        elif isinstance(item, list):
            entries = cast("list[object]", item)
            rest.extend((below, f"{path}/{at}", depth + 1) for at, below in reversed(list(enumerate(entries))))


def _value_problem(item: object, path: str, depth: int, limits: AdmissionLimits) -> Problem | None:
    if depth > limits.json_depth:
        return Problem(path, f"is nested deeper than {limits.json_depth} levels", "depth")
    if isinstance(item, str):
        reason = text_problem(item) if limits.plain_text else None
        return Problem(path, reason, "text") if reason else None
    if isinstance(item, dict):
        for key in cast("dict[object, object]", item):
            if not isinstance(key, str):
                return Problem(path, "has a key that is not a string", "json")
            reason = text_problem(key) if limits.plain_text else None
            if reason:
                return Problem(path, f"a key {reason}", "text")
        return None
    if item is None or isinstance(item, (bool, int, list)):
        return None
    if isinstance(item, float) and item - item == 0:  # neither infinite nor NaN
        return None
    return Problem(path, "is not a JSON value", "json")


class _Walk:
    """One pass over all subschemas; stops at the limit of nodes, so that its work is bounded."""

    def __init__(self, limits: AdmissionLimits) -> None:
        self.limits = limits
        self.found: list[Problem] = []
        self.draft_7 = False
        self.pattern_bytes = limits.pattern_bytes

    def run(self, schema: object) -> None:
        if isinstance(schema, dict):
            self.draft_7 = cast("dict[str, object]", schema).get("$schema") in (DRAFT_7, DRAFT_7[:-1])
        rest: list[tuple[object, str, Step, int, int]] = [(schema, "", Step.ROOT, 1, 1)]
        nodes = 0
        while rest and len(self.found) < MAX_PROBLEMS:
            node, path, step, depth, chain = rest.pop()
            nodes += 1
            if nodes > self.limits.nodes:
                self._refuse("", f"has more than {self.limits.nodes} subschemas", "nodes")
                return
            if not self._is_within(path, depth, chain):
                continue
            if not isinstance(node, dict):
                self._boolean(node, path, step)
                continue
            members = cast("dict[str, object]", node)
            self._node(members, path, step)
            below = [
                (item, path + pointer(tokens), kind, *_levels(kind, depth, chain))
                for tokens, item, kind in subschemas(members)
                if self.limits.whole_standard or tokens[0] in _OUTSIDE_WORDS
            ]
            rest.extend(reversed(below))

    def _refuse(self, path: str, message: str, rule: str) -> None:
        self.found.append(Problem(path, message, rule))

    def _is_within(self, path: str, depth: int, chain: int) -> bool:
        if depth > self.limits.depth:
            self._refuse(path, f"is nested deeper than {self.limits.depth} levels", "depth")
        elif chain > self.limits.chain:
            self._refuse(path, f"has more than {self.limits.chain} subschemas one inside the other", "chain")
        else:
            return True
        return False

    def _boolean(self, node: object, path: str, step: Step) -> None:
        allowed = self.limits.whole_standard or step is Step.ADDITIONAL
        if not (isinstance(node, bool) and allowed):
            self._refuse(path, f"Invalid input: expected object, received {json_type(node)}", "schema")

    def _node(self, node: Mapping[str, object], path: str, step: Step) -> None:
        self._sizes(node, path)
        for key, pattern in patterns_of(node):
            self._pattern(pattern, path + pointer(key))
        if "$schema" in node:
            self._dialect(node["$schema"], path, step)
        if not self.limits.whole_standard:
            self._words(node, path)
        if not isinstance(node.get("secret", False), bool):
            received = json_type(node["secret"])
            self._refuse(f"{path}/secret", f"Invalid input: expected boolean, received {received}", "secret")
        if "type" in node:
            self._type(node["type"], path + "/type")
        elif self.limits.require_type and not (node.keys() & _TYPE_STANDS) and (node or step is not Step.ADDITIONAL):
            self._refuse(path + "/type", _BAD_TYPE, "type")

    def _pattern(self, pattern: str, path: str) -> None:
        if len(pattern) > self.limits.pattern:
            self._refuse(path, f"pattern is longer than {self.limits.pattern} characters", "pattern")
            return
        weight = weigh(pattern, self.pattern_bytes)
        if weight is None:
            message = "pattern cannot run in linear time, is too large, or is no regular expression"
            self._refuse(path, message, "pattern")
        # A refusal takes time too, up to that for all bytes that are left.
        self.pattern_bytes -= self.pattern_bytes // 2 if weight is None else weight

    def _dialect(self, dialect: object, path: str, step: Step) -> None:
        known = (DRAFT_2020_12, DRAFT_7, DRAFT_2020_12 + "#", DRAFT_7[:-1])
        if dialect not in (known if self.limits.whole_standard else known[:2]):
            self._refuse(path + "/$schema", f"must be {DRAFT_2020_12!r} or {DRAFT_7!r}", "$schema")
        elif step is not Step.ROOT and not self.limits.whole_standard:
            self._refuse(path + "/$schema", "is allowed at the top only", "$schema")

    def _words(self, node: Mapping[str, object], path: str) -> None:
        for word in node:
            if word not in _STEP_WORDS:
                self._refuse(path + pointer((word,)), f"keyword {word[:64]!r} is not accepted", "keyword")
            elif self.draft_7 and word in _ONLY_2020_12:
                self._refuse(f"{path}/{word}", f"keyword {word!r} is not part of draft 7", "keyword")

    def _type(self, value: object, path: str) -> None:
        if isinstance(value, list) and value:
            names = cast("list[object]", value)
            for at, name in enumerate(names):
                if name not in _JSON_TYPES:
                    self._refuse(f"{path}/{at}", _BAD_TYPE, "type")
        elif not isinstance(value, str) or value not in _JSON_TYPES:
            self._refuse(path, _BAD_TYPE, "type")

    def _sizes(self, node: Mapping[str, object], path: str) -> None:
        for word, limit, what in (
            ("properties", self.limits.properties, "properties"),
            ("enum", self.limits.enum, "values"),
        ):
            value = node.get(word)
            if isinstance(value, (dict, list)) and len(cast("list[object]", value)) > limit:
                self._refuse(f"{path}/{word}", f"has more than {limit} {what}", word)


def _levels(step: Step, depth: int, chain: int) -> tuple[int, int]:
    return (depth, chain + 1) if step is Step.IN_PLACE else (depth + 1, 1)


@functools.cache
def _meta_schema(dialect: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({"$schema": dialect, "$ref": dialect}, validate_formats=True, offline=True)


def _meta_problems(schema: object) -> Iterator[Problem]:
    """What the standard itself has against a schema that has passed our own walk."""
    dialect = cast("dict[str, object]", schema).get("$schema", "") if isinstance(schema, dict) else ""
    meta = _meta_schema(DRAFT_7 if "draft-07" in str(dialect) else DRAFT_2020_12)
    if meta.is_valid(schema):
        return
    seen: set[tuple[str, str]] = set()
    for error in meta.iter_errors(schema):
        path, rule = pointer(error.instance_path), error.kind.name
        # One mistake is found again by every vocabulary of the meta-schema.
        if (path, rule) not in seen:
            seen.add((path, rule))
            yield Problem(path, f"is not valid JSON Schema: {error.message[:200]}", rule)
