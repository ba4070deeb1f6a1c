"""One step in the making: the run before, what has changed so far, and the effects asked for. Lives for one event."""

from typing import Any

from farhand.core import reasons
from farhand.core.call import Call, CallState, Outcome, settle
from farhand.core.effects import Effect, Withdraw
from farhand.core.errors import IllegalChange
from farhand.core.failure import Failure
from farhand.core.messages import Message, ToolMessage
from farhand.core.pieces import Usage
from farhand.core.run import Ending, Phase, Run
from farhand.core.scene import Scene

_CALLING = Phase.CALLING
_ENDED = Phase.ENDED
_DENIED = Outcome.DENIED


class Work:
    """Collects the changes of one event; `step` makes the one new run of them."""

    __slots__ = ("at", "calls", "effects", "fields", "order", "run", "told")

    def __init__(self, run: Run, at: int) -> None:
        self.run = run
        self.at = at
        self.calls = run.calls
        self.order = run.order
        self.effects: list[Effect] = []
        self.fields: dict[str, Any] = {"updated": at, "events": run.events + 1}
        self.told = run.phase is not _CALLING

    def call(self, call_id: str, attempt: int | None = None) -> Call:
        """An open call of the current turn; with `attempt`, only if that is the attempt under way."""
        call = self.calls.get(call_id)
        if call is None or call.outcome is not None:
            raise IllegalChange(f"call {call_id!r} is not open")
        if attempt is not None and call.attempt != attempt:
            raise IllegalChange(f"call {call_id!r} is at attempt {call.attempt}, not {attempt}")
        return call

    @property
    def scene(self) -> Scene | None:
        """What is open by now."""
        return self.fields.get("scene", self.run.scene)

    def put(self, call: Call) -> None:
        """Keep a call's new state."""
        if self.calls is self.run.calls:
            self.calls = self.fields["calls"] = self.calls.copy()
        self.calls[call.id] = call

    def settle(self, call: Call, outcome: Outcome, failure: Failure | None = None) -> None:
        """End a call, without a result."""
        self.put(settle(call, outcome, self.at, failure))

    def usage(self) -> Usage:
        """The run's tokens as they are by now."""
        return self.fields.get("usage", self.run.usage)

    def say(self, *messages: Message) -> None:
        """Add messages to the thread."""
        self.fields["messages"] = self.fields.get("messages", self.run.messages) + messages

    def tell_outcomes(self) -> None:
        """Tell the model how each call of the turn ended, in call order."""
        self.told = True
        told = [outcome_message(call) for call in map(self.calls.__getitem__, self.order)]
        self.fields["messages"] = (*self.fields.get("messages", self.run.messages), *told)

    def tell_news(self) -> None:
        """Tell the model how work in the background has ended."""
        news = self.fields.get("news", self.run.news)
        if news:
            self.say(*news)
            self.fields["news"] = ()

    def end(self, ending: Ending, **fields: Any) -> None:
        """End the run. Whatever is still open is called off first, so that every call has its outcome."""
        if not self.told:
            for call_id in self.order:
                if self.calls[call_id].outcome is None:
                    self.cancel(self.calls[call_id], "the run ended")
            self.tell_outcomes()
        fields["phase"] = _ENDED
        fields["ending"] = ending
        self.fields |= fields

    def cancel(self, call: Call, reason: str) -> None:
        """Call one call off, and tell the place that works on it."""
        running = call.state is CallState.EXECUTING
        if running:
            self.effects.append(Withdraw(call.id, call.attempt))
        self.settle(call, Outcome.CANCELLED, reasons.cancelled(call, reason, running=running))


def outcome_message(call: Call) -> ToolMessage:
    """How the model is told a settled call's outcome."""
    assert call.outcome is not None
    note = note_preview = ""
    if call.edited and call.outcome is not _DENIED:
        note = _CHANGED + call.arguments
        note_preview = _CHANGED + call.preview if call.preview else ""
    return ToolMessage(
        call.id,
        call.label,
        call.tool,
        call.outcome,
        call.result,
        call.multipart,
        call.failure,
        note,
        call.result_preview,
        note_preview,
        call.source,
    )


_CHANGED = "The user changed the arguments of this call before it ran, to: "
