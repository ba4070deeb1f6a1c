"""A growing JSON text is read as far as it is certain, in work that grows with its length only."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core import partial_json
from farhand.core.partial_json import PartialArguments, parse_partial

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def is_beginning(part, whole):
    """Whether `part` may be shown while `whole` is still arriving."""
    if isinstance(whole, dict):
        keys = list(part)
        return keys == list(whole)[: len(keys)] and all(is_beginning(part[key], whole[key]) for key in keys)
    if isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_beginning, part, whole))
    return whole.startswith(part) if isinstance(whole, str) else part == whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("  ", None),
        ("{", {}),
        ('{"a', {}),
        ('{"a"', {}),
        ('{"a":', {}),
        ('{"a": 1', {}),
        ('{"a": 12,', {"a": 12}),
        ('{"a": tru', {}),
        ('{"a": true', {"a": True}),
        ('{"a": "x', {"a": "x"}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\u00', {"a": "x"}),
        ('{"a": "x\\ud83d', {"a": "x"}),
        ('{"a": "x\\ud83d\\ude0', {"a": "x"}),
        ('{"a": "x\\ud83d\\ude00', {"a": "x😀"}),
        ('{"a": [1, {"b": [2, 3', {"a": [1, {"b": [2]}]}),
        ('{"a": [1, [], {}', {"a": [1, [], {}]}),
        ('{"a": {} ', {"a": {}}),
        ('["[", "', ["[", ""]),
        ('"half a te', "half a te"),
        ("[1] x", [1]),
        ("[1 2", [1]),
        ('{"a" 1', {}),
        ("{1", {}),
        ("[,", []),
        ("[1,]x", [1]),
        ("[1}", [1]),
        ("[1, 1e999, ", None),
        ('["a\ud800b', ["a"]),
        ('["a\nb', ["a"]),
        ("}", None),
        ("nul", None),
    ],
)
def test_what_is_only_half_there_is_left_out(text, value):
    assert parse_partial(text) == value


@given(st.one_of(JSON.filter(lambda value: isinstance(value, (dict, list, str)))), st.booleans(), st.data())
def test_every_beginning_of_a_text_gives_a_beginning_of_its_value(value, ascii_only, data):
    text = json.dumps(value, ensure_ascii=ascii_only)
    cut = data.draw(st.integers(0, len(text)))
    part = parse_partial(text[:cut])
    assert part is None or is_beginning(part, value)
    if cut == len(text):
        assert part == value


@given(st.text(alphabet='{}[]",:\\u0d8 tre1-.\n') | st.text())
def test_no_text_makes_it_raise(text):
    parse_partial(text)


def test_depth_is_bounded():
    value, depth = parse_partial("[" * 100_000), 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == partial_json.MAX_DEPTH - 1


def test_a_text_of_quotes_and_backslashes_takes_linear_time():
    text = '["' + '\\"' * 200_000
    assert parse_partial(text) == ['"' * 200_000]


def test_growing_arguments_are_read_again_only_when_they_have_doubled(monkeypatch):
    lengths = []
    monkeypatch.setattr(partial_json, "parse_partial", lambda text: lengths.append(len(text)) or len(lengths))
    growing = PartialArguments()
    assert growing.value is None
    for _ in range(1000):
        growing.feed("abcd")
        assert growing.value == len(lengths)
    assert sum(lengths) <= 2 * 4000
    assert len(growing.text) == 4000


def test_a_watcher_is_told_when_there_is_something_new_to_show():
    growing = PartialArguments()
    assert growing.text == ""
    assert growing.feed('{"path":"/a')
    assert growing.value == {"path": "/a"}
    assert not growing.feed('b"')
    assert growing.value == {"path": "/a"}
    assert growing.feed(',"line":120,"x"')
    assert growing.value == {"path": "/ab", "line": 120}
    assert growing.text == '{"path":"/ab","line":120,"x"'
