"""Requests as they leave and answers as they come in, also from what is no Farhand server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import httpx2
import pytest

from farhand.client.wire import base_of, refusal
from farhand.core.errors import (
    ConnectionLost,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    ServerFailed,
    TooLarge,
    TooMuch,
    UsageError,
)
from tests.client.story import client_of


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncGenerator[str]:
    """A server that sends these bytes to whoever asks, one answer a connection, the last one again and again."""
    left = list(answers)
    tasks: set[asyncio.Task[Any]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(cast("asyncio.Task[Any]", asyncio.current_task()))
        with suppress(OSError, EOFError):
            try:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(left.pop(0) if len(left) > 1 else left[0])
                await writer.drain()
            finally:
                writer.close()
                await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        async with asyncio.timeout(10):
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.gather(*tasks)
        await server.wait_closed()


def http(status: str, body: bytes = b"", **headers: str) -> bytes:
    head = {"content-length": str(len(body)), "connection": "close", **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in head.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("https://a.example/agents/", "https://a.example/agents/v1"),
        ("https://a.example/agents/v1", "https://a.example/agents/v1"),
    ],
)
def test_the_protocol_is_below_the_address(given: str, base: str) -> None:
    assert base_of(given) == base


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://a.example",
        "http://",
        "http://ann:secret@a.example",
        "http://a.example?token=secret",
        "http://[::1",
    ],
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as raised:
        base_of(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (http("200 OK", b"not json"), ServerFailed),
        (http("200 OK", b"[" * 100_000), ServerFailed),
        (http("200 OK", b'{"version": 1}'), ServerFailed),
        (http("302 Found", location="https://elsewhere.example"), ServerFailed),
        (http("418 Teapot", b"<html>"), ServerFailed),
        (http("500 Broken", b"<html>"), ServerFailed),
        (http("401 No", b"<html>"), NotAuthenticated),
        (http("403 No", b"<html>"), NotAllowed),
        (http("404 No", b"<html>"), NotFound),
        (http("413 No", b"<html>"), TooLarge),
    ],
)
async def test_an_answer_that_is_none_of_ours_is_an_exception_of_ours(answer: bytes, error: type[Exception]) -> None:
    async with answering(answer) as url, client_of(url) as client:
        with pytest.raises(error):
            await client.server()


async def test_a_gateway_without_a_server_behind_it_is_asked_again() -> None:
    good = http("200 OK", b'{"version":"1","agents":[],"capabilities":[],"principal":"ann","scopes":[]}')
    answers = [http(f"{status} No", b"<html>") for status in (502, 503, 504)]
    async with (
        answering(*answers, http("429 Slowly", b""), b"", b"HTTP/1.1 200", good) as url,
        client_of(url) as client,
    ):
        assert (await client.server()).principal == "ann"


def test_a_store_that_is_away_goes_by_and_a_server_that_fails_does_not() -> None:
    problem = b'{"type":"urn:farhand:problem:%s","title":"t","status":503,"code":"%s","retry_after":2.5}'
    assert type(refusal(503, problem % (b"store_away", b"store_away"))).__name__ == "StoreAway"
    assert type(refusal(503, problem % (b"store_version", b"store_version"))).__name__ == "StoreVersion"
    much = refusal(429, problem % (b"too_much", b"too_much"))
    assert isinstance(much, TooMuch)
    assert much.retry_after == 2.5
    assert isinstance(refusal(502, b""), ConnectionLost)


@pytest.mark.parametrize(
    "body",
    [b"data: [\n\n", b"data: {}\n\n", b'data: {"type":"run-started"}\n\n', b"data: " + b"x" * (17 << 20)],
)
async def test_a_stream_of_garbage_is_a_server_that_failed(body: bytes) -> None:
    answer = http("200 OK", body, content_type="text/event-stream", farhand_run="r")
    async with answering(answer) as url, client_of(url) as client:
        with pytest.raises(ServerFailed):
            async for _ in client.thread("t").watch():
                pass


async def test_a_stream_that_is_none_is_a_server_that_failed() -> None:
    async with answering(http("200 OK", b"{}", content_type="application/json")) as url, client_of(url) as client:
        with pytest.raises(ServerFailed, match="no event stream"):
            await client.thread("t").run("hi")


async def test_ids_are_escaped_and_tokens_are_in_the_header_only() -> None:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(http("404 No"))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/base"
    async with asyncio.timeout(5), client_of(url, token="s3cret") as client:
        with pytest.raises(NotFound):
            await client.thread("a/b?c#d e%ü").state()
    server.close()
    await server.wait_closed()
    head, *lines = asked[0].decode().split("\r\n")
    assert head == "GET /base/v1/threads/a%2Fb%3Fc%23d%20e%25%C3%BC HTTP/1.1"
    assert [line.partition(":")[0].lower() for line in lines if "s3cret" in line] == ["authorization"]


async def test_a_client_of_ones_own_is_used_and_left_open() -> None:

    seen: list[str] = []

    async def note(request: httpx2.Request) -> None:
        seen.append(request.url.path)

    good = http("200 OK", b'{"version":"1","agents":[],"capabilities":[],"principal":"ann","scopes":[]}')
    async with answering(good) as url, httpx2.AsyncClient(event_hooks={"request": [note]}) as mine:
        async with client_of(url, http=mine) as client:
            await client.server()
        assert not mine.is_closed
    assert seen == ["/v1/server"]


async def test_a_header_that_cannot_be_sent_is_a_mistake_of_the_program_and_is_not_shown() -> None:
    async with answering(http("200 OK")) as url, client_of(url, token={"a name": "secret"}) as client:
        with pytest.raises(UsageError) as raised:
            await client.server()
    assert str(raised.value) == "the request cannot be sent: LocalProtocolError"


async def test_a_refusal_that_breaks_off_is_a_connection_that_was_lost() -> None:
    broken = b"HTTP/1.1 404 No\r\ncontent-length: 100\r\n\r\nonly this"
    async with answering(broken, http("403 No")) as url, client_of(url) as client:
        with pytest.raises(NotAllowed):
            await client.thread("t").run("hi")
