"""An agent in one process: what a program sees when it runs one."""

import asyncio
import dataclasses
import gc
from typing import Any

import pytest
from pydantic import BaseModel

from farhand import Agent, Approve, Call, CallContext, Deny, Limits, ToolError, manual, scripted, tool, until
from farhand.core.admission import STRICT
from farhand.core.call import CallState, Outcome
from farhand.core.definition import InvalidToolDefinitions
from farhand.core.errors import (
    AnswerConflict,
    DuplicateToolName,
    InvalidAnswer,
    InvalidInput,
    ModelError,
    RunFailed,
    UnknownModel,
    UsageError,
)
from farhand.core.messages import Binary, Text, ToolMessage
from farhand.core.pieces import Finish, Usage
from farhand.core.step import replay
from farhand.core.updates import CallEnded, CallProgress, CallStreamed, RunEnded, TextStreamed, Update, Warned
from farhand.models import Turn, Use
from farhand.runner.recent import RecentRuns
from farhand.stopping import called, finish_reason, max_turns
from farhand.testing import VirtualClock

PICK = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


pick = tool.define("pick", input=PICK, output={"type": "object"}, description="Pick something.")


def told(run: Any) -> list[str]:
    return [message.text for message in run.messages if isinstance(message, ToolMessage)]


async def test_a_server_tool_runs_and_the_model_answers() -> None:
    run = await Agent(scripted([Use("add", {"a": 2, "b": 3}), "answer 5"]), tools=[add]).run("hi")
    assert (run.status, run.output, told(run)) == ("done", "answer 5", ["5"])
    assert run.calls_of(add)[0].output == 5


async def test_a_sync_tool_runs_beside_the_event_loop() -> None:
    import threading

    @tool
    def where() -> bool:
        """Say whether this is the main thread."""
        return threading.current_thread() is threading.main_thread()

    run = await Agent(scripted([Use("where"), "ok"]), tools=[where]).run("hi")
    assert told(run) == ["false"]


async def test_the_log_of_a_run_replays_into_its_state() -> None:
    run = await Agent(scripted([Use("add", {"a": 2, "b": 3}), "ok"]), tools=[add]).run("hi")
    assert replay(run.log) == run.state


async def test_a_client_tool_without_a_function_makes_the_run_wait() -> None:
    run = await Agent(scripted([Use("pick", {"n": 1}), "done"]), tools=[pick]).run("hi")
    (call,) = run.pending
    assert (run.status, call.tool, call.arguments) == ("waiting", "pick", {"n": 1})
    receipt = run.answer(call.id, {"x": 0})
    assert not receipt.repeated
    assert (await run.wait()).output == "done"
    assert told(run) == ['{"x":0}']


async def test_a_run_that_waits_has_no_output_and_says_for_what() -> None:
    run = await Agent(scripted([Use("pick", {"n": 1})]), tools=[pick]).run("hi")
    with pytest.raises(RunFailed, match="pick"):
        _ = run.output


async def test_a_callback_answers_client_tools() -> None:
    async def answer(call: Call[Any, Any]) -> Any:
        return {"n": call.arguments["n"] + 1}

    run = await Agent(scripted([Use("pick", {"n": 1}), "done"]), tools=[pick]).run("hi", on_call=answer)
    assert told(run) == ['{"n":2}']


async def test_a_callback_that_raises_is_told_to_the_model() -> None:
    def answer(call: Call[Any, Any]) -> Any:
        raise ToolError("no window is open", code="no_window")

    run = await Agent(scripted([Use("pick", {"n": 1}), "sorry"]), tools=[pick]).run("hi", on_call=answer)
    assert told(run) == ["Error: no window is open"]
    assert run.calls[0].failure is not None
    assert run.calls[0].failure.code == "no_window"


async def test_one_definition_runs_at_the_server_or_in_the_client() -> None:
    class Item(BaseModel):
        name: str

    class Cart(BaseModel):
        items: int

    cart = tool.define("add_to_cart", input=Item, output=Cart, description="Put something into the cart.")
    seen: list[str] = []

    def save(item: Item) -> Cart:
        seen.append(item.name)
        return Cart(items=len(seen))

    for place in (cart.server(save), cart.client(save)):
        run = await Agent(scripted([Use("add_to_cart", {"name": "milk"}), "ok"]), tools=[place]).run("hi")
        assert run.calls_of(cart)[0].output.items == len(seen)
        assert run.calls_of(cart)[0].input == Item(name="milk")
    assert seen == ["milk", "milk"]


async def test_an_approval_by_callback_lets_the_tool_run() -> None:
    asked: list[dict[str, Any]] = []

    @tool(needs_approval=True)
    async def wipe(path: str) -> str:
        """Wipe something."""
        return f"wiped {path}"

    def approve(call: Call[Any, Any]) -> bool:
        asked.append(call.arguments)
        return True

    run = await Agent(scripted([Use("wipe", {"path": "a"}), "ok"]), tools=[wipe]).run("hi", on_approval=approve)
    assert (asked, told(run)) == ([{"path": "a"}], ["wiped a"])


@pytest.mark.parametrize("verdict", [False, Deny("not today")])
async def test_a_denial_is_told_with_its_reason(verdict: Any) -> None:
    @tool(needs_approval=True)
    async def wipe() -> str:
        """Wipe everything."""
        raise AssertionError

    run = await Agent(scripted([Use("wipe"), "ok"]), tools=[wipe]).run("hi", on_approval=lambda call: verdict)
    assert run.calls[0].outcome is Outcome.DENIED
    assert ("not today" in told(run)[0]) is isinstance(verdict, Deny)


async def test_edited_arguments_are_what_runs() -> None:
    @tool(needs_approval=True)
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    run = await Agent(scripted([Use("pay", {"amount": 900}), "ok"]), tools=[pay]).run(
        "hi", on_approval=lambda call: Approve(arguments={"amount": 9})
    )
    assert run.calls_of(pay)[0].output == 9
    assert "changed the arguments" in told(run)[0]


async def test_an_edit_that_is_not_valid_is_refused_and_the_approval_stays_open() -> None:
    @tool(needs_approval=True)
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    run = await Agent(scripted([Use("pay", {"amount": 900}), "ok"]), tools=[pay]).run("hi")
    with pytest.raises(InvalidAnswer):
        run.approve(run.pending[0].id, arguments={"amount": "x"})
    assert run.pending[0].needs_approval
    run.approve(run.pending[0].id)
    assert (await run.wait()).status == "done"


async def test_always_allow_lasts_for_the_principal_and_for_this_definition_only() -> None:
    @tool(needs_approval=True)
    async def wipe() -> str:
        """Wipe everything."""
        return "wiped"

    asked: list[str] = []

    def once(call: Call[Any, Any]) -> Approve:
        asked.append(call.tool)
        return Approve(remember="tool")

    script = lambda request: "ok" if len(request.messages) > 1 else Use("wipe")  # noqa: E731
    agent = Agent(scripted(script), tools=[wipe])
    for _ in range(2):
        assert (await agent.run("hi", principal="ann", on_approval=once)).status == "done"
    assert asked == ["wipe"]
    await agent.run("hi", principal="bob", on_approval=once)
    assert asked == ["wipe", "wipe"]

    @tool(name="wipe", needs_approval=True)
    async def other(deep: bool = True) -> str:
        """Wipe everything."""
        return "wiped"

    changed = Agent(scripted(script), tools=[other], decisions=agent.decisions)
    await changed.run("hi", principal="ann", on_approval=once)
    assert len(asked) == 3
    agent.decisions.forget("ann")
    await agent.run("hi", principal="ann", on_approval=once)
    assert len(asked) == 4


@pytest.mark.parametrize(("amount", "asks"), [(5, 0), (500, 1)])
async def test_a_function_of_the_arguments_decides_whether_to_ask(amount: int, asks: int) -> None:
    asked: list[str] = []

    @tool(needs_approval=lambda amount: amount > 100)
    async def pay(amount: int, note: str = "") -> int:
        """Pay."""
        return amount

    def approve(call: Call[Any, Any]) -> bool:
        asked.append(call.tool)
        return True

    run = await Agent(scripted([Use("pay", {"amount": amount}), "ok"]), tools=[pay]).run("hi", on_approval=approve)
    assert (len(asked), run.calls_of(pay)[0].output) == (asks, amount)


async def test_who_asks_may_decide_whether_a_person_must() -> None:
    def stranger(context: CallContext) -> bool:
        return context.principal != "ann"

    @tool(needs_approval=stranger)
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    for who, status in (("ann", "done"), ("bob", "waiting")):
        agent = Agent(scripted([Use("pay", {"amount": 1}), "ok"]), tools=[pay])
        assert (await agent.run("hi", principal=who)).status == status


async def test_an_approval_function_that_fails_lets_a_person_decide() -> None:
    def judge(**_: Any) -> bool:
        raise RuntimeError("boom")

    @tool(needs_approval=judge)
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    run = await Agent(scripted([Use("pay", {"amount": 1}), "ok"]), tools=[pay]).run("hi")
    assert run.pending[0].needs_approval


async def test_what_the_approver_adds_reaches_the_tool() -> None:
    @tool(needs_approval=True)
    async def send(context: CallContext) -> Any:
        """Send it."""
        return context.payload

    run = await Agent(scripted([Use("send"), "ok"]), tools=[send]).run(
        "hi", on_approval=lambda call: Approve(payload={"pin": 7})
    )
    assert told(run) == ['{"pin":7}']


async def test_a_tool_knows_its_call_and_reports_progress() -> None:
    seen: dict[str, Any] = {}

    @tool
    async def slow(context: CallContext) -> None:
        """Take a while."""
        seen.update(id=context.call_id, thread=context.thread_id, who=context.principal, attempt=context.attempt)
        context.progress({"done": 1}, name="step")

    updates: list[Update] = []
    agent = Agent(scripted([Use("slow"), "ok"]), tools=[slow])
    run = await agent.run("hi", principal="ann", thread="th", on_update=updates.append)
    assert seen == {"id": run.calls[0].id, "thread": "th", "who": "ann", "attempt": 1}
    (progress,) = [update for update in updates if isinstance(update, CallProgress)]
    assert (progress.name, progress.value, progress.state) == ("step", {"done": 1}, CallState.EXECUTING)
    assert told(run) == ["null"]


async def test_an_exception_is_hidden_behind_a_number_that_the_log_has_too(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def leak() -> None:
        """Leak."""
        raise RuntimeError("password=hunter2")

    run = await Agent(scripted([Use("leak"), "ok"]), tools=[leak]).run("hi")
    assert "hunter2" not in told(run)[0]
    number = told(run)[0].split("error ")[1].split(")")[0]
    assert number in caplog.text
    shown = await Agent(scripted([Use("leak"), "ok"]), tools=[leak], show_errors=True).run("hi")
    assert told(shown) == ["Error: password=hunter2"]


async def test_a_result_that_breaks_its_own_schema_is_a_failure_the_model_reads() -> None:
    @tool(output={"type": "integer"})
    async def wrong() -> Any:
        """Be wrong."""
        return "x"

    run = await Agent(scripted([Use("wrong"), "ok"]), tools=[wrong]).run("hi")
    assert run.calls[0].failure is not None
    assert run.calls[0].failure.code == "invalid_result"


@pytest.mark.parametrize("value", [float("nan"), {"x": [float("inf")]}])
async def test_a_number_that_json_does_not_have_is_a_failure_and_never_null(value: Any) -> None:
    @tool
    async def wrong() -> Any:
        """Be wrong."""
        return value

    run = await Agent(scripted([Use("wrong"), "ok"]), tools=[wrong], show_errors=True).run("hi")
    assert told(run) == ["Error: NaN and Infinity are not JSON"]


async def test_files_reach_the_model_as_parts() -> None:
    @tool
    async def shot() -> Any:
        """Take a picture."""
        return [Text("here"), Binary("image/png", data=b"\x89PNG")]

    run = await Agent(scripted([Use("shot"), "ok"]), tools=[shot]).run("hi")
    message = next(message for message in run.messages if isinstance(message, ToolMessage))
    assert message.parts == (Text("here"), Binary("image/png", data=b"\x89PNG"))
    assert run.calls[0].output == message.parts


async def test_input_may_be_text_parts_or_several() -> None:
    model = scripted(["a", "b"])
    agent = Agent(model)
    await agent.run(["look", Binary("image/png", url="data:,")])
    await agent.run(Binary("image/png", id="f1"))
    assert [len(request.messages[0].parts) for request in model.requests] == [2, 1]


async def test_a_conversation_goes_on_with_its_history() -> None:
    model = scripted(["hello", "you said hi"])
    agent = Agent(model, instructions="Be brief.")
    first = await agent.run("hi")
    await agent.run("what did I say?", history=first.messages)
    assert [type(message).__name__ for message in model.requests[1].messages] == [
        "UserMessage",
        "AssistantMessage",
        "UserMessage",
    ]
    assert model.requests[1].instructions == "Be brief."


async def test_calls_of_one_turn_run_side_by_side_and_their_results_keep_the_order() -> None:
    met = asyncio.Event()
    order: list[str] = []

    @tool
    async def first() -> str:
        """Wait for the second."""
        await met.wait()
        order.append("first")
        return "1"

    @tool
    async def second() -> str:
        """Meet the first."""
        met.set()
        order.append("second")
        return "2"

    async with asyncio.timeout(5):
        run = await Agent(scripted([Turn("", Use("first"), Use("second")), "ok"]), tools=[first, second]).run("hi")
    assert order == ["second", "first"]
    assert told(run) == ["1", "2"]


async def test_one_call_that_waits_for_a_person_does_not_hold_up_the_others() -> None:
    @tool(needs_approval=True)
    async def wipe() -> str:
        """Wipe."""
        return "wiped"

    agent = Agent(scripted([Turn("", Use("wipe"), Use("add", {"a": 1, "b": 1})), "ok"]), tools=[wipe, add])
    run = await agent.run("hi")
    assert [call.outcome for call in run.calls] == [None, Outcome.OK]
    run.approve(run.pending[0].id)
    await run.wait()
    assert told(run) == ["wiped", "2"]


async def test_a_tool_that_takes_too_long_is_stopped_at_its_deadline() -> None:
    stopped = asyncio.Event()

    @tool(timeout=60)
    async def hang() -> None:
        """Hang."""
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            raise

    clock = VirtualClock()
    started = asyncio.Event()
    agent = Agent(scripted([Use("hang"), "ok"]), tools=[hang], clock=clock)
    task = asyncio.ensure_future(agent.run("hi"))
    async with asyncio.timeout(5):
        await started.wait()
        clock.advance(59)
        assert not stopped.is_set()
        clock.advance(1)
        run = await task
    assert stopped.is_set()
    assert run.calls[0].outcome is Outcome.TIMED_OUT
    assert run.status == "done"
    assert clock.waiting == 0


async def test_a_failure_is_retried_after_a_while_when_the_tool_may_be_repeated() -> None:
    attempts: list[int] = []

    @tool(effect="pure", retries=2)
    async def flaky(context: CallContext) -> int:
        """Fail twice."""
        attempts.append(context.attempt)
        if context.attempt < 3:
            raise ToolError("not yet")
        return context.attempt

    agent = Agent(scripted([Use("flaky"), "ok"]), tools=[flaky], limits=Limits(retry_delay=0))
    async with asyncio.timeout(5):
        run = await agent.run("hi")
    assert (attempts, told(run)) == ([1, 2, 3], ["3"])


async def test_cancelling_a_call_stops_its_function_and_the_run_goes_on() -> None:
    started = asyncio.Event()

    @tool
    async def hang() -> None:
        """Hang."""
        started.set()
        await asyncio.Event().wait()

    agent = Agent(scripted([Use("hang"), "ok"]), tools=[hang])
    run = agent.start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await started.wait()
        run.cancel_call(run.calls[0].id, "enough")
        await waiting
    assert run.calls[0].outcome is Outcome.CANCELLED
    assert run.output == "ok"


async def test_cancelling_a_run_stops_everything_that_works_for_it() -> None:
    started = asyncio.Event()
    stopped: list[str] = []

    async def hang(name: str) -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(name)
            raise

    @tool
    async def one() -> None:
        """Hang."""
        await hang("one")

    @tool
    async def two() -> None:
        """Hang."""
        await hang("two")

    run = Agent(scripted([Turn("", Use("one"), Use("two"))]), tools=[one, two]).start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await started.wait()
        run.cancel("stop")
        await waiting
    assert (run.status, sorted(stopped)) == ("cancelled", ["one", "two"])
    with pytest.raises(RunFailed, match="cancelled"):
        _ = run.output


async def test_cancelling_while_the_model_speaks_closes_its_stream() -> None:
    model = manual()
    run = Agent(model).start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await model.asked()
        run.cancel()
        await waiting
    assert run.status == "cancelled"


async def test_cancelling_the_waiting_task_cancels_the_run() -> None:
    model = manual()
    run = Agent(model).start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await model.asked()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert run.status == "cancelled"


async def test_a_tool_may_cancel_its_own_run() -> None:
    handle: list[Any] = []

    @tool
    async def stop() -> None:
        """Stop everything."""
        handle[0].cancel("by the tool")
        await asyncio.sleep(0)
        raise AssertionError("it went on")

    run = Agent(scripted([Use("stop")]), tools=[stop]).start("hi")
    handle.append(run)
    async with asyncio.timeout(5):
        await run.wait()
    assert run.status == "cancelled"


async def test_updates_come_as_they_happen_and_end_with_the_run() -> None:
    agent = Agent(scripted([Turn(["a", "b"], Use("add", {"a": 1, "b": 1}, chunk=3)), Turn(["c", "d"])]), tools=[add])
    updates = [update async for update in agent.stream("hi")]
    assert "".join(update.text for update in updates if isinstance(update, TextStreamed)) == "abcd"
    assert sum(isinstance(update, CallStreamed) for update in updates) == 5
    assert isinstance(updates[-1], RunEnded)
    assert [update.seq for update in updates] == sorted(update.seq for update in updates)


async def test_a_stream_that_waits_ends_and_goes_on_after_the_answer() -> None:
    stream = Agent(scripted([Use("pick", {"n": 1}), "done"]), tools=[pick]).stream("hi")
    kinds = [type(update).__name__ async for update in stream]
    assert (kinds[0], kinds[-1]) == ("RunStarted", "RunWaiting")
    stream.run.answer(stream.run.pending[0].id, {})
    rest = [update async for update in stream.run.updates()]
    assert isinstance(rest[0], CallEnded)
    assert isinstance(rest[-1], RunEnded)


async def test_a_held_stream_stays_open_until_the_answer_comes() -> None:
    stream = Agent(scripted([Use("pick", {"n": 1}), "done"]), tools=[pick]).stream("hi", hold=True)
    last = None
    async with asyncio.timeout(5):
        async for last in stream:
            if type(last).__name__ == "RunWaiting":
                stream.run.answer(stream.run.pending[0].id, {})
    assert isinstance(last, RunEnded)


async def test_leaving_a_stream_early_cancels_the_run() -> None:
    model = manual()
    stream = Agent(model).stream("hi")
    updates = aiter(stream)
    async with asyncio.timeout(5):
        await anext(updates)
        await model.asked()
        await updates.aclose()
    assert stream.run.status == "cancelled"


async def test_a_second_waiter_gets_the_same_end() -> None:
    model = manual()
    run = Agent(model).start("hi")
    both = asyncio.gather(run.wait(), run.wait())
    async with asyncio.timeout(5):
        await model.asked()
        model.say("done")
        await both
    assert run.output == "done"


async def test_a_run_goes_through_json_and_comes_back() -> None:
    model = scripted([Use("pick", {"n": 1}), "done"])
    run = await Agent(model, tools=[pick, add]).run("hi", principal="ann", thread="th")
    data = run.to_json()
    again = await Agent(model, tools=[pick, add]).resume(data, {run.pending[0].id: {"x": 1}})
    assert (again.output, again.id, again.state.principal, again.state.thread) == ("done", run.id, "ann", "th")
    assert told(again) == ['{"x":1}']


async def test_an_approval_survives_json() -> None:
    @tool(needs_approval=True)
    async def wipe(path: str) -> str:
        """Wipe."""
        return f"wiped {path}"

    agent = Agent(scripted([Use("wipe", {"path": "a"}), "ok"]), tools=[wipe])
    run = await agent.run("hi")
    again = await agent.resume(run.to_json(), decisions={run.pending[0].id: Approve(arguments={"path": "b"})})
    assert told(again)[0].endswith("wiped b")


@pytest.mark.parametrize(
    ("verdict", "outcome"), [(True, Outcome.OK), (False, Outcome.DENIED), (Deny("x"), Outcome.DENIED)]
)
async def test_a_resumed_run_takes_plain_decisions(verdict: Any, outcome: Outcome) -> None:
    @tool(needs_approval=True)
    async def wipe() -> None:
        """Wipe."""

    agent = Agent(scripted([Use("wipe"), "ok"]), tools=[wipe])
    run = await agent.run("hi")
    again = await agent.resume(run.to_json(), decisions={run.pending[0].id: verdict})
    assert again.calls[0].outcome is outcome


async def test_one_answer_delivered_twice_at_once_has_one_effect() -> None:
    effects: list[int] = []

    @tool
    async def effect() -> int:
        """Have an effect."""
        effects.append(1)
        await asyncio.sleep(0)
        return len(effects)

    model = scripted([Use("pick", {"n": 1}), Use("effect"), "done"])
    run = await Agent(model, tools=[pick, effect]).run("hi")
    data, call = run.to_json(), run.pending[0].id
    agents = [Agent(model, tools=[pick, effect]) for _ in range(100)]
    runs = await asyncio.gather(*[agent.resume(data, {call: {"x": 1}}) for agent in agents])
    late = await agents[0].resume(data, {call: {"x": 1}})
    assert {run.output for run in [*runs, late]} == {"done"}
    assert (len(effects), len(model.requests)) == (1, 3)
    with pytest.raises(AnswerConflict):
        await agents[0].resume(data, {call: {"x": 2}})


async def test_what_was_answered_before_the_run_goes_on_is_not_asked_again() -> None:
    @tool(needs_approval=True)
    async def wipe() -> str:
        """Wipe."""
        return "wiped"

    def never(call: Call[Any, Any]) -> Any:
        raise AssertionError(call)

    agent = Agent(scripted([Turn("", Use("wipe"), Use("pick", {"n": 1})), "ok"]), tools=[wipe, pick])
    run = await agent.run("hi")
    asked, picked = (call.id for call in run.pending)
    again = await agent.resume(run.to_json(), {picked: {}}, decisions={asked: True}, on_call=never, on_approval=never)
    assert told(again) == ["wiped", "{}"]


async def test_the_memory_of_resumed_runs_is_bounded() -> None:
    recent = RecentRuns(size=2)
    agent = Agent(scripted(lambda request: Use("pick", {"n": 1})), tools=[pick], recent=recent)
    states: list[Any] = []
    for _ in range(3):
        run = await agent.resume((await agent.run("hi")).to_json())
        states.append(run.state)
        del run
    gc.collect()
    assert [recent.find(state) is not None for state in states] == [False, True, True]


async def test_the_first_handle_follows_a_run_that_was_resumed_from_what_it_wrote() -> None:
    ran: list[int] = []

    @tool(needs_approval=True)
    async def wipe() -> int:
        """Wipe."""
        ran.append(1)
        return len(ran)

    agent = Agent(scripted([Use("wipe"), "ok", "never"]), tools=[wipe])
    first = await agent.run("hi")
    call, data = first.pending[0].id, first.to_json()
    second = await agent.resume(data, decisions={call: True})
    assert first.approve(call).repeated
    await first.wait()
    assert (first.output, second.output, ran) == ("ok", "ok", [1])


async def test_a_run_that_went_on_elsewhere_is_not_held_back_by_an_older_one() -> None:
    script = [Use("pick", {"n": 1}), Use("pick", {"n": 2}), "done"]
    here, there = RecentRuns(), RecentRuns()
    first = await Agent(scripted(script), tools=[pick], recent=here).run("hi")
    old = await Agent(scripted(script[1:]), tools=[pick], recent=here).resume(first.to_json())
    moved = await Agent(scripted(script[1:]), tools=[pick], recent=there).resume(
        first.to_json(), {first.pending[0].id: {}}
    )
    again = await Agent(scripted(script[2:]), tools=[pick], recent=here).resume(
        moved.to_json(), {moved.pending[0].id: {}}
    )
    assert (old.id, again.output) == (again.id, "done")


async def test_a_run_that_failed_before_anything_ran_can_be_tried_again_and_not_after() -> None:
    @tool
    async def effect() -> None:
        """Have an effect."""

    for script, expected in ((["down", "done"], "done"), ([Use("effect"), "down", "done"], "failed")):
        entries = [ModelError("down") if entry == "down" else entry for entry in script]
        agent = Agent(scripted([Use("pick", {"n": 1}), *entries]), tools=[pick, effect])
        run = await agent.run("hi")
        data, call = run.to_json(), run.pending[0].id
        assert (await agent.resume(data, {call: {}})).status == "failed"
        assert (await agent.resume(data, {call: {}})).status == expected


async def test_a_tool_that_changed_while_the_run_was_stored_is_not_run() -> None:
    @tool(needs_approval=True)
    async def wipe() -> None:
        """Wipe."""

    run = await Agent(scripted([Use("wipe"), "x"]), tools=[wipe]).run("hi")

    @tool(name="wipe", needs_approval=True)
    async def wipe_all(everything: bool = True) -> None:
        """Wipe."""
        raise AssertionError

    again = await Agent(scripted(["ok"]), tools=[wipe_all]).resume(run.to_json())
    assert again.calls[0].outcome is Outcome.UNAVAILABLE
    assert "changed" in told(again)[0]


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"farhand":1}', "nonsense", b"\xff"])
async def test_what_is_no_stored_run_is_refused(data: Any) -> None:
    with pytest.raises(InvalidInput):
        await Agent(scripted([])).resume(data)


async def test_a_stored_run_of_another_format_is_refused() -> None:
    run = await Agent(scripted(["x"])).run("hi")
    with pytest.raises(InvalidInput, match="format 2"):
        await Agent(scripted([])).resume(run.to_json().replace(b'"farhand":1', b'"farhand":2'))


async def test_a_run_that_has_ended_can_be_stored_and_read_again() -> None:
    run = await Agent(scripted(["x"])).run("hi")
    again = await Agent(scripted([])).resume(run.to_json())
    assert (again.status, again.output) == ("done", "x")


async def test_a_run_at_work_is_not_written_down() -> None:
    model = manual()
    run = Agent(model).start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await model.asked()
        with pytest.raises(UsageError):
            run.to_json()
        model.say("ok")
        await waiting


async def test_a_deadline_that_passed_while_the_run_was_stored_counts() -> None:
    clock = VirtualClock()
    agent = Agent(scripted([Use("pick", {"n": 1}), "too late"]), tools=[pick], clock=clock, recent=RecentRuns())
    run = await agent.run("hi")
    data, call = run.to_json(), run.pending[0].id
    clock.advance(3600)
    again = agent.load(data)
    with pytest.raises(Exception, match="ended: timed_out"):
        again.answer(call, {})
    await again.wait()
    assert (again.calls[0].outcome, again.output) == (Outcome.TIMED_OUT, "too late")


async def test_tools_of_a_client_come_with_the_run() -> None:
    definitions = [
        {"name": "open_file", "description": "Open a file.", "parameters": {"type": "object", "properties": {}}},
        {
            "type": "function",
            "function": {"name": "close", "description": "Close.", "parameters": {"type": "object", "properties": {}}},
        },
    ]
    model = scripted([Turn("", Use("open_file"), Use("close")), "ok"])
    agent = Agent(model, tools=[add])
    run = await agent.run("hi", tools=definitions)
    assert [call.tool for call in run.pending] == ["open_file", "close"]
    assert [definition.name for definition in model.requests[0].tools] == ["add", "open_file", "close"]
    again = await agent.resume(run.to_json(), {call.id: None for call in run.pending})
    assert told(again) == ["null", "null"]
    await Agent(scripted(["x"])).run("hi", tools=[add, *definitions])


async def test_a_client_tool_named_like_a_server_tool_is_refused_and_the_run_goes_on() -> None:
    clash = {"name": "Add", "description": "Mine.", "parameters": {"type": "object", "properties": {}}}
    updates: list[Update] = []
    model = scripted([Use("add", {"a": 1, "b": 1}), "ok"])
    run = await Agent(model, tools=[add]).run("hi", tools=[clash], on_update=updates.append)
    (warning,) = [update for update in updates if isinstance(update, Warned)]
    assert warning.code == "tool_refused"
    assert "'Add'" in warning.message
    assert "'add'" in warning.message
    assert (told(run), len(model.requests[0].tools)) == (["2"], 1)


async def test_limits_of_client_tools_are_a_setting_of_the_agent() -> None:
    definitions = [
        {"name": f"t{number}", "description": "T.", "parameters": {"type": "object", "properties": {}}}
        for number in range(11)
    ]
    assert (await Agent(scripted(["ok"])).run("hi", tools=definitions)).status == "done"
    with pytest.raises(InvalidToolDefinitions, match="10 items"):
        await Agent(scripted(["ok"]), admission=STRICT).run("hi", tools=definitions)


def test_two_tools_of_one_name_are_an_error_before_anything_runs() -> None:
    with pytest.raises(DuplicateToolName, match="add"):
        Agent(scripted([]), tools=[add, add])


async def test_a_tool_of_the_run_may_not_take_a_name_of_the_agent() -> None:
    with pytest.raises(DuplicateToolName):
        await Agent(scripted([]), tools=[add]).run("hi", tools=[add])


async def test_an_answer_can_be_a_value_of_a_type() -> None:
    class Report(BaseModel):
        title: str
        pages: int

    agent = Agent(scripted(['{"title": "x"}', '```json\n{"title": "x", "pages": 2}\n```']), output=Report)
    run = await agent.run("hi")
    assert run.output == Report(title="x", pages=2)
    assert "Missing" in run.messages[2].text or "pages" in run.messages[2].text


async def test_an_answer_can_be_a_dataclass_or_a_schema() -> None:
    @dataclasses.dataclass
    class Point:
        x: int

    assert (await Agent(scripted(['{"x":1}']), output=Point).run("hi")).output == Point(1)
    plain = {"type": "object", "required": ["x"]}
    assert (await Agent(scripted(['{"x":1}']), output=plain).run("hi")).output == {"x": 1}


def test_an_output_schema_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="/type"):
        Agent(scripted([]), output={"type": "banana"})


async def test_an_answer_that_cannot_be_mended_fails_the_run() -> None:
    agent = Agent(scripted(["a", "b", "c"]), output={"type": "object"})
    run = await agent.run("hi")
    assert run.status == "failed"
    with pytest.raises(RunFailed, match="not JSON"):
        _ = run.output


async def test_the_model_is_told_the_schema_of_the_answer() -> None:
    model = scripted(['{"x":1}'])
    await Agent(model, output={"type": "object"}).run("hi")
    assert model.requests[0].output_schema is not None
    assert bytes(model.requests[0].output_schema) == b'{"type":"object"}'


async def test_a_run_stops_at_its_limit_with_a_last_word_and_its_results() -> None:
    script = lambda request: Use("add", {"a": 1, "b": 1}) if request.tools else "that is all"  # noqa: E731
    model = scripted(script)
    run = await Agent(model, tools=[add], limits=Limits(max_turns=2)).run("hi")
    assert (run.status, run.output, len(model.requests)) == ("limit", "that is all", 3)
    assert told(run) == ["2", "2"]


async def test_the_default_limit_is_five_turns() -> None:
    model = scripted(lambda request: Use("add", {"a": 1, "b": 1}) if request.tools else "enough")
    await Agent(model, tools=[add]).run("hi")
    assert len(model.requests) == 6


@pytest.mark.parametrize(
    ("condition", "turns"),
    [
        (until(lambda run: len(run.calls) >= 2), 2),
        (max_turns(1), 1),
        (called("add") & max_turns(3), 3),
        (called("nothing") | max_turns(2), 2),
        (finish_reason(Finish.TOOLS), 1),
    ],
)
async def test_a_program_says_when_to_stop(condition: Any, turns: int) -> None:
    model = scripted(lambda request: Turn("so far", Use("add", {"a": 1, "b": 1})))
    run = await Agent(model, tools=[add], stop_when=condition).run("hi")
    assert (run.status, len(model.requests), run.text) == ("stopped", turns, "so far")


async def test_usage_is_added_up() -> None:
    model = scripted([Turn("", Use("add", {"a": 1, "b": 1}), usage=Usage(10, 2)), Turn("x", usage=Usage(20, 3))])
    run = await Agent(model, tools=[add]).run("hi")
    assert run.usage == Usage(30, 5)


@pytest.mark.parametrize("error", [ModelError("too fast", code="rate_limit", retryable=True), None])
async def test_a_model_that_fails_ends_the_run_with_a_reason(error: ModelError | None) -> None:
    run = await Agent(scripted([Turn("half", error=error)] if error else [])).run("hi")
    assert run.status == "failed"
    assert run.state.failure is not None
    assert run.state.failure.code == ("rate_limit" if error else "script_ended")
    with pytest.raises(RunFailed):
        _ = run.output


async def test_an_adapter_that_raises_anything_ends_the_run_and_not_the_program() -> None:
    def broken(request: Any) -> Any:
        raise KeyError("secret")

    run = await Agent(scripted(broken)).run("hi")
    assert run.state.failure is not None
    assert "secret" not in run.state.failure.message


async def test_a_model_that_is_no_stream_at_all_ends_the_run() -> None:
    class Broken:
        name = "broken"

        def stream(self, request: Any) -> Any:
            raise KeyError("secret")

    run = await Agent(Broken()).run("hi")
    assert run.status == "failed"


async def test_a_watcher_that_fails_is_dropped_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Update] = []

    def broken(update: Update) -> None:
        raise RuntimeError("boom")

    run = Agent(scripted([Use("add", {"a": 1, "b": 1}), "ok"]), tools=[add]).start("hi")
    run.watch(broken)
    run.watch(seen.append)
    await run.wait()
    assert (run.output, isinstance(seen[-1], RunEnded)) == ("ok", True)
    assert caplog.text.count("a watcher failed") == 1


async def test_a_person_can_play_the_model() -> None:
    model = manual()
    task = asyncio.ensure_future(Agent(model, tools=[add]).run("hi"))
    async with asyncio.timeout(5):
        request = await model.asked()
        assert [definition.name for definition in request.tools] == ["add"]
        model.call("add", {"a": 20, "b": 22})
        await model.asked()
        model.say("42")
        assert (await task).output == "42"


async def test_a_person_who_plays_the_model_may_fail_it() -> None:
    model = manual()
    task = asyncio.ensure_future(Agent(model).run("hi"))
    async with asyncio.timeout(5):
        await model.asked()
        model.fail("no idea")
        assert (await task).status == "failed"


def test_a_model_name_that_nothing_answers_to_is_an_error() -> None:
    with pytest.raises(UnknownModel, match="nobody:at-home"):
        Agent("nobody:at-home")


async def test_a_callback_that_returns_nonsense_is_the_programs_fault() -> None:
    @tool(needs_approval=True)
    async def wipe() -> None:
        """Wipe."""

    with pytest.raises(TypeError, match="on_approval"):
        await Agent(scripted([Use("wipe")]), tools=[wipe]).run("hi", on_approval=lambda call: "yes")


async def test_a_deprecated_tool_warns_the_developer() -> None:
    @tool(deprecated="use new")
    async def old() -> None:
        """Old."""

    updates: list[Update] = []
    await Agent(scripted([Use("old"), "x"]), tools=[old]).run("hi", on_update=updates.append)
    assert [update.code for update in updates if isinstance(update, Warned)] == ["tool_deprecated"]
