"""A run in the hand of a test: feed events, read the run, its effects and its updates. No event loop."""

from typing import Any

from msgspec import Raw, json

from farhand.core.call import Call, Outcome
from farhand.core.definition import Absent, Approval, Definition, Place, Policy, SideEffect, make_definition
from farhand.core.effects import Dispatch, Effect
from farhand.core.events import Answered, Approved, Denied, Event, Faulted, Replied, Started, TimerFired, TimerKind
from farhand.core.failure import Failure
from farhand.core.limits import Limits
from farhand.core.messages import CallRequest, Text, ToolMessage, UserMessage
from farhand.core.pieces import Usage
from farhand.core.run import Run
from farhand.core.step import replay, step
from farhand.core.updates import Update, updates

ADD = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0}},
    "required": ["n"],
    "additionalProperties": False,
}


def make_tool(
    name: str = "t",
    *,
    place: Place = Place.SERVER,
    approval: Approval = Approval.NEVER,
    effect: SideEffect = SideEffect.ONCE,
    absent: Absent | None = None,
    retries: int = 0,
    timeout: float | None = None,
    approval_timeout: float | None = None,
    fallback: str | None = None,
    schema: Any = None,
    output: Any = None,
    **fields: Any,
) -> Definition:
    policy = Policy(
        approval=approval,
        effect=effect,
        absent=absent,
        retries=retries,
        timeout=timeout,
        approval_timeout=approval_timeout,
        fallback=fallback,
    )
    return make_definition(
        name=name,
        description=f"Does {name}.",
        parameters=Raw(json.encode({"type": "object"} if schema is None else schema)),
        output=None if output is None else Raw(json.encode(output)),
        place=place,
        source="owner",
        policy=policy,
        **fields,
    )


class Story:
    """One run and everything it said."""

    def __init__(self, *tools: Definition, limits: Limits | None = None, **started: Any) -> None:
        self.log: list[Event] = []
        self.effects: tuple[Effect, ...] = ()
        self.all_effects: list[Effect] = []
        self.told: list[Update] = []
        self.at = 1000
        self._ids = 0
        self._run: Run | None = None
        self.take(
            Started(
                self.at,
                "run-1",
                "thread-1",
                "ann",
                (UserMessage((Text("hi"),)),),
                tools=tools,
                limits=limits or Limits(),
                **started,
            )
        )

    @property
    def run(self) -> Run:
        assert self._run is not None
        return self._run

    def take(self, event: Event) -> Run:
        before = self._run
        after, self.effects = step(before, event)
        self.all_effects += self.effects
        self.log.append(event)
        self.told += updates(before, event, after, len(self.told))
        self._run = after
        return after

    def rewind(self, log: list[Event]) -> None:
        """Be what the log leads to, as if nothing after it had happened."""
        self.log, self.all_effects, self.told, self._run = [], [], [], None
        for event in log:
            self.take(event)

    def reply(self, *calls: tuple[str, Any], text: str = "", usage: Usage | None = None) -> list[str]:
        """The model replies; returns our ids of its calls."""
        requests: list[CallRequest] = []
        for name, arguments in calls:
            self._ids += 1
            written = arguments if isinstance(arguments, str) else json.encode(arguments).decode()
            requests.append(CallRequest(f"c{self._ids}", "label", name, written))
        self.take(Replied(self.at, text, calls=tuple(requests), usage=usage or Usage()))
        return [request.id for request in requests]

    def call(self, call_id: str) -> Call:
        return self.run.calls[call_id]

    def answer(self, call_id: str, result: Any = None) -> None:
        self.take(Answered(self.at, call_id, self.call(call_id).attempt, Raw(json.encode(result))))

    def fault(self, call_id: str, message: str = "broke", *, retryable: bool = True) -> None:
        failure = Failure("tool_failed", message, retryable=retryable)
        self.take(Faulted(self.at, call_id, self.call(call_id).attempt, failure))

    def approve(self, call_id: str, **fields: Any) -> None:
        self.take(Approved(self.at, call_id, "ann", **fields))

    def deny(self, call_id: str, **fields: Any) -> None:
        self.take(Denied(self.at, call_id, "ann", **fields))

    def fire(
        self, call_id: str, kind: TimerKind = TimerKind.DEADLINE, *, after: float = 0, attempt: int | None = None
    ) -> None:
        self.at += round(after * 1000)
        self.take(TimerFired(self.at, call_id, kind, self.call(call_id).attempt if attempt is None else attempt))

    @property
    def dispatched(self) -> list[tuple[str, int]]:
        return [(effect.call_id, effect.attempt) for effect in self.all_effects if isinstance(effect, Dispatch)]

    @property
    def outcomes(self) -> list[Outcome | None]:
        return [call.outcome for call in self.run.calls.values()]

    @property
    def tool_messages(self) -> list[ToolMessage]:
        return [message for message in self.run.messages if isinstance(message, ToolMessage)]

    def replayed(self) -> Run:
        return replay(self.log)
