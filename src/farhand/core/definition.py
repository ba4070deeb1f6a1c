"""A tool as everybody sees it: the definition value, its pin, and how definitions come in from outside and go out.

It runs nothing and settles no clashes between sources; it only knows which names are taken.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

import msgspec
from msgspec import Raw

from farhand.core.admission import OUTSIDE, AdmissionLimits, name_problem, readable_size, text_problems
from farhand.core.content_cache import ContentCache
from farhand.core.errors import UsageError
from farhand.core.problem import Problem, first_of, json_type, pointer
from farhand.core.schema import BadSchema, compile_schema
from farhand.core.strict_json import BadJson, parse

CACHE_BYTES = 32 << 20
MAX_TIMEOUT = 366 * 24 * 3600


_NULL = Raw(b"null")


class SideEffect(StrEnum):
    """What a second run of one call would do to the world."""

    PURE = "pure"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


class Place(StrEnum):
    """Where a tool runs."""

    SERVER = "server"
    CLIENT = "client"
    MCP = "mcp"
    A2A = "a2a"


class Absent(StrEnum):
    """What becomes of a call when nobody is there to run it."""

    WAIT = "wait"
    FALLBACK = "fallback"
    FAIL = "fail"
    RETRY = "retry"


class Approval(StrEnum):
    """Whether a person must agree; `judged` means that a function of the arguments decides."""

    NEVER = "never"
    ALWAYS = "always"
    JUDGED = "judged"


FLOW = ("reads_private", "takes_untrusted", "sends_out")
"""What a tool does with data. One run that does all three could be made to give secrets away."""


class Policy(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """How a tool may be used; times are seconds."""

    approval: Approval = Approval.NEVER
    effect: SideEffect = SideEffect.ONCE
    timeout: float | None = None
    approval_timeout: float | None = None
    retries: int = 0
    absent: Absent | None = None
    fallback: str | None = None
    reads_private: bool = False
    """Its results may hold what is not for everybody."""
    takes_untrusted: bool = False
    """Its results may hold the words of strangers."""
    sends_out: bool = False
    """It may carry data to somebody else."""

    def __post_init__(self) -> None:
        for name in ("timeout", "approval_timeout"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= MAX_TIMEOUT:
                raise UsageError(f"{name} is {value!r}; it must be a number of seconds above 0, {MAX_TIMEOUT} at most")
        if self.retries < 0 or (self.retries and self.effect is SideEffect.ONCE):
            raise UsageError(f"retries is {self.retries!r}; only a pure or idempotent tool can be run again")


class Definition(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One tool: what the model is shown, where it runs, and how it may be used. Schemas are the author's bytes."""

    name: str
    description: str
    parameters: Raw
    # msgspec cannot read `Raw | None` back, so that "no output schema" is stored as the JSON text `null`.
    output_json: Raw = msgspec.field(default=_NULL, name="output")
    title: str | None = None
    place: Place = Place.CLIENT
    source: str = "client"
    policy: Policy = Policy()
    version: str | None = None
    deprecated: str | None = None
    tags: tuple[str, ...] = ()
    examples: tuple[Raw, ...] = ()
    lazy: bool = False
    """The model is shown it only when it asks for it."""
    pin: str = ""
    """Changes whenever something changes that a person would want to approve again."""

    @property
    def output(self) -> Raw | None:
        """The schema of results, if there is one."""
        return None if self.output_json == _NULL else self.output_json


class InvalidToolDefinitions(UsageError):
    """Definitions that were refused; `problems` holds every reason with its path."""

    code = "invalid_tools"

    def __init__(self, problems: tuple[Problem, ...], *, what: str = "client tool definitions") -> None:
        super().__init__(f"Invalid {what}: " + "; ".join(str(problem) for problem in problems))
        self.problems = problems


def below(error: InvalidToolDefinitions, base: str) -> InvalidToolDefinitions:
    """The same refusal of what stands at a place in something bigger."""
    problems = tuple([Problem(base + each.path, each.message, each.rule) for each in error.problems])
    moved = type(error)(problems)
    moved.args = (str(error).partition(": ")[0] + ": " + "; ".join(map(str, problems)),)
    return moved


class DefinitionsCheck(msgspec.Struct, frozen=True):
    """The answer of `safe_validate_tool_definitions`: `data` if it succeeded, `errors` if not."""

    success: bool
    data: tuple[Definition, ...] | None = None
    errors: tuple[Problem, ...] = ()


def make_definition(fields: Mapping[str, Any] | None = None, /, **more: Any) -> Definition:
    """A definition with its pin. Schemas and examples may be JSON bytes, `Raw`, or Python values."""
    given = {**(fields or {}), **more}
    given.pop("pin", None)
    given["parameters"] = _raw(given.get("parameters", {"type": "object"}))
    if "output" in given:
        given["output_json"] = _raw(given.pop("output"))
    if "examples" in given:
        given["examples"] = tuple(_raw(example) for example in given["examples"])
    definition = Definition(**given)
    return msgspec.structs.replace(definition, pin=pin_of(definition))


def _raw(value: object) -> Raw:
    if isinstance(value, Raw):
        return value
    return Raw(value if isinstance(value, bytes) else msgspec.json.encode(value))


def pin_of(definition: Definition) -> str:
    """The pin that belongs to what the definition says."""
    shape = {
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "parameters": msgspec.json.decode(definition.parameters),
        "output": None if definition.output is None else msgspec.json.decode(definition.output),
        "source": definition.source,
        "place": definition.place,
        "approval": definition.policy.approval,
        "effect": definition.policy.effect,
        "flow": [getattr(definition.policy, label) for label in FLOW],
    }
    return sha256(msgspec.json.encode(shape, order="sorted")).hexdigest()


def dump_definition(definition: Definition, wrapped: bool = False) -> dict[str, Any]:
    """The definition as JSON objects that `validate_tool_definitions` takes; `wrapped` as chat completions write it."""
    policy = definition.policy
    plain: dict[str, Any] = {
        "name": definition.name,
        "description": definition.description,
        "parameters": msgspec.json.decode(definition.parameters),
    }
    optional = {
        "output": None if definition.output is None else msgspec.json.decode(definition.output),
        "title": definition.title,
        "version": definition.version,
        "deprecated": definition.deprecated,
        "tags": list(definition.tags),
        "examples": [msgspec.json.decode(example) for example in definition.examples],
        "needsApproval": policy.approval is not Approval.NEVER,
        "effect": None if policy.effect is SideEffect.ONCE else str(policy.effect),
        "timeout": policy.timeout,
        "lazy": definition.lazy,
        "readsPrivate": policy.reads_private,
        "takesUntrusted": policy.takes_untrusted,
        "sendsOut": policy.sends_out,
    }
    plain.update((key, value) for key, value in optional.items() if value not in (None, [], False))
    return {"type": "function", "function": plain} if wrapped else plain


def check_definition(definition: Definition, limits: AdmissionLimits = OUTSIDE) -> None:
    """Raise InvalidToolDefinitions with every reason why this one definition is not taken."""
    reader = _Reader(limits)
    reader.name(definition.name)
    reader.description(definition.description)
    reader.schema("parameters", definition.parameters, msgspec.json.decode(definition.parameters))
    if definition.output is not None:
        reader.schema("output", definition.output, msgspec.json.decode(definition.output))
    if reader.problems:
        raise InvalidToolDefinitions(first_of(reader.problems), what=f"definition of tool {definition.name!r}")


def validate_tool_definitions(
    value: object,
    limits: AdmissionLimits = OUTSIDE,
    *,
    reserved: Collection[str] = (),
    source: str = "client",
    place: Place = Place.CLIENT,
) -> tuple[Definition, ...]:
    """Definitions from outside, as JSON text or parsed, plain or wrapped; raises InvalidToolDefinitions."""
    check = safe_validate_tool_definitions(value, limits, reserved=reserved, source=source, place=place)
    if check.data is None:
        raise InvalidToolDefinitions(check.errors)
    return check.data


def safe_validate_tool_definitions(
    value: object,
    limits: AdmissionLimits = OUTSIDE,
    *,
    reserved: Collection[str] = (),
    source: str = "client",
    place: Place = Place.CLIENT,
) -> DefinitionsCheck:
    """The same, never raising: all problems of all definitions, with JSON Pointers into the given list."""
    try:
        document = encoded(value)
    except Exception:  # noqa: BLE001  an object that imitates a list or a text runs code of its own
        return DefinitionsCheck(False, errors=(Problem("", "is not a JSON value", "json"),))
    key = (sha256(document).digest(), limits, source, place)
    known = _cache.get(key)
    if known is None:
        known = _read_list(document, limits, source, place)
        _cache.put(key, known, _held(known, document))
    if known and isinstance(known[0], Problem):
        return DefinitionsCheck(False, errors=cast("tuple[Problem, ...]", known))
    definitions = cast("tuple[Definition, ...]", known)
    taken = _taken(definitions, frozenset(reserved)) if reserved else ()
    return DefinitionsCheck(False, errors=taken) if taken else DefinitionsCheck(True, definitions)


_cache: ContentCache[tuple[Definition, ...] | tuple[Problem, ...]] = ContentCache(CACHE_BYTES)


def _held(known: tuple[Definition, ...] | tuple[Problem, ...], raw: bytes) -> int:
    """About how many bytes an entry holds: a refusal its problems, a definition its schemas too."""
    texts = sum(len(item.path) + len(item.message) for item in known if isinstance(item, Problem))
    return 1024 + 300 * len(known) + (texts or 2 * len(raw))


def encoded(value: object) -> bytes:
    """What came in as bytes: text as it is, anything else as JSON."""
    if type(value) is bytes:
        return value
    if isinstance(value, bytes):
        return bytes(memoryview(value))
    return str.encode(value) if isinstance(value, str) else msgspec.json.encode(value)


def _read_list(
    document: bytes, limits: AdmissionLimits, source: str, place: Place
) -> tuple[Definition, ...] | tuple[Problem, ...]:
    most = limits.definition_bytes * limits.tools
    if len(document) > most:
        return (Problem("", f"Too big: expected array to have <={most} bytes", "definition_bytes"),)
    try:
        slices = msgspec.json.decode(document, type=list[Raw])
    except (ValueError, RecursionError):
        return (_no_list(document, limits),)
    if len(slices) > limits.tools:
        return (Problem("", f"Too big: expected array to have <={limits.tools} items", "tools"),)
    definitions: list[Definition] = []
    problems: list[Problem] = []
    names: list[tuple[int, str, str]] = []
    for at, one in enumerate(slices):
        raw = bytes(one)
        key = (sha256(raw).digest(), limits, source, place, None)  # one longer than the key of a list
        known = _cache.get(key)
        if known is None:
            known = _read_one(raw, limits, source, place)
            _cache.put(key, known, _held(known, raw))
        for item in known:
            if isinstance(item, Problem):
                problems.append(Problem(f"/{at}{item.path}", item.message, item.rule))
            else:
                definitions.append(item)
        name, path = _name_of(raw)
        if name is not None:
            names.append((at, path, name))
    problems += _duplicates(names)
    if sum(readable_text(definition) for definition in definitions) > limits.client_text:
        problems.append(
            Problem("", f"Too big: all texts together have more than {limits.client_text} characters", "client_text")
        )
    return tuple(problems) or tuple(definitions)


def _no_list(document: bytes, limits: AdmissionLimits) -> Problem:
    try:
        value = parse(document, max_bytes=limits.definition_bytes * limits.tools, max_depth=limits.json_depth)
    except BadJson as error:
        return Problem("", f"is not JSON: {error.reason}", "json")
    return Problem("", f"Invalid input: expected array, received {json_type(value)}", "type")


def readable_text(definition: Definition) -> int:
    """How many characters of a definition somebody reads."""
    return readable_size(
        [
            *(definition.name, definition.description, definition.title, *definition.tags),
            *(msgspec.json.decode(raw) for raw in (definition.parameters, definition.output or b"null")),
            *(msgspec.json.decode(example) for example in definition.examples),
        ]
    )


class _Head(msgspec.Struct):
    """As much of a definition as is needed to find two of one name, be the rest right or wrong."""

    name: object = None
    function: object = None


def _name_of(raw: bytes) -> tuple[str | None, str]:
    try:
        head = msgspec.json.decode(raw, type=_Head)
    except (ValueError, RecursionError):
        return None, ""
    inner = cast("dict[str, object]", head.function).get("name") if isinstance(head.function, dict) else None
    if isinstance(inner, str):
        return inner, "/function/name"
    return (head.name, "/name") if isinstance(head.name, str) else (None, "")


def skeleton(name: str) -> str:
    """Names with one skeleton look alike to somebody."""
    return unicodedata.normalize("NFKC", name).casefold()


def _duplicates(names: list[tuple[int, str, str]]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    repeats: list[str] = []
    positions: list[Problem] = []
    for at, path, name in names:
        place = f"/{at}{path}"
        before = first.setdefault(skeleton(name), place)
        if before != place:
            repeats.append(name[:64])
            positions.append(Problem(place, f"has the same name as {before}", "duplicate"))
    if repeats:
        yield Problem("", f"Duplicate tool names: {', '.join(repeats)}", "duplicate")
        yield from positions


def _taken(definitions: tuple[Definition, ...], reserved: frozenset[str]) -> tuple[Problem, ...]:
    skeletons = _skeletons(reserved)
    return tuple(
        Problem(f"/{at}/name", f"Tool name {definition.name!r} belongs to a tool of the server", "reserved")
        for at, definition in enumerate(definitions)
        if skeleton(definition.name) in skeletons
    )


@lru_cache(maxsize=64)
def _skeletons(names: frozenset[str]) -> frozenset[str]:
    return frozenset(map(skeleton, names))


def _read_one(
    raw: bytes, limits: AdmissionLimits, source: str, place: Place
) -> tuple[Definition] | tuple[Problem, ...]:
    if len(raw) > limits.definition_bytes:
        message = f"Too big: expected definition to have <={limits.definition_bytes} bytes"
        return (Problem("", message, "definition_bytes"),)
    try:
        value = parse(raw, max_bytes=limits.definition_bytes, max_depth=limits.json_depth)
    except BadJson as error:
        return (Problem("", f"is not JSON as it is accepted here: {error.reason}", "json"),)
    if not isinstance(value, dict):
        return (Problem("", f"Invalid input: expected object, received {json_type(value)}", "type"),)
    reader = _Reader(limits)
    slices = msgspec.json.decode(raw, type=dict[str, Raw])
    fields = reader.unwrap(cast("dict[str, object]", value))
    if fields is not None:
        if reader.base:
            slices = msgspec.json.decode(slices["function"], type=dict[str, Raw])
        reader.read(fields, slices)
    if reader.problems:
        return first_of(reader.problems)
    return (make_definition(reader.fields, source=source, place=place),)


class _Reader:
    """Reads one definition from outside, field by field, and collects what is wrong with it."""

    def __init__(self, limits: AdmissionLimits) -> None:
        self.limits = limits
        self.base = ""
        self.problems: list[Problem] = []
        self.fields: dict[str, Any] = {}
        self._policy: dict[str, Any] = {}

    def unwrap(self, value: dict[str, object]) -> dict[str, object] | None:
        """The fields, whether plain or inside `function`; None if there are none to be read."""
        if value.get("type", "function") != "function":
            self._refuse(("type",), 'Invalid input: expected "function"', "type")
        if "function" not in value:
            return {key: item for key, item in value.items() if key != "type"}
        for key in value:
            if key not in ("type", "function"):
                self._refuse((key,), f'Unrecognized key: "{key[:64]}"', "keyword")
        if "type" not in value:
            self._refuse(("type",), 'Invalid input: expected "function"', "type")
        inner = value["function"]
        if not isinstance(inner, dict):
            self._refuse(("function",), f"Invalid input: expected object, received {json_type(inner)}", "type")
            return None
        self.base = "/function"
        return cast("dict[str, object]", inner)

    def read(self, fields: Mapping[str, object], slices: Mapping[str, Raw]) -> None:
        """Check every field; `slices` holds the author's own bytes of each."""
        self.name(fields.get("name", _MISSING))
        self.description(fields.get("description", _MISSING))
        self.schema("parameters", slices.get("parameters"), fields.get("parameters", _MISSING))
        for key, value in fields.items():
            if key in ("name", "description", "parameters"):
                continue
            read = _OPTIONAL.get(key)
            if read is None:
                self._refuse((key,), f'Unrecognized key: "{key[:64]}"', "keyword")
            else:
                read(self, key, value, slices[key])
        if self._policy:
            self.fields["policy"] = Policy(**self._policy)

    def name(self, value: object) -> None:
        reason = name_problem(value, self.limits)
        if reason:
            self._refuse(("name",), reason, "name")
        self.fields["name"] = value

    def description(self, value: object) -> None:
        self.fields["description"] = value
        if not isinstance(value, str):
            self._refuse(("description",), f"Invalid input: expected string, received {json_type(value)}", "type")
        elif not value and self.limits.require_description:
            self._refuse(("description",), "Too small: expected string to have >=1 characters", "description")
        elif len(value) > self.limits.description:
            message = f"Too big: expected string to have <={self.limits.description} characters"
            self._refuse(("description",), message, "description")
        else:
            self._texts("description", value)

    def schema(self, key: str, raw: Raw | None, value: object) -> None:
        if not isinstance(value, dict) or raw is None:
            received = json_type(cast("object", value))
            self._refuse((key,), f"Invalid input: expected object, received {received}", "type")
            return
        schema = cast("dict[str, object]", value)
        top = f"/{key}/type"
        if key == "parameters":
            if schema.get("type") != "object":
                self._refuse((key, "type"), 'Invalid input: expected "object"', "type")
            if self.limits.require_properties and "properties" not in schema:
                self._refuse((key, "properties"), "Invalid input: expected record, received undefined", "type")
        try:
            compile_schema(bytes(raw), self.limits)
        except BadSchema as error:
            for problem in error.problems:
                path = f"/{key}{problem.path}"
                if not (key == "parameters" and path == top):  # said already, in the words of this dialect
                    self.problems.append(Problem(self.base + path, problem.message, problem.rule))
        self.fields["output" if key == "outputSchema" else key] = raw.copy()

    def output(self, key: str, value: object, raw: Raw) -> None:
        if value is not None:
            self.schema(key, raw, value)

    def text(self, key: str, value: object, _: Raw) -> None:
        if isinstance(value, str) and len(value) <= self.limits.description:
            self._texts(key, value)
            self.fields[key] = value
        elif value is not None:
            self._refuse((key,), f"must be a string of <={self.limits.description} characters", "type")

    def tags(self, key: str, value: object, _: Raw) -> None:
        if isinstance(value, list) and all(isinstance(tag, str) for tag in cast("list[object]", value)):
            self._texts(key, cast("list[object]", value))
            self.fields[key] = tuple(cast("list[str]", value))
        else:
            self._refuse((key,), "must be a list of strings", "type")

    def examples(self, key: str, value: object, raw: Raw) -> None:
        if isinstance(value, list):
            self._texts(key, cast("list[object]", value))
            self.fields[key] = tuple(example.copy() for example in msgspec.json.decode(raw, type=list[Raw]))
        else:
            self._refuse((key,), f"Invalid input: expected array, received {json_type(value)}", "type")

    def approval(self, key: str, value: object, _: Raw) -> None:
        if isinstance(value, bool):
            self._policy["approval"] = Approval.ALWAYS if value else Approval.NEVER
        else:
            self._refuse((key,), f"Invalid input: expected boolean, received {json_type(value)}", "type")

    def effect(self, key: str, value: object, _: Raw) -> None:
        if value in tuple(SideEffect):
            self._policy["effect"] = SideEffect(cast("str", value))
        else:
            self._refuse((key,), 'Invalid option: expected one of "pure"|"idempotent"|"once"', "effect")

    def timeout(self, key: str, value: object, _: Raw) -> None:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _LONGEST_CALL:
            self._policy["timeout"] = float(value)
        else:
            self._refuse((key,), f"must be a number of seconds above 0, {_LONGEST_CALL} at most", "timeout")

    def flag(self, key: str, value: object, _: Raw) -> None:
        if not isinstance(value, bool):
            self._refuse((key,), f"Invalid input: expected boolean, received {json_type(value)}", "type")
        elif key == "lazy":
            self.fields["lazy"] = value
        else:
            self._policy[_LABELS[key]] = value

    def ignored(self, key: str, value: object, raw: Raw) -> None:
        """`strict` asks one provider for something that is always done here."""

    def _texts(self, key: str, value: object) -> None:
        self.problems += text_problems(value, self.limits, f"{self.base}/{key}")

    def _refuse(self, tokens: tuple[str | int, ...], message: str, rule: str) -> None:
        self.problems.append(Problem(self.base + pointer(tokens), message, rule))


class _Missing:
    """Stands for a field that is not there; its JSON type is `undefined`."""


_MISSING = _Missing()

_LONGEST_CALL = 30 * 24 * 3600
_LABELS: dict[str, str] = dict(zip(("readsPrivate", "takesUntrusted", "sendsOut"), FLOW, strict=True))

_OPTIONAL: dict[str, Callable[[_Reader, str, object, Raw], None]] = {
    "title": _Reader.text,
    "version": _Reader.text,
    "deprecated": _Reader.text,
    "output": _Reader.output,
    "outputSchema": _Reader.output,
    "tags": _Reader.tags,
    "examples": _Reader.examples,
    "needsApproval": _Reader.approval,
    "needs_approval": _Reader.approval,
    "effect": _Reader.effect,
    "timeout": _Reader.timeout,
    "lazy": _Reader.flag,
    **dict.fromkeys(_LABELS, _Reader.flag),
    "strict": _Reader.ignored,
}
