"""Connections that break: what a client sees of it is that everything goes on, and nothing is missing or doubled."""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from farhand import manual
from farhand.client import Client, Patience
from farhand.client.feed import read_update
from farhand.client.provider import read_offer
from farhand.core.call import Outcome
from farhand.core.errors import ConnectionLost, ServerFailed, UsageError
from farhand.core.updates import ReplyEnded, RunEnded, RunStarted, TextStreamed, TurnStarted, Update
from farhand.models import Turn, Use
from tests.client.story import Heard, app_of, cabled, client_of, served_by

SERVING = Path(__file__).with_name("serving.py")


def text_of(updates: list[Update]) -> str:
    return "".join(update.text for update in updates if isinstance(update, TextStreamed))


async def test_a_stream_that_breaks_goes_on_where_it_stopped() -> None:
    words = [f"{number} " for number in range(200)]
    async with cabled(app_of(script=[Turn(words, delay=0.002)])) as (client, cable):
        heard = Heard(client, "reconnected", "auto_retry")
        seen: list[Update] = []
        async for update in client.thread("t").stream("hi"):
            seen.append(update)
            if isinstance(update, TextStreamed) and update.text in ("30 ", "90 ", "91 ", "150 "):
                cable.drop()
    assert text_of(seen) == "".join(words)
    assert [update.seq for update in seen if not isinstance(update, TextStreamed)] == [1, 2, 3, 4]
    assert sum(type(event).__name__ == "Reconnected" for event in heard.events) >= 3


async def test_a_stream_may_break_anywhere_in_a_frame() -> None:
    script = [Turn(["Let me ", "see. "], Use("pick", {"n": 1})), Turn(["It is ", "done."])]
    for at in range(250, 2100, 150):
        async with cabled(app_of(script=script)) as (client, cable):
            client.implement("pick", lambda given: {"ok": True})
            cable.bytes_until_cut = at
            seen = [update async for update in client.thread("t").stream("hi")]
        numbers = [update.seq for update in seen if not is_live(update)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert (type(seen[0]), type(seen[-1])) == (RunStarted, RunEnded)
        assert text_of(seen) == "Let me see. It is done."


async def test_a_start_that_was_lost_is_not_started_twice() -> None:
    model = manual()
    async with cabled(app_of(script=model)) as (client, cable):
        thread = client.thread("t")
        model.say("first")
        await thread.run("one")
        cable.bytes_until_cut = 20  # the head of the answer, and no more
        running = asyncio.create_task(thread.run("two"))
        await model.asked()
        await model.asked()
        model.say("second")
        assert (await running).output == "second"
        state = await thread.state()
    assert [message.text for message in state.messages] == ["one", "first", "two", "second"]


async def test_a_lost_start_is_found_in_a_thread_with_a_past() -> None:
    app = app_of()
    async with cabled(app) as (client, cable):
        for number in range(3):
            await client_of(client._wire.url, token=None).close()
            await client.thread("t").run(f"said {number}")
        async with client_of(cable.url) as other:
            cable.bytes_until_cut = 20
            seen = [update async for update in other.thread("t").stream("found")]
    assert [type(update).__name__ for update in seen if not is_live(update)] == [
        "RunStarted",
        "TurnStarted",
        "ReplyEnded",
        "RunEnded",
    ]
    assert [update.text for update in seen if isinstance(update, ReplyEnded)] == ["you said: found"]


async def test_functions_work_on_during_an_outage_and_are_run_once() -> None:
    at_work, gate, ran = asyncio.Event(), asyncio.Event(), []

    async def work(given: dict[str, Any]) -> dict[str, Any]:
        ran.append(given)
        at_work.set()
        await gate.wait()
        return {"worked": True}

    async with cabled(app_of()) as (client, cable):
        client.implement("pick", work)
        heard = Heard(client, "auto_retry", "reconnected")
        running = asyncio.create_task(client.thread("t").run("pick"))
        await at_work.wait()
        await cable.cut()
        gate.set()
        await heard.until(lambda events: len(events) > 4)
        await cable.mend()
        result = await running
    assert (result.output, len(ran)) == ('so: {"worked":true}', 1)


async def test_an_answer_whose_receipt_was_lost_is_said_again_and_counts_once() -> None:
    async with cabled(app_of()) as (client, cable):

        async def work(given: dict[str, Any]) -> dict[str, Any]:
            cable.drop()
            return {"worked": True}

        client.implement("pick", work)
        result = await client.thread("t").run("pick")
    assert result.output == 'so: {"worked":true}'


async def test_a_call_that_ended_during_an_outage_is_stopped_afterwards() -> None:
    at_work, stopped = asyncio.Event(), asyncio.Event()

    async def work(given: dict[str, Any]) -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    app = app_of()
    async with cabled(app) as (client, cable):
        client.implement("pick", work)
        running = asyncio.create_task(client.thread("t").run("pick"))
        await at_work.wait()
        await cable.cut()
        [call] = await app.runner.pending(principal="ann")
        await app.runner.cancel_call(call.id, "too slow", principal="ann")
        await cable.mend()
        await stopped.wait()
        assert "too slow" in (await running).output


async def test_patience_has_an_end() -> None:
    async with cabled(app_of(script=manual()), patience=Patience(total=0.2, first=0.01, most=0.05)) as (client, cable):
        heard = Heard(client, "auto_retry")
        stream = aiter(client.thread("t").stream("hi"))
        assert isinstance(await anext(stream), RunStarted)
        await cable.cut()
        with pytest.raises(ConnectionLost):
            async for _ in stream:
                pass
        with pytest.raises(ConnectionLost):
            await client.server()
        assert len(heard.events) > 2
        assert all(event.delay <= 0.05 for event in heard.events)
        await cable.mend()
        assert (await client.server()).principal == "ann"


async def test_what_was_done_is_told_also_after_patience_has_ended() -> None:
    at_work, gate = asyncio.Event(), asyncio.Event()

    async def work(given: dict[str, Any]) -> dict[str, Any]:
        at_work.set()
        await gate.wait()
        return {"worked": True}

    app = app_of()
    async with cabled(app, patience=Patience(total=0.1, first=0.01, most=0.02)) as (client, cable):
        client.implement("pick", work)
        running = asyncio.create_task(client.thread("t").run("pick"))
        await at_work.wait()
        await cable.cut()
        gate.set()
        with pytest.raises(ConnectionLost):
            await running
        heard = Heard(client, "tool_end")
        await cable.mend()
        await heard.until(len)
        assert (await client.thread("t").resume()).output == 'so: {"worked":true}'


async def test_a_quiet_stream_does_not_use_patience_up() -> None:
    model = manual()
    patience = Patience(total=0.3, first=0.01, most=0.02)
    async with cabled(app_of(script=model), patience=patience) as (client, cable):
        heard = Heard(client, "reconnected")
        running = asyncio.create_task(client.thread("t").run("hi"))
        await model.asked()
        for count in range(1, 12):
            async with asyncio.timeout(5):
                before = asyncio.get_running_loop().time()
                while asyncio.get_running_loop().time() < before + 0.05:
                    await client.server()
            cable.drop()
            await heard.until(lambda events, count=count: len(events) >= count)
        model.say("still there")
        assert (await running).output == "still there"


async def test_a_client_that_is_closed_ends_its_streams() -> None:
    async with cabled(app_of(script=manual())) as (client, _):
        stream = aiter(client.thread("t").stream("hi"))
        await anext(stream)
        await client.close()
        with pytest.raises(UsageError, match="this client is closed"):
            async for _ in stream:
                pass


async def test_a_watcher_misses_and_repeats_nothing_either() -> None:
    async with cabled(app_of()) as (client, cable):
        thread = client.thread("t")
        seen: list[int] = []

        async def watch() -> None:
            async for update in thread.watch():
                if not is_live(update):
                    seen.append(update.seq)
                if len(seen) == 12:
                    return

        watching = asyncio.create_task(watch())
        for number in range(3):
            await thread.run(f"said {number}")
            cable.drop()
        await watching
    assert seen == list(range(1, 13))


async def test_a_position_can_be_kept_and_used_by_another_program() -> None:
    words = [f"{number} " for number in range(40)]
    async with served_by(app_of(script=[Turn(words, delay=0.003)])) as url:
        async with client_of(url) as first:
            stream = first.thread("t").stream("hi")
            before = ""
            async for update in stream:
                before += update.text if isinstance(update, TextStreamed) else ""
                if before.endswith("20 "):
                    break
            position = stream.position
        async with client_of(url) as second:
            after = ""
            async for update in second.thread("t").watch(after=position):
                after += update.text if isinstance(update, TextStreamed) else ""
                if isinstance(update, RunEnded):
                    break
    assert before + after == "".join(words)


# A server that is killed.


@asynccontextmanager
async def killable(store: Path) -> AsyncGenerator[tuple[Client, Any]]:
    """A client, and what starts the server's process, or kills it and starts another one."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    running: list[asyncio.subprocess.Process] = []

    async def start() -> None:
        if running:
            running[-1].send_signal(signal.SIGKILL)
            await running[-1].wait()
        program = [sys.executable, str(SERVING), str(port), str(store)]
        running.append(await asyncio.create_subprocess_exec(*program))

    try:
        async with asyncio.timeout(50), client_of(f"http://127.0.0.1:{port}", patience=PATIENT) as client:
            yield client, start
    finally:
        for process in running:
            if process.returncode is None:
                process.kill()
            await process.wait()


PATIENT = Patience(total=30.0, first=0.02, most=0.2)


async def test_a_run_survives_a_server_that_is_killed_while_its_calls_are_worked_on(tmp_path: Path) -> None:
    at_work, gate, ran = asyncio.Semaphore(0), asyncio.Event(), []

    async def slow(given: dict[str, Any]) -> dict[str, Any]:
        ran.append(given["n"])
        at_work.release()
        await gate.wait()
        return {"n": given["n"] * 2}

    async with killable(tmp_path / "runs.db") as (client, start):
        client.implement("slow", slow)
        await start()
        running = asyncio.create_task(client.thread("t").run("hi"))
        for _ in range(3):
            await at_work.acquire()
        await start()
        gate.set()
        result = await running
    assert sorted(ran) == [0, 1, 2]
    assert [(call.outcome, call.output) for call in result.calls] == [(Outcome.OK, {"n": n}) for n in (0, 2, 4)]
    assert result.text == "".join(f"{number} " for number in range(50))


async def test_a_reply_that_broke_off_with_its_server_is_begun_again(tmp_path: Path) -> None:
    async with killable(tmp_path / "runs.db") as (client, start):
        client.implement("slow", lambda given: given)
        await start()
        text, turns, killed = "", [], False
        stream = client.thread("t").stream("hi")
        async for update in stream:
            match update:
                case TurnStarted():
                    turns.append((update.turn, update.again))
                    text = ""
                case TextStreamed():
                    assert update.offset == len(text)
                    text += update.text
                    if not killed and "20 " in text:
                        killed = True
                        await start()
                case _:
                    pass
        result = await stream
    assert turns == [(1, False), (2, False), (2, True)]
    assert result.text == text == "".join(f"{number} " for number in range(50))


# What is no update.


def test_an_update_of_a_newer_server_is_passed_over_and_garbage_is_not() -> None:
    known = {"type": "run-started", "seq": 1, "at": 2, "run_id": "r", "thread_id": "t"}
    assert isinstance(read_update(json.encode({**known, "new": 1}).decode()), RunStarted)
    assert read_update('{"type":"invented-tomorrow","seq":1}') is None
    assert read_offer('{"type":"invented-tomorrow","seq":1}') is None
    for garbage in ("", "{", "[]", '{"seq":1}', '{"type":"run-started","seq":"one"}', "[" * 100_000):
        for read in (read_update, read_offer):
            with pytest.raises(ServerFailed):
                read(garbage.replace("run-started", "call-withdrawn") if read is read_offer else garbage)


def is_live(update: Update) -> bool:
    return type(update).__name__ in {"TextStreamed", "CallNamed", "CallStreamed", "CallProgress", "ReasoningStreamed"}
