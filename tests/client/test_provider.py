"""Providers: clients that offer their tools to every thread of their principal, whatever it talks about."""

import asyncio
from typing import Any

import pytest

from farhand import CallContext, scripted
from farhand.client import Accepted
from farhand.core.errors import NotAuthenticated
from farhand.models import Turn, Use
from tests.client.story import BEN, Heard, app_of, cabled, client_of, served_by
from tests.client.test_pool import define, told


async def test_an_editor_offers_its_tools_to_the_chats_of_its_user() -> None:
    opened: list[str] = []
    script = [Turn("", Use("pick"), Use("open_file", {"path": "a.py"})), "ok"]
    async with served_by(app_of(script=script)) as url, client_of(url) as chat, client_of(url) as editor:

        @editor.tool
        def open_file(path: str, context: CallContext) -> str:
            """Open a file."""
            opened.append(f"{path} in {context.thread_id}")
            return "opened"

        editor.implement("pick", lambda given: {"picked": True})
        async with editor.providing():
            result = await chat.thread("t").run("hi")
    assert (told(result), opened) == (['{"picked":true}', "opened"], ["a.py in t"])


async def test_tools_of_somebody_elses_editor_are_not_there() -> None:
    model = scripted(["ok"])
    async with (
        served_by(app_of(script=model, tools=())) as url,
        client_of(url, token=BEN) as ben,
        client_of(url) as ann,
    ):
        ben.register(define("bens"), lambda given: 1)
        async with ben.providing():
            await ann.thread().run("hi")
    assert model.requests[0].tools == ()


async def test_a_provider_is_there_only_while_it_provides() -> None:
    model = scripted(["one", "two"])
    async with served_by(app_of(script=model, tools=())) as url, client_of(url) as chat, client_of(url) as editor:
        editor.register(define("mine"), lambda given: 1)
        async with editor.providing():
            await chat.thread().run("hi")
        await chat.thread().run("hi")
    assert [len(request.tools) for request in model.requests] == [1, 0]


async def test_tools_that_change_are_offered_anew() -> None:
    async with served_by(app_of(tools=())) as url, client_of(url) as chat, client_of(url) as editor:
        editor.register(define("first"), lambda given: 1)
        async with editor.providing():
            assert (await chat.thread().run("first")).output == "so: 1"
            editor.unregister("first")
            editor.register(define("second"), lambda given: 2)
            while (answer := (await chat.thread().run("first second")).output) != "so: 2":
                assert answer in ("so: 1", "you said: first second")


async def test_a_provider_comes_back_and_works_on_what_has_waited() -> None:
    app = app_of()
    async with cabled(app) as (editor, cable), client_of(f"http://{cable._there[0]}:{cable._there[1]}") as chat:
        editor.implement("pick", lambda given: {"late": True})
        heard = Heard(editor, "reconnected", "auto_retry")
        async with editor.providing():
            await cable.cut()
            running = asyncio.create_task(chat.thread("t").run("pick"))
            await heard.until(len)
            await cable.mend()
            assert (await running).output == 'so: {"late":true}'
    assert any(type(event).__name__ == "Reconnected" and event.thread_id == "" for event in heard.events)


async def test_work_goes_on_while_a_provider_is_cut_off() -> None:
    at_work, gate, ran = asyncio.Event(), asyncio.Event(), []

    async def work(given: dict[str, Any]) -> dict[str, Any]:
        ran.append(1)
        at_work.set()
        await gate.wait()
        return {"done": True}

    async with cabled(app_of()) as (editor, cable), client_of(f"http://{cable._there[0]}:{cable._there[1]}") as chat:
        editor.implement("pick", work)
        heard = Heard(editor, "reconnected")
        async with editor.providing():
            running = asyncio.create_task(chat.thread("t").run("pick"))
            await at_work.wait()
            cable.drop()
            await heard.until(len)
            gate.set()
            assert (await running).output == 'so: {"done":true}'
    assert ran == [1]


async def test_a_call_that_is_withdrawn_is_stopped() -> None:
    at_work, stopped = asyncio.Event(), asyncio.Event()

    async def work(given: dict[str, Any]) -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with served_by(app_of()) as url, client_of(url) as chat, client_of(url) as editor:
        editor.implement("pick", work)
        async with editor.providing():
            running = asyncio.create_task(chat.thread("t").run("pick"))
            await at_work.wait()
            await chat.thread("t").cancel()
            await stopped.wait()
            assert (await running).status == "cancelled"


async def test_a_client_that_chats_and_provides_runs_each_call_once_and_as_its_chat_says() -> None:
    ran: list[str] = []
    async with served_by(app_of(script=[Turn("", Use("pick"), Use("mine")), "ok"])) as url, client_of(url) as client:
        client.implement("pick", lambda given: {"by": ran.append("function")})
        async with client.providing():
            client.register(define("mine"), lambda given: ran.append("mine"))
            result = await client.thread().run(
                "hi", on_tool_call=lambda call: {"by": ran.append(f"callback {call.tool}")}
            )
    assert sorted(ran) == ["callback mine", "callback pick"]
    assert result.status == "done"


async def test_what_a_chat_leaves_a_provider_of_the_same_client_takes() -> None:
    async with served_by(app_of()) as url, client_of(url) as client:
        client.implement("pick", lambda given: {"by": "provider"})
        async with client.providing():
            result = await client.thread("t").run("pick", run_tools=False)
            assert result.status == "waiting"
            assert (await client.thread("t").resume(result.id)).output == 'so: {"by":"provider"}'


async def test_a_provider_may_work_in_the_background() -> None:
    ids: list[str] = []

    def print_(given: dict[str, Any], context: CallContext) -> Any:
        ids.append(context.call_id)
        return Accepted("printing")

    app = app_of(script=[Use("print"), "started"], tools=())
    async with served_by(app) as url, client_of(url) as chat, client_of(url) as printer:
        printer.register(define("print"), print_)
        async with printer.providing():
            assert (await chat.thread("t").run("hi")).output == "started"
            assert not (await printer.report(ids[0], "3 pages")).repeated


async def test_providing_fails_at_once_if_the_server_refuses() -> None:
    async with served_by(app_of()) as url, client_of(url, token="wrong-token-of-nobody-else") as client:
        with pytest.raises(NotAuthenticated):
            async with client.providing():
                pytest.fail("it was let in")
        with pytest.raises(NotAuthenticated):
            await client.provide()


async def test_a_provider_waits_for_a_server_that_is_not_there_yet() -> None:
    async with cabled(app_of()) as (client, cable):
        await cable.cut()
        client.implement("pick", lambda given: {"there": True})
        heard = Heard(client, "auto_retry")
        providing = asyncio.create_task(client.provide())
        await heard.until(lambda events: len(events) > 3)
        await cable.mend()
        assert (await client.thread().run("pick")).output == 'so: {"there":true}'
        providing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await providing
