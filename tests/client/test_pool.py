"""Calls that a client works on: taken up once, run side by side, answered whatever happens, and stopped in time."""

import asyncio
import threading
from typing import Any

import httpx2
import pytest
from msgspec import Struct

from farhand import Agent, Approve, Binary, CallContext, Limits, ToolError, scripted, tool
from farhand.client import Accepted, Client, ClientCall, NotMine, Plugin, pool
from farhand.core.call import Outcome
from farhand.core.errors import DuplicateToolName, UsageError
from farhand.core.messages import Text
from farhand.core.updates import CallEnded, CallExecuting, CallProgress, CallReported, Update
from farhand.models import Turn, Use
from tests.client.story import ANN, Heard, again, app_of, cabled, client_of, office, pick, served_by

ANY = {"type": "object"}


def define(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": name, "parameters": ANY, **more}


def told(result: Any) -> list[str]:
    return [message.text for message in result.messages if message.__class__.__name__ == "ToolMessage"]


# Tools in all forms.


async def test_a_decorated_function_is_a_tool_that_the_agent_uses_here() -> None:
    async with office(script=[Use("add", {"a": 1, "b": 2}), "3"]) as client:

        @client.tool
        async def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        result = await client.thread().run("hi")
        assert (told(result), await add(1, 2)) == (["3"], 3)
        assert result.calls_of(add)[0].output == 3


async def test_the_decorator_takes_the_settings_of_a_tool() -> None:
    async with office(script=[Use("look", {}), "ok"]) as client:

        @client.tool(name="look", description="Look.", effect="pure", timeout=5.0)
        def find() -> str:
            return threading.current_thread().name

        [definition] = client.tools_offered
        result = await client.thread().run("hi")
    assert (definition.name, definition.policy.effect, definition.policy.timeout) == ("look", "pure", 5.0)
    assert "farhand-tool" in told(result)[0]


async def test_definitions_tools_and_functions_can_be_registered_in_any_form() -> None:
    class Item(Struct):
        n: int

    typed = tool.define("typed", input=dict[str, int], output=int, description="Typed.")
    async with office(
        script=[Turn("", *(Use(name, {"n": 2}) for name in ("plain", "typed", "ready"))), "ok"]
    ) as client:
        client.register(define("plain"), lambda given: Item(given["n"]))
        client.register(typed.client(lambda given: given["n"] * 2))
        client.register(tool.define("ready", description="Ready."), lambda given, context: context.tool)
        result = await client.thread().run("hi")
        assert told(result) == ['{"n":2}', "4", "ready"]


async def test_tools_of_the_server_are_run_by_name_or_by_their_definition() -> None:
    async with office(script=[Use("pick", {"n": 1}), Use("pick", {"n": 2}), "ok"]) as client:
        client.implement("pick", lambda given: given)
        first = await client.thread().run("hi", max_tool_rounds=1)
        client.unregister("pick")
        client.implement(pick.client(lambda given: {"more": given}))
        assert client.tools_implemented == ("pick",)
        assert client.tools_offered == ()
    assert told(first)[0] == '{"n":1}'


async def test_a_nested_type_is_sent_without_references() -> None:
    from pydantic import BaseModel

    class Item(BaseModel):
        name: str

    async with office(script=[Use("buy", {"items": [{"name": "tea"}]}), "ok"]) as client:

        @client.tool
        def buy(items: list[Item]) -> list[Item]:
            """Buy some."""
            return [Item(name=item.name.upper()) for item in items]

        assert told(await client.thread().run("hi")) == ['[{"name":"TEA"}]']


async def test_a_name_is_registered_once() -> None:
    client = client_of("http://127.0.0.1:9")
    client.register(define("one"))
    for again_ in (lambda: client.register(define("One")), lambda: client.implement("one", print)):
        with pytest.raises(DuplicateToolName, match="there is the client's own tool 'one'"):
            again_()
    with pytest.raises(UsageError, match="no tool 'two' is registered here"):
        client.unregister("two")
    with pytest.raises(UsageError, match="tool 'two' needs a function"):
        client.implement("two")


async def test_tools_may_be_added_for_one_run_picked_and_left_out() -> None:
    model = scripted(["ok"] * 4)
    async with office(script=model, tools=()) as client:
        client.register(define("one"), lambda given: 1)
        client.register(define("two"), lambda given: 2)
        thread = client.thread()
        await thread.run("hi", tools=[define("three")])
        await thread.run("hi", only=["two"])
        await thread.run("hi", without=["two"])
        with pytest.raises(DuplicateToolName, match="'two' is registered already"):
            await thread.run("hi", tools=[define("two")])
    assert [[each.name for each in request.tools] for request in model.requests] == [
        ["one", "two", "three"],
        ["two"],
        ["one"],
    ]


async def test_results_may_be_any_value_parts_and_files() -> None:
    results: list[Any] = [None, 0, False, "", [], {}, [Text("see"), Binary("image/png", data=b"1")], Text("only")]
    async with office(Agent(scripted(again("give", len(results))), limits=Limits(max_turns=20))) as client:
        waiting = iter(results)
        client.register(define("give"), lambda given: next(waiting))
        stream = client.thread().stream("hi", max_tool_rounds=0)
        ended = [update async for update in stream if isinstance(update, CallEnded)]
    assert {update.outcome for update in ended} == {Outcome.OK}
    assert [update.value for update in ended[:6]] == results[:6]
    assert [part["type"] for part in ended[6].value] == ["text", "binary"]
    assert ended[7].value == [{"type": "text", "text": "only"}]


# Failures.


async def test_what_a_function_raises_is_told_in_general_terms_unless_it_is_meant_for_the_model() -> None:
    def fail(given: dict[str, Any]) -> None:
        raise ValueError("the password is 123")

    def say(given: dict[str, Any]) -> None:
        raise ToolError("no window is open", code="no_window")

    script = [Turn("", Use("fail"), Use("say")), "sorry"]
    async with office(script=script, tools=()) as client:
        client.register(define("fail"), fail)
        client.register(define("say"), say)
        heard = Heard(client, "tool_end")
        result = await client.thread().run("hi")
        await heard.until(lambda events: len(events) == 2)
    hidden, said = told(result)
    assert hidden.startswith("Error: Tool 'fail' failed (error ")
    assert said == "Error: no window is open"
    assert {event.outcome for event in heard.events} == {"failed"}
    assert {event.failure.code for event in heard.events} == {"tool_failed", "no_window"}


async def test_texts_of_exceptions_are_shown_to_the_model_on_request() -> None:
    async with office(script=[Use("fail"), "sorry"], tools=(), show_errors=True) as client:
        client.register(define("fail"), lambda given: given["x"])
        assert told(await client.thread().run("hi")) == ["Error: 'x'"]


async def test_a_tool_without_a_function_is_an_unknown_tool() -> None:
    async with office(script=[Use("nothing"), "sorry"], tools=()) as client:
        client.register(define("nothing"))
        heard = Heard(client, "missing_tool", "tool_start", "tool_end")
        assert told(await client.thread().run("hi")) == ["Error: Unknown tool: nothing"]
        await heard.until(lambda events: len(events) == 2)
    assert [type(event).__name__ for event in heard.events] == ["MissingTool", "ToolEnd"]


async def test_a_tool_that_nobody_runs_is_reported_missing_and_left_to_its_policy() -> None:
    lost = tool.define("lost", description="Lost.")
    agent = Agent(scripted([Use("lost"), "sorry"]), tools=[lost], limits=Limits(grace=0.05))
    async with office(agent) as client:
        heard = Heard(client, "missing_tool")
        result = await client.thread().run("hi")
    assert told(result) == ["Error: Client disconnected. Tool 'lost' is unavailable."]
    assert [event.call.tool for event in heard.events] == ["lost"]


async def test_arguments_are_checked_here_too() -> None:
    narrow = tool.define("pick", input=dict[str, int], description="Pick.")
    async with office(script=[Use("pick", {"n": "many"}), "sorry"]) as client:
        client.implement(narrow.client(lambda given: given))
        heard = Heard(client, "tool_validation_error", "tool_start")
        result = await client.thread().run("hi")
    [event] = heard.events
    assert (event.what, event.problems[0].path) == ("arguments", "/n")
    assert told(result)[0].startswith("Error: ")


async def test_a_result_that_breaks_the_output_schema_is_a_failure() -> None:
    async with office(script=[Use("pick"), "sorry"]) as client:
        client.implement("pick", lambda given: "no object")
        heard = Heard(client, "tool_validation_error")
        result = await client.thread().run("hi")
    assert [event.what for event in heard.events] == ["result"]
    assert "result is not valid" in told(result)[0]


async def test_a_result_that_is_no_json_or_too_large_is_a_failure() -> None:
    script = [Turn("", Use("odd"), Use("large")), "sorry"]
    async with office(script=script, tools=()) as client:
        client.register(define("odd"), lambda given: object())
        client.register(define("large"), lambda given: "x" * 2_000_000)
        result = await client.thread().run("hi")
    odd, large = told(result)
    assert odd.startswith("Error: Tool 'odd' failed (error ")
    assert "at most" in large
    assert result.status == "done"


async def test_a_function_gets_the_secrets_that_a_conversation_does_not_show() -> None:
    parameters = {"type": "object", "properties": {"pin": {"type": "string", "secret": True}}}
    got: list[Any] = []
    async with office(script=[Use("log_in", {"pin": "1234"}), "ok"], tools=()) as client:
        client.register(define("log_in") | {"parameters": parameters}, got.append)
        await client.thread("t").run("hi")
        state = await client.thread("t").state()
    assert got == [{"pin": "1234"}]
    assert "1234" not in repr(state.messages)


# Rounds.


async def test_rounds_have_a_limit_beyond_which_nothing_runs_and_everything_is_answered() -> None:
    ran: list[int] = []
    agent = Agent(scripted(again("step", 4)), limits=Limits(max_turns=20))
    async with office(agent, max_tool_rounds=2) as client:
        client.register(define("step"), lambda given: ran.append(1))
        heard = Heard(client, "max_tools_reached")
        result = await client.thread().run("hi")
    assert len(ran) == 2
    assert told(result) == [
        "null",
        "null",
        *["Error: Tool 'step' was not run: the limit of 2 rounds of tools is reached. Answer without tools."] * 2,
    ]
    assert [(event.limit, event.run_id) for event in heard.events] == [(2, result.id)]
    assert (result.status, result.output) == ("done", "after 4")


async def test_five_rounds_are_usual_and_none_is_no_limit() -> None:
    async def rounds(**settings: Any) -> int:
        ran: list[int] = []
        agent = Agent(scripted(again("step", 8)), limits=Limits(max_turns=20))
        async with office(agent) as client:
            client.register(define("step"), lambda given: ran.append(1))
            await client.thread().run("hi", **settings)
        return len(ran)

    assert (await rounds(), await rounds(max_tool_rounds=0), await rounds(max_tool_rounds=1)) == (5, 8, 1)


async def test_a_round_is_one_reply_however_many_calls_it_holds() -> None:
    script = [Turn("", Use("step"), Use("step"), Use("step")), "ok"]
    async with office(script=script, tools=()) as client:
        client.register(define("step"), lambda given: 1)
        assert told(await client.thread().run("hi", max_tool_rounds=1)) == ["1", "1", "1"]


async def test_calls_can_be_handled_by_hand() -> None:
    async with office() as client:
        client.implement("pick", lambda given: {"never": True})
        thread = client.thread("t")
        result = await thread.run("pick", run_tools=False)
        [call] = result.pending
        assert (result.status, call.tool) == ("waiting", "pick")
        await client.claim(call.id)
        await client.answer(call.id, {"by": "hand"})
        assert (await thread.resume(result.id)).output == 'so: {"by":"hand"}'


# The callback of a run.


async def test_a_callback_answers_calls_before_their_functions() -> None:
    async def ask(call: ClientCall[Any, Any]) -> Any:
        return {"asked": call.arguments["n"]} if call.tool == "pick" else NotMine

    script = [Turn("", Use("pick", {"n": 1}), Use("mine")), "ok"]
    async with office(script=script) as client:
        client.register(define("mine"), lambda given: "function")
        result = await client.thread().run("hi", on_tool_call=ask)
    assert told(result) == ['{"asked":1}', "function"]


async def test_a_callback_is_asked_for_tools_without_a_function_and_may_leave_them_unknown() -> None:
    script = [Turn("", Use("a"), Use("b")), "ok"]
    async with office(script=script, tools=()) as client:
        client.register(define("a"))
        client.register(define("b"))
        heard = Heard(client, "missing_tool")
        result = await client.thread().run("hi", on_tool_call=lambda call: 1 if call.tool == "a" else NotMine())
    assert told(result) == ["1", "Error: Unknown tool: b"]
    assert [event.call.tool for event in heard.events] == ["b"]


async def test_a_callback_that_is_not_async_runs_in_a_thread_and_may_take_the_context() -> None:
    def ask(call: ClientCall[Any, Any], context: CallContext) -> Any:
        return {"thread": threading.current_thread().name, "same": context.call_id == call.id}

    async with office(script=[Use("pick"), "ok"]) as client:
        [said] = told(await client.thread().run("hi", on_tool_call=ask))
    assert "farhand-tool" in said
    assert '"same":true' in said


async def test_what_a_callback_raises_fails_its_call() -> None:
    def ask(call: ClientCall[Any, Any]) -> Any:
        raise ToolError("not today")

    async with office(script=[Use("pick"), "ok"]) as client:
        assert told(await client.thread().run("hi", on_tool_call=ask)) == ["Error: not today"]


async def test_beside_other_clients_a_callback_takes_what_it_offers() -> None:
    other = tool.define("other", description="Another client's.")
    app = app_of(script=[Turn("", Use("pick"), Use("other")), "ok"], tools=(pick, other))
    async with served_by(app) as url, client_of(url) as chat, client_of(url) as editor:
        editor.implement("other", lambda given: "editor")
        async with editor.providing():
            result = await chat.thread().run("hi", on_tool_call=lambda call: {"by": "chat"}, offers=["pick"])
    assert told(result) == ['{"by":"chat"}', "editor"]


# Side by side.


async def test_calls_run_side_by_side_up_to_a_limit() -> None:
    working, most = 0, 0
    gate = asyncio.Event()

    async def work(given: dict[str, Any]) -> int:
        nonlocal working, most
        working += 1
        most = max(most, working)
        if working == 2:
            gate.set()
        await gate.wait()
        working -= 1
        return most

    script = [Turn("", *(Use("work", {"n": n}) for n in range(6))), "ok"]
    async with office(script=script, tools=(), max_parallel=2) as client:
        client.register(define("work"), work)
        result = await client.thread().run("hi")
    assert (len(told(result)), most) == (6, 2)


async def test_functions_run_beside_the_stream() -> None:
    gate, seen = asyncio.Event(), asyncio.Event()

    async def work(given: dict[str, Any]) -> str:
        seen.set()
        await gate.wait()
        return "done"

    async with office(script=[Use("work"), "ok"], tools=()) as client:
        client.register(define("work"), work)
        stream = aiter(client.thread().stream("hi"))
        async for update in stream:
            if isinstance(update, CallExecuting):
                await seen.wait()  # the function is at work although nobody reads on
                gate.set()
        assert gate.is_set()


async def test_of_two_clients_one_runs_a_call() -> None:
    ran: list[str] = []
    app = app_of(script=[Use("pick"), "ok"])
    async with served_by(app) as url, client_of(url, id="one") as one, client_of(url, id="two") as two:
        for client in (one, two):
            client.implement("pick", lambda given, client=client: {"by": ran.append(client.id)})
        async with two.providing():
            result = await one.thread().run("hi")
    assert (len(ran), result.status) == (1, "done")


async def test_a_function_may_give_its_call_back_to_another_client() -> None:
    asked: list[str] = []
    async with served_by(app_of()) as url, client_of(url) as one, client_of(url) as two:
        called = asyncio.Event()

        async def not_here(given: dict[str, Any], context: CallContext) -> None:
            asked.append("one")
            called.set()
            await one.release(context.call_id)
            await asyncio.Event().wait()

        async def here(given: dict[str, Any]) -> dict[str, Any]:
            asked.append("two")
            return {"x": 1}

        one.implement("pick", not_here)
        running = asyncio.create_task(one.thread("t").run("pick"))
        await called.wait()
        two.implement("pick", here)
        async with two.providing():
            result = await running
    assert (asked, result.output) == (["one", "two"], 'so: {"x":1}')


async def test_a_call_for_one_client_is_left_alone_by_the_others() -> None:
    ran: list[str] = []
    app = app_of(script=[Use("pick"), "ok"])
    async with served_by(app) as url, client_of(url, id="one") as one, client_of(url, id="two") as two:
        for client in (one, two):
            client.implement("pick", lambda given, client=client: {"by": ran.append(client.id)})
        async with two.providing():
            await one.thread().run("hi", target="two")
    assert ran == ["two"]


# Time.


async def test_a_tool_has_its_own_time_and_the_client_one_for_all() -> None:
    stopped: list[str] = []

    async def hang(given: dict[str, Any], context: CallContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(f"{context.tool} {context.cancelled}")

    script = [Turn("", Use("pick", {}), Use("usual", {})), "ok"]
    async with office(script=script, tool_timeout=0.05) as client:
        client.implement(tool.define("pick", description="Pick.", timeout=0.02, effect="pure").client(hang))
        client.register(define("usual"), hang)
        heard = Heard(client, "timeout")
        result = await client.thread().run("hi")
    assert sorted(event.seconds for event in heard.events) == [0.02, 0.05]
    assert set(told(result)) == {
        "Error: Client tool 'pick' timed out after 0.02 s.",
        "Error: Client tool 'usual' timed out after 0.05 s. It may or may not have taken effect.",
    }
    assert len(stopped) == 2


async def test_a_timeout_of_the_functions_own_is_a_failure_like_any_other() -> None:
    async def hasty(given: dict[str, Any]) -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    async with office(script=[Use("hasty"), "ok"], tools=()) as client:
        client.register(define("hasty"), hasty)
        heard = Heard(client, "timeout")
        assert "failed (error" in told(await client.thread().run("hi"))[0]
    assert heard.events == []


async def test_a_call_that_is_called_off_stops_its_function() -> None:
    at_work = asyncio.Event()
    stopped: list[str] = []

    async def hang(given: dict[str, Any], context: CallContext) -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(f"cancelled: {context.cancelled}")
            raise

    async with office(script=[Use("hang"), "ok"], tools=()) as client:
        client.register(define("hang"), hang)
        heard = Heard(client, "tool_end")
        running = asyncio.create_task(client.thread("t").run("hi"))
        await at_work.wait()
        [call] = await client.pending("t")
        await client.cancel_call(call.id, "not needed")
        result = await running
        await heard.until(len)
    assert "not needed" in told(result)[0]
    assert stopped == ["cancelled: True"]
    assert [event.outcome for event in heard.events] == ["cancelled"]


async def test_a_function_in_a_thread_is_told_that_its_call_was_called_off() -> None:
    at_work, over = threading.Event(), threading.Event()

    def block(given: dict[str, Any], context: CallContext) -> None:
        at_work.set()
        while not context.cancelled:
            over.wait(0.01)
        over.set()

    async with office(script=[Use("block"), "ok"], tools=()) as client:
        client.register(define("block"), block)
        stream = client.thread("t").stream("hi")
        running = asyncio.create_task(until_done(stream))
        await asyncio.to_thread(at_work.wait)
        await stream.cancel()
        assert (await running).status == "cancelled"
        await asyncio.to_thread(over.wait)


async def test_a_new_input_stops_what_the_old_one_asked_for() -> None:
    at_work, stopped = asyncio.Event(), asyncio.Event()

    async def hang(given: dict[str, Any]) -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with office(script=[Use("hang"), "second"], tools=()) as client:
        client.register(define("hang"), hang)
        first = asyncio.create_task(client.thread("t").run("one"))
        await at_work.wait()
        assert (await client.thread("t").run("two")).output == "second"
        assert (await first).status == "cancelled"
        await stopped.wait()


async def test_a_function_that_does_not_want_to_stop_is_not_waited_for() -> None:
    at_work, gate = asyncio.Event(), asyncio.Event()

    async def stubborn(given: dict[str, Any]) -> str:
        at_work.set()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await gate.wait()
        return "too late"

    async with office(script=[Use("stubborn"), "ok"], tools=()) as client:
        client.register(define("stubborn"), stubborn)
        heard = Heard(client, "tool_end")
        stream = client.thread("t").stream("hi")
        running = asyncio.create_task(until_done(stream))
        await at_work.wait()
        await stream.cancel()
        assert (await running).status == "cancelled"
        gate.set()
        await heard.until(len)
    assert [event.outcome for event in heard.events] == ["cancelled"]


# Progress and background.


async def test_progress_reaches_watchers_and_its_last_word_comes_before_the_result() -> None:
    async def count(given: dict[str, Any], context: CallContext) -> str:
        for number in range(50):
            context.progress(number)
        context.progress("almost", name="stage")
        return "counted"

    async with office(script=[Use("count"), "ok"], tools=()) as client:
        client.register(define("count"), count)
        seen: list[Update] = [update async for update in client.thread().stream("hi")]
    progress = [(update.name, update.value) for update in seen if isinstance(update, CallProgress)]
    assert progress[-2:] == [("progress", 49), ("stage", "almost")]
    assert len(progress) < 10


async def test_progress_never_fails_a_tool() -> None:
    def count(given: dict[str, Any], context: CallContext) -> str:
        context.progress(object())
        context.progress(float("nan"))
        context.progress(1, name="x" * 10_000_000)
        return "counted"

    async with office(script=[Use("count"), "ok"], tools=()) as client:
        client.register(define("count"), count)
        assert told(await client.thread().run("hi")) == ["counted"]


async def test_a_function_knows_its_call_its_user_and_what_the_person_added() -> None:
    knows: list[Any] = []
    async with office(script=[Use("wipe"), "ok"], tools=()) as client:

        @client.tool(needs_approval=True)
        def wipe(context: CallContext) -> str:
            """Wipe the disk."""
            knows.append((context.principal, context.payload, context.tool, context.thread_id, context.cancelled))
            return context.call_id

        allow = Approve(payload={"why": "it is mine"})
        result = await client.thread("t").run("hi", on_approval=lambda call: allow)
    assert knows == [("ann", {"why": "it is mine"}, "wipe", "t", False)]
    assert result.calls_of(wipe)[0].output == result.calls[0].id


async def test_work_may_go_on_in_the_background_and_be_reported_later() -> None:
    calls: list[str] = []

    async def render(given: dict[str, Any], context: CallContext) -> Any:
        calls.append(context.call_id)
        return Accepted("rendering")

    async with office(script=[Use("render"), "It is on its way.", "It is done: /x.png"], tools=()) as client:
        client.register(define("render"), render)
        heard = Heard(client, "tool_end")
        result = await client.thread("t").run("hi")
        await heard.until(len)
        assert "rendering" in told(result)[0]
        receipt = await client.report(calls[0], {"file": "/x.png"})
        assert not receipt.repeated
        assert (await client.report(calls[0], {"file": "/x.png"})).repeated
        state = await until_said(client, "It is done: /x.png")
    assert [event.outcome for event in heard.events] == ["accepted"]
    assert state.messages[-1].text == "It is done: /x.png"


async def test_a_report_of_a_run_that_goes_on_is_an_update_of_it() -> None:
    async def render(given: dict[str, Any], context: CallContext) -> Any:
        return Accepted()

    async with office(script=[Turn("", Use("render"), Use("wait")), "ok"], tools=()) as client:
        client.register(define("render"), render)
        client.register(define("wait"), lambda given: report(given))
        reported = asyncio.Event()

        async def report(given: dict[str, Any]) -> str:
            await reported.wait()
            return "waited"

        seen: list[Update] = []
        async for update in client.thread("t").stream("hi"):
            seen.append(update)
            if isinstance(update, CallEnded) and update.tool == "render":
                await client.report(update.call_id, outcome="failed", message="no paper")
            if isinstance(update, CallReported):
                reported.set()
    [report_] = [update for update in seen if isinstance(update, CallReported)]
    assert (report_.outcome, report_.failure and report_.failure.message) == (Outcome.FAILED, "no paper")


# The end of a client.


async def test_a_client_that_closes_says_what_it_leaves_unfinished() -> None:
    at_work = asyncio.Event()

    async def hang(given: dict[str, Any]) -> None:
        at_work.set()
        await asyncio.Event().wait()

    async with served_by(app_of(script=[Use("hang"), "ok"], tools=())) as url:
        async with client_of(url) as client:
            client.register(define("hang"), hang)
            running = asyncio.create_task(client.thread("t").run("hi"))
            await at_work.wait()
            running.cancel()
        async with client_of(url) as other:
            state = await until_said(other, "ok")
    [failed] = [message.text for message in state.messages if "closed" in message.text]
    assert failed == "Error: Client tool 'hang' was stopped: its client has closed."


async def test_a_client_that_closes_before_it_has_begun_a_call_gives_it_back() -> None:
    """Its claim has arrived, and nobody has told it so yet: a `once` call is not lost by that."""
    claimed = asyncio.Event()

    async def hold_back(response: httpx2.Response) -> None:
        if response.url.path.endswith("/claim"):
            claimed.set()
            await asyncio.Event().wait()

    async with (
        served_by(app_of()) as url,
        httpx2.AsyncClient(event_hooks={"response": [hold_back]}) as http,
        client_of(url) as other,
    ):
        client = client_of(url, http=http)
        client.implement("pick", lambda given: {})
        running = asyncio.create_task(client.thread("t").run("pick"))
        await claimed.wait()
        [before] = await other.pending("t")
        await client.close()
        [after] = await other.pending("t")
        running.cancel()
    assert (before.held_by, after.held_by) == (client.id, "")
    assert (before.id, before.attempt) == (after.id, after.attempt)


async def test_a_client_that_closes_waits_for_no_function_that_will_not_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "CLOSING", 0.02)
    at_work, gate = asyncio.Event(), asyncio.Event()

    async def stubborn(given: dict[str, Any]) -> None:
        at_work.set()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await gate.wait()

    async with office(script=[Use("stubborn"), "ok"], tools=()) as client:
        client.register(define("stubborn"), stubborn)
        running = asyncio.create_task(client.thread("t").run("hi"))
        await at_work.wait()
        await client.close()
        with pytest.raises(UsageError, match="closed"):
            await running


async def test_a_client_may_close_while_its_server_is_away() -> None:
    at_work, stopped = asyncio.Event(), asyncio.Event()

    async def hang(given: dict[str, Any]) -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with cabled(app_of(script=[Use("hang"), "ok"], tools=())) as (client, cable):
        client.register(define("hang"), hang)
        running = asyncio.create_task(client.thread("t").run("hi"))
        await at_work.wait()
        await cable.cut()
        await client.close()
        assert stopped.is_set()
        with pytest.raises(UsageError, match="closed"):
            await running
        await cable.mend()


async def test_an_answer_that_the_server_will_not_take_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    token, told_of = [ANN], asyncio.Event()

    def lose_it(given: dict[str, Any]) -> dict[str, Any]:
        token[0] = "nobody-has-this-token-at-all"
        return {}

    async with served_by(app_of()) as url, client_of(url, token=lambda: token[0]) as client:
        client.implement("pick", lose_it)
        await client.use(Plugin("watch", "1", on_error=lambda error, where: told_of.set()))
        running = asyncio.create_task(client.thread("t").run("pick"))
        await told_of.wait()
        running.cancel()
    assert "of tool 'pick' failed: NotAuthenticated" in caplog.text


async def test_a_call_that_an_earlier_life_had_taken_up_is_not_run_again_unless_it_may_be() -> None:
    ran: list[str] = []
    script = [Turn("", Use("once"), Use("pure")), "ok"]
    async with served_by(app_of(script=script, tools=())) as url:
        async with client_of(url, id="editor") as before:
            for name, effect in (("once", "once"), ("pure", "pure")):
                before.register({**define(name), "effect": effect})
            handle = await before.thread("t").start("hi")
            for call in await until_pending(before, 2):
                await before.claim(call.id)
        async with client_of(url, id="editor") as after:
            for name, effect in (("once", "once"), ("pure", "pure")):
                after.register({**define(name), "effect": effect}, lambda given, name=name: ran.append(name))
            result = await after.thread("t").resume(handle.run_id)
    assert ran == ["pure"]
    outcomes = {call.tool: call.failure and call.failure.code for call in result.calls}
    assert outcomes == {"once": "outcome_unknown", "pure": None}


async def until_done(stream: Any) -> Any:
    return await stream


async def until_said(client: Client, text: str) -> Any:
    """The thread once somebody has said this."""
    async for update in client.thread("t").watch():
        if type(update).__name__ == "RunEnded":
            state = await client.thread("t").state()
            if state.messages[-1].text == text:
                return state
    raise AssertionError("a watch has no end")


async def until_pending(client: Client, count: int) -> Any:
    """The calls that wait, once there are so many."""
    async for update in client.thread("t").watch():
        if type(update).__name__ == "RunWaiting":
            calls = await client.pending("t")
            if len(calls) == count:
                return calls
    raise AssertionError("a watch has no end")
