"""What was said, for traces that were asked to hold it: as the GenAI conventions write it, with masks for secrets."""

from collections.abc import Iterable
from typing import Any

from msgspec import DecodeError, Raw, json

from farhand.core.call import Call
from farhand.core.events import Answered, Faulted, Replied
from farhand.core.messages import AssistantMessage, Json, Message, Part, Text, ToolMessage, UserMessage, part_text
from farhand.core.run import Run
from farhand.core.secrets import result_preview, told_message, told_result, with_previews


def messages(said: Iterable[Message]) -> str:
    """Messages that a model was asked with."""
    return _text([_message(told_message(message)) for message in said])


def reply(run: Run, event: Replied) -> str:
    """What a model answered."""
    calls = with_previews(run.tools, event.calls)
    shown = told_message(AssistantMessage(event.text, event.reasoning, calls))
    return _text([{**_message(shown), "finish_reason": event.finish.value}])


def instructions(text: str) -> str:
    """What the model is told before everything else."""
    return _text([{"type": "text", "content": text}])


def arguments(call: Call) -> str:
    """What a tool was called with."""
    return call.preview or call.arguments


def result(run: Run, call: Call, event: Answered | Faulted) -> str:
    """What a tool gave."""
    if isinstance(event, Faulted):
        return _text({"error": event.failure.message})
    shown = result_preview(run.definition_of(call), event.result, multipart=event.multipart)
    return shown or bytes(event.result).decode()


def outcome(call: Call) -> str:
    """What came of a call that has ended."""
    return _text({"error": call.failure.message}) if call.failure is not None else bytes(told_result(call)).decode()


def _message(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage():
            return {"role": "user", "parts": [_part(part) for part in message.parts]}
        case AssistantMessage():
            parts: list[dict[str, Any]] = [
                {"type": "reasoning", "content": thought.text} for thought in message.reasoning if thought.text
            ]
            parts += [{"type": "text", "content": message.text}] if message.text else []
            parts += [
                {"type": "tool_call", "id": call.id, "name": call.tool, "arguments": _value(call.arguments)}
                for call in message.calls
            ]
            return {"role": "assistant", "parts": parts}
        case ToolMessage():
            response = {"type": "tool_call_response", "id": message.call_id, "response": message.text}
            return {"role": "tool", "parts": [response]}


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "content": part.text}
        case Json():
            return {"type": "text", "content": part_text(part)}
        case _:
            return {"type": "blob", "mime_type": part.mime_type, "content": part_text(part)}


def _value(text: str) -> Any:
    try:
        json.decode(text)
    except (DecodeError, UnicodeDecodeError):
        return text
    return Raw(text.encode())


def _text(value: Any) -> str:
    return json.encode(value).decode()
