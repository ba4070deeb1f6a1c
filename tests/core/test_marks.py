"""A mark in a schema masks the value it applies to, wherever it stands, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from farhand.core.admission import OUTSIDE, OWNER, check_schema
from farhand.core.marks import MASK, Marks, Missing
from farhand.core.schema import compile_schema

SECRET = {"type": "string", "secret": True}
OPEN = {"type": "string"}


def marks(schema: Any) -> Marks:
    found = compile_schema(json.encode(schema), OWNER).marks
    assert found is not None
    return found


def masked(schema: Any, value: Any) -> Any:
    return marks(schema).masked(value)


def test_a_schema_without_marks_has_none() -> None:
    names = {"type": "object", "properties": {"secret": OPEN, "password": OPEN}}
    for schema in (names, {"type": "object"}, {**names, "default": {"secret": True, "format": "password"}}, True):
        assert compile_schema(json.encode(schema), OWNER).marks is None


def test_a_marked_member_is_masked_and_the_others_are_not() -> None:
    schema = {"type": "object", "properties": {"user": OPEN, "key": SECRET, "pin": {"type": "integer", "secret": True}}}
    assert masked(schema, {"user": "ann", "key": "k1", "pin": 1234}) == {"user": "ann", "key": MASK, "pin": MASK}
    assert masked(schema, {"user": "ann"}) == {"user": "ann"}


def test_what_is_no_object_has_no_members_to_mask() -> None:
    assert masked({"properties": {"key": SECRET}}, ["k1"]) == ["k1"]
    assert masked({"items": SECRET}, {"key": "k1"}) == {"key": "k1"}
    assert masked({"items": SECRET}, "text") == "text"
    assert restored({"deep": "text"}) == {"deep": "text"}


def test_a_format_of_passwords_is_a_mark() -> None:
    assert masked({"properties": {"a": {"type": "string", "format": "password"}}}, {"a": "x"}) == {"a": MASK}


def test_a_mark_that_says_false_is_none() -> None:
    assert compile_schema(b'{"type":"object","properties":{"a":{"type":"string","secret":false}}}').marks is None


def test_a_mark_written_with_escapes_is_one() -> None:
    schema = compile_schema(b'{"type":"object","properties":{"a":{"type":"string","\\u0073ecr\\u0065t":true}}}')
    assert schema.marks is not None
    assert schema.marks.masked({"a": "x"}) == {"a": MASK}


def test_whatever_the_marked_value_is_it_is_masked_whole() -> None:
    for value in (None, False, 0, "", [], {}, {"deep": ["x"]}):
        assert masked({"properties": {"a": {"secret": True}}}, {"a": value}) == {"a": MASK}


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"properties": {"a": SECRET}}]},
        {"anyOf": [{"properties": {"a": OPEN}}, {"properties": {"a": SECRET}}]},
        {"if": {"required": ["b"]}, "then": {"properties": {"a": SECRET}}},
        {"dependentSchemas": {"b": {"properties": {"a": SECRET}}}},
        {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": SECRET}}}},
        {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": SECRET}},
        {"properties": {"a": {"$ref": "#/$defs/x", "secret": True}}, "$defs": {"x": OPEN}},
        {"additionalProperties": SECRET},
        {"unevaluatedProperties": SECRET},
        {"patternProperties": {"^a": SECRET}},
        {"properties": {"a": OPEN}, "patternProperties": {"^a": SECRET}},
        {"properties": {"b": True}, "allOf": [{"additionalProperties": SECRET, "properties": {"b": OPEN}}]},
    ],
    ids=lambda schema: "-".join(schema),
)
def test_a_mark_counts_wherever_it_may_apply(schema: Any) -> None:
    assert masked({"type": "object", **schema}, {"a": "k1"}) == {"a": MASK}


def test_a_mark_on_all_other_members_does_not_reach_those_that_have_a_name() -> None:
    schema = {"properties": {"user": OPEN, "flag": True}, "additionalProperties": SECRET}
    assert masked(schema, {"user": "ann", "flag": 1, "x": "k1"}) == {"user": "ann", "flag": 1, "x": MASK}


def test_secret_names_hide_the_whole_object() -> None:
    assert masked({"properties": {"a": {"propertyNames": SECRET}}}, {"a": {"k1": 1}}) == {"a": MASK}


def test_entries_of_lists_are_masked_by_their_place() -> None:
    assert masked({"items": SECRET}, ["x", "y"]) == [MASK, MASK]
    assert masked({"prefixItems": [OPEN, SECRET], "items": OPEN}, ["x", "y", "z"]) == ["x", MASK, "z"]
    assert masked({"prefixItems": [OPEN], "items": SECRET}, ["x", "y", "z"]) == ["x", MASK, MASK]
    assert masked({"contains": SECRET, "prefixItems": [OPEN]}, ["x"]) == [MASK]
    draft_7 = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [OPEN, SECRET], "additionalItems": SECRET}
    assert masked(draft_7, ["x", "y", "z"]) == ["x", MASK, MASK]


def test_a_mark_is_found_at_any_level_of_a_recursive_schema() -> None:
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"key": SECRET, "next": {"$ref": "#/$defs/node"}, "name": OPEN},
            }
        },
    }
    value = {"name": "a", "key": "1", "next": {"name": "b", "key": "2", "next": {"name": "c"}}}
    assert masked(schema, value) == {
        "name": "a",
        "key": MASK,
        "next": {"name": "b", "key": MASK, "next": {"name": "c"}},
    }


def test_a_client_may_mark_its_tools_but_only_with_a_boolean() -> None:
    marked: Any = {"type": "object", "properties": {"key": SECRET}}
    assert check_schema(marked, OUTSIDE) == ()
    marked["properties"]["key"] = {"type": "string", "secret": "yes"}
    for limits in (OUTSIDE, OWNER):
        [problem] = check_schema(marked, limits)
        assert (problem.path, problem.rule) == ("/properties/key/secret", "secret")


# Back again


NESTED = {
    "type": "object",
    "properties": {
        "user": OPEN,
        "key": SECRET,
        "keys": {"type": "array", "items": {"type": "object", "properties": {"of": OPEN, "key": SECRET}}},
        "tags": {"type": "array", "items": OPEN},
        "deep": {"type": "object", "properties": {"key": SECRET, "keys": {"type": "array", "items": SECRET}}},
    },
}
BEFORE = {
    "user": "ann",
    "key": "k0",
    "keys": [{"of": "a", "key": "k1"}, {"of": "b", "key": "k2"}],
    "tags": [1, True],
    "deep": {"key": "k3"},
}


def restored(value: Any) -> Any:
    return marks(NESTED).restored(value, BEFORE)


def test_a_value_that_was_left_as_it_was_shown_is_what_it_was() -> None:
    assert restored(masked(NESTED, BEFORE)) == BEFORE


def test_what_was_changed_stays_changed_beside_the_secrets() -> None:
    assert restored({"user": "bob", "key": MASK}) == {"user": "bob", "key": "k0"}
    assert restored({"key": "mine"}) == {"key": "mine"}
    assert json.encode(restored({"tags": [True, 1]})) == b'{"tags":[true,1]}'


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"keys": [{"of": "b", "key": MASK}]}, ("keys", 0, "key")),  # whose key would it be?
        ({"keys": [{"of": "a", "key": MASK}] * 3}, ("keys", 1, "key")),
        ({"deep": {"keys": [MASK]}}, ("deep", "keys", 0)),
        ({"deep": {"key": MASK, "keys": [MASK]}}, ("deep", "keys", 0)),
    ],
)
def test_a_mask_that_stands_somewhere_else_is_refused_with_its_path(value: Any, path: Any) -> None:
    with pytest.raises(Missing) as caught:
        restored(value)
    assert caught.value.path == path


def test_a_mask_where_nothing_is_secret_is_text() -> None:
    assert restored({"user": MASK}) == {"user": MASK}


def test_what_has_become_something_else_has_no_secrets_behind_it() -> None:
    with pytest.raises(Missing):
        marks(NESTED).restored({"deep": {"key": MASK}}, {"deep": "text"})
    with pytest.raises(Missing):
        marks(NESTED).restored({"keys": [{"key": MASK}]}, {"keys": "text"})


# Any schema


@st.composite
def shapes(draw: Any, depth: int = 3) -> tuple[Any, Any, Any]:
    """A schema, a value that it takes, and the value as it has to look."""
    if draw(st.booleans()) and draw(st.booleans()):
        value = draw(st.sampled_from(["SECRET", ["SECRET"], {"SECRET": 1}]))
        return {"secret": True}, value, MASK
    kind = draw(st.sampled_from(["text", "object", "list", "some"] if depth else ["text"]))
    if kind == "text":
        return {"type": "string"}, "open", "open"
    schema, value, shown = draw(shapes(depth - 1))
    if kind == "list":
        return {"type": "array", "items": schema}, [value, value], [shown, shown]
    if kind == "some":
        return {"anyOf": [{"type": "null"}, schema]}, value, shown
    other, beside, shown_beside = draw(shapes(depth - 1))
    schema = {"properties": {"a": schema}, "additionalProperties": other}
    return schema, {"a": value, "b": beside}, {"a": shown, "b": shown_beside}


@given(shapes())
def test_exactly_the_secret_parts_of_any_value_are_masked_and_come_back(made: tuple[Any, Any, Any]) -> None:
    schema, value, shown = made
    found = compile_schema(json.encode(schema), OWNER).marks
    if found is None:
        assert b"SECRET" not in json.encode(value)
        return
    assert found.masked(value) == shown
    assert found.restored(shown, value) == value
