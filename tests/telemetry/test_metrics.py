"""What a server counts, as Prometheus reads it over HTTP. No label is a name that a client chose."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from farhand import Agent, ToolError, scripted, tool
from farhand.asgi.access.principal import EVERYTHING, Principal
from farhand.asgi.access.tokens import Tokens
from farhand.core.errors import ModelError
from farhand.core.pieces import Piece, TextDelta, Usage
from farhand.core.updates import RunEnded
from farhand.durable import Runner
from farhand.models import Request, Turn, Use
from farhand.stores.memory import MemoryStore
from farhand.telemetry.metrics import Metrics
from tests.asgi.story import ANN, Office, office
from tests.durable.story import QUICK, by_rule, kill

OLGA = "olga-operates-the-server-of-this-test"


async def numbers(place: Office) -> dict[str, float]:
    """Every sample, by its name and labels."""
    response = await place.ask("GET", "/metrics", token=OLGA)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(response.text):
        for sample in family.samples:
            said = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{said}}}"] = sample.value
    return found


def people() -> Tokens:
    return Tokens({ANN: "ann", OLGA: Principal("olga", EVERYTHING)})


async def ended(place: Office, thread: str) -> None:
    """Until the run of a thread is over."""
    async with asyncio.timeout(5), place.stream("GET", f"/threads/{thread}/updates") as events:
        await events.next("run-ended")


def test_every_meter_says_what_it_counts_and_is_named_by_the_rules() -> None:
    for meter in Metrics("1.0").meters:
        assert meter.says.endswith(".")
        assert meter.name.startswith(("farhand_", "process_"))
        assert meter.name.endswith("_total") == (meter.kind == "counter")
        if meter.kind == "histogram":
            assert meter.name.endswith("_seconds")


async def test_a_run_is_counted_from_its_request_to_its_tokens() -> None:
    used = Usage(input=10, output=2, cached=4)

    def reply(request: Request) -> Any:
        return (
            Turn("", Use("add", {"a": 1, "b": 2}), usage=used) if len(request.messages) == 1 else Turn("3", usage=used)
        )

    async with office(reply, authenticate=people()) as place:
        before = await numbers(place)
        async with place.stream("POST", "/threads/t1/runs", {"input": "hi"}) as events:
            told = await events.rest()
        async with place.stream("GET", "/threads/t1/updates?after=1000"):
            assert (await numbers(place))["farhand_streams_open{}"] == 1
        after = await numbers(place)
    assert before["farhand_runs_started_total{agent=agent}"] == 0
    assert after["farhand_runs_started_total{agent=agent}"] == 1
    assert after["farhand_runs_ended_total{agent=agent,ending=done}"] == 1
    assert after["farhand_requests_total{endpoint=start-run,status=200}"] == 1
    assert after["farhand_request_seconds_count{endpoint=start-run}"] == 1
    assert after["farhand_calls_ended_total{outcome=ok,place=server,tool=add}"] == 1
    assert after["farhand_tool_seconds_count{tool=add}"] == 1
    assert after["farhand_model_requests_total{agent=agent,outcome=ok}"] == 2
    assert after["farhand_model_seconds_count{agent=agent}"] == 2
    assert after["farhand_first_text_seconds_count{agent=agent}"] == 1
    assert after["farhand_model_tokens_total{agent=agent,kind=input}"] == 20
    assert after["farhand_model_tokens_total{agent=agent,kind=cached}"] == 8
    assert after["farhand_updates_sent_total{}"] == len(told)
    assert after["farhand_store_writes_total{result=kept}"] >= 1
    assert after["farhand_store_write_seconds_count{}"] >= 1
    assert after["farhand_runs_held{}"] == 0
    assert after["process_resident_memory_bytes{}"] > 0


async def test_calls_are_counted_by_how_they_ended_and_names_of_clients_are_not_told() -> None:
    theirs = [{"name": "canary_tool", "description": "Theirs.", "parameters": {"type": "object", "properties": {}}}]

    def reply(request: Request) -> Any:
        if len(request.messages) > 1:
            return "ok"
        return Turn("", Use("canary_tool"), Use("canary_unknown"), Use("pick", {"n": 1}), Use("add", {"a": "x"}))

    async with office(reply, authenticate=people()) as place:
        await place.got("POST", "/threads/canary-thread/runs", {"input": "canary-input", "tools": theirs})
        async with asyncio.timeout(5), place.stream("GET", "/threads/canary-thread/updates") as events:
            await events.next("run-waiting")
        waiting = await place.got("GET", "/calls")
        for call in waiting["calls"]:
            await place.got("POST", f"/calls/{call['id']}/result", {"result": 1, "client": "canary-client"})
        await ended(place, "canary-thread")
        found = await numbers(place)
        text = (await place.ask("GET", "/metrics", token=OLGA)).text
    assert found["farhand_calls_ended_total{outcome=ok,place=client,tool=client}"] == 1
    assert found["farhand_calls_ended_total{outcome=ok,place=client,tool=pick}"] == 1
    assert found["farhand_calls_ended_total{outcome=invalid,place=client,tool=unknown}"] == 2
    assert "canary" not in text


async def test_decisions_of_people_are_counted() -> None:
    def reply(request: Request) -> Any:
        return "ok" if len(request.messages) > 1 else Turn("", *[Use("pay", {"amount": n}) for n in range(3)])

    async with office(reply, authenticate=people()) as place:
        await place.got("POST", "/threads/t1/runs", {"input": "hi"})
        async with asyncio.timeout(5), place.stream("GET", "/threads/t1/updates") as events:
            await events.next("run-waiting")
        assert (await numbers(place))["farhand_calls_waiting{}"] == 3
        calls = [call["id"] for call in (await place.got("GET", "/calls"))["calls"]]
        bodies = [{"approved": True}, {"approved": True, "arguments": {"amount": 9}}, {"approved": False}]
        for call, body in zip(calls, bodies, strict=True):
            await place.got("POST", f"/calls/{call}/approval", body)
        await ended(place, "t1")
        found = await numbers(place)
    decided = {name: value for name, value in found.items() if name.startswith("farhand_approvals_total")}
    assert decided == {f"farhand_approvals_total{{decision={word}}}": 1 for word in ("approved", "edited", "denied")}


async def test_a_decision_that_came_too_late_is_counted_as_expired() -> None:
    @tool(needs_approval=True, approval_timeout=0.01)
    async def pay() -> None:
        """Pay."""

    metrics = Metrics()
    async with Runner(Agent(scripted([Use("pay"), "ok"]), tools=[pay]), store="memory:", observers=[metrics]) as runner:
        await runner.start("hi", thread="t")
        async with asyncio.timeout(10):
            async for update in runner.watch("t"):
                if isinstance(update, RunEnded):
                    break
    assert metrics.approvals.values == {("expired",): 1}
    assert metrics.calls.values == {("pay", "server", "timed_out"): 1}


async def test_models_that_fail_and_attempts_of_tools_are_counted() -> None:
    @tool(effect="idempotent", retries=1)
    async def flaky() -> None:
        """Fail."""
        raise ToolError("no luck")

    class Broken:
        name = "broken"

        async def stream(self, request: Request) -> AsyncIterator[Piece]:
            if len(request.messages) > 1:
                yield TextDelta("I th")
                raise ModelError("away")
            async for piece in scripted([Use("flaky")]).stream(request):
                yield piece

    metrics = Metrics()
    async with Runner(Agent(Broken(), tools=[flaky]), store="memory:", observers=[metrics]) as runner:
        run = await runner.start("hi")
        async with asyncio.timeout(10):
            await run.wait()
    assert metrics.model_requests.values == {("agent", "ok"): 1, ("agent", "failed"): 1}
    assert metrics.runs_ended.values == {("agent", "failed"): 1}
    text = metrics.text()
    assert 'farhand_tool_seconds_count{tool="flaky"} 2' in text
    assert 'farhand_first_text_seconds_count{agent="agent"} 1' in text


async def test_a_run_that_was_left_by_its_process_is_counted_when_it_is_taken_over() -> None:
    rows = MemoryStore()
    begun, metrics = asyncio.Event(), Metrics()

    @tool(effect="pure")
    async def hang() -> str:
        """Hangs the first time."""
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return "back"

    first = Runner(by_rule(Use("hang"), "ok", tools=[hang]), store=rows, timing=QUICK)
    await first.open()
    run = await first.start("hi")
    await begun.wait()
    await kill(first)
    agent = by_rule(Use("hang"), "ok", tools=[hang])
    second = Runner(agent, store=MemoryStore(rows), timing=QUICK, observers=[metrics])
    async with asyncio.timeout(10), second:
        view = await (await second.find(run.id)).wait()
    assert view.output == "ok"
    assert metrics.runs_taken_over.values == {("agent",): 1}
    assert metrics.runs_ended.values == {("agent", "done"): 1}
    assert metrics.runs_started.values == {}
