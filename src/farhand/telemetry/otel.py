"""OpenTelemetry: a span for every request, every stretch of work on a run, every question to a model and every tool.

Names and attributes are those of the GenAI semantic conventions. Nothing that was said, sent or returned is in a span
unless `content=True` asks for it; what a tool marks as secret is masked even then. Needs `farhand[otel]`.
"""

from collections import OrderedDict
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

from farhand.core.call import Call
from farhand.core.definition import Place
from farhand.core.errors import UsageError
from farhand.core.events import Event, Faulted, ModelFailed, Replied
from farhand.core.pieces import Usage
from farhand.core.run import Run
from farhand.runner.activity import Activity, Answering, Asking, Running, Working
from farhand.runner.observer import Observer
from farhand.telemetry import content as contents
from farhand.telemetry.attributes import TOKENS, Name

try:
    from opentelemetry import context as contexts
    from opentelemetry import trace as traces
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TracerProvider
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("opentelemetry"):
        raise
    raise UsageError("traces need OpenTelemetry: pip install 'farhand[otel]'") from error

KNOWN: Final = 10_000
"""Runs of which the newest stretch is remembered here, to be linked to."""
HTTP_FAULT: Final = 500
_PROPAGATOR = TraceContextTextMapPropagator()
_TRACEPARENT = "traceparent"


class OpenTelemetry(Observer):
    """Makes spans. Without a provider they go to the one that the program has set up for everything."""

    kinds = (Answering, Working, Asking, Running)

    def __init__(self, tracer_provider: TracerProvider | None = None, *, content: bool = False) -> None:
        self._tracer = traces.get_tracer("farhand", version("farhand"), tracer_provider)
        self._content = content
        self._stretches: OrderedDict[str, SpanContext] = OrderedDict()
        """The newest span of each run."""
        self._working: dict[str, Span] = {}

    def trace(self) -> str:
        """The span that a run is started in."""
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier)
        return carrier.get(_TRACEPARENT, "")

    def began(self, activity: Activity) -> None:
        """A span begins, and is the one that everything beneath belongs to."""
        match activity:
            case Answering():
                span = self._answering(activity)
            case Working():
                span = self._working_on(activity)
            case Asking():
                span = self._asking(activity)
            case Running():
                span = self._running(activity)
            case _:
                return
        activity.notes[self] = span, contexts.attach(traces.set_span_in_context(span))

    def ended(self, activity: Activity, error: BaseException | None) -> None:
        """The span ends, with what is known by now."""
        found: tuple[Span, Any] | None = activity.notes.get(self)
        if found is None:
            return
        span, token = found
        contexts.detach(token)
        if span.is_recording():
            match activity:
                case Answering():
                    _answered(span, activity)
                case Working():
                    _worked(span, activity, activity.notes[_BEFORE])
                case Asking():
                    self._asked(span, activity)
                case Running():
                    self._ran(span, activity)
                case _:
                    pass
        if isinstance(activity, Working) and self._working.get(activity.run.id) is span:
            del self._working[activity.run.id]
        span.end()

    def changed(self, agent: str, before: Run | None, event: Event, after: Run) -> None:
        """A client's calls have no work here to look at: their spans are made when they have ended."""
        if before is None or after.calls is before.calls:
            return
        for call_id in after.order:
            call, old = after.calls[call_id], before.calls.get(call_id)
            if call.outcome is not None and old is not None and old.outcome is None and _is_clients(call):
                self._ended_elsewhere(agent, after, call)

    # Beginnings

    def _answering(self, activity: Answering) -> Span:
        parent: Context | None = None
        if not traces.get_current_span().get_span_context().is_valid:  # otherwise something around us has made one
            sent = activity.headers.get(_TRACEPARENT.encode(), b"").decode("ascii", "replace")
            parent = _PROPAGATOR.extract({_TRACEPARENT: sent})
        return self._tracer.start_span(
            activity.method,
            parent,
            SpanKind.SERVER,
            {Name.HTTP_METHOD: activity.method, Name.REQUEST_ID: activity.id},
        )

    def _working_on(self, activity: Working) -> Span:
        run = activity.run
        activity.notes[_BEFORE] = run.usage
        span = self._tracer.start_span(
            f"invoke_agent {activity.agent}",
            kind=SpanKind.INTERNAL,
            attributes={
                Name.OPERATION: "invoke_agent",
                Name.AGENT: activity.agent,
                Name.CONVERSATION: activity.thread,
                Name.RUN_ID: run.id,
                Name.RUN_TAKEN_OVER: activity.lost,
            },
            links=self._links(run),
        )
        self._working[run.id] = span
        self._stretches[run.id] = span.get_span_context()
        self._stretches.move_to_end(run.id)
        if len(self._stretches) > KNOWN:
            self._stretches.popitem(last=False)
        return span

    def _links(self, run: Run) -> list[Link]:
        """The stretch before this one, or else whatever began the run, in any process; unless that is the parent."""
        before = self._stretches.get(run.id)
        if before is None:
            origin = _PROPAGATOR.extract({_TRACEPARENT: run.trace}, Context())
            before = traces.get_current_span(origin).get_span_context()
        here = traces.get_current_span().get_span_context()
        if not before.is_valid or (before.trace_id, before.span_id) == (here.trace_id, here.span_id):
            return []
        return [Link(before)]

    def _asking(self, activity: Asking) -> Span:
        provider, _, model = activity.model.rpartition(":")
        attributes: dict[str, Any] = {
            Name.OPERATION: "chat",
            Name.PROVIDER: provider or activity.model,
            Name.MODEL: model,
            Name.AGENT: activity.agent,
            Name.STREAM: True,
            Name.RUN_ID: activity.run.id,
            Name.TURN: activity.run.turn,
        }
        if self._content:
            attributes[Name.INPUT] = contents.messages(activity.run.messages)
            attributes[Name.INSTRUCTIONS] = contents.instructions(activity.run.instructions)
        return self._tracer.start_span(f"chat {model}", kind=SpanKind.CLIENT, attributes=attributes)

    def _running(self, activity: Running) -> Span:
        attributes = _of_call(activity.agent, activity.run, activity.call)
        if self._content:
            attributes[Name.ARGUMENTS] = contents.arguments(activity.call)
        return self._tracer.start_span(f"execute_tool {activity.call.tool}", attributes=attributes)

    # Ends

    def _asked(self, span: Span, activity: Asking) -> None:
        event = activity.event
        if activity.first_text is not None:
            span.set_attribute(Name.FIRST_TEXT, activity.first_text)
        match event:
            case Replied():
                span.set_attribute(Name.FINISH, [event.finish.value])
                _use(span, event.usage)
                if self._content:
                    span.set_attribute(Name.OUTPUT, contents.reply(activity.run, event))
            case ModelFailed():
                _fail(span, event.failure.code)
            case None:
                span.set_attribute(Name.CANCELLED, True)

    def _ran(self, span: Span, activity: Running) -> None:
        event = activity.event
        if event is None:
            span.set_attribute(Name.CANCELLED, True)
            return
        if isinstance(event, Faulted):
            _fail(span, event.failure.code)
        if self._content:
            span.set_attribute(Name.RESULT, contents.result(activity.run, activity.call, event))

    def _ended_elsewhere(self, agent: str, run: Run, call: Call) -> None:
        working = self._working.get(run.id)
        attributes = _of_call(agent, run, call)
        assert call.outcome is not None
        attributes[Name.OUTCOME] = call.outcome.value
        if self._content:
            attributes[Name.ARGUMENTS] = contents.arguments(call)
            attributes[Name.RESULT] = contents.outcome(call)
        span = self._tracer.start_span(
            f"execute_tool {call.tool}",
            None if working is None else traces.set_span_in_context(working),
            attributes=attributes,
            start_time=call.created * 1_000_000,
        )
        if call.failure is not None:
            _fail(span, call.failure.code)
        span.end(call.settled * 1_000_000)


_BEFORE = "usage before"


def _is_clients(call: Call) -> bool:
    """Whether a client that is connected ran it, and no function of this process."""
    return call.place is Place.CLIENT and call.attempt > 0 and not call.dies


def _of_call(agent: str, run: Run, call: Call) -> dict[str, Any]:
    return {
        Name.OPERATION: "execute_tool",
        Name.TOOL: call.tool,
        Name.TOOL_TYPE: "function",
        Name.CALL_ID: call.id,
        Name.AGENT: agent,
        Name.RUN_ID: run.id,
        Name.PLACE: call.place.value,
        Name.ATTEMPT: call.attempt,
    }


def _answered(span: Span, activity: Answering) -> None:
    if activity.path:
        span.update_name(f"{activity.method} {activity.path}")
        span.set_attribute(Name.HTTP_ROUTE, activity.path)
    span.set_attribute(Name.HTTP_STATUS, activity.status)
    if activity.code:
        span.set_attribute(Name.ERROR, activity.code)
    if activity.status >= HTTP_FAULT:
        _fail(span, activity.code or str(activity.status))


def _worked(span: Span, activity: Working, before: Usage) -> None:
    run = activity.run
    span.set_attribute(Name.RUN_STATE, run.status)
    after = run.usage
    _use(
        span,
        Usage(
            after.input - before.input,
            after.output - before.output,
            after.cached - before.cached,
            after.cache_written - before.cache_written,
            after.reasoning - before.reasoning,
        ),
    )
    if run.failure is not None and run.status == "failed":
        _fail(span, run.failure.code)


def _use(span: Span, usage: Usage) -> None:
    """Tokens, as far as there are any of their kind."""
    used: Mapping[str, int] = {name: getattr(usage, kind) for kind, name in TOKENS.items()}
    span.set_attributes({name: number for name, number in used.items() if number})


def _fail(span: Span, code: str) -> None:
    """By its code alone: texts of errors may hold anything."""
    span.set_attribute(Name.ERROR, code)
    span.set_status(Status(StatusCode.ERROR))
