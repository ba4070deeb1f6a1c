"""A schema without references, as servers take it from clients: each one replaced by what it stands for."""

from collections.abc import Mapping
from typing import Any, cast

from farhand.core.errors import UsageError

_DATA = ("default", "const", "enum", "examples")
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_GONE = ("$defs", "definitions", "discriminator")


def flat(schema: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """The same schema without `$ref`. A schema that holds itself has no such form: `UsageError`."""
    return _Flattening(schema, tool).value(schema, ())


class _Flattening:
    """One schema, and the references that are being followed."""

    def __init__(self, whole: Mapping[str, Any], tool: str) -> None:
        self._whole = whole
        self._tool = tool

    def value(self, schema: Any, under: tuple[str, ...]) -> Any:
        """A subschema, a list of them, or a boolean."""
        if isinstance(schema, list):
            return [self.value(item, under) for item in cast("list[Any]", schema)]
        if not isinstance(schema, Mapping):
            return schema
        fields = cast("Mapping[str, Any]", schema)
        reference = fields.get("$ref")
        if isinstance(reference, str):
            if reference in under:
                raise UsageError(
                    f"tool {self._tool!r}: its schema refers to itself, which a server takes from no client"
                )
            rest = {key: item for key, item in fields.items() if key != "$ref"}
            return {**self.value(self._target(reference), (*under, reference)), **self.value(rest, under)}
        return {key: self._field(key, item, under) for key, item in fields.items() if key not in _GONE}

    def _field(self, key: str, item: Any, under: tuple[str, ...]) -> Any:
        if key in _DATA:
            return item
        if key in _NAMED and isinstance(item, Mapping):
            named = cast("Mapping[str, Any]", item)
            return {name: self.value(one, under) for name, one in named.items()}
        return self.value(item, under)

    def _target(self, reference: str) -> Any:
        found: Any = self._whole
        for part in reference.removeprefix("#").strip("/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                raise UsageError(f"tool {self._tool!r}: its schema refers to {reference!r}, which is not in it")
            found = cast("Mapping[str, Any]", found)[key]
        return found
