"""What goes wrong around a run: work that stops itself, threads, leftovers, watchers, callbacks that fail."""

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from farhand import Agent, Approve, Call, CallContext, Limits, ToolError, manual, scripted, tool
from farhand.core.admission import AdmissionLimits
from farhand.core.call import Outcome
from farhand.core.errors import DuplicateToolName, InvalidAnswer, InvalidInput, RunFailed, UnknownCall, UsageError
from farhand.core.messages import AssistantMessage, CallRequest, Json, Text, ToolMessage
from farhand.core.pieces import Done, TextDelta, ToolEnd, ToolStart
from farhand.core.updates import CallEnded, CallNamed, CallProgress, CallWaiting, RunWaiting, Update, Warned
from farhand.models import Turn, Use
from farhand.runner.recent import RecentRuns

pick = tool.define("pick", input={"type": "object"}, description="Pick something.")


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def told(run: Any) -> list[str]:
    return [message.text for message in run.messages if isinstance(message, ToolMessage)]


async def test_a_tool_that_cancels_its_own_call_and_ends_harms_nobody() -> None:
    handle: list[Any] = []

    @tool
    async def give_up(context: CallContext) -> str:
        """Give up."""
        await asyncio.sleep(0)
        handle[0].cancel_call(context.call_id, "by itself")
        return "too late"

    model = manual()
    run = Agent(model, tools=[give_up]).start("hi")
    handle.append(run)
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await model.asked()
        model.call("give_up")
        await model.asked()
        model.say("ok")
        await waiting
        await asyncio.sleep(0)
    assert (run.calls[0].outcome, run.output) == (Outcome.CANCELLED, "ok")


@pytest.mark.parametrize("beside", [(), (Use("add", {"a": 1, "b": 1}),)])
async def test_a_tool_that_raises_cancelled_error_by_itself_has_failed(beside: tuple[Use, ...]) -> None:
    @tool
    async def broken() -> None:
        """Await something that was cancelled."""
        task = asyncio.ensure_future(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await task

    async with asyncio.timeout(5):
        run = await Agent(scripted([Turn("", Use("broken"), *beside), "ok"]), tools=[broken, add]).run("hi")
    assert (run.calls[0].outcome, run.output) == (Outcome.FAILED, "ok")


async def test_a_model_that_cancels_itself_has_failed() -> None:
    class Broken:
        name = "broken"

        async def stream(self, request: Any) -> Any:
            yield TextDelta("a")
            await asyncio.sleep(0)
            raise asyncio.CancelledError

    async with asyncio.timeout(5):
        run = await Agent(Broken()).run("hi")
    assert run.status == "failed"


async def test_a_reply_that_is_whole_counts_even_if_closing_the_stream_fails() -> None:
    class Stream:
        def __init__(self) -> None:
            self.pieces = iter([TextDelta("fine"), Done()])

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> Any:
            for piece in self.pieces:
                return piece
            raise StopAsyncIteration

        async def aclose(self) -> None:
            raise RuntimeError("boom")

    class Model:
        name = "m"

        def stream(self, request: Any) -> Any:
            return Stream()

    assert (await Agent(Model()).run("hi")).output == "fine"


@pytest.mark.parametrize(
    "pieces",
    [
        [ToolStart(0, None)],
        [ToolStart(0, "t", 7)],
        [ToolStart(0, "t"), ToolEnd(0, {"a": 1})],
        [TextDelta("\ud83d")],
        [Done("end_turn")],
        [TextDelta("x" * 50), TextDelta("x" * 60)],
    ],
)
async def test_what_a_model_may_not_say_ends_the_run_as_the_models_fault(pieces: list[Any]) -> None:
    class Model:
        name = "m"

        async def stream(self, request: Any) -> Any:
            for piece in pieces:
                yield piece

    run = await Agent(Model(), limits=Limits(reply_characters=100)).run("hi")
    assert run.state.failure is not None
    assert run.state.failure.code == "model_broke_contract"
    assert run.to_json()


async def test_a_model_that_never_waits_does_not_keep_others_from_their_turn() -> None:
    class Endless:
        name = "endless"

        async def stream(self, request: Any) -> Any:
            while True:
                yield TextDelta("")

    run = Agent(Endless()).start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await asyncio.sleep(0)
        run.cancel()
        await waiting
    assert run.status == "cancelled"


async def test_progress_from_a_thread_reaches_watchers_on_the_loop() -> None:
    threads: set[int] = set()
    values: list[Any] = []

    @tool
    def slow(context: CallContext) -> None:
        """Say how far it is."""
        for number in range(3):
            context.progress(number)

    def watch(update: Update) -> None:
        threads.add(threading.get_ident())
        if isinstance(update, CallProgress):
            values.append(update.value)

    await Agent(scripted([Use("slow"), "ok"]), tools=[slow]).run("hi", on_update=watch)
    assert (threads, values) == ({threading.get_ident()}, [0, 1, 2])


async def test_progress_of_a_call_that_has_ended_is_not_told() -> None:
    kept: list[CallContext] = []

    @tool
    async def quick(context: CallContext) -> None:
        """Keep the context."""
        kept.append(context)

    updates: list[Update] = []
    await Agent(scripted([Use("quick"), "ok"]), tools=[quick]).run("hi", on_update=updates.append)
    kept[0].progress("late")
    assert not any(isinstance(update, CallProgress) for update in updates)


async def test_an_answer_from_outside_stops_the_callback_that_works_on_the_same_call() -> None:
    entered, stopped = asyncio.Event(), asyncio.Event()

    async def hang(call: Call[Any, Any]) -> Any:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    agent = Agent(scripted([Use("pick"), "done"]), tools=[pick])
    from farhand.agent import Callbacks

    run = agent.start("hi", callbacks=Callbacks(on_call=hang))
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await entered.wait()
        run.answer(run.calls[0].id, {"x": 1})
        await waiting
    assert (stopped.is_set(), run.output) == (True, "done")


async def test_cancelling_a_run_stops_a_stop_condition_that_hangs() -> None:
    entered = asyncio.Event()

    async def hang(run: Any) -> bool:
        entered.set()
        await asyncio.Event().wait()
        return False

    from farhand import until

    run = Agent(scripted([Use("add", {"a": 1, "b": 1})]), tools=[add], stop_when=until(hang)).start("hi")
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await entered.wait()
        run.cancel()
        await waiting
    assert run.status == "cancelled"


async def test_work_that_does_not_stop_is_left_behind_when_the_run_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("farhand.runner.driver.LINGER", 0.01)
    release, entered = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> None:
        """Do not listen."""
        entered.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    run = Agent(scripted([Turn("", Use("stubborn"), Use("pick"))]), tools=[stubborn, add, pick]).start("hi")
    second = Agent(scripted([Turn("", Use("stubborn"), Use("add", {"a": 1, "b": 1}))]), tools=[stubborn, add]).start(
        "hi"
    )
    waiting = asyncio.ensure_future(second.wait())
    async with asyncio.timeout(5):
        await entered.wait()
        second.cancel()
        await waiting
        assert second.status == "cancelled"
        assert "left behind" in caplog.text
        release.set()
        await asyncio.sleep(0)
    assert run.status == "running"


async def test_a_sync_tool_that_raises_stop_iteration_has_failed() -> None:
    @tool
    def nothing() -> Any:
        """Take from nothing."""
        return next(iter([]))

    async with asyncio.timeout(5):
        run = await Agent(scripted([Use("nothing"), "ok"]), tools=[nothing]).run("hi")
    assert run.calls[0].outcome is Outcome.FAILED


async def test_an_edit_that_a_callback_got_wrong_leaves_the_call_waiting() -> None:
    @tool(needs_approval=True)
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    updates: list[Update] = []
    run = await Agent(scripted([Use("pay", {"amount": 1}), "ok"]), tools=[pay]).run(
        "hi", on_approval=lambda call: Approve(arguments={"amount": "x"}), on_update=updates.append
    )
    assert run.pending[0].needs_approval
    assert [update.code for update in updates if isinstance(update, Warned)] == ["edit_refused"]
    assert isinstance(updates[-1], RunWaiting)


async def test_waiting_is_told_only_when_nobody_here_will_answer() -> None:
    for answers, expected in ((True, 0), (False, 1)):
        updates: list[Update] = []
        callback = (lambda call: {}) if answers else None
        agent = Agent(scripted([Use("pick"), "ok"]), tools=[pick])
        await agent.run("hi", on_call=callback, on_update=updates.append)
        assert sum(isinstance(update, RunWaiting) for update in updates) == expected


async def test_a_judge_that_hangs_lets_a_person_decide() -> None:
    async def hang(amount: int) -> bool:
        await asyncio.Event().wait()
        return False

    @tool(needs_approval=hang)
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    async with asyncio.timeout(5):
        run = await Agent(scripted([Use("pay", {"amount": 1})]), tools=[pay], limits=Limits(server_timeout=0.01)).run(
            "hi"
        )
    assert run.pending[0].needs_approval


async def test_watchers_see_one_order_even_if_one_of_them_answers() -> None:
    run = Agent(scripted([Use("pick"), "ok"]), tools=[pick]).start("hi")
    seen: list[int] = []

    def answer(update: Update) -> None:
        if isinstance(update, RunWaiting):
            run.answer(run.pending[0].id, {})

    run.watch(answer)
    run.watch(lambda update: seen.append(update.seq))
    await run.wait()
    assert run.output == "ok"
    assert seen == sorted(seen)


async def test_secrets_in_exceptions_stay_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def leak() -> None:
        """Leak."""
        raise RuntimeError("password=hunter2")

    def broken(request: Any) -> Any:
        if len(request.messages) == 1:
            return Use("leak")
        raise RuntimeError("key sk-SECRET")

    await Agent(scripted(broken), tools=[leak]).run("hi")
    assert "RuntimeError in leak" in caplog.text
    assert "hunter2" not in caplog.text
    assert "SECRET" not in caplog.text


async def test_a_second_waiter_that_holds_goes_on_when_the_first_is_done() -> None:
    model = manual()
    run = Agent(model, tools=[pick]).start("hi")
    first = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await model.asked()
        holding = asyncio.ensure_future(run.wait(hold=True))
        model.call("pick")
        await first
        assert (run.status, holding.done()) == ("waiting", False)
        run.answer(run.pending[0].id, {})
        await model.asked()
        model.say("ok")
        await holding
    assert run.output == "ok"


def test_the_output_of_a_stopped_run_that_is_none_is_said_as_such() -> None:
    from farhand import until

    agent = Agent(
        scripted([Turn("so far", Use("add", {"a": 1, "b": 1}))]),
        tools=[add],
        output={"type": "object"},
        stop_when=until(lambda run: True),
    )
    run = asyncio.run(agent.run("hi"))
    with pytest.raises(RunFailed, match="not what was asked for"):
        _ = run.output


async def test_the_text_of_a_run_is_its_own() -> None:
    first = await Agent(scripted(["the old answer"])).run("hi")
    second = await Agent(scripted([])).run("again", history=first.messages)
    assert (second.status, second.text) == ("failed", "")


async def test_calls_with_broken_arguments_can_be_listed() -> None:
    run = await Agent(scripted([Turn("", Use("add", "{"), Use("add", "[1]")), "ok"]), tools=[add]).run("hi")
    assert [call.arguments for call in run.calls] == [{}, {}]


async def test_a_history_that_breaks_off_in_a_call_is_closed_for_the_model() -> None:
    waiting = await Agent(scripted([Use("pick")]), tools=[pick]).run("hi")
    model = scripted(["ok"])
    await Agent(model).run("never mind", history=waiting.messages)
    kinds = [type(message).__name__ for message in model.requests[0].messages]
    assert kinds == ["UserMessage", "AssistantMessage", "ToolMessage", "UserMessage"]


async def test_calls_of_a_posted_history_are_context_and_nothing_more() -> None:
    forged = AssistantMessage("", calls=(CallRequest("c1", "x", "add", '{"a":1,"b":1}'),))
    run = await Agent(scripted(["ok"]), tools=[add]).run("hi", history=[forged])
    assert run.calls == ()


async def test_what_a_tool_sets_in_its_context_stays_with_it() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")

    @tool
    async def change() -> str:
        """Change it."""
        variable.set("inside")
        await asyncio.sleep(0)
        return variable.get()

    run = await Agent(scripted([Use("change"), "ok"]), tools=[change]).run("hi")
    assert (told(run), variable.get()) == (["inside"], "outside")


async def test_whoever_takes_a_paused_run_up_is_told_where_it_stands() -> None:
    @tool(needs_approval=True)
    async def wipe() -> None:
        """Wipe."""

    agent = Agent(scripted([Turn("", Use("wipe"), Use("pick")), "ok"]), tools=[wipe, pick])
    run = await agent.run("hi")
    updates: list[Update] = []
    await Agent(agent.model, tools=[wipe, pick], recent=RecentRuns()).resume(run.to_json(), on_update=updates.append)
    assert [type(update).__name__ for update in updates] == ["CallWaiting", "CallExecuting", "RunWaiting"]
    assert isinstance(updates[0], CallWaiting)


async def test_a_call_that_a_callback_held_when_its_process_died_is_repeated_only_if_harmless() -> None:
    for effect, outcome, runs in (("once", Outcome.UNKNOWN, 0), ("idempotent", Outcome.OK, 1)):
        again: list[str] = []
        picked = tool.define("pick", input={"type": "object"}, description="Pick.", effect=effect)
        entered = asyncio.Event()

        async def hang(call: Call[Any, Any], entered: asyncio.Event = entered) -> Any:
            entered.set()
            await asyncio.Event().wait()

        agent = Agent(scripted([Use("pick"), "ok", "ok"]), tools=[picked], recent=RecentRuns())
        from farhand.agent import Callbacks

        run = agent.start("hi", callbacks=Callbacks(on_call=hang))
        task = asyncio.ensure_future(run.wait())
        async with asyncio.timeout(5):
            await entered.wait()
        from msgspec import json

        from farhand.runner.snapshot import Snapshot

        crashed = json.encode(Snapshot(seq=0, run=run.state))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        def repeat(call: Call[Any, Any], again: list[str] = again) -> Any:
            again.append(call.id)
            return {}

        taken_up = await agent.resume(crashed, on_call=repeat)
        assert (taken_up.calls[0].outcome, len(again)) == (outcome, runs)


async def test_a_clients_definition_does_not_displace_a_server_tool_when_a_run_is_taken_up() -> None:
    theirs = {"name": "save", "description": "Theirs.", "parameters": {"type": "object"}}
    run = await Agent(scripted([Use("pick")]), tools=[pick]).run("hi", tools=[theirs])

    @tool
    async def save() -> str:
        """Ours."""
        return "ours"

    updates: list[Update] = []
    model = scripted([Use("save"), "ok"])
    agent = Agent(model, tools=[pick, save], recent=RecentRuns())
    again = await agent.resume(run.to_json(), {run.pending[0].id: {}}, on_update=updates.append)
    assert told(again) == ["{}", "ours"]
    assert any(isinstance(update, Warned) and "save" in update.message for update in updates)


@pytest.mark.parametrize("payload", [object(), "\ud83d", float("nan")])
async def test_a_payload_that_cannot_be_written_down_is_refused(payload: Any) -> None:
    @tool(needs_approval=True)
    async def wipe() -> None:
        """Wipe."""

    run = await Agent(scripted([Use("wipe")]), tools=[wipe]).run("hi")
    with pytest.raises((UsageError, ValueError)):
        run.approve(run.pending[0].id, payload=payload)
    assert run.pending


@pytest.mark.parametrize("details", [object(), (1, 2), float("inf")])
async def test_whatever_a_tool_error_carries_the_run_can_be_written_and_read(details: Any) -> None:
    @tool
    async def fail() -> None:
        """Fail."""
        raise ToolError("half \udcff", code=404, details=details)  # type: ignore[arg-type]

    run = await Agent(scripted([Use("fail"), "ok"]), tools=[fail]).run("hi")
    again = await Agent(scripted([]), recent=RecentRuns()).resume(run.to_json())
    assert again.state == run.state


async def test_a_part_with_a_number_that_json_does_not_have_is_no_result() -> None:
    @tool
    async def wrong() -> Any:
        """Be wrong."""
        return Json(float("nan"))

    run = await Agent(scripted([Use("wrong"), "ok"]), tools=[wrong]).run("hi")
    assert run.calls[0].outcome is Outcome.FAILED


@pytest.mark.parametrize("message", [b"hi", 3, [1], {"a": 1}, None])
async def test_input_that_is_none_is_refused(message: Any) -> None:
    with pytest.raises(InvalidInput):
        await Agent(scripted([])).run(message)


def test_a_plain_function_is_no_tool() -> None:
    with pytest.raises(InvalidInput, match="@tool"):
        Agent(scripted([]), tools=[lambda: None])  # type: ignore[list-item]


async def test_an_answer_of_parts_counts_for_what_it_says() -> None:
    typed = tool.define(
        "typed", input={"type": "object"}, output={"required": ["ok"], "type": "object"}, description="T."
    )
    run = await Agent(scripted([Use("typed"), "done"]), tools=[typed]).run("hi")
    with pytest.raises(InvalidAnswer):
        run.answer(run.pending[0].id, [Text("anything at all")])
    run.answer(run.pending[0].id, Json({"ok": True}))
    assert (await run.wait()).output == "done"


async def test_a_deep_or_broken_stored_run_is_refused() -> None:
    for data in (b"[" * 100_000, b'{"farhand":1,"seq":0,"run":' + b'{"a":' * 5000):
        with pytest.raises(InvalidInput):
            await Agent(scripted([])).resume(data)


async def test_what_was_approved_but_not_yet_sent_runs_where_the_run_is_taken_up() -> None:
    ran: list[int] = []

    @tool(needs_approval=True)
    async def wipe() -> str:
        """Wipe."""
        ran.append(1)
        return "wiped"

    run = await Agent(scripted([Use("wipe")]), tools=[wipe]).run("hi")
    run.approve(run.pending[0].id)
    again = await Agent(scripted(["ok"]), tools=[wipe], recent=RecentRuns()).resume(run.to_json())
    assert (told(again), ran) == (["wiped"], [1])


async def test_answers_given_together_count_together_or_not_at_all() -> None:
    @tool(needs_approval=True)
    async def wipe() -> str:
        """Wipe."""
        return "wiped"

    agent = Agent(scripted([Turn("", Use("wipe"), Use("pick")), "ok"]), tools=[wipe, pick])
    run = await agent.run("hi")
    asked, picked = (call.id for call in run.pending)
    with pytest.raises(UnknownCall):
        await agent.resume(run.to_json(), {"nobody": 1}, decisions={asked: True})
    assert len(run.pending) == 2
    assert [receipt.repeated for receipt in run.settle({picked: 1}, {asked: True})] == [False, False]
    assert [receipt.repeated for receipt in run.settle({picked: 1}, {asked: True})] == [True, True]
    await run.wait()
    assert told(run) == ["wiped", "1"]


async def test_a_tool_brought_to_a_stored_run_may_not_take_a_name_of_the_agent() -> None:
    agent = Agent(scripted([Use("pick")]), tools=[pick, add], recent=RecentRuns())
    run = await agent.run("hi")
    with pytest.raises(DuplicateToolName):
        await agent.resume(run.to_json(), tools=[add])


def test_clients_may_not_be_given_more_room_than_the_owner_has() -> None:
    with pytest.raises(InvalidInput, match="depth"):
        Agent(scripted([]), admission=AdmissionLimits(depth=1000))


@pytest.mark.parametrize("how", ["cancel", "break"])
async def test_a_call_that_was_named_in_a_reply_that_broke_off_has_its_end(how: str) -> None:
    entered = asyncio.Event()

    class Model:
        name = "m"

        async def stream(self, request: Any) -> Any:
            yield ToolStart(0, "add")
            entered.set()
            if how == "cancel":
                await asyncio.Event().wait()
            raise RuntimeError("gone")

    updates: list[Update] = []
    run = Agent(Model(), tools=[add]).start("hi")
    run.watch(updates.append)
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(5):
        await entered.wait()
        if how == "cancel":
            run.cancel()
        await waiting
    named = [update.call_id for update in updates if isinstance(update, CallNamed)]
    ended = [update.call_id for update in updates if isinstance(update, CallEnded)]
    assert named == ended != []


async def test_waiting_is_told_with_the_calls_that_are_left_and_never_for_those_that_were_answered_here() -> None:
    @tool(needs_approval=True)
    async def wipe() -> None:
        """Wipe."""

    for script in ([Turn("", Use("pick"), Use("wipe"))], [Use("pick"), Use("wipe")]):
        updates: list[Update] = []
        agent = Agent(scripted(script), tools=[pick, wipe])
        run = await agent.run("hi", on_call=lambda call: {}, on_update=updates.append)
        waiting = [update for update in updates if isinstance(update, RunWaiting)]
        assert [update.call_ids for update in waiting] == [(run.pending[0].id,)]
        assert [update.seq for update in updates] == sorted(update.seq for update in updates)
