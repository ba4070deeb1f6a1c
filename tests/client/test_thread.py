"""Conversations over HTTP: runs that a client begins, follows, leaves, finds again and cancels."""

import asyncio
from typing import Any

import pytest

from farhand import Agent, Binary, manual, scripted
from farhand.client import RunResult, Stream
from farhand.core.errors import (
    DuplicateToolName,
    InvalidInput,
    RunFailed,
    StartConflict,
    ThreadBusy,
    UnknownCall,
    UsageError,
)
from farhand.core.messages import AssistantMessage, Text, ToolMessage, UserMessage
from farhand.core.pieces import Usage
from farhand.core.updates import CallEnded, ReplyEnded, RunEnded, RunStarted, TextStreamed, Update
from farhand.models import Turn, Use
from tests.client.story import BEN, Heard, app_of, client_of, office, served_by


def kinds(updates: list[Update]) -> list[str]:
    return [type(update).__name__ for update in updates]


async def test_a_run_gives_what_the_agent_says() -> None:
    async with office() as client:
        result = await client.thread("t").run("hi")
    assert (result.output, result.text, result.status, result.thread_id) == ("you said: hi",) * 2 + ("done", "t")
    assert result.messages == (UserMessage((Text("hi"),)), AssistantMessage("you said: hi"))


async def test_a_result_has_the_calls_the_usage_and_all_that_was_said() -> None:
    usage = Usage(input=3, output=4)
    script = [Turn("Let me see. ", Use("pick", {"n": 1}), usage=usage), Turn("Done.", usage=usage)]
    async with office(script=script) as client:
        client.implement("pick", lambda given: {"picked": given["n"]})
        result = await client.thread().run("hi")
    [call] = result.calls
    assert (call.tool, call.arguments, call.output, call.outcome) == ("pick", {"n": 1}, {"picked": 1}, "ok")
    assert result.usage == Usage(input=6, output=8)
    [said, reply, told, last] = result.messages
    assert (said.text, reply.text, told.text, last.text) == ("hi", "Let me see. ", '{"picked":1}', "Done.")
    assert isinstance(reply, AssistantMessage)
    assert isinstance(told, ToolMessage)
    assert [request.id for request in reply.calls] == [told.call_id] == [call.id]
    assert result.pending == ()


async def test_updates_come_as_they_happen_and_the_result_after_them() -> None:
    async with office(script=[Turn(["Hel", "lo"])]) as client:
        stream = client.thread("t").stream("hi")
        updates = [update async for update in stream]
        result = await stream
    assert kinds(updates) == ["RunStarted", "TurnStarted", "TextStreamed", "TextStreamed", "ReplyEnded", "RunEnded"]
    assert (result.output, result.id, stream.run_id) == ("Hello", updates[0].run_id, result.id)  # type: ignore[union-attr]
    assert result.position == stream.position == str(updates[-1].seq)


async def test_a_thread_without_a_name_is_a_new_one_and_a_named_one_goes_on() -> None:
    async with office() as client:
        assert client.thread().id != client.thread().id
        await client.thread("t").run("one")
        await client.thread("t").run("two")
        state = await client.thread("t").state()
    assert [message.text for message in state.messages] == ["one", "you said: one", "two", "you said: two"]
    assert (state.id, state.run_id, state.calls) == ("t", "", ())


async def test_two_people_may_use_one_name_for_a_thread() -> None:
    app = app_of()
    async with served_by(app) as url, client_of(url) as ann, client_of(url, token=BEN) as ben:
        await ann.thread("t").run("of ann")
        await ben.thread("t").run("of ben")
        state = await ben.thread("t").state()
    assert [message.text for message in state.messages] == ["of ben", "you said: of ben"]


async def test_the_input_may_be_parts() -> None:
    async with office(script=["ok"]) as client:
        result = await client.thread("t").run(["Look:", Binary("image/png", data=b"123")])
        state = await client.thread("t").state()
        with pytest.raises(InvalidInput, match="is text, parts or a list"):
            await client.thread("t").run(5)  # type: ignore[arg-type]
    assert result.messages[0] == state.messages[0] == UserMessage((Text("Look:"), Binary("image/png", data=b"123")))


async def test_structured_output_is_read_as_a_type() -> None:
    agent = Agent(scripted(['{"n": 1}', '{"n": 2}']), output=dict[str, int])
    async with office(agent) as client:
        result = await client.thread().run("hi")
        assert result.output_as(dict[str, int]) == {"n": 1}
        with pytest.raises(RunFailed, match="not what was asked for"):
            result.output_as(list[int])


async def test_the_agent_is_chosen_by_name() -> None:
    agents = [Agent(scripted([f"I am {name}"]), name=name) for name in ("a", "b")]
    async with office(*agents) as client:
        assert (await client.thread().run("hi", agent="b")).output == "I am b"
        with pytest.raises(UsageError, match="no agent"):
            await client.thread().run("hi", agent="c")


async def test_a_run_that_fails_says_why_and_has_no_output() -> None:
    async with office(script=[]) as client:
        result = await client.thread().run("hi")
        assert (result.status, result.failure is not None) == ("failed", True)
        with pytest.raises(RunFailed, match="without a result: the script has 0 turns"):
            _ = result.output


async def test_a_key_makes_a_run_once() -> None:
    async with office() as client:
        first = await client.thread("t").run("hi", key="k")
        again = await client.thread("t").run("hi", key="k")
        with pytest.raises(StartConflict):
            await client.thread("t").run("something else", key="k")
        state = await client.thread("t").state()
    assert (again.id, again.output) == (first.id, first.output)
    assert len(state.messages) == 2


async def test_a_busy_thread_takes_a_new_input_or_refuses_it() -> None:
    model = manual()
    async with office(script=model) as client:
        thread = client.thread("t")
        first = asyncio.create_task(thread.run("one"))
        await model.asked()
        with pytest.raises(ThreadBusy):
            await thread.run("two", busy="refuse")
        second = asyncio.create_task(thread.run("three"))
        await model.asked()
        model.say("ok")
        assert (await first).status == "cancelled"
        assert (await second).output == "ok"


async def test_capabilities_can_be_asked_for() -> None:
    async with office() as client:
        assert (await client.thread().run("hi", requires=("claims",))).status == "done"
        with pytest.raises(InvalidInput, match="requires"):
            await client.thread().run("hi", requires=("time travel",))


async def test_a_definition_of_a_tool_that_the_server_has_is_refused_with_what_to_do() -> None:
    async with office() as client:
        client.register({"name": "pick", "description": "Mine.", "parameters": {"type": "object"}}, lambda given: 1)
        with pytest.raises(DuplicateToolName) as raised:
            await client.thread().run("hi")
    assert any("client.implement" in note for note in raised.value.__notes__)


# Leaving and coming back.


async def test_leaving_a_stream_leaves_the_run_and_somebody_else_follows_it() -> None:
    model = manual()
    async with office(script=model) as client:
        thread = client.thread("t")
        stream = thread.stream("hi")
        async for update in stream:
            assert isinstance(update, RunStarted)
            break
        left = await stream
        assert (left.status, left.id) == ("running", stream.run_id)
        with pytest.raises(RunFailed, match="no result yet; it is running"):
            _ = left.output
        resumed = asyncio.create_task(until_done(client.thread("t").resume(stream.run_id)))
        await model.asked()
        model.say("still here")
        result = await resumed
    assert (result.output, result.id) == ("still here", left.id)
    assert [message.text for message in result.messages] == ["hi", "still here"]


async def test_a_stream_is_read_once() -> None:
    async with office() as client:
        stream = client.thread().stream("hi")
        await stream
        assert (await stream).status == "done"
        with pytest.raises(UsageError, match="read once"):
            aiter(stream)


async def test_the_latest_run_of_a_thread_is_resumed_also_when_it_has_ended() -> None:
    async with office() as client:
        await client.thread("t").run("one")
        done = await client.thread("t").run("two pick", hold=False)
        assert done.status == "waiting"
        client.implement("pick", lambda given: {"x": 1})
        result = await client.thread("t").resume()
        assert (result.output, result.id, [call.outcome for call in result.calls]) == ('so: {"x":1}', done.id, ["ok"])
        over = [update async for update in client.thread("t").resume()]
        assert kinds(over) == ["RunEnded"]
        again = await client.thread("t").resume(done.id)
        assert (again.output, again.messages[0].text) == ('so: {"x":1}', "two pick")


async def test_a_thread_knows_its_latest_run_among_any_number_of_others() -> None:
    async with office() as client:
        thread = client.thread("t")
        with pytest.raises(UnknownCall):
            await thread.resume()
        first = await thread.run("one")
        waits = await thread.run("pick", run_tools=False)
        while_it_waits = await thread.state()
        await client.thread("u").run("elsewhere")
        await thread.cancel()
        afterwards = await thread.state()
    assert first.id != waits.id
    assert (while_it_waits.run_id, while_it_waits.latest_run_id) == (waits.id, waits.id)
    assert (afterwards.run_id, afterwards.latest_run_id) == ("", waits.id)


async def test_an_older_run_is_resumed_by_its_id() -> None:
    async with office() as client:
        thread = client.thread("t")
        first = await thread.run("one")
        await thread.run("two")
        result = await thread.resume(first.id)
        assert (result.output, result.id, result.messages) == ("you said: one", first.id, ())


async def test_a_run_of_another_thread_or_none_cannot_be_resumed() -> None:
    async with office() as client:
        first = await client.thread("t").run("one")
        for thread, run_id in ((client.thread("u"), first.id), (client.thread("u"), None), (client.thread("t"), "x")):
            with pytest.raises(UnknownCall):
                await thread.resume(run_id)


async def test_a_run_can_be_started_and_left_to_itself() -> None:
    async with office() as client:
        thread = client.thread("t")
        handle = await thread.start("pick")
        heard = [update async for update in thread.resume(handle.run_id, run_tools=False)]
        assert (await client.get_run(handle.run_id)).state == "waiting"
        client.implement("pick", lambda given: {"y": 2})
        result = await thread.resume(handle.run_id)
    assert result.output == 'so: {"y":2}'
    assert all(type(update) is not RunEnded for update in heard)


async def test_a_run_is_cancelled_by_its_stream_its_thread_or_its_id() -> None:
    model = manual()
    async with office(script=model) as client:
        thread = client.thread("t")

        async def by_id(stream: Stream) -> bool:
            return await client.cancel((await thread.state()).run_id, "enough")

        for cancel in (Stream.cancel, lambda stream: thread.cancel("enough"), by_id):
            stream = thread.stream("hi")
            following = asyncio.create_task(until_done(stream))
            await model.asked()
            await cancel(stream)
            assert (await following).status == "cancelled"
        assert not await thread.cancel()
        assert not await client.cancel(stream.run_id)


async def test_a_stream_that_has_not_begun_cannot_be_cancelled() -> None:
    async with office() as client:
        with pytest.raises(UsageError, match="has not begun"):
            await client.thread().stream("hi").cancel()


async def test_whoever_waits_for_a_run_may_stop_to_wait() -> None:
    model = manual()
    async with office(script=model) as client:
        thread = client.thread("t")
        waiting = asyncio.create_task(thread.run("hi"))
        await model.asked()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        state = await thread.state()
        assert (await client.get_run(state.run_id)).state == "running"


# Watching.


async def test_a_thread_is_watched_from_the_beginning_or_from_a_position() -> None:
    async with office() as client:
        thread = client.thread("t")
        first = await thread.run("one")
        watch = thread.watch()
        seen: list[Update] = []
        async for update in watch:
            seen.append(update)
            if isinstance(update, RunEnded):
                break
        assert "TextStreamed" not in kinds(seen)  # what was stored tells the story without it
        assert watch.position == first.position
        await thread.run("two")
        later: list[Update] = []
        async for update in thread.watch(after=first.position):
            later.append(update)
            if isinstance(update, RunEnded):
                break
        assert [update.text for update in later if isinstance(update, ReplyEnded)] == ["you said: two"]


async def test_a_watcher_sees_what_happens_now() -> None:
    model = manual()
    async with office(script=model) as client:
        thread = client.thread("t")
        running = asyncio.create_task(thread.run("hi"))
        await model.asked()
        text = ""
        async for update in thread.watch():
            if isinstance(update, RunStarted):
                model.say("hello")
            if isinstance(update, TextStreamed):
                text += update.text
            if isinstance(update, RunEnded):
                break
        assert (await running).output == text == "hello"


async def test_a_stream_tells_its_beginning_and_its_end() -> None:
    async with office() as client:
        heard = Heard(client, "stream_start", "stream_end")
        result = await client.thread("t").run("hi")
        start, end = heard.events
    assert (start.thread_id, start.run_id) == (end.thread_id, end.run_id) == ("t", result.id)
    assert end.status == "done"


async def test_the_server_orders_results_not_their_arrival() -> None:
    gate = asyncio.Event()

    async def slow(given: dict[str, Any]) -> Any:
        await gate.wait()
        return {"slow": True}

    async def quick(given: dict[str, Any]) -> Any:
        return {"quick": True}

    def tell(update: Update) -> None:
        if isinstance(update, CallEnded):
            gate.set()

    async with office(script=[Turn("", Use("slow"), Use("quick")), "ok"], tools=()) as client:
        for name, function in (("slow", slow), ("quick", quick)):
            client.register({"name": name, "description": name, "parameters": {"type": "object"}}, function)
        stream = client.thread().stream("hi")
        ended: list[str] = []
        async for update in stream:
            tell(update)
            if isinstance(update, CallEnded):
                ended.append(update.tool)
        result = await stream
    assert ended == ["quick", "slow"]
    assert [message.text for message in result.messages if isinstance(message, ToolMessage)] == [
        '{"slow":true}',
        '{"quick":true}',
    ]


async def until_done(stream: Any) -> RunResult:
    return await stream


def test_names_of_threads_are_checked_before_anything_is_sent() -> None:
    client = client_of("http://127.0.0.1:9")
    for name in ("a\nb", "x" * 129, ".."):
        with pytest.raises(UsageError, match="an id has 1 to 128 characters"):
            client.thread(name)
