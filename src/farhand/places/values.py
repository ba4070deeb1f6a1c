"""Python types as JSON: a type's schema, checked arguments into its values, and results out.

pydantic is imported only here and in `functions`, and only when a tool uses a type.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from msgspec import Raw, json, to_builtins

from farhand.core.errors import UsageError
from farhand.core.messages import Binary, Json, Text

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

_DATA = ("default", "const", "enum", "examples")
_NAMED = ("properties", "$defs")
_PARTS = (Text, Json, Binary)
_LISTS = (list, tuple)
_SCALARS = (str, int, bool, type(None))
_PLAIN = (*_SCALARS, float, dict)
"""What is surely no part: asking whether a value is one of several struct types takes longer than writing it."""


class Codec(Protocol):
    """How values of one kind become JSON and come back."""

    @property
    def schema(self) -> Raw:
        """JSON Schema."""
        ...

    def load(self, value: Any) -> Any:
        """A checked JSON value as the tool wants it."""
        ...

    def dump(self, value: Any) -> bytes:
        """A value as JSON."""
        ...


class RawCodec:
    """JSON Schema as the author wrote it; values stay as they are."""

    def __init__(self, schema: Mapping[str, Any] | bytes | str) -> None:
        if isinstance(schema, Mapping):
            self.schema = Raw(json.encode(schema))
        else:
            self.schema = Raw(schema)

    def load(self, value: Any) -> Any:
        """The value itself."""
        return value

    def dump(self, value: Any) -> bytes:
        """A value as JSON."""
        return dump(value)


class TypedCodec(Generic[T]):
    """A Python type: dataclass, TypedDict, pydantic model, or anything else pydantic can describe."""

    def __init__(self, kind: type[T], *, output: bool = False) -> None:
        from pydantic import TypeAdapter  # an author's type is what makes pydantic needed

        try:
            self._adapter: TypeAdapter[T] = TypeAdapter(kind)
            schema = plain_schema(self._adapter, getattr(kind, "__name__", ""), output=output)
            schema.pop("description", None)  # the tool has it
            self.schema = Raw(json.encode(schema))
        except Exception as error:
            raise UsageError(f"the type {kind!r} has no JSON Schema: {error}") from error

    def load(self, value: Any) -> T:
        """A checked JSON value as the type; the type's own validators may still refuse it."""
        return validated(self._adapter, value)

    def dump(self, value: Any) -> bytes:
        """A value of the type as JSON; any other value as it is, for the schema to judge."""
        if type(value) in _SCALARS:
            return json.encode(value)
        try:
            raw = self._adapter.dump_json(value, warnings="error", by_alias=True)
            return _finite(raw, self._adapter.dump_python(value)) if b"null" in raw else raw
        except Exception as error:
            if "PydanticSerialization" in type(error).__name__:
                return dump(value)
            raise


def validated(adapter: "TypeAdapter[T]", value: Any) -> T:
    """A JSON value as a type. JSON has the last word: from nothing else does a strict type take a date or an enum."""
    try:
        return adapter.validate_python(value)
    except ValueError:
        return adapter.validate_json(json.encode(value))


def codec(kind: Any, *, output: bool = False) -> Codec:
    """The codec for a type, or for a JSON Schema given as a mapping, text or bytes."""
    if isinstance(kind, Mapping | bytes | str):
        return RawCodec(kind)  # pyright: ignore[reportUnknownArgumentType]
    return TypedCodec(kind, output=output)


def plain_schema(adapter: "TypeAdapter[Any]", name: str = "", *, output: bool = False) -> dict[str, Any]:
    """The schema of a type of that name, without titles that pydantic makes up: they cost tokens and say nothing."""
    schema = adapter.json_schema(mode="serialization" if output else "validation", by_alias=True)
    return strip_titles(schema, name)


def strip_titles(schema: Any, name: str = "", *, names: bool = False) -> Any:
    """A copy without each `title` that repeats a name; below `properties` and `$defs` the keys are names and stay."""
    if isinstance(schema, list):
        return [strip_titles(item, name) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: value
        for key, value in cast("dict[str, Any]", schema).items()
        if names or key != "title" or not isinstance(value, str) or not _repeats(value, name)
    }
    return {
        key: value
        if key in _DATA and not names
        else strip_titles(value, key if names else name, names=key in _NAMED and not names)
        for key, value in kept.items()
    }


def _repeats(title: str, name: str) -> bool:
    """Whether pydantic makes this title of that property or type; a type's key may have its module before it."""
    made_up = name.title().replace("_", " ").strip()
    key = re.sub(r"[^A-Za-z0-9.\-_]", "_", title)
    return title in (name, made_up) or key in re.split(r"__|-(?=Input$|Output$)", name) or key == name


def dump(value: Any) -> bytes:
    """Any value as JSON. Numbers that JSON does not have are refused, never turned into null. `Raw` is JSON already."""
    if type(value) is Raw:
        return bytes(value)
    raw = json.encode(value, enc_hook=_encode_foreign)
    return _finite(raw, to_builtins(value, enc_hook=_encode_foreign)) if b"null" in raw else raw


def dump_result(value: Any, write: Callable[[Any], bytes]) -> tuple[bytes, bool]:
    """A tool's result as JSON, and whether it is a list of parts (text, files) instead of a value."""
    if type(value) in _PLAIN:
        return write(value), False
    items = (value,) if isinstance(value, _PARTS) else value
    if isinstance(items, _LISTS) and items:
        parts = tuple(cast("list[Any]", items))
        if all(isinstance(part, _PARTS) for part in parts):
            if _has_infinite([part.value for part in parts if isinstance(part, Json)]):
                raise ValueError("NaN and Infinity are not JSON")
            return json.encode(parts, enc_hook=_encode_foreign), True
    return write(value), False


def _encode_foreign(value: Any) -> Any:
    dump_model = getattr(value, "model_dump", None)
    if dump_model is not None:
        return dump_model(mode="json", by_alias=True)
    raise UsageError(f"a value of type {type(value).__name__} cannot be written as JSON")


def _finite(raw: bytes, value: Any) -> bytes:
    if _has_infinite(value):
        raise ValueError("NaN and Infinity are not JSON")
    return raw


def _has_infinite(value: Any) -> bool:
    if isinstance(value, float):
        return value != value or value in (float("inf"), float("-inf"))
    if isinstance(value, Mapping):
        return any(_has_infinite(item) for item in cast("Mapping[Any, Any]", value).values())
    if isinstance(value, list | tuple | set):
        return any(_has_infinite(item) for item in cast("list[Any]", value))
    return False
