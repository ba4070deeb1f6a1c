"""Who listens to a client, and how they cannot harm it."""

import asyncio
from typing import Any, get_args

import pytest

from farhand.client import Patience
from farhand.client.events import NAMES, EventName, Events, StreamEnd, StreamStart
from farhand.core.errors import ConnectionLost, UsageError
from tests.client.story import Heard, app_of, client_of, office, served_by

START = StreamStart("t", "r")


def test_every_event_has_its_name() -> None:
    assert set(get_args(EventName)) == set(NAMES.values())
    assert len(NAMES) == len(set(NAMES.values()))


def test_a_handler_hears_its_events_until_it_is_taken_off() -> None:
    events, heard = Events(), []
    off = events.on("stream_start", heard.append)
    events.tell(START)
    events.tell(StreamEnd("t", "r", "done"))
    off()
    off()
    events.tell(START)
    assert heard == [START]


def test_who_listens_twice_leaves_twice() -> None:
    events, heard = Events(), []
    first, second = events.on("stream_start", heard.append), events.on("stream_start", heard.append)
    events.tell(START)
    first()
    events.tell(START)
    second()
    events.tell(START)
    assert len(heard) == 3


def test_a_handler_may_take_itself_off() -> None:
    events, heard = Events(), []

    def once(event: Any) -> None:
        heard.append(event)
        off()

    off = events.on("stream_start", once)
    events.tell(START)
    events.tell(START)
    assert heard == [START]


def test_an_event_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UsageError, match="there is no event 'tool_begin'; there are stream_start"):
        Events().on("tool_begin", print)


async def test_handlers_that_fail_are_logged_and_disturb_nobody(caplog: pytest.LogCaptureFixture) -> None:
    events, heard = Events(), []

    def fail(event: Any) -> None:
        raise ValueError("secret")

    async def fail_later(event: Any) -> None:
        fail(event)

    for handler in (fail, fail_later, heard.append):
        events.on("stream_start", handler)
    events.tell(START)
    await events.close(1.0)
    assert heard == [START]
    assert caplog.text.count("a handler of stream_start failed: ValueError") == 2
    assert "secret" not in caplog.text


async def test_async_handlers_run_beside_the_rest_and_are_finished_at_the_end() -> None:
    events, gate, heard = Events(), asyncio.Event(), []

    async def slow(event: Any) -> None:
        await gate.wait()
        heard.append(event)

    events.on("stream_start", slow)
    events.tell(START)
    assert heard == []
    gate.set()
    await events.close(5.0)
    assert heard == [START]


async def test_an_async_handler_that_hangs_is_cancelled_at_the_end() -> None:
    events, ended = Events(), []

    async def hang(event: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(event)

    events.on("stream_start", hang)
    events.tell(START)
    await events.close(0.01)
    assert ended == [START]


async def test_a_run_with_a_tool_tells_its_story_in_order() -> None:
    async with office() as client:
        client.implement("pick", lambda given: {"x": 1})
        heard = Heard(client, *NAMES.values())
        result = await client.thread("t").run("pick")
        await heard.until(lambda events: len(events) == 4)
    names = [NAMES[type(event)] for event in heard.events]
    assert (names[0], set(names)) == ("stream_start", {"stream_start", "tool_start", "tool_end", "stream_end"})
    [end] = [event for event in heard.events if NAMES[type(event)] == "tool_end"]
    assert (end.outcome, end.result, end.failure, end.call.id) == ("ok", {"x": 1}, None, result.calls[0].id)
    assert end.seconds > 0


async def test_a_handler_that_fails_does_not_stop_a_run(caplog: pytest.LogCaptureFixture) -> None:
    async with office() as client:
        client.implement("pick", lambda given: {"x": 1})
        for name in ("stream_start", "tool_start", "tool_end", "stream_end"):
            client.on(name, lambda event: 1 / 0)
        assert (await client.thread("t").run("pick")).output == 'so: {"x":1}'
    assert "ZeroDivisionError" in caplog.text


async def test_a_retry_is_an_event() -> None:
    async with served_by(app_of()) as url:
        pass
    async with client_of(url, patience=Patience(total=0.05, first=0.01)) as client:
        heard = Heard(client, "auto_retry")
        with pytest.raises(ConnectionLost, match="ConnectError"):
            await client.server()
    assert [event.attempt for event in heard.events][:2] == [1, 2]
