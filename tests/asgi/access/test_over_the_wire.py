"""The gate behind a real server, asked by hand: what a parser of HTTP makes of odd requests opens nothing either."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from farhand import Agent, scripted
from farhand.asgi import create_app
from farhand.asgi.access import Loopback
from farhand.testing.server import served

TOKEN = "token-of-here-0123456789"
APP = "http://localhost:5173"
GOOD = f"Authorization: Bearer {TOKEN}"


@asynccontextmanager
async def server() -> AsyncGenerator[str]:
    """Where it listens."""
    access = Loopback(TOKEN, origins=[APP])
    app = create_app(Agent(scripted(["Hello."])), store="memory:", authenticate=access, origins=[APP])
    async with asyncio.timeout(20), served(app) as url:
        yield url.removeprefix("http://")


async def status(at: str, *lines: str) -> int:
    """What is answered to a request that is written line by line."""
    host, port = at.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode())
    answered = await reader.readline()
    writer.close()
    return int(answered.split()[1])


async def test_what_is_asked_as_it_should_be_is_answered() -> None:
    async with server() as at:
        assert await status(at, "GET /v1/server HTTP/1.1", f"Host: {at}", GOOD) == 200
        assert await status(at, "GET /v1/server HTTP/1.1", "HOST:localhost", GOOD, f"Origin: {APP}") == 200
        assert await status(at, "GET /v1/healthz HTTP/1.1", f"Host: {at}") == 200


@pytest.mark.parametrize(
    "lines",
    [
        ["GET /v1/server HTTP/1.1", "Host: evil.test", GOOD],
        ["GET /v1/server HTTP/1.1", GOOD],
        ["GET /v1/server HTTP/1.0", GOOD],
        ["GET /v1/server HTTP/1.1", "Host:", GOOD],
        ["GET /v1/server HTTP/1.1", "Host: localhost", "Host: evil.test", GOOD],
        ["GET /v1/server HTTP/1.1", "Host: evil.test", "Host: localhost", GOOD],
        ["GET /v1/server HTTP/1.1", "Host: localhost, evil.test", GOOD],
        ["GET http://localhost/v1/server HTTP/1.1", "Host: evil.test", GOOD],
        ["GET /v1/server HTTP/1.1", "Host : localhost", GOOD],
        ["GET /v1/server HTTP/1.1", "X-Forwarded-Host: localhost", "Host: evil.test", GOOD],
        ["GET /v1/server HTTP/1.1", "Host: localhost", "Origin: http://evil.test", GOOD],
        ["GET /v1/server HTTP/1.1", "Host: localhost", "Origin: null", GOOD],
        ["GET /v1/server HTTP/1.1", "Host: localhost", f"Origin: {APP}", "Origin: http://evil.test", GOOD],
        ["GET /v1/server HTTP/1.1", "Host: localhost", "Sec-Fetch-Site: cross-site", GOOD],
        ["GET /v1/server HTTP/1.1", "Host: localhost"],
        ["GET /v1/server HTTP/1.1", "Host: localhost", GOOD, GOOD],
        ["GET /v1/server HTTP/1.1", "Host: localhost", GOOD + "x"],
        ["GET /v1/server HTTP/1.1", "Host: localhost", "X-Forwarded-For: 127.0.0.1", f"Cookie: token={TOKEN}"],
        [f"GET /v1/server?token={TOKEN} HTTP/1.1", "Host: localhost"],
        [f"GET /v1/server?access_token={TOKEN} HTTP/1.1", "Host: localhost"],
        ["POST /v1/threads/t/runs HTTP/1.1", "Host: localhost", GOOD, "Content-Type: text/plain", "Content-Length: 2"],
        ["POST /v1/threads/t/runs HTTP/1.1", "Host: localhost", GOOD, "Content-Length: 2"],
        ["POST /v1/threads/t/runs HTTP/1.1", "Host: localhost", GOOD, "Transfer-Encoding: chunked"],
        ["DELETE /v1/decisions HTTP/1.1", "Host: evil.test", GOOD],
        [
            "OPTIONS /v1/server HTTP/1.1",
            "Host: localhost",
            "Origin: http://evil.test",
            "Access-Control-Request-Method: GET",
        ],
    ],
    ids=lambda lines: " | ".join(lines).replace(TOKEN, "…")[:70],
)
async def test_what_is_not_is_refused(lines: list[str]) -> None:
    async with server() as at:
        assert await status(at, *lines) in {400, 401, 403, 415}


@pytest.mark.parametrize(
    ("origin", "token", "refused"),
    [
        (None, TOKEN, 0),
        (APP, TOKEN, 0),
        ("http://evil.test", TOKEN, 403),
        ("null", TOKEN, 403),
        (None, TOKEN + "x", 401),
        (APP, TOKEN + "x", 401),
    ],
)
async def test_a_socket_is_opened_with_the_token_by_nobody_but_programs_and_listed_pages(
    origin: str | None, token: str, refused: int
) -> None:
    async with server() as at:
        offered = ["farhand", f"farhand.bearer.{token}"]
        opening = connect(f"ws://{at}/v1/socket", origin=origin, subprotocols=offered)
        if not refused:
            async with opening as socket:
                assert socket.subprotocol == "farhand"
            return
        with pytest.raises(InvalidStatus) as error:
            async with opening:
                pass
        assert error.value.response.status_code == refused
