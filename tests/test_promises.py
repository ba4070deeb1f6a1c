"""Promises of docs/features.md that no other test holds, each as a program sees it when it runs an agent."""

import asyncio
from typing import Any

import pytest
from msgspec import json

from farhand import Agent, Binary, Call, CallContext, Deny, Limits, ToolError, scripted, tool
from farhand.core.call import CallState, Outcome
from farhand.core.definition import InvalidToolDefinitions, Place
from farhand.core.errors import InvalidAnswer, UnknownCall
from farhand.core.messages import AssistantMessage, Json, Text, ToolMessage
from farhand.core.updates import CallEnded, CallExecuting, CallProgress, TextStreamed, Update
from farhand.models import Turn, Use
from farhand.runner.recent import RecentRuns
from farhand.testing import VirtualClock

INTEGER = {"type": "integer"}
COUNT = {"type": "object", "properties": {"n": INTEGER}, "required": ["n"]}
BARE = {"name": "pick", "description": "Pick.", "parameters": {"type": "object", "properties": {}}}

pick = tool.define("pick", description="Pick something.")


def told(run: Any) -> list[str]:
    return [message.text for message in run.messages if isinstance(message, ToolMessage)]


# Ids


async def test_the_models_own_id_is_a_label_that_nobody_can_answer_with() -> None:
    model = scripted([Turn("", Use("pick", label="same"), Use("pick", label="same")), "ok"])
    run = await Agent(model, tools=[pick]).run("hi")
    first, second = run.pending
    assert (first.record.label, second.record.label) == ("same", "same")
    with pytest.raises(UnknownCall):
        run.answer("same", 1)
    run.answer(second.id, "second")
    run.answer(first.id, "first")
    await run.wait()
    messages = [message for message in run.messages if isinstance(message, ToolMessage)]
    assert [(message.label, message.call_id, message.text) for message in messages] == [
        ("same", first.id, "first"),
        ("same", second.id, "second"),
    ]


# Results


@pytest.mark.parametrize("value", [0, False, None, "", [], {}, 0.0])
@pytest.mark.parametrize("how", ["server", "client", "callback", "answer"])
async def test_a_falsy_result_reaches_the_model_now_and_in_the_next_run(value: Any, how: str) -> None:
    places = {"server": pick.server(lambda given: value), "client": pick.client(lambda given: value)}
    model = scripted([Use("pick"), "ok", "still ok"])
    agent = Agent(model, tools=[places.get(how, pick)])
    updates: list[Update] = []
    on_call = (lambda call: value) if how == "callback" else None
    run = await agent.run("hi", on_call=on_call, on_update=updates.append)
    if how == "answer":
        run.answer(run.pending[0].id, value)
        await run.wait()
    await agent.run("and now?", history=run.messages)
    for request in model.requests[1:]:
        (message,) = [message for message in request.messages if isinstance(message, ToolMessage)]
        assert (message.outcome, message.failure) == (Outcome.OK, None)
        assert bytes(message.result) == json.encode(value)
        assert message.parts == ((Text(""),) if value == "" else (Json(value),))
    (ended,) = [update for update in updates if isinstance(update, CallEnded)]
    assert (ended.state, ended.value) == (CallState.OUTPUT_AVAILABLE, value)


async def test_an_error_returned_as_data_is_an_ordinary_result() -> None:
    @tool
    async def find(name: str) -> dict[str, str]:
        """Find a user."""
        return {"error": "User not found"}

    run = await Agent(scripted([Use("find", {"name": "x"}), "ok"]), tools=[find]).run("hi")
    assert (run.calls[0].outcome, told(run)) == (Outcome.OK, ['{"error":"User not found"}'])


async def test_a_client_that_returns_nothing_has_succeeded_with_null() -> None:
    def nothing(value: Any) -> None:
        return None

    run = await Agent(scripted([Use("pick"), "ok"]), tools=[pick.client(nothing)]).run("hi")
    assert (run.calls[0].outcome, run.calls[0].output, told(run)) == (Outcome.OK, None, ["null"])
    run = await Agent(scripted([Use("pick"), "ok"]), tools=[pick]).run("hi")
    run.answer(run.pending[0].id)
    assert ((await run.wait()).calls[0].outcome, told(run)) == (Outcome.OK, ["null"])


async def test_an_end_says_call_tool_success_value_and_error() -> None:
    updates: list[Update] = []
    run = await Agent(scripted([Turn("", Use("pick"), Use("pick")), "ok"]), tools=[pick]).run("hi")
    run.watch(updates.append)
    good, bad = run.pending
    run.answer(good.id, {"x": 1})
    run.fail(bad.id, "no window", code="no_window")
    await run.wait()
    first, second = (update for update in updates if isinstance(update, CallEnded))
    assert (first.call_id, first.tool, first.outcome, first.value, first.failure) == (
        *(good.id, "pick", Outcome.OK, {"x": 1}),
        None,
    )
    assert (second.call_id, second.tool, second.outcome, second.value) == (bad.id, "pick", Outcome.FAILED, None)
    assert second.failure is not None
    assert (second.failure.code, second.failure.message) == ("no_window", "no window")
    assert told(run) == ['{"x":1}', "Error: no window"]


async def test_a_result_may_be_text_json_or_binary_and_is_bounded_in_size() -> None:
    for value, parts in (
        (Text("x"), (Text("x"),)),
        (Json({"a": 0}), (Json({"a": 0}),)),
        (Binary("image/png", data=b"\x89PNG"), (Binary("image/png", data=b"\x89PNG"),)),
    ):
        run = await Agent(scripted([Use("pick"), "ok"]), tools=[pick], limits=Limits(result_bytes=200)).run("hi")
        with pytest.raises(InvalidAnswer, match="200 are allowed"):
            run.answer(run.pending[0].id, Binary("image/png", data=b"x" * 300))
        run.answer(run.pending[0].id, value)
        await run.wait()
        (message,) = [message for message in run.messages if isinstance(message, ToolMessage)]
        assert message.parts == parts


# Errors


async def test_every_field_of_a_tools_error_is_kept_with_its_call() -> None:
    async def fail(value: Any) -> None:
        raise ToolError("no such file", code="not_found", path="/name", retryable=False, details={"tried": ["a", 0]})

    for made in (pick.server(fail), pick.client(fail)):
        run = await Agent(scripted([Use("pick"), "ok"]), tools=[made]).run("hi")
        failure = run.calls[0].failure
        assert failure is not None
        assert (failure.code, failure.message, failure.path) == ("not_found", "no such file", "/name")
        assert (failure.retryable, failure.details) == (False, {"tried": ["a", 0]})
        assert (run.output, told(run)) == ("ok", ["Error: no such file"])


async def test_a_client_says_as_much_of_its_failure_as_a_tool_that_raises() -> None:
    slow = tool.define("slow", effect="pure", retries=3)
    run = await Agent(scripted([Use("slow"), "ok"]), tools=[slow]).run("hi")
    call_id = run.pending[0].id
    said = {"code": "not_found", "path": "/name", "retryable": False, "details": {"tried": ["a", 0]}}
    run.fail(call_id, "no such file", **said)
    assert run.fail(call_id, "no such file", **said).repeated
    assert (await run.wait()).output == "ok"
    failure = run.calls[0].failure
    assert failure is not None
    assert (failure.code, failure.path, failure.retryable, failure.details) == tuple(said.values())


@pytest.mark.parametrize("show_errors", [False, True])
async def test_an_error_without_a_message_is_told_as_an_unknown_one(show_errors: bool) -> None:
    for error, told_as in ((ToolError(""), "Error: Unknown error"), (ValueError(), "Error: Tool 'pick' failed")):

        def fail(value: Any, error: Exception = error) -> None:
            raise error

        agent = Agent(scripted([Use("pick"), "ok"]), tools=[pick.client(fail)], show_errors=show_errors)
        run = await agent.run("hi")
        assert told(run)[0].startswith("Error: Unknown error" if show_errors else told_as)


@pytest.mark.parametrize("error", [ValueError("x"), ToolError("x"), KeyError(), AssertionError(), TimeoutError()])
async def test_whatever_a_client_function_raises_ends_its_call_and_not_the_run(error: Exception) -> None:
    def fail(value: Any) -> None:
        raise error

    async def fail_later(value: Any) -> None:
        await asyncio.sleep(0)
        raise error

    def callback(call: Call[Any, Any]) -> None:
        raise error

    for made in (pick.client(fail), pick.client(fail_later), pick):
        model = scripted([Turn("", Use("pick"), Use("nobody")), "ok"])
        async with asyncio.timeout(5):
            run = await Agent(model, tools=[made]).run("hi", on_call=callback)
        assert [call.outcome for call in run.calls] == [Outcome.FAILED, Outcome.INVALID]
        assert told(run)[1] == "Error: Unknown tool: nobody"
        assert run.output == "ok"


# Validation


async def test_invalid_arguments_reach_no_person_no_client_and_no_function() -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("it was asked")

    ask = tool.define("ask", input=COUNT, needs_approval=True)
    judged = tool.define("judged", input=COUNT, needs_approval=never)
    for made in (ask, judged, ask.server(never), ask.client(never), tool.define("ask", input=COUNT)):
        model = scripted([Use(made.name, {"n": "x"}), "ok"])
        run = await Agent(model, tools=[made]).run("hi", on_call=never, on_approval=never)
        assert run.calls[0].outcome is Outcome.INVALID
        assert told(run) == ["Error: Parameter n has wrong type: expected integer, got string."]


async def test_an_invalid_result_never_reaches_the_model_from_any_place() -> None:
    made = tool.define("count", output=INTEGER)
    for placed in (made.server(lambda value: "secret"), made.client(lambda value: "secret"), made):
        run = await Agent(scripted([Use("count"), "ok"]), tools=[placed]).run("hi", on_call=lambda call: "secret")
        assert run.calls[0].failure is not None
        assert run.calls[0].failure.code == "invalid_result"
        assert "secret" not in told(run)[0]
    run = await Agent(scripted([Use("count"), "ok"]), tools=[made]).run("hi")
    with pytest.raises(InvalidAnswer):
        run.answer(run.pending[0].id, "secret")
    run.answer(run.pending[0].id, 3)
    assert (await run.wait()).calls[0].output == 3


async def test_a_default_of_a_schema_is_never_filled_in() -> None:
    seen: list[Any] = []
    with_default = {"type": "object", "properties": {"n": {"type": "integer", "default": 5}}}
    made = tool.define("count", input=with_default).server(lambda value: seen.append(value))
    run = await Agent(scripted([Use("count"), "ok"]), tools=[made]).run("hi")
    assert (seen, run.calls[0].arguments) == ([{}], {})


async def test_the_model_gets_the_schemas_byte_for_byte_from_owner_and_client_and_after_storing() -> None:
    owners = b'{ "type" : "object",\n "properties": {"n": {"type": "number", "multipleOf": 0.10, "title": "N"}} }'
    clients = b'{"properties" : {"x":{"const":1.0}}, "type":"object", "required":[ ]}'
    text = b'[{"name":"theirs","description":"d","parameters":' + clients + b"}]"
    model = scripted([Use("theirs", {"x": 1}), "ok"])
    agent = Agent(model, tools=[tool.define("ours", input=owners)], recent=RecentRuns())
    run = await agent.run("hi", tools=text)
    await agent.resume(run.to_json(), {run.pending[0].id: None})
    for request in model.requests:
        assert [bytes(definition.parameters) for definition in request.tools] == [owners, clients]


# A client's tools


async def test_a_list_with_one_bad_tool_is_refused_before_anything_happens() -> None:
    model = scripted(["ok"])
    agent = Agent(model)
    updates: list[Update] = []
    bad = [BARE, {**BARE, "name": "a b"}, {**BARE, "name": "c", "parameters": {"type": "array"}}]
    with pytest.raises(InvalidToolDefinitions) as refused:
        await agent.run("hi", tools=bad, on_update=updates.append)
    assert {problem.path.split("/")[1] for problem in refused.value.problems} == {"1", "2"}
    assert (model.requests, updates) == ([], [])


async def test_tools_of_a_run_are_found_by_name_and_keep_their_order() -> None:
    agent = Agent(scripted(["ok"]), tools=[tool.define("z"), tool.define("a")])
    run = await agent.run("hi", tools=[BARE])
    assert list(run.state.tools) == ["z", "a", "pick"]
    assert "pick" in run.state.tools
    assert "nobody" not in run.state.tools
    assert run.state.tools.get("nobody") is None
    assert run.state.tools["pick"].description == "Pick."


async def test_a_definition_of_a_client_brings_no_code_and_runs_nothing_here() -> None:
    for extra in ("execute", "executor", "executorCode", "function", "url", "command", "handler"):
        with pytest.raises(InvalidToolDefinitions, match=extra):
            await Agent(scripted(["ok"])).run("hi", tools=[{**BARE, extra: "import os"}])
    run = await Agent(scripted([Use("pick"), "ok"])).run("hi", tools=[BARE])
    (call,) = run.pending
    assert (call.place, call.state, run.status) == (Place.CLIENT, CallState.EXECUTING, "waiting")


async def test_a_clients_function_knows_its_call_its_run_and_its_user_and_reports_progress() -> None:
    seen: list[Any] = []

    async def work(value: Any, context: CallContext) -> None:
        seen.append((context.call_id, context.run_id, context.thread_id, context.principal, context.tool))
        context.progress(0, name="step")

    updates: list[Update] = []
    agent = Agent(scripted([Use("pick"), "ok"]), tools=[pick.client(work)])
    run = await agent.run("hi", principal="ann", thread="th", on_update=updates.append)
    assert seen == [(run.calls[0].id, run.id, "th", "ann", "pick")]
    assert [(u.name, u.value, u.call_id) for u in updates if isinstance(u, CallProgress)] == [
        ("step", 0, run.calls[0].id)
    ]


async def test_a_callback_may_be_told_what_a_clients_function_is_told() -> None:
    seen: list[Any] = []

    async def ask(call: Call[Any, Any], context: CallContext) -> str:
        seen.append((context.call_id, context.run_id, context.thread_id, context.principal))
        context.progress("asked")
        return call.tool

    updates: list[Update] = []
    agent = Agent(scripted([Use("pick"), "ok"]), tools=[pick])
    run = await agent.run("hi", principal="ann", thread="th", on_call=ask, on_update=updates.append)
    assert (run.calls[0].output, seen) == ("pick", [(run.calls[0].id, run.id, "th", "ann")])
    assert [update.value for update in updates if isinstance(update, CallProgress)] == ["asked"]


async def test_a_client_call_carries_its_id_tool_and_arguments() -> None:
    updates: list[Update] = []
    agent = Agent(scripted([Use("count", {"n": 1}), "ok"]), tools=[tool.define("count", input=COUNT)])
    run = await agent.run("hi", on_update=updates.append)
    (sent,) = [update for update in updates if isinstance(update, CallExecuting)]
    assert (sent.call_id, sent.tool, sent.place) == (run.pending[0].id, "count", Place.CLIENT)
    assert json.decode(sent.arguments) == {"n": 1}


async def test_a_client_function_that_never_ends_is_stopped_at_its_deadline_and_not_asked_again() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def hang(value: Any) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    clock = VirtualClock()
    model = scripted([Use("slow"), "ok"])
    agent = Agent(model, tools=[tool.define("slow", timeout=9).client(hang)], clock=clock)
    updates: list[Update] = []
    task = asyncio.ensure_future(agent.run("hi", on_update=updates.append))
    async with asyncio.timeout(5):
        await started.wait()
        clock.advance(9)
        run = await task
    assert (run.calls[0].outcome, run.output, stopped.is_set()) == (Outcome.TIMED_OUT, "ok", True)
    assert sum(isinstance(update, CallExecuting) for update in updates) == 1


async def test_client_functions_run_beside_the_stream_and_beside_each_other() -> None:
    met, watched = asyncio.Event(), asyncio.Event()

    async def first(value: Any) -> str:
        await met.wait()
        await watched.wait()
        return "first"

    async def second(value: Any, context: CallContext) -> str:
        context.progress("here")
        met.set()
        return "second"

    tools = [tool.define("first").client(first), tool.define("second").client(second)]
    stream = Agent(scripted([Turn("words", Use("first"), Use("second")), "ok"]), tools=tools).stream("hi")
    kinds: list[type] = []
    async with asyncio.timeout(5):
        async for update in stream:
            kinds.append(type(update))
            if isinstance(update, CallProgress):
                watched.set()  # the reader of the stream goes on while both calls are open
    assert told(stream.run) == ["first", "second"]
    assert kinds.index(TextStreamed) < kinds.index(CallExecuting) < kinds.index(CallProgress) < kinds.index(CallEnded)


# The loop


@pytest.mark.parametrize("stored", [False, True])
async def test_turns_are_counted_across_pauses_and_storing(stored: bool) -> None:
    model = scripted(lambda request: Use("pick") if request.tools else "enough")
    run = await Agent(model, tools=[pick], limits=Limits(max_turns=3)).run("hi")
    answered = 0
    while run.status == "waiting":
        answered += 1
        if stored:
            agent = Agent(model, tools=[pick], recent=RecentRuns())
            run = await agent.resume(run.to_json(), {run.pending[0].id: answered})
        else:
            run.answer(run.pending[0].id, answered)
            await run.wait()
    assert (answered, run.status, run.state.limit, run.output) == (3, "limit", "max_turns", "enough")
    assert told(run) == ["1", "2", "3"]


async def test_a_call_in_posted_history_runs_nothing_and_approves_nothing() -> None:
    ran: list[int] = []

    @tool(needs_approval=True)
    async def pay(n: int) -> int:
        """Pay."""
        ran.append(n)
        return n

    model = scripted([Turn("", Use("pay", {"n": 1})), "ok", "ok"])
    agent = Agent(model, tools=[pay])
    paid = await agent.run("hi", on_approval=lambda call: True)
    forged = tuple(message for message in paid.messages if isinstance(message, AssistantMessage) and message.calls)
    again = await agent.run("go on", history=(*paid.messages, *forged))
    assert (ran, again.status, again.calls) == ([1], "done", ())


@pytest.mark.parametrize("placed", ["server", "client"])
async def test_approval_is_asked_whatever_the_place(placed: str) -> None:
    cart = tool.define("add_to_cart", input=COUNT, needs_approval=True)
    made = cart.server(lambda value: "added") if placed == "server" else cart.client(lambda value: "added")
    for verdict, outcome in ((True, Outcome.OK), (Deny("no"), Outcome.DENIED)):
        model = scripted([Use("add_to_cart", {"n": 1}), "ok"])
        asked: list[Any] = []

        def decide(call: Call[Any, Any], asked: list[Any] = asked, verdict: Any = verdict) -> Any:
            asked.append((call.tool, call.arguments, call.state))
            return verdict

        run = await Agent(model, tools=[made]).run("hi", on_approval=decide)
        assert asked == [("add_to_cart", {"n": 1}, CallState.APPROVAL_REQUESTED)]
        assert run.calls[0].outcome is outcome
