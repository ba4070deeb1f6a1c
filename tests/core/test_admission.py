"""What may come in from outside is a closed list with limits; every refusal has its path."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from farhand.core.admission import (
    DRAFT_7,
    DRAFT_2020_12,
    OUTSIDE,
    OWNER,
    STRICT,
    check_schema,
    name_problem,
    readable_size,
    text_problem,
)

STRING = {"type": "string"}


def refused(schema, limits=OUTSIDE):
    return [(problem.path, problem.rule) for problem in check_schema(schema, limits)]


def nested(levels):
    schema = STRING
    for _ in range(levels - 1):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_an_ordinary_schema_is_taken():
    schema = {
        "$schema": DRAFT_2020_12,
        "type": "object",
        "description": "line one\n\tline two, naïve, 漢字, ✔️",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$", "format": "email"},
            "maybe": {"type": ["string", "null"], "default": None},
            "choice": {"enum": [1, True, "x", None, 2.5, [], {}]},
            "fixed": {"const": {"a": 1}},
            "either": {"anyOf": [STRING, {"oneOf": [STRING, {"allOf": [STRING]}]}]},
            "list": {"type": "array", "items": STRING, "minItems": 1, "uniqueItems": True},
            "pair": {"type": "array", "prefixItems": [STRING, STRING], "contains": STRING, "minContains": 1},
            "map": {"type": "object", "additionalProperties": {}, "propertyNames": {"type": "string"}},
            "open": {"type": "object", "additionalProperties": True, "dependentRequired": {"a": ["b"]}},
        },
        "required": ["name", "undeclared"],
        "additionalProperties": False,
    }
    assert check_schema(schema) == ()
    assert check_schema(schema, STRICT) == ()
    assert check_schema(schema, OWNER) == ()


def test_an_object_without_properties_is_taken():
    assert check_schema({"type": "object"}) == ()


@pytest.mark.parametrize(
    "word",
    [
        *("$ref", "$dynamicRef", "$recursiveRef", "$id", "id", "$anchor", "$dynamicAnchor", "$defs", "definitions"),
        *("not", "if", "then", "else", "patternProperties", "unevaluatedProperties", "unevaluatedItems", "$vocabulary"),
        *("dependencies", "dependentSchemas", "additionalItems", "contentSchema", "nullable", "x-extension", "Type"),
    ],
)
def test_a_keyword_that_is_not_on_the_list_is_refused_with_its_path(word):
    schema = {"type": "object", "properties": {"a/b": {"type": "object", word: {}}}}
    assert (f"/properties/a~1b/{word}", "keyword") in refused(schema)


def test_all_problems_are_reported_each_with_its_path():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "banana"}, "b": {"type": "string", "$ref": "#"}, "c": {}},
        "not": {},
    }
    assert refused(schema) == [
        ("/not", "keyword"),
        ("/properties/a/type", "type"),
        ("/properties/b/$ref", "keyword"),
        ("/properties/c/type", "type"),
    ]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "banana"}, "/type"),
        ({"type": []}, "/type"),
        ({"type": 3}, "/type"),
        ({"type": [["string"]]}, "/type/0"),
        ({"type": ["string", "text"]}, "/type/1"),
        ({}, "/type"),
        ({"type": "array", "items": {"description": "any"}}, "/items/type"),
    ],
)
def test_a_type_that_json_does_not_have_is_refused(schema, path):
    (problem,) = check_schema(schema)
    assert problem.path == path
    assert problem.message == (
        'Invalid option: expected one of "string"|"number"|"integer"|"boolean"|"array"|"object"|"null"'
    )


@pytest.mark.parametrize("schema", [None, True, False, 3, "x", [], [{}]])
def test_what_is_no_object_is_no_schema(schema):
    (problem,) = check_schema(schema)
    assert problem.path == ""
    assert problem.message.startswith("Invalid input: expected object, received ")


def test_a_boolean_is_a_schema_for_additional_properties_only():
    assert refused({"type": "object", "properties": {"a": True}}) == [("/properties/a", "schema")]
    assert refused({"type": "object", "additionalProperties": 3}) == [("/additionalProperties", "schema")]
    assert refused({"type": "object", "properties": {"a": True}}, OWNER) == []
    assert refused({"items": 3}, OWNER) == [("/items", "schema")]


def test_the_fifth_level_is_taken_and_the_sixth_is_refused():
    assert check_schema(nested(5)) == ()
    assert refused(nested(6)) == [("/properties/a" * 5, "depth")]


def test_a_combinator_adds_no_level_but_has_a_limit_of_its_own():
    def chain(length):
        schema = STRING
        for _ in range(length - 1):
            schema = {"anyOf": [schema]}
        return schema

    limits = structs.replace(OUTSIDE, chain=4)
    assert check_schema(chain(4), limits) == ()
    assert refused(chain(5), limits) == [("/anyOf/0" * 4, "chain")]
    assert refused(chain(33), structs.replace(OUTSIDE, json_depth=100)) == [("/anyOf/0" * 32, "chain")]
    # Each level of a value starts anew.
    assert check_schema({"anyOf": [{"type": "array", "items": chain(3)}]}, limits) == ()


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (lambda n: {"type": "object", "properties": {f"p{at}": STRING for at in range(n)}}, "/properties"),
        (lambda n: {"enum": list(range(5 * n))}, "/enum"),
        (lambda n: {"type": "string", "pattern": "a" * int(12.8 * n)}, "/pattern"),
        (lambda n: {"type": "array", "prefixItems": [STRING] * (10 * n - 1)}, ""),
    ],
)
def test_one_above_a_limit_is_refused(schema, path):
    assert refused(schema(20)) == []
    (problem,) = check_schema(schema(21))
    assert problem.path == path


def test_patterns_that_cannot_run_in_linear_time_are_refused_with_their_path():
    for pattern in ("(?=a)b", r"(a)\1", "(?<=a)b", "(a{1000}){1000}", "("):
        assert refused({"type": "string", "pattern": pattern}) == [("/pattern", "pattern")]
        schema = {"properties": {"a": {"patternProperties": {pattern: {}}}}}
        ((path, rule),) = refused(schema, OWNER)
        assert rule == "pattern"
        assert path.startswith("/properties/a/patternProperties/")
    assert check_schema({"type": "string", "pattern": "^(a+)+$"}) == ()


def test_the_dialect_is_one_of_two_and_stands_at_the_top():
    for dialect in (DRAFT_7, DRAFT_2020_12):
        assert check_schema({"$schema": dialect, "type": "object"}) == ()
    for dialect in ("http://json-schema.org/draft-04/schema#", "HTTP://json-schema.org/draft-07/schema#", "x", 3, None):
        assert refused({"$schema": dialect, "type": "object"}) == [("/$schema", "$schema")]
        assert refused({"$schema": dialect}, OWNER) == [("/$schema", "$schema")]
    inner = {"type": "array", "items": {"$schema": DRAFT_7, "type": "string"}}
    assert refused(inner) == [("/items/$schema", "$schema")]
    assert refused({"$schema": DRAFT_7[:-1]}, OWNER) == []


def test_draft_7_has_no_words_of_2020_12():
    schema = {"$schema": DRAFT_7, "type": "array", "prefixItems": [STRING]}
    assert refused(schema) == [("/prefixItems", "keyword")]
    assert check_schema({"$schema": DRAFT_7, "items": [{}, True], "dependencies": {"a": ["b"], "c": {}}}, OWNER) == ()


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "string", "minLength": -1}, "/minLength"),
        ({"type": "object", "required": ["a", "a"]}, "/required"),
        ({"type": "array", "items": [STRING]}, "/items"),
        ({"type": "object", "properties": []}, "/properties"),
        ({"type": "number", "multipleOf": 0}, "/multipleOf"),
        ({"type": "string", "pattern": 3}, "/pattern"),
        ({"anyOf": []}, "/anyOf"),
    ],
)
def test_what_the_standard_forbids_is_refused_with_its_path(schema, path):
    problems = check_schema(schema)
    assert [problem.path for problem in problems] == [path]
    assert problems[0].message.startswith("is not valid JSON Schema: ")


def test_a_schema_100_000_levels_deep_is_refused_without_recursion():
    for limits in (OUTSIDE, OWNER):
        assert {rule for _, rule in refused(nested(100_000), limits)} == {"depth"}
    values = []
    for _ in range(100_000):
        values = [values]
    assert [rule for _, rule in refused({"enum": [values]})] == ["depth"]


def test_problems_end_at_a_hundred():
    schema = {"type": "object", "properties": {f"p{at}": {"type": "x", "zz": 1} for at in range(150)}}
    assert len(check_schema(schema)) == 100
    assert len(check_schema({"enum": ["\u200b"] * 500})) == 100


@pytest.mark.parametrize("value", [{1, 2}, b"x", object(), float("nan"), float("inf"), {1: 2}])
def test_a_value_that_json_does_not_have_is_refused(value):
    assert refused({"enum": [value]}) == [("/enum/0", "json")]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "string", "description": "a\u202eb"}, "/description"),
        ({"type": "string", "enum": ["ok", "\U000e0041"]}, "/enum/1"),
        ({"type": "string", "default": "\x1b[31m"}, "/default"),
        ({"type": "object", "properties": {"a\u200bb": STRING}}, "/properties"),
        ({"type": "object", "required": ["e\u0301"]}, "/required/0"),
        ({"type": "string", "examples": [{"deep": ["\u2066"]}]}, "/examples/0/deep/0"),
    ],
)
def test_hidden_characters_are_refused_everywhere(schema, path):
    assert (path, "text") in refused(schema)


@pytest.mark.parametrize(
    "text",
    [
        *("\x00", "\x1b", "\x7f", "\x85", "\r", "\ud800", "\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "\u00ad"),
        *(
            "\U000e0041",
            "\U000e0000",
            "\U000e0100",
            "\ufe0f",
            "a\ufe0f",
            "✔\ufe0f\ufe0f",
            "✔\ufe00",
            "\u2028",
            "\u3164",
        ),
        *("\u2065", "\ufff0", "\ufff8", "\U00016fe4", "\U0001d159"),
        *("\u115f", "\u034f", "e\u0301", "\u212b", "\u1100\u1161"),
    ],
)
def test_a_text_with_something_to_hide_is_refused(text):
    assert text_problem(f"a{text}" if not text.startswith("a") else text)


@pytest.mark.parametrize("text", ["", "a b", "a\n\tb", "naïve", "漢字", "Ελληνικά", "😀", "✔\ufe0f", "1\ufe0f", "©"])
def test_an_ordinary_text_is_taken(text):
    assert text_problem(text) is None


def test_of_all_of_unicode_no_hidden_character_is_taken():
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\n\t"
        hidden = hidden or 0xE0000 <= code <= 0xE0FFF or 0xFE00 <= code <= 0xFE0F
        if hidden or not unicodedata.is_normalized("NFC", character):
            assert text_problem(character), hex(code)


@given(st.text())
def test_an_accepted_text_is_what_it_seems(text):
    if text_problem(text) is None:
        assert unicodedata.normalize("NFC", text) == text
        assert not [c for c in text if unicodedata.category(c) in ("Cf", "Cs") or (c < " " and c not in "\n\t")]


@pytest.mark.parametrize("name", ["a", "my-tool_name-123", "1a", "-", "_", "a" * 64])
def test_a_safe_name_is_taken(name):
    assert name_problem(name) is None


@pytest.mark.parametrize(
    "name", ["we ird/../name!", "name\n", "\nname", "n\u0430me", "a.b", "\uff41", "名", "a\u200bb", "a b"]
)
def test_a_name_with_other_characters_is_refused(name):
    assert name_problem(name) == "Tool name must contain only alphanumeric characters, underscores, and hyphens"


def test_the_length_of_a_name_has_its_exact_texts():
    assert name_problem("") == "Too small: expected string to have >=1 characters"
    assert name_problem("a" * 65) == "Too big: expected string to have <=64 characters"
    assert name_problem(None) == "Invalid input: expected string, received null"


def test_the_readable_size_counts_what_somebody_reads():
    assert readable_size({"type": "object", "properties": {"city": {"type": "string", "enum": ["ab", 3]}}}) == 6
