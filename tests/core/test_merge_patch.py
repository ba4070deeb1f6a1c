"""The examples of RFC 7396, and what it leaves open: how deep a patch may be, and that nothing is changed in place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.merge_patch import PatchTooDeep, merge_patch

# Appendix A, in its order.
EXAMPLES = [
    ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
    ('{"a":"b"}', '{"a":null}', "{}"),
    ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
    ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
    ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
    ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
    ('["a","b"]', '["c","d"]', '["c","d"]'),
    ('{"a":"b"}', '["c"]', '["c"]'),
    ('{"a":"foo"}', "null", "null"),
    ('{"a":"foo"}', '"bar"', '"bar"'),
    ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
    ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
    ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
]

# Section 3.
DOCUMENT = {
    "title": "Goodbye!",
    "author": {"givenName": "John", "familyName": "Doe"},
    "tags": ["example", "sample"],
    "content": "This will be unchanged",
}
CHANGE = {
    "title": "Hello!",
    "phoneNumber": "+01-123-456-7890",
    "author": {"familyName": None},
    "tags": ["example"],
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


def nested(depth, inside=1):
    for _ in range(depth):
        inside = {"a": inside}
    return inside


@pytest.mark.parametrize(("target", "patch", "result"), EXAMPLES)
def test_the_examples_of_the_appendix_come_out_as_the_rfc_says(target, patch, result):
    assert merge_patch(json.loads(target), json.loads(patch)) == json.loads(result)


def test_the_example_of_a_whole_document_comes_out_as_the_rfc_says():
    assert merge_patch(DOCUMENT, CHANGE) == {
        "title": "Hello!",
        "author": {"givenName": "John"},
        "tags": ["example"],
        "content": "This will be unchanged",
        "phoneNumber": "+01-123-456-7890",
    }


def test_a_null_inside_an_array_is_a_value():
    assert merge_patch({"a": 1}, {"a": [None, {"b": None}]}) == {"a": [None, {"b": None}]}


def test_a_value_that_is_falsy_is_no_removal():
    assert merge_patch({"a": 1, "b": 1, "c": 1}, {"a": 0, "b": "", "c": False}) == {"a": 0, "b": "", "c": False}


@given(JSON, JSON)
def test_neither_the_value_nor_the_patch_is_changed_and_a_patch_put_in_twice_is_put_in_once(target, patch):
    before = json.dumps([target, patch])
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert json.dumps([target, patch]) == before


def test_a_change_of_the_result_does_not_reach_what_the_patch_touched():
    target = {"a": {"b": 1}}
    merged = merge_patch(target, {"a": {"c": 2}})
    merged["a"]["b"] = 3
    assert target == {"a": {"b": 1}}


def test_thirty_two_levels_are_followed_and_one_more_is_refused():
    assert merge_patch({}, nested(32)) == nested(32)
    for patch in (nested(33), nested(33, None), nested(100_000)):
        with pytest.raises(PatchTooDeep, match="more than 32 levels"):
            merge_patch({}, patch)


def test_how_deep_the_value_itself_is_does_not_matter():
    deep = {"a": 1, "deep": nested(100_000)}
    merged = merge_patch(deep, {"a": 2})
    assert merged["a"] == 2
    assert merged["deep"] is deep["deep"]
