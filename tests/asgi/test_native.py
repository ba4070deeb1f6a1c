"""The native protocol over HTTP, one endpoint after another, against a real server."""

import asyncio
from typing import Any

import pytest

from farhand import CallContext, tool
from farhand.asgi.access.quota import Quota
from farhand.asgi.desk import Desk
from farhand.core.admission import STRICT
from farhand.protocols.endpoints import ENDPOINTS
from tests.asgi.story import ANN, BEN, EVE, Office, bearer, office

PICK = {
    "name": "hold",
    "description": "Hold something.",
    "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


async def waiting(at: Office, thread: str = "t", text: str = "pick") -> dict[str, Any]:
    """The one call that a run waits with."""
    await at.got("POST", f"/threads/{thread}/runs", {"input": text, "wait": "turn"})
    async with asyncio.timeout(10), at.stream("GET", f"/threads/{thread}/updates") as events:
        await events.next("run-waiting")
    [call] = (await at.got("GET", f"/calls?thread={thread}"))["calls"]
    return call


async def ended(at: Office, thread: str = "t") -> dict[str, Any]:
    async with asyncio.timeout(10), at.stream("GET", f"/threads/{thread}/updates") as events:
        return await events.next("run-ended")


async def test_every_endpoint_has_somebody_who_answers() -> None:
    async with office() as at:
        desk: Desk = at.app.desk
        for endpoint in ENDPOINTS:
            assert (endpoint.name in desk.answers) == (endpoint.reply is not None or endpoint.stream is None), (
                endpoint.name
            )
            assert (endpoint.name in desk.streams) == (endpoint.stream is not None), endpoint.name


async def test_a_run_is_begun_and_told_as_a_stream() -> None:
    async with office() as at, at.stream("POST", "/threads/t/runs", {"input": "add"}) as events:
        types = [update["type"] for update in await events.rest()]
        assert types[0] == "run-started"
        assert "call-ended" in types
        assert types[-1] == "run-ended"
        assert events.response.headers["content-type"].startswith("text/event-stream")
        assert events.response.headers["cache-control"] == "no-store"


async def test_a_run_is_begun_and_goes_on_by_itself() -> None:
    async with office() as at:
        response = await at.ask("POST", "/threads/t/runs", {"input": "add"})
        assert response.status_code == 202
        assert (await ended(at))["output"] == "so: 3"
        run = await at.got("GET", f"/runs/{response.json()['run_id']}")
        assert (run["state"], run["output"]) == ("done", "so: 3")
        assert [call["outcome"] for call in run["calls"]] == ["ok"]


async def test_a_thread_shows_its_messages_and_what_waits() -> None:
    async with office() as at:
        call = await waiting(at)
        thread = await at.got("GET", "/threads/t")
        assert [message["type"] for message in thread["messages"]] == ["user", "assistant"]
        assert [each["id"] for each in thread["calls"]] == [call["id"]]
        assert thread["run_id"] == call["run_id"]


async def test_a_client_answers_and_the_run_goes_on() -> None:
    async with office() as at:
        call = await waiting(at)
        assert await at.got("POST", f"/calls/{call['id']}/result", {"result": 7}) == {
            "call_id": call["id"],
            "repeated": False,
            "refused": "",
        }
        assert (await ended(at))["output"] == "so: 7"


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
async def test_a_falsy_result_is_a_result(value: Any) -> None:
    async with office() as at:
        call = await waiting(at)
        await at.got("POST", f"/calls/{call['id']}/result", {"result": value})
        await ended(at)
        found = await at.got("GET", f"/calls/{call['id']}")
        assert found["outcome"] == "ok"
        assert found.get("result") == value


async def test_a_repeated_answer_gets_the_same_reply_a_different_one_a_conflict_a_foreign_one_nothing() -> None:
    async with office() as at:
        call = await waiting(at)
        path = f"/calls/{call['id']}/result"
        await at.got("POST", path, {"result": 7})
        assert (await at.got("POST", path, {"result": 7}))["repeated"]
        conflict = await at.ask("POST", path, {"result": 8})
        assert (conflict.status_code, conflict.json()["code"]) == (409, "conflict")
        foreign = await at.ask("POST", path, {"result": 7}, token=BEN)
        unknown = await at.ask("POST", f"/calls/{'0' * 32}/result", {"result": 7}, token=BEN)
        assert (foreign.status_code, foreign.content) == (404, unknown.content)


async def test_a_client_says_that_its_call_failed() -> None:
    async with office() as at:
        call = await waiting(at)
        await at.got("POST", f"/calls/{call['id']}/result", {"error": {"message": "no disk", "retryable": False}})
        assert "no disk" in (await ended(at))["output"]


async def test_a_result_may_have_parts() -> None:
    async with office() as at:
        call = await waiting(at)
        content = [{"type": "text", "text": "look: "}, {"type": "binary", "mime_type": "image/png", "data": "aGk="}]
        await at.got("POST", f"/calls/{call['id']}/result", {"content": content})
        assert "look: " in (await ended(at))["output"]


@pytest.mark.parametrize("body", [{}, {"result": 1, "error": {"message": "x"}}, {"result": 1, "accepted": ""}])
async def test_an_answer_says_one_thing(body: Any) -> None:
    async with office() as at:
        response = await at.ask("POST", f"/calls/{'0' * 32}/result", body)
        assert (response.status_code, response.json()["code"]) == (422, "invalid_input")


async def test_work_in_the_background_is_accepted_and_reported_later() -> None:
    async with office() as at:
        call = await waiting(at)
        await at.got("POST", f"/calls/{call['id']}/result", {"accepted": "by tomorrow"})
        await ended(at)
        await at.got("POST", f"/calls/{call['id']}/report", {"result": 9})
        async with asyncio.timeout(10), at.stream("GET", "/threads/t/updates") as events:
            await events.next("run-ended")
            assert "9" in (await events.next("run-ended"))["output"]


async def test_a_person_says_yes_to_what_was_shown() -> None:
    async with office() as at:
        call = await waiting(at, text="pay")
        assert call["state"] == "approval-requested"
        path = f"/calls/{call['id']}/approval"
        other = await at.ask("POST", path, {"approved": True, "shown": "0" * 64})
        assert other.status_code == 409
        await at.got("POST", path, {"approved": True, "shown": call["arguments_hash"]})
        assert (await ended(at))["output"] == "so: paid 5"


async def test_a_person_says_yes_to_something_else() -> None:
    async with office() as at:
        call = await waiting(at, text="pay")
        path = f"/calls/{call['id']}/approval"
        wrong = await at.ask("POST", path, {"approved": True, "arguments": {"amount": "much"}})
        assert wrong.status_code == 422
        assert [problem["path"] for problem in wrong.json()["problems"]] == ["/amount"]
        await at.got("POST", path, {"approved": True, "arguments": {"amount": 6}})
        assert "paid 6" in (await ended(at))["output"]


async def test_a_person_says_no_and_the_model_is_told_why() -> None:
    async with office() as at:
        call = await waiting(at, text="pay")
        await at.got("POST", f"/calls/{call['id']}/approval", {"approved": False, "reason": "too dear"})
        assert "too dear" in (await ended(at))["output"]


async def test_several_answers_count_together_or_not_at_all() -> None:
    async with office() as at:
        await at.got("POST", "/threads/t/runs", {"input": "pick pay", "wait": "turn"})
        async with asyncio.timeout(10), at.stream("GET", "/threads/t/updates") as events:
            await events.next("run-waiting")
        pick, pay = (await at.got("GET", "/calls"))["calls"]
        bad = {"results": {pick["id"]: 1}, "decisions": {"0" * 32: {"approved": True}}}
        assert (await at.ask("POST", "/answers", bad)).status_code == 404
        assert len((await at.got("GET", "/calls"))["calls"]) == 2
        both = {"results": {pick["id"]: 1}, "decisions": {pay["id"]: {"approved": True}}}
        assert len((await at.got("POST", "/answers", both))["receipts"]) == 2
        await ended(at)


async def test_a_batch_keeps_its_order_and_every_tool_counts_its_calls() -> None:
    async with office() as at:
        await at.got("POST", "/threads/t/runs", {"input": "pick add pick pick", "wait": "turn"})
        async with asyncio.timeout(10), at.stream("GET", "/threads/t/updates") as events:
            first, failing, last = (await events.next("run-waiting"))["call_ids"]
        await at.got("POST", f"/calls/{failing}/result", {"error": {"message": "no"}})
        said = await at.got("POST", "/answers", {"results": {last: 3, first: 1}})
        assert [receipt["call_id"] for receipt in said["receipts"]] == [last, first]
        counted = (await ended(at))["tools"]
        messages = (await at.got("GET", "/threads/t"))["messages"]
    told = [message["call_id"] for message in messages if "call_id" in message]
    assert [call for call in told if call in (first, failing, last)] == [first, failing, last]
    assert (counted["pick"]["calls"], counted["pick"]["outcomes"]) == (3, {"ok": 2, "failed": 1})
    assert (counted["add"]["calls"], counted["add"]["outcomes"]) == (1, {"ok": 1})
    assert counted["pick"]["took"] >= 0


async def test_running_has_thirty_seconds_and_a_person_has_no_limit() -> None:
    async with office() as at, at.stream("POST", "/threads/t/runs", {"input": "pay"}) as events:
        waits = await events.next("call-waiting")
        assert waits["expires"] is None
        await at.got("POST", f"/calls/{waits['call_id']}/approval", {"approved": True})
        executing = await events.next("call-executing")
        assert executing["deadline"] - executing["at"] == 30_000


async def test_a_tool_of_the_server_reports_progress() -> None:
    @tool
    async def build(context: CallContext) -> str:
        """Build it."""
        context.progress({"done": 1}, "stage")
        return "built"

    async with office(tools=(build,)) as at, at.stream("POST", "/threads/t/runs", {"input": "build"}) as events:
        progress = await events.next("call-progress")
        assert (progress["name"], progress["value"]) == ("stage", {"done": 1})
        assert (await events.next("run-ended"))["output"] == "so: built"


async def test_who_may_only_answer_may_not_decide_by_the_batch() -> None:
    async with office() as at:
        response = await at.ask("POST", "/answers", {"decisions": {"0" * 32: {"approved": True}}}, token=EVE)
        assert (response.status_code, response.json()["code"]) == (403, "not_allowed")


async def test_a_call_and_a_run_are_called_off() -> None:
    async with office() as at:
        call = await waiting(at)
        await at.got("POST", f"/calls/{call['id']}/cancel", {"reason": "never mind"})
        assert "never mind" in (await ended(at))["output"]
        other = await waiting(at, thread="u")
        path = f"/runs/{other['run_id']}/cancel"
        assert await at.got("POST", path, {}) == {"repeated": False}
        assert await at.got("POST", path, {}) == {"repeated": True}
        assert (await ended(at, "u"))["ending"] == "cancelled"


async def test_runs_are_listed_by_state_and_only_ones_own() -> None:
    async with office() as at:
        await waiting(at)
        await at.got("POST", "/threads/u/runs", {"input": "hello"})
        await ended(at, "u")
        assert [run["thread_id"] for run in (await at.got("GET", "/runs?state=waiting"))["runs"]] == ["t"]
        assert [run["thread_id"] for run in (await at.got("GET", "/runs"))["runs"]] == ["u", "t"]
        assert (await at.got("GET", "/runs", token=BEN))["runs"] == []


async def test_two_principals_may_give_their_threads_one_name() -> None:
    async with office() as at:
        await at.got("POST", "/threads/t/runs", {"input": "mine"})
        await at.got("POST", "/threads/t/runs", {"input": "yours"}, token=BEN)
        assert (await ended(at))["output"] == "you said: mine"


async def test_a_run_with_a_key_is_begun_once() -> None:
    async with office() as at:
        first = await at.got("POST", "/threads/t/runs", {"input": "pick", "key": "k", "wait": "turn"})
        again = await at.got("POST", "/threads/t/runs", {"input": "pick", "key": "k", "wait": "turn"})
        assert first["run_id"] == again["run_id"]
        other = await at.ask("POST", "/threads/t/runs", {"input": "something else", "key": "k"})
        assert (other.status_code, other.json()["code"]) == (409, "start_conflict")


async def test_a_stream_with_a_key_tells_the_run_again_from_its_beginning() -> None:
    async with office() as at:
        body = {"input": "add", "key": "k"}
        async with at.stream("POST", "/threads/t/runs", body) as events:
            first = await events.rest()
        async with at.stream("POST", "/threads/t/runs", body) as events:
            assert [update["type"] for update in await events.rest()][-1] == "run-ended"
        assert first[-1]["output"] == "so: 3"


async def test_a_thread_with_an_open_run_may_refuse_another() -> None:
    async with office() as at:
        await waiting(at)
        response = await at.ask("POST", "/threads/t/runs", {"input": "more", "busy": "refuse"})
        assert (response.status_code, response.json()["code"]) == (409, "thread_busy")


async def test_a_client_brings_its_own_tools() -> None:
    async with office() as at:
        body = {"input": "hold", "tools": [PICK], "wait": "turn"}
        await at.got("POST", "/threads/t/runs", body)
        async with asyncio.timeout(10), at.stream("GET", "/threads/t/updates") as events:
            ended_so = await events.next("call-ended")
        assert ended_so["outcome"] == "invalid"


@pytest.mark.parametrize(("setting", "status"), [("accept", 202), ("refuse", 403), ("ignore", 202)])
async def test_a_server_may_take_no_tools_of_its_clients(setting: Any, status: int) -> None:
    async with office(client_tools=setting) as at:
        response = await at.ask("POST", "/threads/t/runs", {"input": "hold", "tools": [PICK], "wait": "turn"})
        assert response.status_code == status
        if setting == "ignore":
            assert (await ended(at))["output"] == "you said: hold"
        assert (await at.ask("POST", "/threads/u/runs", {"input": "pick", "wait": "turn"})).status_code == 202


async def test_definitions_that_are_refused_begin_nothing() -> None:
    async with office() as at:
        response = await at.ask("POST", "/threads/t/runs", {"input": "x", "tools": [{"name": "a b"}, {"name": "c"}]})
        said = response.json()
        assert (response.status_code, said["code"]) == (422, "invalid_tools")
        assert {problem["path"].split("/")[1] for problem in said["problems"]} == {"0", "1"}
        assert (await at.ask("GET", "/threads/t")).status_code == 404


async def test_64_definitions_are_taken_at_once_or_as_many_as_the_owner_says() -> None:
    async def status(at: Office, thread: str, count: int) -> int:
        tools = [{**PICK, "name": f"hold_{number}"} for number in range(count)]
        return (await at.ask("POST", f"/threads/{thread}/runs", {"input": "x", "tools": tools})).status_code

    async with office() as at:
        assert [await status(at, "t", 65), await status(at, "t", 64)] == [422, 202]
    async with office(agent={"admission": STRICT}) as at:
        assert [await status(at, "t", 11), await status(at, "t", 10)] == [422, 202]


async def test_only_so_many_requests_a_minute_may_bring_tools() -> None:
    async with office(quota=Quota(registrations=2)) as at:
        begin = {"input": "x", "tools": [PICK]}
        replies = [await at.ask("POST", f"/threads/{number}/runs", begin) for number in range(3)]
        assert [reply.status_code for reply in replies] == [202, 202, 429]
        assert int(replies[2].headers["retry-after"]) >= 1
        refused = await at.ask("POST", "/provider", {"client": "editor", "tools": [PICK]})
        assert refused.json()["code"] == "too_much"
        assert (await at.ask("POST", "/threads/u/runs", {"input": "x"})).status_code == 202
        assert (await at.ask("POST", "/threads/u/runs", begin, token=BEN)).status_code == 202


async def test_a_body_with_a_key_twice_begins_nothing() -> None:
    async with office() as at:
        headers = {**bearer(ANN), "content-type": "application/json"}
        body = b'{"input":"what was looked at","input":"what is done"}'
        response = await at.http.post("/threads/t/runs", content=body, headers=headers)
        assert (response.status_code, response.json()["code"]) == (422, "invalid_input")
        assert "the same key twice" in response.json()["detail"]
        assert (await at.ask("GET", "/threads/t")).status_code == 404


async def test_a_client_cannot_take_the_name_of_a_tool_of_the_server() -> None:
    async with office() as at:
        response = await at.ask("POST", "/threads/t/runs", {"input": "x", "tools": [{**PICK, "name": "add"}]})
        assert (response.status_code, response.json()["code"]) == (409, "duplicate_tool_name")


async def test_what_a_client_cannot_do_without_is_said_before_anything_happens() -> None:
    async with office() as at:
        response = await at.ask("POST", "/threads/t/runs", {"input": "x", "requires": ["claims", "telepathy"]})
        assert (response.status_code, response.json()["code"]) == (422, "invalid_input")
        assert response.json()["detail"].startswith("/requires/1: this server cannot do that; it can: background, ")


async def test_stored_updates_come_by_the_page() -> None:
    async with office() as at:
        await at.got("POST", "/threads/t/runs", {"input": "add"})
        await ended(at)
        every = await at.got("GET", "/threads/t/updates")
        assert [update["seq"] for update in every["updates"]] == list(range(1, every["seq"] + 1))
        assert not every["more"]
        page = await at.got("GET", "/threads/t/updates?after=2&limit=1")
        assert page["more"]
        assert page["updates"][0]["seq"] == 3


async def test_the_server_says_what_it_is_and_who_you_are() -> None:
    async with office() as at:
        said = await at.got("GET", "/server", token=BEN)
        assert said["principal"] == "ben"
        assert "operate" not in said["scopes"]
        assert said["agents"] == ["agent"]
        assert [tool["name"] for tool in (await at.got("GET", "/tools"))["tools"]] == ["add", "pay", "pick"]


async def test_lasting_decisions_are_forgotten() -> None:
    async with office() as at:
        call = await waiting(at, text="pay")
        await at.got("POST", f"/calls/{call['id']}/approval", {"approved": True, "remember": "tool"})
        await ended(at)
        assert (await at.ask("DELETE", "/decisions")).status_code == 204
        assert (await waiting(at, thread="u", text="pay"))["state"] == "approval-requested"


async def test_it_lives_and_is_ready_until_it_drains() -> None:
    async with office() as at:
        assert await at.got("GET", "/healthz", token="") == {"status": "ok"}
        assert await at.got("GET", "/readyz", token="") == {"status": "ok"}
        at.app.desk.draining = True
        assert (await at.ask("GET", "/readyz", token="")).status_code == 503


async def test_an_endpoint_that_is_not_there_and_a_method_that_is_not_taken_are_problems() -> None:
    async with office() as at:
        nothing = await at.ask("GET", "/nothing")
        assert (nothing.status_code, nothing.json()["code"]) == (404, "not_found")
        wrong = await at.ask("PUT", "/tools")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET")


async def test_a_principal_may_have_so_much_and_no_more() -> None:
    async with office(quota=Quota(threads=3, runs=2, calls=5)) as at:
        begin = {"input": "pick", "wait": "turn"}
        for thread in ("t", "u"):
            await waiting(at, thread)
        refused = await at.ask("POST", "/threads/v/runs", begin)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_much")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await at.ask("POST", "/threads/v/runs", begin, token=BEN)).status_code == 202
        await at.got("POST", "/threads/t/runs", begin)  # it takes the place of the one that is open there
        for call in (await at.got("GET", "/calls"))["calls"]:
            await at.got("POST", f"/calls/{call['id']}/cancel", {})
        await ended(at, "u")
        await at.got("POST", "/threads/v/runs", {"input": "hello"})
        refused = await at.ask("POST", "/threads/w/runs", {"input": "hello"})
        assert "3 threads" in refused.json()["detail"]


async def test_only_so_many_streams_may_be_open() -> None:
    async with office(quota=Quota(streams=1)) as at, at.stream("GET", "/threads/t/updates"):
        refused = await at.ask("GET", "/threads/t/updates", headers={"accept": "text/event-stream"})
        assert refused.status_code == 429


async def test_only_so_many_requests_are_taken_in_a_minute() -> None:
    async with office(quota=Quota(requests=3)) as at:
        assert [(await at.ask("GET", "/tools")).status_code for _ in range(4)] == [200, 200, 200, 429]
        assert (await at.ask("GET", "/tools", token=BEN)).status_code == 200


async def test_a_body_above_the_limit_is_refused() -> None:
    async with office(max_body=1000) as at:
        response = await at.ask("POST", "/threads/t/runs", {"input": "x" * 2000})
        assert (response.status_code, response.json()["code"]) == (413, "too_large")
