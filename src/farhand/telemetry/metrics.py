"""Counts what a server does, for `GET /v1/metrics`. It counts what lasts and what it did itself; nothing a text delta.

Labels are names that the server's owner chose, or words of ours: never a principal's, a client's or a model's.
"""

from collections.abc import Callable, Iterable
from typing import Final

from farhand.core.call import Call, Outcome
from farhand.core.events import Event, Replied
from farhand.core.pieces import Usage
from farhand.core.run import Run
from farhand.runner.activity import Activity, Answering, Asking, Running, Working, Writing
from farhand.runner.observer import Observer
from farhand.telemetry.meters import Constant, Counter, Gauge, Histogram, Meter, Reading, text_of
from farhand.telemetry.process import process_meters

NO_ENDPOINT: Final = "none"
CLIENT: Final = "client"
"""Instead of the name of a tool that a client brought."""
UNKNOWN: Final = "unknown"
"""Instead of the name of a tool that is not there."""


class Metrics(Observer):
    """The numbers of one server process."""

    def __init__(self, version: str = "") -> None:
        self.requests = Counter(
            "farhand_requests_total",
            "Requests that were answered, over HTTP and in frames of sockets.",
            *("endpoint", "status"),
        )
        self.request_seconds = Histogram(
            "farhand_request_seconds", "Time until the answer, or the head of a stream, was on its way.", "endpoint"
        )
        self.runs_started = Counter("farhand_runs_started_total", "Runs that began here.", "agent")
        self.runs_ended = Counter("farhand_runs_ended_total", "Runs that ended here.", "agent", "ending")
        self.runs_taken_over = Counter(
            "farhand_runs_taken_over_total", "Runs that were taken up from a process that was gone.", "agent"
        )
        self.stretches = Counter(
            "farhand_run_stretches_total",
            "Times that a run was worked on here until it waited, ended or was given away.",
            "agent",
        )
        self.calls = Counter(
            "farhand_calls_ended_total",
            f"Calls that ended here. Tools of clients count as `{CLIENT}`, those that are not there as `{UNKNOWN}`.",
            *("tool", "place", "outcome"),
        )
        self.tool_seconds = Histogram(
            "farhand_tool_seconds", "Time that functions of this process took for one attempt.", "tool"
        )
        self.approvals = Counter(
            "farhand_approvals_total", "Calls that a person allowed, changed or refused, or that expired.", "decision"
        )
        self.model_requests = Counter(
            "farhand_model_requests_total", "Times that a model was asked.", "agent", "outcome"
        )
        self.model_seconds = Histogram("farhand_model_seconds", "Time that a model took for one reply.", "agent")
        self.first_text = Histogram(
            "farhand_first_text_seconds", "Time from asking a model until the first of its text.", "agent"
        )
        self.tokens = Counter("farhand_model_tokens_total", "Tokens of models, as they say.", "agent", "kind")
        self.writes = Counter(
            "farhand_store_writes_total",
            "Changes of runs that were written: `kept`, `beaten` by somebody else's, or `failed`.",
            "result",
        )
        self.write_seconds = Histogram("farhand_store_write_seconds", "Time that a write took.")
        self.meters: list[Meter] = [meter for meter in vars(self).values() if isinstance(meter, Meter)]
        self.meters += process_meters()
        if version:
            self.meters.append(Constant("farhand_build_info", "What is running.", version=version))

    def know(self, agents: Iterable[str]) -> None:
        """Show the numbers of these agents also before there are any."""
        for agent in agents:
            for meter in (self.runs_started, self.runs_taken_over, self.stretches):
                meter.add(agent, by=0)

    def gauge(self, name: str, says: str, read: Callable[[], float | None]) -> None:
        """Have a number shown that somebody else knows."""
        self.meters.append(Gauge(name, says, read))

    def reading(self, name: str, says: str, read: Callable[[], float]) -> None:
        """Have a number shown that somebody else counts."""
        self.meters.append(Reading(name, says, read))

    def text(self) -> str:
        """All there is, as Prometheus reads it."""
        return text_of(self.meters)

    # Looking on

    def ended(self, activity: Activity, error: BaseException | None) -> None:
        """Something has ended."""
        match activity:
            case Writing():
                self.writes.add("failed" if activity.kept is None else "kept" if activity.kept else "beaten")
                self.write_seconds.add(activity.took)
            case Asking():
                self._asked(activity)
            case Running():
                self.tool_seconds.add(activity.took, tool_label(activity.run, activity.call))
            case Working():
                self.stretches.add(activity.agent)
                if activity.lost:
                    self.runs_taken_over.add(activity.agent)
            case Answering():
                endpoint = activity.endpoint or NO_ENDPOINT
                self.requests.add(endpoint, str(activity.status))
                self.request_seconds.add(activity.took, endpoint)

    def _asked(self, asked: Asking) -> None:
        agent, event = asked.agent, asked.event
        outcome = "cancelled" if event is None else "ok" if isinstance(event, Replied) else "failed"
        self.model_requests.add(agent, outcome)
        self.model_seconds.add(asked.took, agent)
        if asked.first_text is not None:
            self.first_text.add(asked.first_text, agent)
        if isinstance(event, Replied):
            self._used(agent, event.usage)

    def _used(self, agent: str, usage: Usage) -> None:
        for kind in usage.__struct_fields__:
            if tokens := getattr(usage, kind):
                self.tokens.add(agent, kind, by=tokens)

    def changed(self, agent: str, before: Run | None, event: Event, after: Run) -> None:
        """A run is another one."""
        if before is None:
            self.runs_started.add(agent)
            return
        if after.ending is not None and before.ending is None:
            self.runs_ended.add(agent, after.ending.value)
        if after.calls is not before.calls:
            for call_id in after.order:
                old, new = before.calls.get(call_id), after.calls[call_id]
                if old is not new:
                    self._moved(after, old, new)

    def _moved(self, run: Run, old: Call | None, new: Call) -> None:
        if new.outcome is not None and (old is None or old.outcome is None):
            self.calls.add(tool_label(run, new), new.place.value, new.outcome.value)
        if old is not None and old.approval is not None and not old.approval.decision:
            decision = "" if new.approval is None else new.approval.decision
            if decision:
                self.approvals.add("edited" if decision == "approved" and new.edited else decision)
            elif new.outcome is Outcome.TIMED_OUT:
                self.approvals.add("expired")


def tool_label(run: Run, call: Call) -> str:
    """What a call's tool is counted as: only the owner's tools have names here."""
    definition = run.definition_of(call)
    if definition is None:
        return UNKNOWN
    return definition.name if definition.source == "owner" else CLIENT
