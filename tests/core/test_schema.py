"""A schema is compiled once; every fault of a value is named, with its path and in words a model can act on."""

import json
from decimal import Decimal

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core import schema as schema_module
from farhand.core.admission import OUTSIDE, OWNER
from farhand.core.content_cache import ContentCache
from farhand.core.schema import BadSchema, argument_problems, compile_schema


def compiled(schema, limits=OWNER):
    return compile_schema(json.dumps(schema).encode(), limits)


def arguments(value, *, required=(), closed=False, **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    if closed:
        schema["additionalProperties"] = False
    return [problem.message for problem in argument_problems(compiled(schema), value)]


def reasons(schema, value):
    return [(problem.path, problem.message) for problem in compiled(schema).problems(value)]


@pytest.fixture
def cache(monkeypatch):
    cache = ContentCache(1 << 20)
    monkeypatch.setattr(schema_module, "_cache", cache)
    return cache


def test_valid_arguments_have_no_problems():
    assert arguments({"n": 2}, n={"type": "integer"}) == []


def test_falsy_values_are_values_and_valid_ones_have_no_problems():
    for value in (0, False, None, "", [], {}):
        assert compiled({"const": value}).problems(value) == ()


@pytest.mark.parametrize("value", [None, [], "x", 3, True])
def test_arguments_must_be_an_object(value):
    assert arguments(value) == ["Arguments are not valid: must be an object."]


def test_the_texts_of_the_dialect_come_in_their_order():
    value = {"k": 2.5, "zz": 1, "s": 5, "deep": {"list": [{"n": "x"}]}, "yy": 2, "c": "longer"}
    problems = arguments(
        value,
        required=["xyz", "abc"],
        closed=True,
        c={"maxLength": 3},
        s={"type": "string"},
        k={"type": "integer"},
        deep={"properties": {"list": {"items": {"properties": {"n": {"type": "number"}}, "required": ["m"]}}}},
    )
    assert problems == [
        "Missing required parameter: xyz",
        "Missing required parameter: abc",
        "Unknown parameter: zz",
        "Unknown parameter: yy",
        "Parameter s has wrong type: expected string, got number",
        "Parameter k must be an integer, got: 2.5",
        "Parameter c is longer than 3 characters",
        "Parameter deep.list[0].m is required",
        "Parameter deep.list[0].n has wrong type: expected number, got string",
    ]


def test_what_a_closed_object_does_not_take_is_named_also_if_it_declares_nothing():
    closed = {"type": "object", "additionalProperties": False}
    for schema in (closed, {**closed, "properties": {}}):
        assert [problem.message for problem in argument_problems(compiled(schema), {"a": 1, "b": 2})] == [
            "Unknown parameter: a",
            "Unknown parameter: b",
        ]
        assert arguments({"x": {"a": 1}}, x=schema) == ["Parameter x.a is not allowed"]
        assert reasons({"anyOf": [schema]}, {"a": 1}) == [("", "fits none of 1 forms: a is not allowed")]
    assert reasons({"properties": {"a": False}}, {"a": {}}) == [("/a", "is not allowed")]


def test_nothing_that_is_there_is_called_missing():
    assert arguments({"c": 1}, required=["c"], closed=True, a={}) == ["Unknown parameter: c"]
    assert arguments({"d": 1}, required=["c"], closed=True, a={}) == [
        "Missing required parameter: c",
        "Unknown parameter: d",
    ]
    form = {"properties": {"a": {}}, "required": ["c"], "additionalProperties": False}
    assert reasons({"anyOf": [form, form]}, {"c": 1}) == [("", "fits none of 2 forms: c is not allowed")]


def test_every_problem_has_a_pointer_and_a_rule():
    schema = {"properties": {"a/b": {"items": {"required": ["x~y"]}}}, "additionalProperties": False}
    problems = compiled(schema).problems({"a/b": [{}], "c": 1})
    assert [(problem.path, problem.rule) for problem in problems] == [
        ("/c", "additionalProperties"),
        ("/a~1b/0/x~0y", "required"),
    ]


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, "null"), (True, "boolean"), (1, "number"), (1.5, "number"), ([], "array"), ({}, "object")],
)
def test_types_have_their_json_names(value, name):
    assert arguments({"x": value}, x={"type": "string"}) == [f"Parameter x has wrong type: expected string, got {name}"]


def test_a_key_of_digits_is_a_key():
    schema = {"additionalProperties": {"type": "string", "items": False}}
    keys = ["0", "007", "-1", "9" * 30, "+5", "00"]
    assert [path for path, _ in reasons(schema, dict.fromkeys(keys[:5], 1))] == [f"/{key}" for key in keys[:5]]
    assert reasons(schema, {"00": 1}) == [("/00", "has wrong type: expected string, got number")]
    assert arguments({"5": 1}, **{"5": {"type": "string"}}) == [
        "Parameter 5 has wrong type: expected string, got number"
    ]


def test_several_types_are_all_named():
    message = "Parameter x has wrong type: expected null or string, got number"
    assert arguments({"x": 1}, x={"type": ["string", "null"]}) == [message]
    either = {"anyOf": [{"type": "null"}, {"type": "string"}]}
    assert arguments({"x": 1}, x=either) == [message]
    assert arguments({"x": 1}, x={"oneOf": either["anyOf"]}) == [message]


def test_a_choice_of_forms_says_why_none_fits():
    forms = {"anyOf": [{"type": "integer"}, {"minLength": 3}, {"type": "object", "required": ["a"]}]}
    assert arguments({"x": "ab"}, x=forms) == [
        "Parameter x fits none of 3 forms: has wrong type: expected integer, got string; is shorter than 3 characters; "
        "has wrong type: expected object, got string"
    ]
    forms = {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["a"]}]}
    assert arguments({"x": {}}, x=forms)[0].endswith("expected integer, got object; a is required")


def test_a_boolean_is_no_number_and_two_point_zero_is_an_integer():
    assert arguments({"x": True}, x={"type": "integer"}) == [
        "Parameter x has wrong type: expected integer, got boolean"
    ]
    assert arguments({"x": 2.0}, x={"type": "integer"}) == []
    assert reasons({"enum": [1]}, True)
    assert reasons({"const": False}, 0)


def test_names_of_the_python_world_are_plain_names():
    assert arguments({}, required=["constructor", "__class__"]) == [
        "Missing required parameter: constructor",
        "Missing required parameter: __class__",
    ]


def test_a_name_required_in_a_branch_is_missing_too():
    schema = {"required": ["b"], "allOf": [{"required": ["a"]}]}
    assert [problem.path for problem in compiled(schema).problems({})] == ["/b", "/a"]


def test_what_concerns_the_whole_value_is_said_of_the_arguments():
    problems = argument_problems(compiled({"type": "object", "minProperties": 2}), {"a": 1})
    assert [problem.message for problem in problems] == ["Arguments are not valid: has less than 2 properties."]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"not": {}}, 1, "has a form that is not allowed"),
        (False, 1, "is not allowed"),
        ({"contains": {"type": "null"}, "maxContains": 1}, [None, None], "does not hold the right number of fitting"),
        ({"oneOf": [{}, {}]}, 1, "fits more than one form where exactly one must fit"),
        ({"const": 4}, 3, "4 was expected"),
        ({"format": "email"}, "x", 'is not a "email"'),
        ({"pattern": "^a"}, "b", 'does not match "^a"'),
        ({"uniqueItems": True}, [1, 1], "has non-unique elements"),
    ],
)
def test_a_reason_is_short_and_without_the_value(schema, value, message):
    ((path, text),) = reasons(schema, value)
    assert path == ""
    assert text.startswith(message)


def test_properties_left_over_are_named():
    schema = {"properties": {"a": {}}, "unevaluatedProperties": False}
    assert [p.message for p in argument_problems(compiled(schema), {"a": 1, "b": 2})] == ["Unknown parameter: b"]


def test_no_reason_repeats_a_large_or_secret_value():
    secret = "s3cr3t" * 5000
    schema = {
        "properties": {"a": {"maxLength": 3}, "b": {"enum": ["x" * 500, 1]}, "c": {"anyOf": [{"maxLength": 1}, False]}}
    }
    for problem in compiled(schema).problems(dict.fromkeys("abc", secret)):
        assert "s3cr3t" not in problem.message
        assert len(problem.message) <= 320
    assert len(arguments({"n": 1.5e-300}, n={"type": "integer", "maximum": 1})[0]) < 100


def test_at_most_a_hundred_problems_and_the_number_of_the_rest():
    problems = compiled({"items": {"type": "string"}}).problems(list(range(250)))
    assert len(problems) == 101
    assert problems[-1].message == "and 150 more problems"


def test_a_large_value_gets_its_first_problem_only():
    schema = compiled({"items": {"type": "string"}})
    assert len(schema.problems(list(range(3000)))) == 1
    costly = compiled({"items": {"allOf": [{"type": "string"}] * 150}})
    assert len(costly.problems(list(range(100)))) == 100
    assert len(costly.problems(list(range(1900)))) == 1


def test_a_value_too_large_for_a_heavy_schema_is_refused_without_work():
    heavy = compiled({"items": {"allOf": [{"multipleOf": 0.01}] * 100}})
    assert heavy.is_valid([1.25] * 900)
    assert not heavy.is_valid([1.25] * 1100)
    assert not heavy.is_valid([1e300] * 100)
    assert [problem.rule for problem in heavy.problems([1.25] * 1100)] == ["work"]
    light = compiled({"items": {"multipleOf": 0.01}})
    assert light.is_valid([1.25] * 40_000)


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_value_that_is_too_deep_is_said_to_be():
    for schema in ({"type": "string"}, {"type": "array", "items": {"$ref": "#"}}):
        for levels in (33, 5000, 100_000):
            (problem,) = compiled(schema).problems(deep(levels))
            assert problem.rule == "depth"
    tree = compiled({"items": {"$ref": "#"}})
    assert tree.is_valid(deep(32))
    assert not tree.is_valid(deep(100_000))


def test_what_is_no_json_value_is_not_valid():
    for value in ({1, 2}, {1: 2}, "\ud800", object()):
        (problem,) = compiled({"type": "integer"}).problems([value])
        assert problem.path == ""
    assert not compiled({"type": "array"}).is_valid({1, 2})
    assert compiled({"enum": [[1]]}).problems({1: 2})[0].message == "is not a JSON value"


class Fickle:
    """A validator that contradicts itself, as one with a bug would."""

    def __init__(self, errors):
        self.errors = errors

    def is_valid(self, value):
        return False

    def iter_errors(self, value):
        return iter(self.errors)

    def validate(self, value):
        return None


def test_a_no_without_a_reason_is_still_a_no():
    schema = schema_module.Schema(b"{}", {}, Fickle([]), OUTSIDE)
    assert [problem.message for problem in schema.problems(1)] == ["does not fit the schema"]
    assert [problem.message for problem in schema.problems([1] * 3000)] == ["does not fit the schema"]


@pytest.mark.parametrize("step", [0.01, 0.1, 0.001])
def test_multiples_are_counted_in_decimal(step):
    schema = compiled({"multipleOf": step})
    for value in (19.99, 0.07, 1.1, 4.35, 8.2, 0.3, 1e22, 5, 12345678901234567890, 0.005, 19.995):
        assert schema.is_valid(value) is (Decimal(str(value)) % Decimal(str(step)) == 0), value


@given(st.integers(-(10**12), 10**12))
def test_every_amount_in_cents_is_a_multiple_of_a_cent(cents):
    schema = compiled({"multipleOf": 0.01})
    assert schema.is_valid(float(Decimal(cents) / 100))
    assert schema.is_valid(float(Decimal(cents) / 1000)) is (cents % 10 == 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_the_problems_and_the_verdict_agree_for_any_value(value):
    schema = compiled(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"anyOf": [{"type": "null"}, {"items": {"minimum": 3}}]}},
            "required": ["a"],
            "additionalProperties": {"type": ["string", "array"]},
        }
    )
    assert bool(schema.problems(value)) is not schema.is_valid(value)
    assert bool(argument_problems(schema, value)) is not schema.is_valid(value)


def test_the_bytes_of_the_author_are_kept():
    raw = b'{ "type" : "object", "properties":{} , "x-order":1.0}'
    assert compile_schema(raw, OWNER).raw is raw


def test_equal_bytes_are_compiled_once_for_each_profile(cache):
    raw = b'{"type":"object"}'
    assert compile_schema(raw) is compile_schema(bytes(bytearray(raw)))
    assert compile_schema(raw, OWNER) is not compile_schema(raw)
    assert len(cache) == 2


def test_a_refusal_is_remembered_as_well(cache, monkeypatch):
    raw = b'{"type":"banana"}'
    with pytest.raises(BadSchema) as first:
        compile_schema(raw)
    monkeypatch.setattr(schema_module, "_compile", None)
    with pytest.raises(BadSchema) as second:
        compile_schema(raw)
    assert first.value.problems == second.value.problems
    assert str(first.value).startswith("/type: Invalid option")
    # The owner's profile is another question.
    monkeypatch.undo()


def test_the_cache_is_bounded_by_bytes(cache):
    for at in range(300):
        compile_schema(b'{"type":"object","title":"%d"}' % at)
    assert cache.bytes <= cache.max_bytes
    assert 10 < len(cache) < 300


def test_a_schema_that_is_not_strict_json_is_refused():
    for raw in (b"{", b'{"type":"object","type":"object"}', b'{"const":1e400}'):
        with pytest.raises(BadSchema, match="schema is not JSON"):
            compile_schema(raw)


def test_what_only_the_compiler_finds_is_refused_with_its_words(cache, monkeypatch):
    monkeypatch.setattr(schema_module, "check_schema", lambda schema, limits: ())
    with pytest.raises(BadSchema) as caught:
        compile_schema(b'{"properties":{"a":{"type":"banana"}}}')
    assert caught.value.problems[0].path == "/properties/a/type"
    assert caught.value.problems[0].rule == "compile"


def test_an_unknown_format_is_an_annotation_and_a_known_one_is_checked():
    assert compiled({"format": "iban"}).is_valid("x")
    assert not compiled({"format": "date"}).is_valid("yesterday")


def test_the_validator_never_retrieves_anything():
    with pytest.raises(jsonschema_rs.ValidationError, match="Retrieval is disabled"):
        jsonschema_rs.validator_for({"$ref": "http://x.invalid/"}, offline=True)
