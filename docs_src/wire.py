"""The generated parts of the page about the native protocol: requests, frames, and what can go wrong."""

from collections.abc import Iterator
from typing import Any, get_args

from msgspec import Struct, json, structs

from farhand.core.updates import Update
from farhand.protocols import native
from farhand.protocols.describe import SOCKET, schemas
from farhand.protocols.endpoints import ENDPOINTS, Endpoint
from farhand.protocols.native import PREFIX
from farhand.protocols.problems import KINDS

SENT = (
    "RunRequest",
    "ResultRequest",
    "ToolFailure",
    "Decision",
    "AnswersRequest",
    "ClaimRequest",
    "ProgressRequest",
    "ReportRequest",
    "CancelRequest",
    "ProviderRequest",
)
"""What comes first, because it is sent."""


def requests() -> str:
    """Everything that may be asked."""
    lines: list[str] = ["| request | body | answer | scope | does |", "| --- | --- | --- | --- | --- |"]
    for endpoint in ENDPOINTS:
        query = "" if endpoint.query is None else f" ?{'&'.join(_fields(endpoint.query))}"
        body = "" if endpoint.body is None else _link(endpoint.body.__name__)
        lines.append(
            f"| `{endpoint.method} {PREFIX}{endpoint.path}`{f' `{query.strip()}`' if query else ''} | {body} "
            f"| {_answer(endpoint)} | `{endpoint.scope}` | {endpoint.does} |"
        )
    return "\n".join([*lines, ""])


def _answer(endpoint: Endpoint) -> str:
    answers: list[str] = []
    if endpoint.reply is not None:
        answers.append(f"`{endpoint.status}` {_link(endpoint.reply.__name__)}")
    elif endpoint.stream is None:
        answers.append(f"`{endpoint.status}`")
    if endpoint.stream is not None:
        name = "provider's updates" if endpoint.stream is native.ProviderUpdate else "updates"
        answers.append(f"`200` a stream of {name}")
    return ", or ".join(answers)


def frames() -> str:
    """Every frame, field by field."""
    updates = {kind.__name__ for kind in get_args(Update)}
    known = schemas()
    socket = [kind.__name__ for kind in SOCKET]
    names = [
        *SENT,
        *(name for name in known if name not in SENT and name not in updates and name not in socket),
        *socket,
    ]
    return "\n".join(line for name in names if "properties" in known[name] for line in _frame(name, known[name]))


def _frame(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{schema['description']}\n"
    yield "| field | type | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for field, described in schema["properties"].items():
        if field in schema["required"]:
            default = "needed"
        elif "default" in described:
            default = f"`{json.encode(described['default']).decode()}`"
        else:
            default = ""
        yield f"| `{field}` | {_type(described)} | {default} | {described.get('description', '')} |"
    yield ""


def _type(schema: dict[str, Any]) -> str:
    match schema:
        case {"$ref": reference}:
            return _link(reference.rpartition("/")[2])
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"const": value}:
            return f"`{value}`"
        case {"anyOf": kinds} | {"oneOf": kinds}:
            return " or ".join(_type(kind) for kind in kinds)
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"type": "object", "additionalProperties": values}:
            return f"object of {_type(values)}"
        case {"type": kind}:
            return str(kind)
        case _:
            return "any JSON"


def _link(name: str) -> str:
    return f"[`{name}`](#{name.lower()})" if "properties" in schemas().get(name, {}) else f"`{name}`"


def _fields(kind: type[Struct]) -> list[str]:
    return [field.name for field in structs.fields(kind)]


def problems() -> str:
    """Every error that is answered with."""
    lines = ["| status | `code` | exception | means | what to do |", "| --- | --- | --- | --- | --- |"]
    for error, kind in sorted(KINDS.items(), key=lambda item: (item[1].status, item[0].code)):
        text = kind.fix.replace("|", "\\|")
        lines.append(f"| {kind.status} | `{error.code}` | `{error.__name__}` | {kind.title} | {text} |")
    return "\n".join([*lines, ""])
