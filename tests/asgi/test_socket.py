"""The native protocol over a WebSocket, with the client of the package `websockets`: same requests, same answers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import json
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from farhand.asgi.access.quota import Quota
from tests.asgi.story import ANN, BEN, Office, bearer, office


@asynccontextmanager
async def socket(at: Office, token: str = ANN, **settings: Any) -> AsyncGenerator["Talk"]:
    url = str(at.http.base_url).replace("http", "ws").rstrip("/") + "/socket"
    async with connect(url, additional_headers=bearer(token), **settings) as connection:
        yield Talk(connection)


class Talk:
    """What is said over one socket."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.asked = 0

    async def send(self, method: str, path: str, body: Any = None, **more: Any) -> int:
        self.asked += 1
        frame = {"id": self.asked, "method": method, "path": path, "body": body, **more}
        await self.connection.send(json.encode(frame).decode())
        return self.asked

    async def next(self) -> Any:
        return json.decode(await self.connection.recv())

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        asked = await self.send(method, path, body)
        answer = await self.next()
        assert answer["id"] == asked
        return answer


async def test_a_request_is_answered_as_over_http() -> None:
    async with asyncio.timeout(20), office() as at, socket(at) as talk:
        assert (await talk.ask("GET", "/tools"))["body"] == await at.got("GET", "/tools")
        missing = await talk.ask("GET", "/runs/nothing")
        assert (missing["status"], missing["body"]["code"]) == (404, "unknown_call")


async def test_a_stream_comes_before_its_answer() -> None:
    async with asyncio.timeout(20), office() as at, socket(at) as talk:
        asked = await talk.send("POST", "/threads/t/runs", {"input": "add"}, stream=True)
        updates: list[Any] = []
        while "updates" in (frame := await talk.next()):
            assert frame["id"] == asked
            assert len(frame["positions"]) == len(frame["updates"])
            updates += frame["updates"]
        assert updates[-1]["output"] == "so: 3"
        assert (frame["id"], frame["status"]) == (asked, 200)


async def test_requests_go_on_beside_a_stream() -> None:
    async with asyncio.timeout(20), office() as at, socket(at) as talk:
        stream = await talk.send("POST", "/threads/t/runs", {"input": "pick"}, stream=True)
        updates: list[Any] = []
        while "call-executing" not in [update["type"] for update in updates]:
            updates += (await talk.next())["updates"]
        call = next(update["call_id"] for update in updates if update["type"] == "call-executing")
        answered = await talk.send("POST", f"/calls/{call}/result", {"result": 4})
        frames = [await talk.next()]
        while frames[-1].get("status") is None or frames[-1]["id"] != stream:
            frames.append(await talk.next())
        assert [frame["status"] for frame in frames if frame["id"] == answered] == [200]
        assert [update for frame in frames for update in frame.get("updates", ())][-1]["output"] == "so: 4"


async def test_a_stream_is_ended_by_whoever_began_it() -> None:
    async with asyncio.timeout(20), office() as at, socket(at) as talk:
        asked = await talk.send("GET", "/threads/t/updates", stream=True)
        await talk.connection.send(json.encode({"stop": asked}).decode())
        assert await talk.next() == {"id": asked, "status": 200, "body": None}
        assert (await talk.ask("GET", "/server"))["status"] == 200


async def test_frames_may_come_as_bytes() -> None:
    async with asyncio.timeout(20), office() as at, socket(at) as talk:
        await talk.connection.send(b'{"id":"a","method":"GET","path":"/healthz"}')
        assert (await talk.next())["body"] == {"status": "ok"}


@pytest.mark.parametrize("frame", ["", "{", "[]", '{"id":1}', '{"method":"GET","path":"/tools"}', "5", "[" * 100_000])
async def test_a_frame_that_is_none_closes_the_connection(frame: str) -> None:
    async with asyncio.timeout(20), office() as at, socket(at) as talk:
        await talk.connection.send(frame)
        with pytest.raises(ConnectionClosed) as closed:
            await talk.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1002


async def test_a_body_that_does_not_fit_is_a_problem_and_closes_nothing() -> None:
    async with asyncio.timeout(20), office() as at, socket(at) as talk:
        wrong = await talk.ask("POST", "/threads/t/runs", {"input": 5})
        assert (wrong["status"], wrong["body"]["problems"][0]["path"]) == (422, "/input")
        assert (await talk.ask("GET", "/server"))["status"] == 200


async def test_a_frame_above_the_limit_closes_the_connection() -> None:
    async with asyncio.timeout(20), office(max_body=10_000) as at, socket(at) as talk:
        await talk.connection.send(" " * 20_000)
        with pytest.raises(ConnectionClosed) as closed:
            await talk.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


async def test_an_id_that_is_under_way_is_refused() -> None:
    async with asyncio.timeout(20), office() as at, socket(at) as talk:
        await talk.send("GET", "/threads/t/updates", stream=True)
        await talk.connection.send(b'{"id":1,"method":"GET","path":"/tools"}')
        assert (await talk.next())["body"]["code"] == "invalid_input"


async def test_so_many_at_once_and_no_more() -> None:
    async with asyncio.timeout(20), office() as at, socket(at) as talk:
        for _ in range(64):
            await talk.send("GET", "/threads/t/updates", stream=True)
        refused = await talk.ask("GET", "/tools")
        assert (refused["status"], refused["body"]["code"]) == (429, "too_much")


@pytest.mark.parametrize("token", ["", "nobody-was-given-this-token"])
async def test_nobody_comes_in_without_credentials(token: str) -> None:
    async with asyncio.timeout(20), office() as at:
        with pytest.raises(InvalidStatus) as refused:
            async with socket(at, token):
                pass
        assert refused.value.response.status_code == 401
        assert json.decode(refused.value.response.body or b"")["code"] == "not_authenticated"


async def test_a_page_sends_its_token_as_a_subprotocol() -> None:
    offered = {"subprotocols": ["farhand", f"farhand.bearer.{BEN}"]}
    async with asyncio.timeout(20), office() as at, socket(at, "", **offered) as talk:
        assert talk.connection.subprotocol == "farhand"
        assert (await talk.ask("GET", "/server"))["body"]["principal"] == "ben"


async def test_what_is_somebody_elses_is_not_there() -> None:
    async with asyncio.timeout(20), office() as at, socket(at, BEN) as talk:
        run = (await at.got("POST", "/threads/t/runs", {"input": "pick"}))["run_id"]
        assert (await talk.ask("GET", f"/runs/{run}"))["status"] == 404


async def test_another_path_is_no_socket() -> None:
    async with asyncio.timeout(20), office() as at:
        url = str(at.http.base_url).replace("http", "ws").rstrip("/") + "/elsewhere"
        with pytest.raises(InvalidStatus):
            async with connect(url, additional_headers=bearer(ANN)):
                pass


async def test_a_server_that_goes_says_so() -> None:
    async with asyncio.timeout(20), office() as at, socket(at) as talk:
        await at.app.drain()
        with pytest.raises(ConnectionClosed) as closed:
            await talk.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012


async def test_streams_end_with_their_connection() -> None:
    async with asyncio.timeout(20), office(quota=Quota(streams=1)) as at:
        async with socket(at) as talk:
            await talk.send("GET", "/threads/t/updates", stream=True)
            await talk.ask("GET", "/server")
        async with socket(at) as talk:
            await talk.send("POST", "/threads/t/runs", {"input": "add"}, stream=True)
            assert "updates" in await talk.next()
