"""A person's decisions, asked of a callback beside the stream."""

import asyncio
import threading
from typing import Any

import pytest

from farhand import Approve, Call, Deny
from farhand.core.call import Outcome
from farhand.core.errors import RefusedAnswer
from farhand.models import Turn, Use
from tests.client.story import Heard, app_of, client_of, office, served_by
from tests.client.test_pool import told

PAY = 'pay:{"amount":5}'


@pytest.mark.parametrize(
    ("verdict", "output"),
    [
        (True, "so: paid 5"),
        (Approve(), "so: paid 5"),
        (Approve(arguments={"amount": 3}), 'to: {"amount":3}\npaid 3'),
        (False, "so: Error: The user denied this call."),
        (Deny("too much"), "so: Error: The user denied this call. Reason: too much"),
    ],
)
async def test_a_callback_decides_for_the_person(verdict: Any, output: str) -> None:
    async def decide(call: Call[Any, Any]) -> Any:
        assert (call.tool, call.arguments, call.needs_approval) == ("pay", {"amount": 5}, True)
        return verdict

    async with office(on_approval=decide) as client:
        assert (await client.thread().run(PAY)).output.endswith(output)


async def test_a_run_has_its_own_callback_and_the_client_one_for_all() -> None:
    async with office(on_approval=lambda call: False) as client:
        result = await client.thread().run(PAY, on_approval=lambda call: True)
        other = await client.thread().run(PAY)
    assert (result.output, other.calls[0].outcome) == ("so: paid 5", Outcome.DENIED)


async def test_a_callback_that_is_not_async_may_block() -> None:
    async with office(on_approval=lambda call: "farhand-tool" in threading.current_thread().name) as client:
        assert (await client.thread().run(PAY)).output == "so: paid 5"


async def test_without_a_callback_the_run_waits_and_is_decided_later() -> None:
    async with office() as client:
        thread = client.thread("t")
        result = await thread.run(PAY)
        [call] = result.pending
        assert (result.status, call.needs_approval) == ("waiting", True)
        await client.approve(call.id, shown=call.record.approval.arguments_hash if call.record.approval else None)
        assert (await thread.resume()).output == "so: paid 5"


async def test_a_run_that_is_resumed_asks_what_is_still_open() -> None:
    async with office() as client:
        await client.thread("t").run(PAY)
        result = await client.thread("t").resume(on_approval=lambda call: call.arguments == {"amount": 5})
    assert result.output == "so: paid 5"


async def test_questions_are_asked_all_at_once_while_calls_run() -> None:
    asked: list[str] = []
    all_asked = asyncio.Event()

    async def decide(call: Call[Any, Any]) -> bool:
        asked.append(call.id)
        if len(asked) == 2:
            all_asked.set()
        await all_asked.wait()
        return True

    async def work(given: dict[str, Any]) -> dict[str, Any]:
        await all_asked.wait()
        return {"worked": True}

    script = [Turn("", Use("pay", {"amount": 1}), Use("pick"), Use("pay", {"amount": 2})), "ok"]
    async with office(script=script) as client:
        client.implement("pick", work)
        assert told(await client.thread().run("hi", on_approval=decide)) == ["paid 1", '{"worked":true}', "paid 2"]


async def test_the_others_go_on_while_one_call_waits_for_a_person() -> None:
    script = [Turn("", Use("pay", {"amount": 1}), Use("pick")), "ok"]
    async with office(script=script) as client:
        client.implement("pick", lambda given: {"picked": True})
        result = await client.thread("t").run("hi")
        assert [call.tool for call in result.pending] == ["pay"]
        assert [call.outcome for call in result.calls] == [None, Outcome.OK]


async def test_a_question_that_somebody_else_has_answered_is_asked_no_more() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def decide(call: Call[Any, Any]) -> bool:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return True

    async with served_by(app_of()) as url, client_of(url) as one, client_of(url) as two:
        running = asyncio.create_task(one.thread("t").run(PAY, on_approval=decide))
        await asked.wait()
        [call] = await two.pending("t")
        await two.approve(call.id)
        assert (await running).output == "so: paid 5"
        await gone.wait()


async def test_of_two_answers_the_first_one_counts_and_the_second_disturbs_nobody() -> None:
    async with served_by(app_of()) as url, client_of(url) as one, client_of(url) as two:

        async def decide(call: Call[Any, Any]) -> bool:
            await two.deny(call.id, "no money")
            return True

        assert "no money" in (await one.thread("t").run(PAY, on_approval=decide)).output


async def test_arguments_that_do_not_fit_are_refused_and_the_call_still_waits() -> None:
    async with office(on_approval=lambda call: Approve(arguments={"amount": "much"})) as client:
        heard = Heard(client, "tool_validation_error")
        result = await client.thread("t").run(PAY)
        [event] = heard.events
        assert (event.what, event.problems[0].path) == ("edit", "/amount")
        assert (result.status, [call.tool for call in result.pending]) == ("waiting", ["pay"])


async def test_what_the_callback_raises_comes_out_of_the_run_which_waits() -> None:
    async def decide(call: Call[Any, Any]) -> bool:
        raise LookupError("no such person")

    async with office() as client:
        with pytest.raises(LookupError, match="no such person"):
            await client.thread("t").run(PAY, on_approval=decide)
        with pytest.raises(TypeError, match="decides True, False, Approve or Deny, not NoneType"):
            await client.thread("t").resume(on_approval=lambda call: None)
        [call] = await client.pending("t")
        assert call.tool == "pay"


async def test_a_client_that_closes_asks_no_more() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def decide(call: Call[Any, Any]) -> bool:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return True

    async with office(on_approval=decide) as client:
        running = asyncio.create_task(client.thread("t").run(PAY))
        await asked.wait()
        running.cancel()
        await client.close()
        assert gone.is_set()


async def test_a_decision_may_last_until_it_is_forgotten() -> None:
    async with office() as client:
        await client.thread().run(PAY, on_approval=lambda call: Approve(remember="tool"))
        assert (await client.thread().run(PAY)).output == "so: paid 5"
        await client.forget()
        assert (await client.thread().run(PAY)).status == "waiting"


async def test_a_tool_of_the_client_may_need_its_person_too() -> None:
    async with office(script=[Use("wipe"), "ok"], tools=()) as client:

        @client.tool(needs_approval=True)
        def wipe() -> str:
            """Wipe the disk."""
            return "wiped"

        assert told(await client.thread().run("hi", on_approval=lambda call: True)) == ["wiped"]


async def test_several_results_and_decisions_count_together_or_not_at_all() -> None:
    script = [Turn("", Use("pay", {"amount": 1}), Use("pick")), "ok"]
    async with office(script=script) as client:
        thread = client.thread("t")
        result = await thread.run("hi", run_tools=False)
        paying, picking = result.pending
        with pytest.raises(RefusedAnswer):
            await client.answers({picking.id: "no object"}, {paying.id: True})
        assert {call.tool for call in await client.pending("t")} == {"pay", "pick"}
        receipts = await client.answers({picking.id: {"x": 1}}, {paying.id: Deny("no")})
        assert [receipt.repeated for receipt in receipts] == [False, False]
        assert (await thread.resume(result.id)).output == "ok"
