"""Follows one run by what is told of it: its calls, its messages, and whether it waits. Updates in, no request out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from farhand.calls import Call
from farhand.client.calls import asked_of, record_of
from farhand.client.result import RunResult, is_with_others
from farhand.core.call import Call as Record
from farhand.core.definition import Place
from farhand.core.failure import Failure
from farhand.core.messages import AssistantMessage, CallRequest, Message, ToolMessage
from farhand.core.pieces import Usage
from farhand.core.updates import (
    CallApproved,
    CallClaimed,
    CallEnded,
    CallExecuting,
    CallReady,
    CallReleased,
    CallWaiting,
    ReplyEnded,
    RunEnded,
    RunStarted,
    RunWaiting,
    TextStreamed,
    TurnStarted,
    Update,
)
from farhand.protocols.native import RunView
from farhand.tool import Tool


class Seen:
    """One run. `take` is given every update from its first one, or from where a view of it stood."""

    def __init__(self, said: Sequence[Message] = ()) -> None:
        self.run_id = ""
        self.thread_id = ""
        self.status = "running"
        self.waiting: frozenset[str] = frozenset()
        """Calls of others that nothing goes on without, while the run waits."""
        self.calls: dict[str, Record] = {}
        self.ended = False
        self._said = list(said)
        self._replies: list[tuple[int, ReplyEnded]] = []
        self._text = ""
        self._failure: Failure | None = None
        self._limit = ""
        self._usage = Usage()
        self._streamed: list[str] = []
        self._length = 0
        self._turn = 0
        self._handlers: Mapping[type, Callable[[Any], None]] = {
            RunStarted: self._run_started,
            TurnStarted: self._turn_started,
            TextStreamed: self._text_streamed,
            ReplyEnded: self._reply_ended,
            CallReady: self._call_ready,
            CallWaiting: self._call_waiting,
            CallApproved: self._call_approved,
            CallExecuting: self._call_executing,
            CallClaimed: self._call_claimed,
            CallReleased: self._call_released,
            CallEnded: self._call_ended,
            RunWaiting: self._run_waiting,
            RunEnded: self._run_ended,
        }

    def begin_at(self, view: RunView) -> None:
        """The run as the server shows it: updates go on from there."""
        self.run_id, self.thread_id = view.id, view.thread_id
        self.calls = {call.id: record_of(call) for call in view.calls}
        self.status, self._text = view.state, view.output
        self._failure, self._usage = view.failure, view.usage or Usage()
        if view.state == "waiting":
            self.waiting = frozenset(each.id for each in self.calls.values() if is_with_others(each))

    def take(self, update: Update) -> None:
        """Something happened."""
        handle = self._handlers.get(type(update))
        if handle is not None:  # the others change nothing of this
            handle(update)

    def missed(self, reply: ReplyEnded) -> TextStreamed | None:
        """What was streamed of a reply while nobody was connected."""
        known = self._length
        if known >= len(reply.text):
            return None
        return TextStreamed(reply.seq - 1, reply.at, reply.turn, known, reply.text[known:])

    def result(self, tools: Mapping[str, Tool[Any, Any]], position: str) -> RunResult:
        """All of it."""
        return RunResult(
            id=self.run_id,
            thread_id=self.thread_id,
            status=self.status,
            text=self._text or self._last_text(),
            failure=self._failure,
            limit=self._limit,
            usage=self._usage,
            calls=tuple([Call(each, tools.get(each.tool)) for each in self.calls.values()]),
            messages=(*self._said, *self._messages()),
            position=position,
        )

    def _last_text(self) -> str:
        if self._streamed:
            return "".join(self._streamed)
        return next((reply.text for _, reply in reversed(self._replies) if reply.text), "")

    def _messages(self) -> Iterable[Message]:
        """Replies, each with its calls in the order in which they were made, and after it their results."""
        for turn, reply in self._replies:
            mine = [each for each in self.calls.values() if each.turn == turn]
            requests = tuple([CallRequest(each.id, each.label, each.tool, each.arguments) for each in mine])
            yield AssistantMessage(text=reply.text, calls=requests)
            for each in mine:
                if each.outcome is not None:
                    yield ToolMessage(each.id, each.label, each.tool, each.outcome, each.result, failure=each.failure)

    # Each kind of update

    def _run_started(self, update: RunStarted) -> None:
        self.run_id, self.thread_id = update.run_id, update.thread_id

    def _turn_started(self, update: TurnStarted) -> None:
        self._resumed()
        self._cut(0)
        self._turn = update.turn

    def _text_streamed(self, update: TextStreamed) -> None:
        if update.offset != self._length:
            self._cut(update.offset)
        self._streamed.append(update.text)
        self._length += len(update.text)

    def _reply_ended(self, update: ReplyEnded) -> None:
        self._cut(0)
        self._turn = update.turn
        self._replies.append((update.turn, update))
        self._usage = self._usage + update.usage

    def _call_ready(self, update: CallReady) -> None:
        self.calls[update.call_id] = Record(
            id=update.call_id,
            label="",
            tool=update.tool,
            turn=update.turn,
            state=update.state,
            arguments=update.arguments,
            place=update.place,
            created=update.at,
        )

    def _call_waiting(self, update: CallWaiting) -> None:
        known = self.calls.get(update.call_id)
        record = asked_of(update, self._turn if known is None else known.turn)
        self.calls[update.call_id] = structs.replace(record, place=Place.CLIENT if known is None else known.place)

    def _call_approved(self, update: CallApproved) -> None:
        self._resumed(update.call_id)
        self._change(update.call_id, state=update.state, arguments=update.arguments)

    def _call_executing(self, update: CallExecuting) -> None:
        self._expect(update)
        self._change(
            update.call_id,
            state=update.state,
            place=update.place,
            attempt=update.attempt,
            arguments=update.arguments,
            deadline=update.deadline,
            label=update.label,
            held_by="",
        )

    def _call_claimed(self, update: CallClaimed) -> None:
        self._change(update.call_id, held_by=update.holder, attempt=update.attempt)

    def _call_released(self, update: CallReleased) -> None:
        self._resumed(update.call_id)
        self._change(update.call_id, state=update.state, held_by="", not_before=update.not_before)

    def _call_ended(self, update: CallEnded) -> None:
        self._resumed(update.call_id)
        self._expect(update)
        self._change(
            update.call_id,
            state=update.state,
            outcome=update.outcome,
            result=update.result,
            failure=update.failure,
            settled=update.at,
        )

    def _run_waiting(self, update: RunWaiting) -> None:
        self.status, self.waiting = "waiting", frozenset(update.call_ids)

    def _run_ended(self, update: RunEnded) -> None:
        self.ended = True
        self.status, self.waiting = str(update.ending), frozenset()
        self._text, self._failure = update.output, update.failure
        self._limit, self._usage = update.limit, update.usage

    def _cut(self, length: int) -> None:
        """Keep so much of the reply that is under way."""
        text = "".join(self._streamed)[:length]
        self._streamed, self._length = [text] if text else [], len(text)

    def _resumed(self, call_id: str | None = None) -> None:
        """The run does not wait for this call any more, or for none at all."""
        self.waiting = frozenset() if call_id is None else self.waiting - {call_id}
        if not self.waiting and not self.ended:
            self.status = "running"

    def _expect(self, update: CallExecuting | CallEnded) -> None:
        """A call that did not get as far as being ready, or of which it was not told."""
        if update.call_id not in self.calls:
            record = Record(id=update.call_id, label="", tool=update.tool, turn=self._turn, created=update.at)
            self.calls[update.call_id] = record

    def _change(self, call_id: str, **fields: Any) -> None:
        known = self.calls.get(call_id)
        if known is not None:
            self.calls[call_id] = structs.replace(known, **fields)
