"""A JSON text is read in one way or not at all, and a refusal never repeats what it refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.strict_json import BadJson, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='ab:"\\ '), inner, max_size=4),
    max_leaves=20,
)

REFUSED = {
    "NaN": "NaN",
    "infinity": "[-Infinity]",
    "1e400": "[1e400]",
    "1e400 far inside": "[" * 30 + "1e400" + "]" * 30,
    "lone surrogate escape": '"\\ud800"',
    "lone surrogate with something behind": '"\\ud83dx"',
    "lone surrogate character": '"\ud800"',
    "invalid UTF-8": b'"\xff"',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "overlong UTF-8": b'"\xc0\xaf"',
    "byte order mark": "\ufeff1",
    "byte order mark in bytes": b"\xef\xbb\xbf1",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "trailing text": "{} {}",
    "trailing comma": "[1,]",
    "comment": "/**/1",
    "nothing": "",
    "blank": "  ",
    "half": '{"n":',
    "control character in a string": '"a\nb"',
    "NUL": '"a\0b"',
    "leading zero": "01",
    "same key twice": '{"a":1,"a":1}',
    "same key twice inside": '{"a":[{"b":1,"c":{"b":1,"b":2}}]}',
    "same key twice, once as an escape": '{"a":1,"\\u0061":2}',
    "same key twice beside an escaped colon": '{"a":1,"a":2,"b":"\\u003a"}',
    "same key twice beside colons in texts": '{"a":"x:y","a":"x:y"}',
    "same key twice, blanks before colons": '{"a" :1,"a"\n:2}',
    "same key twice beside a large integer": '{"a":1,"a":' + "9" * 30 + "}",
    "depth 33": "[" * 33 + "]" * 33,
    "depth 33 of objects": '{"a":' * 33 + "1" + "}" * 33,
    "depth 900": "[" * 900 + "]" * 900,
    "depth 100,000": "[" * 100_000 + "]" * 100_000,
    "1,000,000 objects": '{"a":' * 1_000_000,
    "depth 33 in a long text": "[" * 33 + "[]," * 30_000 + "1" + "]" * 33,
    "1,001 digits": "9" * 1001,
    "1,001 digits inside": '{"a":[' + "-" + "9" * 1001 + "]}",
    "1,000,000 digits": "9" * 1_000_000,
    "18 MB of []": "[" + "[]," * 6_000_000 + "1]",
    "too many bytes, although few characters": '"' + "é" * 600_000 + '"',
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_two_parsers_could_read_in_two_ways_is_refused(text):
    with pytest.raises(BadJson) as caught:
        parse(text)
    assert caught.value.reason
    assert len(caught.value.reason) < 80


ACCEPTED = [
    "0",
    "-0",
    "2.0",
    '""',
    "null",
    "9007199254740993",
    "9" * 1000,
    "-" + "9" * 1000,
    '"' + "9" * 3000 + '"',
    '"\\ud83d\\ude00"',
    '{"a\\u0000b":1}',
    '{"url":"https://x:80/","at":"12:30","k":{"a":1,"b":":"}}',
    '{"a":":","b":"\\u003a"}',
    '{"a" : 1, "b"\t:\n2}',
    "[" * 32 + "]" * 32,
    "[" + "[]," * 100 + '"[[["]',
    '{"a":' + "[" * 31 + "1" + "]" * 31 + "}",
    json.dumps([{str(key): [] for key in range(200)}] * 200),
    " [ 1 ] ",
]


@pytest.mark.parametrize("text", ACCEPTED, ids=range(len(ACCEPTED)))
def test_strict_json_is_read_as_the_standard_library_reads_it(text):
    assert parse(text) == parse(text.encode()) == json.loads(text)


@given(JSON, st.booleans(), st.sampled_from([None, 0, 1]))
def test_every_json_value_comes_back_unchanged(value, ascii_only, indent):
    read = parse(json.dumps(value, ensure_ascii=ascii_only, indent=indent))
    assert json.dumps(read) == json.dumps(value)


@given(st.dictionaries(st.text(max_size=3), JSON, min_size=1, max_size=4), st.data())
def test_a_repeated_key_is_always_found(members, data):
    pairs = [f"{json.dumps(key)}:{json.dumps(value)}" for key, value in members.items()]
    again = data.draw(st.sampled_from(list(members)))
    pairs.insert(data.draw(st.integers(0, len(pairs))), f"{json.dumps(again)} : 0")
    with pytest.raises(BadJson, match="twice"):
        parse('{"x":[{' + ",".join(pairs) + "}]}")


@given(st.text() | st.text(alphabet='{}[]",:\\u0d8 tre1-.\n') | st.binary())
def test_only_bad_json_is_ever_raised(text):
    try:
        value = parse(text)
    except BadJson:
        return
    assert json.dumps(json.loads(text)) == json.dumps(value)


def test_the_limits_can_be_set():
    assert parse("[[1]]", max_depth=2) == [[1]]
    with pytest.raises(BadJson, match="deep"):
        parse("[[[1]]]", max_depth=2)
    long = "[[" + "1," * (1 << 16) + "1],[1]]"
    assert len(str(parse(long, max_depth=2))) > 1 << 16
    with pytest.raises(BadJson):
        parse(long, max_depth=1)
    with pytest.raises(BadJson, match="larger than 4 bytes"):
        parse("[1,2]", max_bytes=4)


def test_a_reason_names_the_fault_and_the_byte():
    with pytest.raises(BadJson) as caught:
        parse('{"secret": x}')
    assert caught.value.reason == "invalid character (byte 11)"
    with pytest.raises(BadJson) as caught:
        parse('{"n":')
    assert caught.value.reason == "it ends too early"
