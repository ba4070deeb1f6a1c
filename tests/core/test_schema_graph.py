"""References stay in the document, and no schema is taken whose work could double with every level."""

import pytest

from farhand.core.admission import DRAFT_7
from farhand.core.schema_graph import graph_problems, is_recursive, subschemas


def refused(schema, *, cost=10_000, chain=32):
    return [(problem.path, problem.rule) for problem in graph_problems(schema, cost=cost, chain=chain)]


TREE = {
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "all": {"items": {"$ref": "#"}}},
}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        TREE,
        {"additionalProperties": {"$ref": "#"}, "properties": {"a": {"$ref": "#"}}},
        {"items": {"$ref": "#"}, "prefixItems": [{"$ref": "#"}, {"$ref": "#"}]},
        {"patternProperties": {"^a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}},
        {"propertyNames": {"$ref": "#"}, "properties": {"a": {"$ref": "#"}}},
        {"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"b": {"$ref": "#"}}}]},
        {"anyOf": [{"type": "string"}, {"items": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"$anchor": "here"}}, "items": {"$ref": "#here"}},
        {"$defs": {"a": {"$dynamicAnchor": "node"}}, "items": {"$dynamicRef": "#node"}},
        {"$defs": {"a": True, "b/c%": {}}, "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b~1c%25"}]},
        {"allOf": [{"type": "string"}], "items": {"$ref": "#/allOf/0"}},
        {"$id": "https://x.invalid/a/b", "$defs": {"c": {"$id": "c", "$anchor": "d"}}, "$ref": "c#d"},
        {"$id": "urn:x:y", "$defs": {"a": {}}, "$ref": "#/$defs/a"},
        {"x-unknown": {"deep": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}, "items": {"$ref": "#/x-unknown/deep"}},
        {"$schema": DRAFT_7, "definitions": {"a": {"$id": "#x"}}, "items": {"$ref": "#x"}},
        {"$schema": DRAFT_7, "$ref": "#/definitions/a", "definitions": {"a": {}}, "not": {"$ref": "#"}},
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        {"contentSchema": {"$ref": "#"}},
    ],
)  # fmt: skip
def test_ordinary_references_and_recursion_are_taken(schema):
    assert refused(schema) == []


@pytest.mark.parametrize("reference", ["x.json", "http://x.invalid/", "//x.invalid", "/etc/passwd", "file:///x", "?a#"])
def test_a_reference_out_of_the_document_is_refused(reference):
    assert refused({"properties": {"a": {"$ref": reference}}}) == [("/properties/a/$ref", "$ref")]
    assert refused({"$defs": {"unused": {"$dynamicRef": reference}}}) == [("/$defs/unused/$dynamicRef", "$dynamicRef")]


@pytest.mark.parametrize("reference", ["#/nope", "#nope", "#/items/3", "#/items/-1", "#/items/x", "#/type", "#/type/0"])
def test_a_reference_to_nothing_is_refused(reference):
    assert refused({"type": "object", "items": [{}], "not": {"$ref": reference}}) == [("/not/$ref", "$ref")]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{}, {"$ref": "#/$defs/a"}]}}},
        {"$dynamicAnchor": "a", "not": {"$dynamicRef": "#a"}},
        {"$defs": {"unused": {"if": {"$ref": "#/$defs/unused"}}}},
    ],
)
def test_a_cycle_for_one_value_is_refused(schema):
    assert [rule for _, rule in refused(schema)] == ["cycle"]


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]},
        {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"^a": {"$ref": "#"}}},
        {"patternProperties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}},
        {"properties": {"a": {"$ref": "#"}}, "anyOf": [{"additionalProperties": {"$ref": "#"}}]},
        {"additionalProperties": {"$ref": "#"}, "anyOf": [{"additionalProperties": {"$ref": "#"}}]},
        {"items": {"$ref": "#"}, "contains": {"$ref": "#"}},
        {"prefixItems": [{"$ref": "#"}], "contains": {"$ref": "#"}},
        {"items": {"$ref": "#"}, "not": {"items": {"$ref": "#"}}},
        {"$dynamicAnchor": "t", "items": {"$dynamicRef": "#t"}, "not": {"items": {"$dynamicRef": "#t"}}},
        {
            "$ref": "#/$defs/a",
            "$defs": {
                "a": {"allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]},
                "b": {"items": {"$ref": "#/$defs/a"}},
            },
        },
    ],
)
def test_two_ways_from_one_value_into_one_recursion_are_refused(schema):
    assert [rule for _, rule in refused(schema)] == ["recursion"]


def doubling(levels, link):
    definitions = {f"d{at}": link(f"#/$defs/d{at + 1}") for at in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    "link",
    [
        lambda to: {"allOf": [{"$ref": to}, {"$ref": to}]},
        lambda to: {"properties": {"a": {"$ref": to}}, "patternProperties": {"a": {"$ref": to}}},
        lambda to: {"dependentSchemas": {"a": {"$ref": to}}, "then": {"$ref": to}},
    ],
)
def test_doubling_without_a_cycle_is_refused_by_its_cost(link):
    assert refused(doubling(6, link)) == []
    assert [rule for _, rule in refused(doubling(18, link), chain=1000)] == ["cost"]


def test_a_long_chain_of_references_is_refused():
    assert refused(doubling(10, lambda to: {"$ref": to})) == []
    assert [rule for _, rule in refused(doubling(100, lambda to: {"$ref": to}))] == ["chain"]


def test_recursion_is_known():
    assert is_recursive(TREE)
    assert is_recursive({"$ref": "#"})
    assert not is_recursive({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {}}})
    assert not is_recursive(True)


def test_subschemas_come_in_document_order_with_their_way():
    schema = {"items": {}, "properties": {"a": True}, "allOf": [{}], "enum": [{}], "not": 3, "dependencies": {"a": []}}
    assert [tokens for tokens, _, _ in subschemas(schema)] == [("items",), ("properties", "a"), ("allOf", 0), ("not",)]
