"""The compiled schemas of definitions, found by pin: the same pin means the same schemas. A memory of pure results."""

from msgspec import Raw

from farhand.core.admission import ADMITTED, OWNER
from farhand.core.definition import Definition, Place
from farhand.core.schema import Schema, compile_schema

_MOST = 4096
_parameters: dict[str, Schema] = {}
_outputs: dict[str, Schema] = {}


def parameters_of(definition: Definition) -> Schema:
    """What the tool's arguments are held against."""
    return _parameters.get(definition.pin) or _keep(_parameters, definition, definition.parameters)


def output_of(definition: Definition) -> Schema:
    """What the tool's results are held against; only for a definition that has an output schema."""
    return _outputs.get(definition.pin) or _keep(_outputs, definition, definition.output_json)


def _keep(known: dict[str, Schema], definition: Definition, raw: Raw) -> Schema:
    if len(known) >= _MOST:
        known.clear()
    limits = OWNER if definition.place is Place.SERVER else ADMITTED
    schema = known[definition.pin] = compile_schema(bytes(raw), limits)
    return schema
