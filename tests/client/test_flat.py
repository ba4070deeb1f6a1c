"""Schemas without references."""

from typing import Any

import pytest

from farhand.client.flat import flat
from farhand.core.errors import UsageError

ITEM = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "without"),
    [
        ({"type": "object"}, {"type": "object"}),
        ({"$defs": {"I": ITEM}, "items": {"$ref": "#/$defs/I"}}, {"items": ITEM}),
        ({"$defs": {"I": ITEM}, "$ref": "#/$defs/I", "title": "T"}, {**ITEM, "title": "T"}),
        (
            {"definitions": {"a/b": ITEM}, "properties": {"$ref": {"$ref": "#/definitions/a~1b"}}},
            {"properties": {"$ref": ITEM}},
        ),
        (
            {
                "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}, True]}, "B": {"type": "null"}},
                "not": {"$ref": "#/$defs/A"},
            },
            {"not": {"anyOf": [{"type": "null"}, True]}},
        ),
        ({"default": {"$ref": "x"}, "enum": [{"$ref": "y"}]}, {"default": {"$ref": "x"}, "enum": [{"$ref": "y"}]}),
        ({"properties": {"definitions": {"type": "string"}}}, {"properties": {"definitions": {"type": "string"}}}),
        ({"oneOf": [], "discriminator": {"propertyName": "kind"}}, {"oneOf": []}),
    ],
)
def test_references_become_what_they_stand_for(schema: dict[str, Any], without: dict[str, Any]) -> None:
    assert flat(schema, "t") == without


def test_a_schema_that_holds_itself_has_no_such_form() -> None:
    tree = {"$defs": {"T": {"properties": {"left": {"$ref": "#/$defs/T"}}}}, "$ref": "#/$defs/T"}
    with pytest.raises(UsageError, match="tool 'grow': its schema refers to itself"):
        flat(tree, "grow")


@pytest.mark.parametrize("reference", ["#/$defs/No", "#/type/x", "https://a.example/x"])
def test_a_reference_that_leads_nowhere_is_named(reference: str) -> None:
    with pytest.raises(UsageError, match=r"refers to .*which is not in it"):
        flat({"type": "object", "items": {"$ref": reference}}, "t")
