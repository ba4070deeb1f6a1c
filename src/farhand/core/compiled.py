"""The compiled schemas of definitions, found by pin: the same pin means the same schemas. A memory of pure results."""

from collections.abc import Callable

from msgspec import Raw

from farhand.core.admission import OWNER
from farhand.core.definition import Definition
from farhand.core.schema import Schema, compile_schema

_MOST = 4096
_parameters: dict[str, Schema] = {}
_outputs: dict[str, Schema] = {}


def parameters_of(definition: Definition) -> Schema:
    """What the tool's arguments are held against."""
    return _find(_parameters, definition.pin, lambda: definition.parameters)


def output_of(definition: Definition) -> Schema:
    """What the tool's results are held against; only for a definition that has an output schema."""
    return _find(_outputs, definition.pin, lambda: definition.output_json)


def _find(known: dict[str, Schema], pin: str, raw: Callable[[], Raw]) -> Schema:
    schema = known.get(pin)
    if schema is None:
        if len(known) >= _MOST:
            known.clear()
        schema = known[pin] = compile_schema(bytes(raw()), OWNER)
    return schema
