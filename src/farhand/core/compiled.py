"""The compiled schemas of definitions, found by pin: the same pin means the same schemas. A memory of pure results.

A definition from a stored run brings its pin along. One that is not its own must not be found under it: everybody's
calls of the tool that the pin belongs to would be held against the wrong schema.
"""

from msgspec import Raw

from farhand.core.admission import ADMITTED, OWNER
from farhand.core.content_cache import ContentCache
from farhand.core.definition import Definition, Place, pin_of
from farhand.core.schema import Schema, compile_schema

# By bytes, not by count: 4,096 of the largest schemas that a client may bring would hold 2 GB.
_parameters: ContentCache[Schema] = ContentCache(32 << 20)
_outputs: ContentCache[Schema] = ContentCache(32 << 20)

# One step of a call asks several times for the same: then the very definition is enough to know it by.
_newest_parameters: tuple[Definition | None, Schema | None] = (None, None)
_newest_output: tuple[Definition | None, Schema | None] = (None, None)


def parameters_of(definition: Definition) -> Schema:
    """What the tool's arguments are held against."""
    global _newest_parameters
    newest, schema = _newest_parameters
    if newest is not definition or schema is None:
        schema = _parameters.get(definition.pin) or _keep(_parameters, definition, definition.parameters)
        _newest_parameters = definition, schema
    return schema


def output_of(definition: Definition) -> Schema:
    """What the tool's results are held against; only for a definition that has an output schema."""
    global _newest_output
    newest, schema = _newest_output
    if newest is not definition or schema is None:
        schema = _outputs.get(definition.pin) or _keep(_outputs, definition, definition.output_json)
        _newest_output = definition, schema
    return schema


def _keep(known: ContentCache[Schema], definition: Definition, raw: Raw) -> Schema:
    limits = OWNER if definition.place is Place.SERVER else ADMITTED
    schema = compile_schema(bytes(raw), limits)
    if pin_of(definition) == definition.pin:
        known.put(definition.pin, schema, schema.size)
    return schema
