"""What other servers of this kind are known to get wrong: each of it once, so that it stays right here."""

import asyncio
from typing import Any

from farhand import tool
from farhand.core.errors import ModelError
from farhand.models import Request, Turn, Use
from tests.asgi.story import ANN, by_word, office


async def test_a_malformed_body_leaves_the_thread_free_for_the_next_one() -> None:
    async with asyncio.timeout(20), office() as at:
        headers = {"content-type": "application/json", "authorization": f"Bearer {ANN}"}
        for body in (b"{", b"[]", b'{"input":', b"\xff"):
            assert (await at.http.post("/threads/t/runs", content=body, headers=headers)).status_code == 422
        async with at.stream("POST", "/threads/t/runs", {"input": "hello", "busy": "refuse"}) as events:
            assert (await events.next("run-ended"))["output"] == "you said: hello"


async def test_a_message_after_a_run_that_failed_is_answered() -> None:
    broken = [True]

    def reply(request: Request) -> Any:
        if broken.pop() if broken else False:
            return Turn("", error=ModelError("no reply"))
        return by_word(request)

    async with asyncio.timeout(20), office(reply) as at:
        async with at.stream("POST", "/threads/t/runs", {"input": "hello"}) as events:
            assert (await events.next("run-ended"))["ending"] == "failed"
        async with at.stream("POST", "/threads/t/runs", {"input": "again"}) as events:
            assert (await events.next("run-ended"))["output"] == "you said: again"


async def test_an_unknown_tool_leaves_no_call_without_an_outcome() -> None:
    def reply(request: Request) -> Any:
        return Use("no_such_tool", {}) if request.turn == 1 else by_word(request)

    async with asyncio.timeout(20), office(reply) as at:
        async with at.stream("POST", "/threads/t/runs", {"input": "hello"}) as events:
            assert (await events.next("run-ended"))["ending"] == "done"
        messages = (await at.got("GET", "/threads/t"))["messages"]
        asked = [call["id"] for message in messages for call in message.get("calls", ())]
        assert asked == [message["call_id"] for message in messages if message["type"] == "tool"]


async def test_what_waits_for_a_client_and_what_waits_for_a_person_are_both_there() -> None:
    async with asyncio.timeout(20), office() as at:
        async with at.stream("POST", "/threads/t/runs", {"input": "pick pay", "wait": "turn"}) as events:
            assert len((await events.next("run-waiting"))["call_ids"]) == 2
        pick, pay = (await at.got("GET", "/calls"))["calls"]
        await at.got("POST", f"/calls/{pay['id']}/approval", {"approved": False})
        await at.got("POST", f"/calls/{pick['id']}/result", {"result": 1})
        async with at.stream("GET", "/threads/t/updates") as events:
            assert (await events.next("run-ended"))["ending"] == "done"


async def test_a_run_that_waits_is_never_told_as_done() -> None:
    slow = tool.define("slow", input={"type": "object"}, description="Waits.")
    async with asyncio.timeout(20), office(tools=(slow,)) as at:
        run = await at.got("POST", "/threads/t/runs", {"input": "slow", "wait": "turn"})
        async with at.stream("GET", "/threads/t/updates") as events:
            await events.next("run-waiting")
        assert (await at.got("GET", f"/runs/{run['run_id']}"))["state"] == "waiting"
