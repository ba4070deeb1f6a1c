"""Every answer bears an id, and a fault of ours is found by it: in the answer, in the log, and nowhere its words."""

import asyncio
import logging
from typing import Any

import pytest
from msgspec import json
from websockets.asyncio.client import connect

from farhand.asgi.access.principal import EVERYTHING, Principal
from farhand.asgi.access.tokens import Tokens
from farhand.runner.activity import Activity, Answering
from farhand.runner.observer import Observer
from tests.asgi.story import ANN, bearer, office


class Requests(Observer):
    """Keeps all requests."""

    def __init__(self) -> None:
        self.seen: list[Answering] = []
        self.came = asyncio.Event()

    def ended(self, activity: Activity, error: BaseException | None) -> None:
        if isinstance(activity, Answering):
            self.seen.append(activity)
            self.came.set()


async def test_every_answer_bears_an_id_of_its_own() -> None:
    async with office() as place:
        answers = [
            await place.ask("GET", "/server"),
            await place.ask("GET", "/server", token="nobody's"),
            await place.ask("GET", "/nowhere"),
            await place.ask("GET", "/server", headers={"host": "evil.example"}),
            await place.ask("POST", "/threads/t1/runs", {"input": ""}),
        ]
        async with place.stream("GET", "/threads/t1/updates") as events:
            answers.append(events.response)
    ids = [answer.headers["farhand-request"] for answer in answers]
    assert len(set(ids)) == len(ids)
    assert all(len(one) == 16 for one in ids)


async def test_a_request_is_seen_with_what_was_found_out_about_it() -> None:
    requests = Requests()
    async with office(observers=[requests]) as place:
        await place.ask("GET", "/calls/canary")
        await place.ask("GET", "/server", token="nobody's")
    known, stranger = requests.seen
    assert (known.endpoint, known.path, known.principal) == ("get-call", "/v1/calls/{call}", "ann")
    assert (known.status, known.code) == (404, "unknown_call")
    assert (stranger.principal, stranger.status, stranger.code) == ("", 401, "not_authenticated")


async def test_a_stream_counts_as_answered_when_it_begins() -> None:
    requests = Requests()
    async with office(observers=[requests]) as place, place.stream("GET", "/threads/t1/updates"):
        assert [(seen.endpoint, seen.status) for seen in requests.seen] == [("watch-thread", 200)]


async def test_a_fault_of_ours_is_told_by_the_id_of_its_request_and_not_in_its_words(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office() as place:

        async def broken(_: object) -> None:
            try:
                raise ValueError("canary")
            except ValueError as error:
                raise KeyError("canary") from error

        monkeypatch.setitem(place.app.desk.answers, "get-server", broken)  # type: ignore[arg-type]
        response = await place.ask("GET", "/server")
    number = response.headers["farhand-request"]
    assert response.status_code == 500
    assert response.json()["detail"] == f"failure {number}"
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().startswith(f"failure {number} while answering get-server: KeyError < ")
    assert "; from ValueError < " in record.getMessage()
    assert "canary" not in response.text + caplog.text


async def test_whoever_hangs_up_before_the_answer_is_seen_to() -> None:
    requests = Requests()
    async with office(observers=[requests]) as place:
        host, port = place.http.base_url.host, place.http.base_url.port
        _, writer = await asyncio.open_connection(host, port)
        head = "POST /v1/threads/t/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(
            f"{head}Authorization: Bearer {'ann-has-a-token-of-her-own'}\r\nContent-Length: 9\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()
        async with asyncio.timeout(5):
            await requests.came.wait()
    assert [seen.status for seen in requests.seen] == [499]


async def test_each_request_in_a_frame_of_a_socket_is_seen_by_itself() -> None:
    requests = Requests()
    people = Tokens({ANN: Principal("ann", EVERYTHING)})
    async with asyncio.timeout(10), office(observers=[requests], authenticate=people) as place:
        url = str(place.http.base_url).replace("http", "ws").rstrip("/") + "/socket"
        async with connect(url, additional_headers=bearer(ANN)) as socket:

            async def ask(number: int, path: str, **more: object) -> dict[str, Any]:
                await socket.send(json.encode({"id": number, "method": "GET", "path": path, **more}).decode())
                return json.decode(await socket.recv())

            metrics = await ask(1, "/metrics")
            assert (await ask(2, "/calls/canary"))["status"] == 404
            await socket.send(json.encode({"id": 3, "method": "GET", "path": "/threads/t/updates", "stream": True}))
            async with asyncio.timeout(5):
                while len(requests.seen) < 4:
                    requests.came.clear()
                    await requests.came.wait()
    assert "farhand_sockets_open 1\n" in metrics["body"]
    assert [(seen.endpoint, seen.status, seen.principal) for seen in requests.seen] == [
        ("socket", 101, "ann"),
        ("get-metrics", 200, "ann"),
        ("get-call", 404, "ann"),
        ("watch-thread", 200, "ann"),
    ]
