"""Hints for authors of tools: what some provider will not take, and what is unwise. Nothing is refused here.

What must be refused is in `core.admission`. Providers change; a hint says who and why, and may be ignored.
"""

import re
from collections.abc import Iterable, Iterator
from typing import cast

import msgspec

from farhand.core.definition import Approval, Definition, SideEffect
from farhand.core.problem import pointer
from farhand.core.schema_graph import is_recursive, subschemas

VISIBLE_TOOLS = 10

_PORTABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_DESTRUCTIVE = frozenset(
    [
        *("delete", "remove", "drop", "destroy", "erase", "wipe", "purge", "truncate", "overwrite", "format", "kill"),
        *("pay", "payment", "purchase", "buy", "charge", "refund", "transfer", "withdraw", "order"),
        *("send", "email", "mail", "post", "publish", "tweet", "deploy", "execute", "exec"),
    ]
)
_COMBINATORS = ("oneOf", "anyOf", "allOf")

# What providers document as not supported in their strict or function schemas.
_OPENAI_STRICT = frozenset(
    ["allOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "patternProperties", "oneOf"]
)
_GEMINI = frozenset(["patternProperties", "not", "if", "then", "else", "dependentSchemas", "unevaluatedProperties"])
_OPENAI_FORMATS = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]
)  # fmt: skip


class Hint(msgspec.Struct, frozen=True):
    """One remark; `path` is a JSON Pointer into the definition of `tool`, `provider` whom it concerns, if not all."""

    tool: str
    path: str
    message: str
    provider: str | None = None


def lint_tools(definitions: Iterable[Definition]) -> list[Hint]:
    """All hints for these tools, in their order; a hint about all of them together has no tool name."""
    tools = list(definitions)
    hints = [hint for tool in tools for hint in _tool_hints(tool)]
    if len(tools) > VISIBLE_TOOLS:
        message = f"{len(tools)} tools are visible at once; models choose better among {VISIBLE_TOOLS}: make groups"
        hints.append(Hint("", "", message))
    return hints


def _tool_hints(tool: Definition) -> Iterator[Hint]:
    if not _PORTABLE_NAME.fullmatch(tool.name):
        message = "some dialects take only a letter, then letters, digits and _ (64 in all); they will see an alias"
        yield Hint(tool.name, "/name", message)
    if not tool.description.strip():
        yield Hint(tool.name, "/description", "has no description: the model cannot know when to use it")
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool.name).lower()))
    if words & _DESTRUCTIVE and tool.policy.approval is Approval.NEVER and tool.policy.effect is not SideEffect.PURE:
        message = f"looks as if it could do harm ({', '.join(sorted(words & _DESTRUCTIVE))}) and needs no approval"
        yield Hint(tool.name, "/name", message)
    schema = cast("dict[str, object]", msgspec.json.decode(tool.parameters))
    yield from _top_hints(tool.name, schema)
    yield from _schema_hints(tool.name, schema)


def _top_hints(tool: str, schema: dict[str, object]) -> Iterator[Hint]:
    if schema.keys() <= {"type", "title", "description"}:
        message = 'has no schema of its parameters; for a tool without any, say "additionalProperties": false'
        yield Hint(tool, "/parameters", message)
    for word in _COMBINATORS:
        if word in schema:
            message = f"{word!r} at the top of the parameters is refused"
            yield Hint(tool, f"/parameters/{word}", message, "Anthropic")
            yield Hint(tool, f"/parameters/{word}", message, "OpenAI")
    if is_recursive(schema):
        yield Hint(tool, "/parameters", "a recursive schema is not taken, or only a few levels of it", "Gemini")


def _schema_hints(tool: str, top: dict[str, object]) -> Iterator[Hint]:
    rest: list[tuple[dict[str, object], str]] = [(top, "/parameters")]
    while rest:
        schema, path = rest.pop()
        for word, message, provider in _node_hints(schema):
            yield Hint(tool, path + pointer(word), message, provider)
        below = [
            (cast("dict[str, object]", item), path + pointer(tokens))
            for tokens, item, _ in subschemas(schema)
            if isinstance(item, dict)
        ]
        rest.extend(reversed(below))


def _node_hints(schema: dict[str, object]) -> Iterator[tuple[tuple[str, ...], str, str | None]]:
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, item in cast("dict[str, object]", properties).items():
            if not (isinstance(item, dict) and ("description" in item or "$ref" in item or "const" in item)):
                yield ("properties", name), "has no description: the model has to guess what it means", None
        if "additionalProperties" not in schema:
            message = 'says nothing of other properties, so all are let through; consider "additionalProperties": false'
            yield (), message, None
            yield (), 'must have "additionalProperties": false in strict mode', "OpenAI strict mode"
        optional = cast("dict[str, object]", properties).keys() - set(cast("list[str]", schema.get("required", [])))
        if optional:
            message = f"all properties must be required in strict mode, also {', '.join(sorted(optional))}"
            yield (), message, "OpenAI strict mode"
    for word in schema:
        if word in _OPENAI_STRICT:
            yield (word,), f"{word!r} is not taken in strict mode", "OpenAI strict mode"
        if word in _GEMINI:
            yield (word,), f"{word!r} is not taken or is ignored", "Gemini"
    form = schema.get("format")
    if isinstance(form, str) and form not in _OPENAI_FORMATS:
        yield ("format",), f"format {form!r} is not taken in strict mode", "OpenAI strict mode"
