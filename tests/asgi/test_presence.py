"""Clients that are there, that go and come back, several at once, and providers: over HTTP, with a real server."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from farhand import Limits, tool
from tests.asgi.story import BEN, office, pick

SHORT = Limits(grace=0.2)
OPEN_FILE = {
    "name": "open_file",
    "description": "Open a file in the editor.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
patient = tool.define("patient", input={"type": "object"}, description="Waits for ever.", absent="wait")
strict = tool.define("strict", input={"type": "object"}, description="Fails at once.", absent="fail")
told = tool.define("told", input={"type": "object"}, description="Is told.", fallback="No {tool} here; {0} is at home.")
sent_again = tool.define("sent_again", input={"type": "object"}, description="Is sent again.", absent="retry")
again = tool.define("again", input={"type": "object"}, description="May be run again.", effect="idempotent")


def began(word: str, *offers: str, client: str = "tab-1", **more: Any) -> dict[str, Any]:
    return {"input": word, "client": client, "offers": list(offers), **more}


async def test_a_client_that_is_there_works_on_its_call() -> None:
    async with (
        asyncio.timeout(20),
        office(agent={"limits": SHORT}) as at,
        at.stream("POST", "/threads/t/runs", began("pick", "pick")) as events,
    ):
        call = (await events.next("call-executing"))["call_id"]
        claimed = await at.got("POST", f"/calls/{call}/claim", {"client": "tab-1"})
        assert (claimed["attempt"], claimed["arguments"]) == (1, '{"n":3}')
        assert (await events.next("call-claimed"))["holder"] == "tab-1"
        await at.got("POST", f"/calls/{call}/progress", {"value": {"done": 1}, "client": "tab-1"})
        assert (await events.next("call-progress"))["value"] == {"done": 1}
        await at.got("POST", f"/calls/{call}/result", {"result": 5, "client": "tab-1", "attempt": 1})
        assert (await events.next("run-ended"))["output"] == "so: 5"


async def test_where_nobody_offers_the_tool_the_model_is_told_after_a_while() -> None:
    async with (
        asyncio.timeout(20),
        office(tools=(pick, told), agent={"limits": SHORT}) as at,
        at.stream("POST", "/threads/t/runs", {"input": "pick"}) as events,
    ):
        ended = await events.next("call-ended")
        assert (ended["outcome"], ended["failure"]["code"]) == ("unavailable", "client_absent")
        assert (await events.next("run-ended"))[
            "output"
        ] == "so: Error: Client disconnected. Tool 'pick' is unavailable."
        async with at.stream("POST", "/threads/u/runs", {"input": "told"}) as events:
            assert (await events.next("run-ended"))["output"] == "so: Error: No told here; told is at home."


async def test_a_client_that_goes_is_missed_at_once() -> None:
    async with asyncio.timeout(20), office(agent={"limits": SHORT}) as at:
        async with at.stream("POST", "/threads/t/runs", began("pick", "pick")) as events:
            await events.next("call-executing")
        async with at.stream("GET", "/threads/t/updates") as events:
            assert (await events.next("call-ended"))["outcome"] == "unavailable"


async def test_a_client_that_comes_back_in_time_has_missed_nothing() -> None:
    async with (
        asyncio.timeout(20),
        office(agent={"limits": Limits(grace=3.0)}) as at,
        at.stream("POST", "/threads/t/runs", began("pick", "pick")) as events,
    ):
        call = (await events.next("call-executing"))["call_id"]
        await at.got("POST", f"/calls/{call}/claim", {"client": "tab-1"})
        await events.next("call-claimed")
        last = events.last
        query = f"/threads/t/updates?after={last}&client=tab-1&offers=pick"
        async with at.stream("GET", query) as events:
            await at.got("POST", f"/calls/{call}/result", {"result": 6, "client": "tab-1"})
            assert (await events.next("call-ended"))["outcome"] == "ok"
            assert (await events.next("run-ended"))["output"] == "so: 6"


async def test_nobody_knows_what_a_client_did_that_went_with_a_once_call() -> None:
    async with asyncio.timeout(20), office(agent={"limits": SHORT}) as at:
        async with at.stream("POST", "/threads/t/runs", began("pick", "pick")) as events:
            call = (await events.next("call-executing"))["call_id"]
            await at.got("POST", f"/calls/{call}/claim", {"client": "tab-1"})
        async with at.stream("GET", "/threads/t/updates") as events:
            assert (await events.next("call-ended"))["outcome"] == "unknown"


async def test_a_call_that_may_be_run_again_goes_to_another_client() -> None:
    async with (
        asyncio.timeout(20),
        office(tools=(again,), agent={"limits": SHORT}) as at,
        at.stream("POST", "/threads/t/runs", began("again", "again")) as first,
    ):
        call = (await first.next("call-executing"))["call_id"]
        async with at.stream("GET", "/threads/t/updates?client=tab-2&offers=again") as second:
            await second.next("call-executing")
            await at.got("POST", f"/calls/{call}/claim", {"client": "tab-1"})
            await second.next("call-claimed")
            await first.response.aclose()
            assert (await second.next("call-executing"))["attempt"] == 2
            await at.got("POST", f"/calls/{call}/result", {"result": 7, "attempt": 2, "client": "tab-2"})
            assert (await second.next("run-ended"))["output"] == "so: 7"


async def test_of_two_tabs_one_gets_the_call_and_the_other_sees_it() -> None:
    async with (
        asyncio.timeout(20),
        office() as at,
        at.stream("POST", "/threads/t/runs", began("pick", "pick")) as events,
    ):
        call = (await events.next("call-executing"))["call_id"]
        async with at.stream("GET", "/threads/t/updates?client=tab-2&offers=pick") as other:
            replies = await asyncio.gather(
                *[at.ask("POST", f"/calls/{call}/claim", {"client": tab}) for tab in ("tab-1", "tab-2")]
            )
            assert sorted(reply.status_code for reply in replies) == [200, 409]
            holder = (await other.next("call-claimed"))["holder"]
            loser = "tab-2" if holder == "tab-1" else "tab-1"
            refused = await at.ask("POST", f"/calls/{call}/result", {"result": 1, "client": loser})
            assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
            await at.got("POST", f"/calls/{call}/result", {"result": 2, "client": holder})
            assert (await other.next("run-ended"))["output"] == "so: 2"


async def test_a_call_that_is_given_back_goes_to_another_client() -> None:
    async with (
        asyncio.timeout(20),
        office() as at,
        at.stream("POST", "/threads/t/runs", began("pick", "pick")) as events,
    ):
        call = (await events.next("call-executing"))["call_id"]
        await at.got("POST", f"/calls/{call}/claim", {"client": "tab-1"})
        refused = await at.ask("POST", f"/calls/{call}/release", {"client": "tab-2"})
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        receipts = [await at.got("POST", f"/calls/{call}/release", {"client": "tab-1"}) for _ in range(2)]
        assert [receipt["repeated"] for receipt in receipts] == [False, True]
        assert (await events.next("call-released"))["state"] == "executing"
        assert (await events.next("call-executing"))["attempt"] == 1
        await at.got("POST", f"/calls/{call}/claim", {"client": "tab-2"})
        await at.got("POST", f"/calls/{call}/result", {"result": 2, "client": "tab-2"})
        assert (await events.next("run-ended"))["output"] == "so: 2"


async def test_a_run_may_be_for_one_client_only() -> None:
    async with asyncio.timeout(20), office() as at, AsyncExitStack() as stack:
        await stack.enter_async_context(at.stream("GET", "/threads/t/updates?client=phone&offers=pick"))
        events = await stack.enter_async_context(
            at.stream("POST", "/threads/t/runs", began("pick", "pick", target="phone"))
        )
        call = (await events.next("call-executing"))["call_id"]
        refused = await at.ask("POST", f"/calls/{call}/claim", {"client": "tab-1"})
        assert (refused.status_code, refused.json()["code"]) == (409, "not_expected")
        await at.got("POST", f"/calls/{call}/claim", {"client": "phone"})


async def test_each_tool_says_what_becomes_of_it_when_nobody_is_there() -> None:
    async with (
        asyncio.timeout(20),
        office(tools=(patient, strict), agent={"limits": SHORT}) as at,
        at.stream("POST", "/threads/t/runs", {"input": "strict"}) as events,
    ):
        assert (await events.next("run-ended"))["ending"] == "failed"
        async with at.stream("POST", "/threads/u/runs", {"input": "patient"}) as events:
            call = (await events.next("call-executing"))["call_id"]
            await events.next("run-waiting")
        async with at.stream("GET", "/threads/u/updates?client=late&offers=patient") as events:
            await at.got("POST", f"/calls/{call}/claim", {"client": "late"})
            await at.got("POST", f"/calls/{call}/result", {"result": "here I am", "client": "late"})
            assert (await events.next("run-ended"))["output"] == "so: here I am"


async def test_a_call_is_sent_again_to_a_client_that_comes_and_falls_back_if_none_does() -> None:
    limits = Limits(grace=0.2, retry_delay=0.02, absent_retries=2)
    async with asyncio.timeout(20), office(tools=(sent_again,), agent={"limits": limits}) as at:
        async with at.stream("POST", "/threads/t/runs", {"input": "sent_again"}) as events:
            told = await events.rest()
        sent = [(each["attempt"], each["at"]) for each in told if each["type"] == "call-executing"]
        assert [attempt for attempt, _ in sent] == [1, 2, 3]
        assert sent[2][1] - sent[1][1] >= 2 * 20  # milliseconds, doubled
        assert next(each["outcome"] for each in told if each["type"] == "call-ended") == "unavailable"
    async with (
        asyncio.timeout(20),
        office(tools=(sent_again,), agent={"limits": Limits(retry_delay=0.02)}) as at,
        at.stream("POST", "/threads/t/runs", {"input": "sent_again"}) as events,
    ):
        call = (await events.next("call-released"))["call_id"]
        async with at.stream("GET", "/threads/t/updates?client=late&offers=sent_again"):
            assert (await events.next("call-executing"))["attempt"] > 1
            await at.got("POST", f"/calls/{call}/claim", {"client": "late"})
            await at.got("POST", f"/calls/{call}/result", {"result": 1, "client": "late"})
            assert (await events.next("run-ended"))["output"] == "so: 1"


async def test_where_calls_are_answered_in_turns_nobody_is_missed() -> None:
    async with (
        asyncio.timeout(20),
        office(agent={"limits": Limits(grace=0.0)}) as at,
        at.stream("POST", "/threads/t/runs", {"input": "pick", "wait": "turn"}) as events,
    ):
        call = (await events.rest())[-1]["call_ids"][0]
        await at.got("POST", f"/calls/{call}/result", {"result": 8})
        async with at.stream("GET", "/threads/t/updates") as events:
            assert (await events.next("run-ended"))["output"] == "so: 8"


async def test_a_provider_has_its_tools_in_every_thread_of_its_principal() -> None:
    body = {"client": "editor", "tools": [OPEN_FILE]}
    async with asyncio.timeout(20), office() as at, at.stream("POST", "/provider", body) as offers:
        for thread in ("t", "u"):
            async with at.stream("POST", f"/threads/{thread}/runs", {"input": "open_file"}) as events:
                offered = await offers.next("call-offered")
                call = offered["call"]
                assert (call["tool"], call["thread_id"]) == ("open_file", thread)
                assert offered["description"] == "Open a file in the editor."
                await at.got("POST", f"/calls/{call['id']}/claim", {"client": "editor"})
                await at.got("POST", f"/calls/{call['id']}/result", {"result": "opened", "client": "editor"})
                assert (await events.next("run-ended"))["output"] == "so: opened"
        async with at.stream("POST", "/threads/v/runs", {"input": "open_file"}, token=BEN) as events:
            assert (await events.next("run-ended"))["output"] == "you said: open_file"


async def test_a_provider_is_told_when_somebody_else_has_the_call() -> None:
    body = {"client": "editor", "offers": ["pick"]}
    async with (
        asyncio.timeout(20),
        office() as at,
        at.stream("POST", "/provider", body) as offers,
        at.stream("POST", "/threads/t/runs", began("pick", "pick")),
    ):
        call = (await offers.next("call-offered"))["call"]["id"]
        await at.got("POST", f"/calls/{call}/claim", {"client": "tab-1"})
        assert (await offers.next("call-withdrawn"))["call_id"] == call


async def test_a_provider_that_comes_late_is_told_of_what_is_open() -> None:
    async with (
        asyncio.timeout(20),
        office(agent={"limits": Limits(grace=10.0)}) as at,
        at.stream("POST", "/threads/t/runs", {"input": "pick"}) as events,
    ):
        call = (await events.next("call-executing"))["call_id"]
        async with at.stream("POST", "/provider", {"client": "editor", "offers": ["*"]}) as offers:
            assert (await offers.next("call-offered"))["call"]["id"] == call
            await at.got("POST", f"/calls/{call}/result", {"result": 1, "client": "editor"})
            assert (await offers.next("call-withdrawn"))["call_id"] == call


async def test_a_provider_cannot_take_the_name_of_a_tool_of_the_server() -> None:
    async with office() as at:
        refused = await at.ask("POST", "/provider", {"client": "editor", "tools": [{**OPEN_FILE, "name": "add"}]})
        assert (refused.status_code, refused.json()["code"]) == (409, "duplicate_tool_name")
