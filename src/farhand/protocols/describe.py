"""The native protocol described for machines: a JSON Schema for every frame, and OpenAPI 3.1 for all requests.

Both are made of the code: types from the structs, sentences from their docstrings, requests from `endpoints`.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec import inspect as types

from farhand.core.updates import Update
from farhand.protocols import native
from farhand.protocols.endpoints import ENDPOINTS, Endpoint
from farhand.protocols.native import PREFIX
from farhand.protocols.problems import KINDS, MEDIA_TYPE, Kind, ProblemDetails

REFERENCE = "#/components/schemas/"
EVERYWHERE = ("not_authenticated", "not_allowed", "too_much", "store", "store_away", "store_version", "server_failed")
"""Codes that every endpoint may answer with."""
WITH_BODY = ("not_json", "usage", "too_large")
"""And every one that is sent something."""
SOCKET = (
    native.SocketRequest,
    native.SocketStop,
    native.SocketAnswer,
    native.SocketUpdates,
)

JsonSchema = dict[str, Any]


@cache
def schemas() -> dict[str, JsonSchema]:
    """The JSON Schema of every frame, by the name of its type."""
    found = Schemas()
    for endpoint in ENDPOINTS:
        for kind in (endpoint.body, endpoint.reply, endpoint.stream):
            if kind is not None:
                found.of(kind)
    for kind in (*SOCKET, ProblemDetails):
        found.of(kind)
    found.known["Update"] = found.of(Update)
    found.known["ProviderUpdate"] = found.of(native.ProviderUpdate)
    return dict(sorted(found.known.items()))


@cache
def openapi(version: str) -> bytes:
    """The OpenAPI 3.1 description of a server of this version, as JSON."""
    paths: dict[str, JsonSchema] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(PREFIX + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Farhand",
            "version": version,
            "description": "The native protocol. Over a socket (`/v1/socket`) the same requests are sent as frames.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(document)


def errors_of(endpoint: Endpoint) -> dict[int, list[tuple[str, Kind]]]:
    """What an endpoint may answer with instead of what was asked for: by status, every code and what it means."""
    codes = dict.fromkeys(endpoint.refusals)
    if endpoint.scope != "public":
        codes |= dict.fromkeys(EVERYWHERE)
        if endpoint.body is not None or endpoint.query is not None or "{" in endpoint.path:
            codes |= dict.fromkeys(("invalid_input",))
        if endpoint.body is not None:
            codes |= dict.fromkeys(WITH_BODY)
    by_code = {error.code: kind for error, kind in KINDS.items()}
    found: dict[int, list[tuple[str, Kind]]] = {}
    for code in codes:
        found.setdefault(by_code[code].status, []).append((code, by_code[code]))
    return dict(sorted(found.items()))


def _operation(endpoint: Endpoint) -> JsonSchema:
    operation: JsonSchema = {
        "operationId": endpoint.name,
        "summary": endpoint.does,
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": _responses(endpoint),
        "security": [] if endpoint.scope == "public" else [{"bearer": []}],
        "x-scope": endpoint.scope,
    }
    if endpoint.body is not None:
        content = {"application/json": {"schema": {"$ref": REFERENCE + endpoint.body.__name__}}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _path_parameters(endpoint: Endpoint) -> Iterator[JsonSchema]:
    for name in re.findall(r"\{(\w+)\}", endpoint.path):
        schema = {"type": "string", "minLength": 1, "maxLength": native.MAX_ID, "pattern": native.ID}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(endpoint: Endpoint) -> Iterator[JsonSchema]:
    if endpoint.query is None:
        return
    described = Schemas().struct(_struct(endpoint.query))
    for name, schema in described["properties"].items():
        yield {"name": name, "in": "query", "required": False, "schema": schema}


def _responses(endpoint: Endpoint) -> JsonSchema:
    responses: JsonSchema = {}
    if endpoint.reply is not None:
        content = {"application/json": {"schema": {"$ref": REFERENCE + endpoint.reply.__name__}}}
        responses[str(endpoint.status)] = {"description": sentences(endpoint.reply), "content": content}
    elif endpoint.text:
        responses[str(endpoint.status)] = {
            "description": f"{endpoint.does}.",
            "content": {endpoint.text: {"schema": {"type": "string"}}},
        }
    elif endpoint.stream is None:
        responses[str(endpoint.status)] = {"description": "Done."}
    if endpoint.stream is not None:
        name = "ProviderUpdate" if endpoint.stream is native.ProviderUpdate else "Update"
        text = f"An event stream for whoever accepts one; the data of each event is a `{name}`."
        streamed = {"text/event-stream": {"schema": {"type": "string", "contentMediaType": "text/event-stream"}}}
        responses.setdefault("200", {"description": text, "content": {}})["content"] |= streamed
    for status, reasons in errors_of(endpoint).items():
        text = "; ".join(f"`{code}`: {kind.title}. {kind.fix}" for code, kind in reasons)
        content = {MEDIA_TYPE: {"schema": {"$ref": REFERENCE + ProblemDetails.__name__}}}
        responses[str(status)] = {"description": text, "content": content}
    return responses


def _struct(kind: type) -> types.StructType:
    described = types.type_info(kind)
    assert isinstance(described, types.StructType)
    return described


class Schemas:
    """Collects the schemas of structs under their names, and refers to them."""

    def __init__(self) -> None:
        self.known: dict[str, JsonSchema] = {}

    def of(self, kind: Any) -> JsonSchema:
        """The schema of a type."""
        return self.schema(types.type_info(kind))

    def schema(self, kind: types.Type) -> JsonSchema:
        """The schema of a type, as `msgspec` sees it."""
        match kind:
            case types.StructType():
                name = kind.cls.__name__
                if name not in self.known:
                    self.known[name] = {}
                    self.known[name] = self.struct(kind)
                return {"$ref": REFERENCE + name}
            case types.UnionType():
                return self._union(kind)
            case types.VarTupleType() | types.ListType():
                return {
                    "type": "array",
                    "items": self.schema(kind.item_type),
                    **_given(minItems=kind.min_length, maxItems=kind.max_length),
                }
            case types.DictType():
                return {"type": "object", "additionalProperties": self.schema(kind.value_type)}
            case _:
                return _scalar(kind)

    def struct(self, kind: types.StructType) -> JsonSchema:
        """The schema of a struct."""
        said = texts_of_fields(kind.cls)
        properties: JsonSchema = {}
        required: list[str] = []
        if kind.tag_field is not None:
            properties[kind.tag_field] = {"const": kind.tag}
            required.append(kind.tag_field)
        for field in kind.fields:
            schema = self.schema(field.type)
            if (text := said.get(field.name, "")) and "$ref" not in schema:
                schema = {**schema, "description": text}
            if isinstance(field.default, str | int | float | bool):
                schema = {**schema, "default": field.default}
            properties[field.encode_name] = schema
            if field.required:
                required.append(field.encode_name)
        return {"type": "object", "description": sentences(kind.cls), "properties": properties, "required": required}

    def _union(self, kind: types.UnionType) -> JsonSchema:
        tags: Sequence[types.StructType] = [each for each in kind.types if isinstance(each, types.StructType)]
        alternatives = [self.schema(each) for each in kind.types]
        if len(tags) < len(kind.types) or tags[0].tag_field is None:
            return {"anyOf": alternatives}
        mapping = {str(each.tag): REFERENCE + each.cls.__name__ for each in tags}
        return {"oneOf": alternatives, "discriminator": {"propertyName": tags[0].tag_field, "mapping": mapping}}


def _scalar(kind: types.Type) -> JsonSchema:
    match kind:
        case types.EnumType():
            return {"enum": [member.value for member in kind.cls]}
        case types.LiteralType():
            return {"enum": list(kind.values)}
        case types.AnyType() | types.RawType():
            return {}
        case types.BytesType():
            return {"type": "string", "contentEncoding": "base64"}
        case types.StrType():
            limits = _given(minLength=kind.min_length, maxLength=kind.max_length, pattern=kind.pattern)
            return {"type": "string", **limits}
        case types.IntType():
            return {"type": "integer", **_given(minimum=kind.ge, maximum=kind.le)}
        case _:
            return {"type": _SIMPLE[type(kind)]}


_SIMPLE: dict[type[types.Type], str] = {
    types.BoolType: "boolean",
    types.FloatType: "number",
    types.NoneType: "null",
}


def _given(**limits: int | str | None) -> JsonSchema:
    return {name: limit for name, limit in limits.items() if limit is not None}


def sentences(kind: type) -> str:
    """What a class's docstring says, on one line."""
    return " ".join((inspect.getdoc(kind) or "").split())


@cache
def texts_of_fields(kind: type[Struct]) -> dict[str, str]:
    """The docstring below each annotated field, where there is one, also of the classes above."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each is not Struct and issubclass(each, Struct):
            found |= dict(_texts(each))
    return found


def _texts(kind: type[Struct]) -> Iterable[tuple[str, str]]:
    [body] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    for node, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            yield node.target.id, " ".join(str(text).split())
