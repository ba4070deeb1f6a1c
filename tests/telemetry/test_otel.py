"""Spans as OpenTelemetry's own SDK collects them: one for every stretch of work, linked over pauses and restarts."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.propagate import inject
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes, http_attributes
from opentelemetry.trace import SpanKind, StatusCode

from farhand import Agent, ToolError, scripted, tool
from farhand.core.errors import ModelError
from farhand.core.marks import MASK
from farhand.core.pieces import Done, Piece, TextDelta, Usage
from farhand.durable import Runner
from farhand.models import Request, Turn, Use
from farhand.runner.activity import Answering
from farhand.runner.observer import Onlookers
from farhand.telemetry import OpenTelemetry
from farhand.telemetry.attributes import MEANINGS, Name
from farhand.tool import Secret
from tests.asgi.story import office


class Bell(SpanProcessor):
    """Rings when a span has ended."""

    def __init__(self) -> None:
        self.rung = asyncio.Event()

    def on_end(self, span: ReadableSpan) -> None:
        self.rung.set()


class Traces:
    """What was exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._bell = Bell()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.provider.add_span_processor(self._bell)

    def observer(self, **settings: Any) -> OpenTelemetry:
        return OpenTelemetry(self.provider, **settings)

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they began."""
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        [span] = self.named(name)
        return span

    async def until(self, *names: str) -> None:
        """Until spans of all these names have ended, each so often as it is named."""
        async with asyncio.timeout(5):
            while Counter(names) - Counter(span.name for span in self.spans):
                self._bell.rung.clear()
                await self._bell.rung.wait()

    def text(self) -> str:
        """Everything in them, as an exporter would send it."""
        return "\n".join(span.to_json() for span in self.spans)


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def linked(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def adding(request: Request) -> Any:
    used = Usage(input=10, output=2, cached=4)
    return Turn("", Use("add", {"a": 1, "b": 2}), usage=used) if len(request.messages) == 1 else Turn("3", usage=used)


async def test_a_run_is_one_span_with_its_questions_to_the_model_and_its_tools_beneath() -> None:
    traces = Traces()
    agent = Agent(scripted(adding), tools=[add], name="adder")
    async with Runner(agent, store="memory:", observers=[traces.observer()]) as runner:
        run = await runner.run("hi", thread="t", principal="ann")
        assert run.output == "3"
        await traces.until("invoke_agent adder")
    work = traces.one("invoke_agent adder")
    first, second = traces.named("chat scripted")
    ran = traces.one("execute_tool add")
    assert {parent_of(span) for span in (first, second, ran)} == {id_of(work)}
    assert work.parent is None
    assert (work.kind, first.kind, ran.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT, SpanKind.INTERNAL)
    assert said(work)[Name.OPERATION] == "invoke_agent"
    assert said(work)[Name.RUN_STATE] == "done"
    assert said(work)[Name.INPUT_TOKENS] == 20
    assert said(work)[Name.CACHED_TOKENS] == 8
    assert said(first) | {Name.FIRST_TEXT: 0} == {
        Name.OPERATION: "chat",
        Name.PROVIDER: "scripted",
        Name.MODEL: "scripted",
        Name.STREAM: True,
        Name.AGENT: "adder",
        Name.RUN_ID: run.state.id,
        Name.TURN: 1,
        Name.FINISH: ("tools",),
        Name.INPUT_TOKENS: 10,
        Name.OUTPUT_TOKENS: 2,
        Name.CACHED_TOKENS: 4,
        Name.FIRST_TEXT: 0,
    }
    assert said(second)[Name.FIRST_TEXT] >= 0
    assert said(ran) == {
        Name.OPERATION: "execute_tool",
        Name.TOOL: "add",
        Name.TOOL_TYPE: "function",
        Name.CALL_ID: run.calls[0].id,
        Name.AGENT: "adder",
        Name.RUN_ID: run.state.id,
        Name.PLACE: "server",
        Name.ATTEMPT: 1,
    }


async def test_a_run_that_waits_is_no_open_span_and_its_next_stretch_is_linked_to_the_one_before() -> None:
    traces = Traces()
    pick = tool.define("pick")
    agent = Agent(scripted([Use("pick"), "ok"]), tools=[pick])
    async with Runner(agent, store="memory:", observers=[traces.observer()]) as runner:
        run = await runner.run("hi")
        await traces.until("invoke_agent agent")
        assert said(traces.one("invoke_agent agent"))[Name.RUN_STATE] == "waiting"
        await runner.answer(run.pending[0].id, 1)
        await traces.until("invoke_agent agent", "invoke_agent agent")
    before, after = traces.named("invoke_agent agent")
    assert (linked(before), linked(after)) == ([], [id_of(before)])
    assert said(after)[Name.RUN_STATE] == "done"
    ran = traces.one("execute_tool pick")
    assert (said(ran)[Name.PLACE], said(ran)[Name.OUTCOME]) == ("client", "ok")
    assert (ran.end_time or 0) >= (ran.start_time or 0)


async def test_what_goes_on_after_a_restart_is_linked_to_what_began_it(tmp_path: Path) -> None:
    traces, store = Traces(), f"sqlite:{tmp_path / 'runs.db'}"
    agent = Agent(scripted([Use("pick"), "ok"]), tools=[tool.define("pick")])
    tracer = traces.provider.get_tracer("mine")
    async with Runner(agent, store=store, observers=[traces.observer()]) as runner:
        with tracer.start_as_current_span("asked for"):
            run = await runner.run("hi")
    asked = traces.one("asked for")
    assert parent_of(traces.one("invoke_agent agent")) == id_of(asked)
    async with Runner(agent, store=store, observers=[traces.observer()]) as another:
        await another.answer(run.pending[0].id, 1)
        await traces.until("invoke_agent agent", "invoke_agent agent")
    assert linked(traces.named("invoke_agent agent")[1]) == [id_of(asked)]


async def test_a_request_goes_on_the_trace_that_it_names_and_a_tool_passes_it_on() -> None:
    traces = Traces()
    passed: list[dict[str, str]] = []

    @tool
    async def look() -> str:
        """Look."""
        headers: dict[str, str] = {}
        inject(headers)
        passed.append(headers)
        return "seen"

    sent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "vendor=canary"}
    model = scripted(lambda request: Use("look") if len(request.messages) == 1 else "done")
    async with office(model=model, tools=(look,), observers=[traces.observer()]) as place:
        response = await place.ask("POST", "/threads/t1/runs", {"input": "hi"}, headers=sent)
        await traces.until("invoke_agent agent")
    request = traces.one("POST /v1/threads/{thread}/runs")
    assert request.kind is SpanKind.SERVER
    assert parent_of(request) == 0xB7AD6B7169203331
    assert said(request) == {
        Name.HTTP_METHOD: "POST",
        Name.HTTP_ROUTE: "/v1/threads/{thread}/runs",
        Name.HTTP_STATUS: 202,
        Name.REQUEST_ID: response.headers["farhand-request"],
    }
    ran = traces.one("execute_tool look")
    assert {span.context.trace_id for span in traces.spans if span.context} == {0x0AF7651916CD43DD8448EB211C80319C}
    assert passed[0]["traceparent"] == f"00-0af7651916cd43dd8448eb211c80319c-{id_of(ran):016x}-01"
    assert "canary" not in traces.text()


async def test_failures_are_told_by_their_codes_and_not_in_their_words() -> None:
    traces = Traces()

    @tool
    async def fail() -> None:
        """Fail."""
        raise ToolError("canary-1", code="no_luck")

    class Broken:
        name = "acme:big"

        async def stream(self, request: Request) -> AsyncIterator[Piece]:
            if len(request.messages) > 1:
                raise ModelError("canary-2", code="overloaded")
            async for piece in scripted([Use("fail")]).stream(request):
                yield piece

    agent = Agent(Broken(), tools=[fail])
    async with Runner(agent, store="memory:", observers=[traces.observer()]) as runner:
        await runner.run("hi")
        await traces.until("invoke_agent agent")
    ran, (_, asked) = traces.one("execute_tool fail"), traces.named("chat big")
    assert (said(ran)[Name.ERROR], ran.status.status_code) == ("no_luck", StatusCode.ERROR)
    assert (said(asked)[Name.ERROR], said(asked)[Name.PROVIDER]) == ("overloaded", "acme")
    assert traces.one("invoke_agent agent").status.status_code is StatusCode.ERROR
    assert "canary" not in traces.text()


async def test_work_that_is_called_off_says_so() -> None:
    traces = Traces()
    begun = asyncio.Event()

    class Slow:
        name = "slow"

        async def stream(self, request: Request) -> AsyncIterator[Piece]:
            yield TextDelta("a")
            begun.set()
            await asyncio.Event().wait()
            yield Done()

    async with Runner(Agent(Slow()), store="memory:", observers=[traces.observer()]) as runner:
        run = await runner.start("hi")
        await begun.wait()
        await runner.cancel(run.id)
        await traces.until("invoke_agent agent")
    assert said(traces.one("chat slow"))[Name.CANCELLED] is True
    assert said(traces.one("invoke_agent agent"))[Name.RUN_STATE] == "cancelled"


@tool
async def login(user: str, key: Secret[str]) -> str:
    """Log in."""
    return f"hello {user}"


async def test_nothing_that_was_said_is_in_a_span_unless_it_is_asked_for() -> None:
    for content in (False, True):
        traces = Traces()
        model = scripted([Turn("thinking", Use("login", {"user": "ann-c", "key": "canary"})), "answer-c"])
        agent = Agent(model, tools=[login, tool.define("pick")], instructions="rules-c")
        async with Runner(agent, store="memory:", observers=[traces.observer(content=content)]) as runner:
            await runner.run("input-c")
            await traces.until("invoke_agent agent")
        text = traces.text()
        assert [word in text for word in ("input-c", "ann-c", "hello", "answer-c", "rules-c")] == [content] * 5
        assert (MASK in text) == content
        assert "canary" not in text


async def test_what_clients_did_is_in_a_span_with_content_too_and_masked() -> None:
    traces = Traces()
    pick = tool.define(
        "pick",
        input={"type": "object", "properties": {"key": {"type": "string", "secret": True}, "n": {}}},
        output={"type": "object", "properties": {"key": {"type": "string", "secret": True}, "m": {}}},
    )
    agent = Agent(scripted([Use("pick", {"key": "canary", "n": "arg-c"}), "ok"]), tools=[pick])
    async with Runner(agent, store="memory:", observers=[traces.observer(content=True)]) as runner:
        run = await runner.run("hi")
        await runner.answer(run.pending[0].id, {"key": "canary", "m": "result-c"})
        await traces.until("chat scripted", "chat scripted")
    assert "arg-c" in said(traces.one("execute_tool pick"))[Name.ARGUMENTS]
    assert "result-c" in said(traces.one("execute_tool pick"))[Name.RESULT]
    assert "canary" not in traces.text()


async def test_a_problem_is_told_by_its_code() -> None:
    traces = Traces()
    async with office(observers=[traces.observer()]) as place:
        await place.ask("GET", "/calls/canary")
        await place.ask("GET", "/nowhere/canary?x=canary", headers={"x-canary": "canary"})
    known, unknown = traces.spans
    assert (known.name, said(known)[Name.ERROR]) == ("GET /v1/calls/{call}", "unknown_call")
    assert (unknown.name, said(unknown)[Name.HTTP_STATUS]) == ("GET", 404)
    assert "canary" not in traces.text()


async def test_a_span_that_is_open_around_the_server_is_the_parent() -> None:
    traces = Traces()
    tracer = traces.provider.get_tracer("mine")
    with tracer.start_as_current_span("around") as around:
        seen = Answering(
            id="r1", method="GET", headers={b"traceparent": b"00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-01"}
        )
        with Onlookers([traces.observer()]).during(seen):
            assert trace.get_current_span() is not around
    assert parent_of(traces.one("GET")) == id_of(traces.one("around"))


def test_the_names_are_those_of_the_conventions_and_each_is_explained() -> None:
    known: set[Any] = set()
    for module in (gen_ai_attributes, error_attributes, http_attributes):
        known |= {value for value in vars(module).values() if isinstance(value, str)}
    assert [name for name in Name if not name.startswith("farhand.") and name not in known] == []
    assert set(MEANINGS) == set(Name)


async def test_without_a_provider_of_its_own_it_costs_nothing_that_can_be_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Runner(Agent(scripted(["ok"])), store="memory:", observers=[OpenTelemetry()]) as runner:
        assert (await runner.run("hi")).output == "ok"
    assert caplog.records == []
