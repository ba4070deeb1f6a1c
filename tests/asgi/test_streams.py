"""Event streams: what is ready leaves together, a broken connection goes on where it was, nobody is held up."""

import asyncio
import logging
from typing import Any

import pytest
from msgspec import json

from farhand.asgi.streams import Encoder, Stream, Streams, position_after
from farhand.core.messages import UserMessage
from farhand.core.pieces import Done, TextDelta
from farhand.core.updates import CallProgress, TextStreamed, Update
from farhand.models import Request, Turn
from tests.asgi.story import ANN, BEN, office

LONG = 3_000


def story(request: Request) -> Turn:
    """As many pieces as the user says."""
    said = request.messages[-1]
    assert isinstance(said, UserMessage)
    return Turn([f"{number} " for number in range(int(said.text))])


def text_of(updates: list[dict[str, Any]]) -> str:
    return "".join(update["text"] for update in updates if update["type"] == "text-streamed")


def whole(pieces: int) -> str:
    return "".join(f"{number} " for number in range(pieces))


async def test_every_piece_of_a_long_text_arrives_in_its_order() -> None:
    async with office(story) as at, at.stream("POST", "/threads/t/runs", {"input": str(LONG)}) as events:
        updates = await events.rest()
    assert text_of(updates) == whole(LONG)
    assert [update["offset"] for update in updates if update["type"] == "text-streamed"][:3] == [0, 2, 4]


class Held:
    """A model that says half of its text, and the rest when it is let go."""

    def __init__(self) -> None:
        self.half = asyncio.Event()
        self.go = asyncio.Event()

    name = "held"

    async def stream(self, request: Request) -> Any:
        yield TextDelta("one two ")
        yield TextDelta("three ")
        self.half.set()
        await self.go.wait()
        yield TextDelta("four")
        yield Done()


async def test_a_connection_that_broke_in_mid_reply_goes_on_behind_the_last_character() -> None:
    model = Held()
    async with asyncio.timeout(20), office(model=model) as at:
        async with at.stream("POST", "/threads/t/runs", {"input": "go"}) as events:
            await events.next("text-streamed")
            last = events.last
        assert last == "2.1.8"
        async with at.stream("GET", "/threads/t/updates", headers={"last-event-id": last}) as events:
            assert (await events.next())["text"] == "three "
            model.go.set()
            assert (await events.next())["text"] == "four"
            assert (await events.next())["type"] == "reply-ended"


async def test_whoever_comes_in_mid_reply_gets_all_of_it_first() -> None:
    model = Held()
    async with asyncio.timeout(20), office(model=model) as at:
        await at.got("POST", "/threads/t/runs", {"input": "go"})
        await model.half.wait()
        async with at.stream("GET", "/threads/t/updates") as events:
            assert (await events.next("text-streamed"))["text"] == "one two three "
            model.go.set()


async def test_a_late_watcher_sees_where_the_thread_stands_and_misses_nothing_from_there_on() -> None:
    async with asyncio.timeout(20), office() as at:
        begun = await at.got("POST", "/threads/t/runs", {"input": "pick", "wait": "turn"})
        async with at.stream("GET", "/threads/t/updates") as events:
            await events.next("run-waiting")
        stands = await at.got("GET", "/threads/t")
        [call] = stands["calls"]
        assert (stands["run_id"], call["state"]) == (begun["run_id"], "executing")
        async with at.stream("GET", f"/threads/t/updates?after={stands['seq']}") as events:
            await at.got("POST", f"/calls/{call['id']}/result", {"result": 1})
            later = [await events.next()]
            while later[-1]["type"] != "run-ended":
                later.append(await events.next())
        everything = (await at.got("GET", "/threads/t/updates"))["updates"]
    heard = [update["seq"] for update in later if update["seq"] > stands["seq"]]
    assert [update["seq"] for update in everything] == list(range(1, everything[-1]["seq"] + 1))
    assert sorted(set(heard)) == list(range(stands["seq"] + 1, everything[-1]["seq"] + 1))
    assert later[0]["call_id"] == call["id"]


@pytest.mark.parametrize("position", ["x", "1.2", "-1", "1.1.1.1", "99999999999999999999"])
async def test_a_position_that_is_none_is_refused(position: str) -> None:
    async with office() as at:
        response = await at.ask("GET", f"/threads/t/updates?after={position}")
        assert (response.status_code, response.json()["code"]) == (422, "invalid_input")


async def test_the_position_of_somebody_elses_thread_shows_nothing_of_it() -> None:
    async with asyncio.timeout(20), office() as at:
        await at.got("POST", "/threads/t/runs", {"input": "secret"})
        async with at.stream("GET", "/threads/t/updates") as events:
            await events.next("run-ended")
            position = events.last
        page = await at.got("GET", f"/threads/t/updates?after={int(position) - 1}", token=BEN)
        assert page["updates"] == []


async def test_dropping_a_stream_ends_no_run() -> None:
    async with asyncio.timeout(20), office() as at:
        async with at.stream("POST", "/threads/t/runs", {"input": "pick"}) as events:
            await events.next("call-executing")
        [call] = (await at.got("GET", "/calls"))["calls"]
        await at.got("POST", f"/calls/{call['id']}/result", {"result": 1})
        async with at.stream("GET", "/threads/t/updates") as events:
            assert (await events.next("run-ended"))["output"] == "so: 1"


async def test_a_stream_that_waits_in_turns_ends_when_somebody_has_to_answer() -> None:
    body = {"input": "pick", "wait": "turn"}
    async with asyncio.timeout(20), office() as at, at.stream("POST", "/threads/t/runs", body) as events:
        assert (await events.rest())[-1]["type"] == "run-waiting"


async def test_a_quiet_stream_says_that_it_lives() -> None:
    async with asyncio.timeout(20), office(heartbeat=0.05) as at, at.stream("GET", "/threads/t/updates") as events:
        chunks = events.response.aiter_bytes()
        assert [await anext(chunks) for _ in range(4)] == [b":\n\n"] * 4


async def test_streams_are_ended_when_the_server_goes() -> None:
    async with asyncio.timeout(20), office() as at, at.stream("GET", "/threads/t/updates") as events:
        await at.app.drain()
        assert await events.rest() == []


class Heard(logging.Handler):
    """Waits until something was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "takes nothing" in record.getMessage():
            self.heard.set()


async def test_a_reader_who_takes_nothing_is_cut_off_and_the_others_read_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "farhand.asgi")
    cut = Heard()
    logging.getLogger("farhand.asgi").addHandler(cut)
    async with asyncio.timeout(30), office(lambda _: Turn(["x" * 1_000_000] * 3), stuck=0.2) as at:
        reader, writer = await asyncio.open_connection(at.http.base_url.host, at.http.base_url.port, limit=1)
        writer.write(
            b"GET /v1/threads/t/updates HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
            b"Authorization: Bearer " + ANN.encode() + b"\r\n\r\n"
        )
        await reader.read(1)
        run = 0
        while not cut.heard.is_set():
            run += 1
            async with at.stream("POST", "/threads/t/runs", {"input": "go", "key": str(run)}) as events:
                assert len(text_of(await events.rest())) == 3_000_000
        writer.close()
        await writer.wait_closed()
    logging.getLogger("farhand.asgi").removeHandler(cut)


async def test_an_update_is_encoded_once_for_all_who_watch() -> None:
    async with asyncio.timeout(20), office(story) as at:
        watching = [at.stream("GET", "/threads/t/updates") for _ in range(5)]
        opened = [await stream.__aenter__() for stream in watching]
        await at.got("POST", "/threads/t/runs", {"input": "50"})
        for events in opened:
            await events.next("run-ended")
        assert at.app.desk.encoder.encoded < 2 * 54
        for stream in watching:
            await stream.__aexit__(None, None, None)


def test_equal_updates_have_equal_frames_and_other_ones_never_share() -> None:
    encoder = Encoder()
    frames = set()
    for number in range(5000):  # new values at old addresses
        update: Update = TextStreamed(number, 0, 1, 0, "x")
        frame = encoder.frame(update)
        assert frame == encoder.frame(update)
        frames.add(frame)
    assert len(frames) == 5000


def test_what_moves_nobody_on_has_no_position() -> None:
    assert position_after(TextStreamed(3, 0, 1, 4, "abc")) == "3.1.7"
    assert position_after(CallProgress(3, 0, "c", 1)) == ""


async def test_what_is_ready_together_is_sent_together() -> None:
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        if message.get("body"):
            sent.append(message["body"])

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def batches() -> Any:
        yield [TextStreamed(1, 0, 1, 0, "a"), TextStreamed(1, 0, 1, 1, "b")]

    async with asyncio.timeout(5):
        await Stream(Streams(), send).run(receive, Encoder().frames(batches()))
    [_, both] = sent
    assert both.count(b"data: ") == 2
    assert json.decode(both.split(b"data: ")[1].split(b"\n")[0])["text"] == "a"


async def test_a_fault_in_mid_stream_ends_it_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def send(_: Any) -> None:
        pass

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def batches() -> Any:
        yield [TextStreamed(1, 0, 1, 0, "a")]
        raise ZeroDivisionError

    async with asyncio.timeout(5):
        await Stream(Streams(), send).run(receive, Encoder().frames(batches()))
    assert "ZeroDivisionError" in caplog.text
