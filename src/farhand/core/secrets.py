"""What everybody may read of a call whose tool has secrets: the one place where masks are put on and taken off.

The tool's place and the model get the real values, and the store keeps them. Whoever else looks at a call, decides
about it or reads a log of it gets a preview. It is made once, when the value comes in, and stays with the call.
"""

from collections.abc import Mapping

from msgspec import Raw, json, structs

from farhand.core.call import Call, CallState
from farhand.core.compiled import output_of, parameters_of
from farhand.core.definition import Definition, Place
from farhand.core.errors import InvalidAnswer
from farhand.core.marks import MASK, Missing
from farhand.core.messages import AssistantMessage, CallRequest, Message, Text, ToolMessage, UserMessage
from farhand.core.problem import Problem, pointer
from farhand.core.strict_json import BadJson, parse

MASKED = json.encode(MASK).decode()
"""Instead of a whole value in which nobody knows what is secret."""

_NONE = Raw(b"null")
_CLIENT = Place.CLIENT
_EXECUTING = CallState.EXECUTING


def preview(definition: Definition, arguments: str) -> str:
    """Arguments as everybody may read them; empty if that is just as they are. What does not fit is hidden whole."""
    schema = parameters_of(definition)
    if schema.marks is None:
        return ""
    try:
        value = parse(arguments, max_bytes=len(arguments) * 4)
    except BadJson:
        return MASKED
    return json.encode(schema.marks.masked(value)).decode() if schema.is_valid(value) else MASKED


def with_previews(tools: Mapping[str, Definition], calls: tuple[CallRequest, ...]) -> tuple[CallRequest, ...]:
    """The calls of a reply, with previews where something is secret."""
    for call in calls:
        definition = tools.get(call.tool)
        if definition is not None and parameters_of(definition).marks is not None:
            return tuple([_with_preview(tools.get(call.tool), call) for call in calls])
    return calls


def _with_preview(definition: Definition | None, call: CallRequest) -> CallRequest:
    if definition is None:
        return call
    return structs.replace(call, preview=preview(definition, call.arguments if call.arguments.strip() else "{}"))


def result_preview(definition: Definition | None, result: Raw | bytes, *, multipart: bool = False) -> str:
    """The same for a result. One of several parts is hidden whole."""
    if definition is None or definition.output_json == _NONE:
        return ""
    marks = output_of(definition).marks
    if marks is None:
        return ""
    return MASKED if multipart else json.encode(marks.masked(json.decode(result))).decode()


def restored(definition: Definition, edited: str, call: Call) -> str:
    """Arguments that a person made of a preview, with the secrets in the places that were left as they were shown."""
    marks = parameters_of(definition).marks
    if marks is None:
        return edited
    try:
        value = parse(edited, max_bytes=len(edited) * 4)
        return json.encode(marks.restored(value, json.decode(call.arguments))).decode()
    except BadJson:
        return edited
    except Missing as missing:
        path = pointer(missing.path)
        message = f"{path} is masked, and what it stands for is not there: leave it as it was shown, or write a value"
        raise InvalidAnswer(message, (Problem(path, "is masked", "secret"),)) from None


def told_arguments(call: Call) -> str:
    """What everybody who watches a call reads of its arguments; a client that has to run it is among them."""
    if not call.preview or (call.place is _CLIENT and call.state is _EXECUTING):
        return call.arguments
    return call.preview


def told_result(call: Call) -> Raw:
    """What everybody who watches a call reads of its result."""
    return Raw(call.result_preview.encode()) if call.result_preview else call.result


def told_message(message: Message) -> Message:
    """What everybody who reads a conversation sees of a message."""
    match message:
        case AssistantMessage() if any(call.preview for call in message.calls):
            calls = [
                structs.replace(call, arguments=call.preview or call.arguments, preview="") for call in message.calls
            ]
            return structs.replace(message, calls=tuple(calls))
        case ToolMessage() if message.preview or message.note_preview:
            return structs.replace(
                message,
                result=Raw(message.preview.encode()) if message.preview else message.result,
                multipart=message.multipart and not message.preview,
                note=message.note_preview or message.note,
                preview="",
                note_preview="",
            )
        case UserMessage() if message.preview:
            return structs.replace(message, parts=(Text(message.preview),), preview="")
        case _:
            return message
