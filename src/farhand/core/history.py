"""A conversation as a new run takes it over: every call in it has its outcome, as providers of models demand."""

from collections.abc import Iterator, Mapping, Sequence

from farhand.core.call import Outcome
from farhand.core.failure import Failure
from farhand.core.messages import AssistantMessage, CallRequest, Message, ToolMessage, UserMessage

_SUPERSEDED = Failure("superseded", "The conversation went on before this call had ended.")


def closed(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, each call followed by how it ended; a call without an outcome is told, never run.

    Outcomes of calls that nobody asked for are left out: no model would take them.
    """
    if len(messages) == 1 and isinstance(messages[0], UserMessage):
        return tuple(messages)
    told = {message.call_id: message for message in messages if isinstance(message, ToolMessage)}
    return tuple(_closed(messages, told))


def _closed(messages: Sequence[Message], told: Mapping[str, ToolMessage]) -> Iterator[Message]:
    for message in messages:
        if isinstance(message, ToolMessage):
            continue
        yield message
        if isinstance(message, AssistantMessage):
            yield from (told.get(call.id) or _superseded(call) for call in message.calls)


def _superseded(call: CallRequest) -> ToolMessage:
    return ToolMessage(call.id, call.label, call.tool, Outcome.CANCELLED, failure=_SUPERSEDED)
