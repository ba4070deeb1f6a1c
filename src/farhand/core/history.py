"""A conversation as a new run takes it over: every call in it has its outcome, as providers of models demand."""

from collections.abc import Iterator, Sequence

from farhand.core.call import Outcome
from farhand.core.failure import Failure
from farhand.core.messages import AssistantMessage, CallRequest, Message, ToolMessage, UserMessage

_SUPERSEDED = Failure("superseded", "The conversation went on before this call had ended.")


def closed(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, with an outcome for every call that has none. Calls of a history are told, never run."""
    if len(messages) == 1 and isinstance(messages[0], UserMessage):
        return tuple(messages)
    told = {message.call_id for message in messages if isinstance(message, ToolMessage)}
    return tuple(_close(messages, told))


def _close(messages: Sequence[Message], told: set[str]) -> Iterator[Message]:
    missing: list[CallRequest] = []
    for message in messages:
        if not isinstance(message, ToolMessage):
            yield from map(_superseded, missing)
            missing = []
        yield message
        if isinstance(message, AssistantMessage):
            missing = [call for call in message.calls if call.id not in told]
    yield from map(_superseded, missing)


def _superseded(call: CallRequest) -> ToolMessage:
    return ToolMessage(call.id, call.label, call.tool, Outcome.CANCELLED, failure=_SUPERSEDED)
