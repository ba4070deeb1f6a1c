"""Bodies are measured before they are read, and what is wrong with one is said with its place and without its value."""

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest

from farhand.asgi.bodies import Gone, decode, expect_json, query, read_body
from farhand.core.errors import InvalidInput, NotJson, TooLarge
from farhand.protocols.native import AnswersRequest, Decision, ResultRequest, RunRequest, WatchQuery

LIMIT = 1000


class Wire:
    """What a server hands over, piece by piece."""

    def __init__(self, *pieces: bytes, ends: bool = True) -> None:
        self.messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": piece, "more_body": True} for piece in pieces
        ]
        if ends:
            self.messages.append({"type": "http.request", "body": b""})
        self.messages.append({"type": "http.disconnect"})
        self.taken = 0

    async def __call__(self) -> dict[str, Any]:
        self.taken += 1
        return self.messages[self.taken - 1]


async def test_a_body_is_put_together() -> None:
    assert await read_body({}, Wire(b"a", b"", b"bc"), LIMIT) == b"abc"


async def test_a_body_that_announces_too_much_is_not_read_at_all() -> None:
    wire = Wire(b"x")
    with pytest.raises(TooLarge, match="1000"):
        await read_body({b"content-length": b"1001"}, wire, LIMIT)
    assert wire.taken == 0


@pytest.mark.parametrize("announced", [{}, {b"content-length": b"5"}, {b"content-length": b"-1"}])
async def test_a_body_that_grows_too_large_is_not_read_on(announced: dict[bytes, bytes]) -> None:
    wire = Wire(*[b"x" * 600] * 5)
    with pytest.raises(TooLarge):
        await read_body(announced, wire, LIMIT)
    assert wire.taken == 2


async def test_a_length_with_a_million_digits_is_too_large() -> None:
    with pytest.raises(TooLarge) as refused:
        await read_body({b"content-length": b"9" * 1_000_000}, Wire(b"x"), LIMIT)
    assert len(str(refused.value)) < 200


async def test_whoever_hangs_up_is_gone() -> None:
    with pytest.raises(Gone):
        await read_body({}, Wire(b"x", ends=False), LIMIT)


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def silence() -> Any:
        await asyncio.Event().wait()

    async with asyncio.timeout(5):
        with pytest.raises(InvalidInput, match=r"within 0\.01 seconds"):
            await read_body({}, silence, LIMIT, 0.01)


@pytest.mark.parametrize("kind", [b"application/json", b"Application/JSON; charset=utf-8", b"application/problem+json"])
def test_json_is_taken(kind: bytes) -> None:
    expect_json({b"content-type": kind})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {b"content-type": b""},
        {b"content-type": b"text/plain"},
        {b"content-type": b"application/x-www-form-urlencoded"},
        {b"content-type": b"multipart/form-data; boundary=application/json"},
        {b"content-type": b"text/plain; application/json"},
        {b"content-type": b"application/json", b"content-encoding": b"gzip"},
    ],
    ids=str,
)
def test_what_a_page_could_send_without_asking_is_refused(headers: dict[bytes, bytes]) -> None:
    with pytest.raises(NotJson):
        expect_json(headers)


@pytest.mark.parametrize(
    ("body", "kind", "path"),
    [
        ({"input": 5}, RunRequest, "/input"),
        ({"input": "x", "busy": "CANARY"}, RunRequest, "/busy"),
        ({"input": [{"type": "CANARY"}]}, RunRequest, "/input/0/type"),
        ({"input": "x", "offers": [1]}, RunRequest, "/offers/0"),
        ({"approved": "CANARY"}, Decision, "/approved"),
        ({"decisions": {"c": {}}}, AnswersRequest, "/decisions/..."),
        ({}, RunRequest, ""),
        ([], RunRequest, ""),
    ],
    ids=str,
)
def test_a_body_that_does_not_fit_says_where_and_not_what(body: Any, kind: type, path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        decode(json.dumps(body).encode(), kind)
    [problem] = refused.value.problems
    assert problem.path == path
    assert "CANARY" not in str(refused.value)


def test_what_is_not_known_is_passed_over() -> None:
    assert decode(b'{"input":"x","from":"the future"}', RunRequest).input == "x"


@pytest.mark.parametrize(
    "body",
    [
        b'{"input":"x","input":"y"}',
        b'{"input":"x","in\\u0070ut":"y"}',
        b'{"input":"x","tools":[{"name":"a","name":"b"}]}',
        b'{"input":"x","unknown":{"a":1,"a":2}}',
        b'{"input":"x","tools":NaN}',
        b'{"input":"x","unknown":"\\ud800"}',
        b'{"input":"x","tools":' + b"[" * 36 + b"]" * 36 + b"}",
        b'{"input":"x","unknown":' + b"9" * 1001 + b"}",
    ],
    ids=str,
)
def test_what_two_parsers_could_read_in_two_ways_is_refused_wherever_it_stands(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode(body, RunRequest)


def test_a_value_may_have_as_many_levels_as_the_server_takes_in_definitions() -> None:
    def nested(levels: int) -> bytes:
        return b'{"results":{"a":' + b"[" * levels + b"]" * levels + b"}}"

    assert decode(nested(32), AnswersRequest).results
    assert decode(nested(64), AnswersRequest, 64).results
    with pytest.raises(InvalidInput, match="nested too deeply"):
        decode(nested(40), AnswersRequest)


@pytest.mark.parametrize("value", [b"null", b"false", b"0", b'""', b"[]", b"{}"])
def test_a_falsy_result_is_there(value: bytes) -> None:
    assert bytes(decode(b'{"result":%b}' % value, ResultRequest).result) == value  # type: ignore[arg-type]


def bombs() -> Iterable[bytes]:
    yield b"[" * 1_000_000
    yield b'{"a":' * 200_000
    yield b'{"input":"x","tools":' + b"[" * 500_000 + b"]" * 500_000 + b"}"
    yield b'{"results":{"a":' + b"[" * 900_000
    yield b"[]," * 333_333
    yield b'{"input":"x","a":[' + b"[]," * 300_000 + b"[]]}"
    yield b'{"input":' + b"9" * 1_000_000 + b"}"
    yield b'{"input":"x","attempt":1e400}'
    yield b"{" + b",".join(b'"%d":1' % number for number in range(80_000)) + b"}"
    yield b'\xff\xfe{"input":"x"}'
    yield b'{"input":NaN}'
    yield b""


@pytest.mark.parametrize("kind", [RunRequest, AnswersRequest, ResultRequest], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("bomb", [*bombs()], ids=lambda bomb: repr(bomb[:20]))
def test_a_bomb_is_read_or_refused_and_breaks_nothing(bomb: bytes, kind: type) -> None:
    with suppress(InvalidInput):
        assert isinstance(decode(bomb, kind), kind)


def test_a_query_is_read_into_its_types() -> None:
    assert query(b"after=12.1.5&limit=7&unknown=1", WatchQuery) == WatchQuery(after="12.1.5", limit=7)


@pytest.mark.parametrize("text", [b"limit=many", b"after", b"after=%ff", b"\xff=1", b"&".join([b"a=1"] * 60)])
def test_a_query_that_cannot_be_read_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidInput):
        query(text, WatchQuery)
