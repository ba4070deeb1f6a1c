"""What is said in a thread: messages and the parts they are made of. Values only; a model adapter renders them."""

from typing import Any, TypeAlias

from msgspec import Raw, Struct, json, to_builtins

from farhand.core.call import Outcome
from farhand.core.failure import Failure


class Text(Struct, frozen=True, gc=False, tag="text"):
    """Words."""

    text: str


class Json(Struct, frozen=True, gc=False, tag="json"):
    """Any JSON value, falsy ones included."""

    value: Any


class Binary(Struct, frozen=True, gc=False, tag="binary", omit_defaults=True):
    """An image, a sound or a file: inline (`data`), elsewhere (`url`) or known to the provider (`id`)."""

    mime_type: str
    data: bytes | None = None
    url: str | None = None
    id: str | None = None
    filename: str | None = None

    def __post_init__(self) -> None:
        if (self.data is not None) + (self.url is not None) + (self.id is not None) != 1:
            raise ValueError("Binary takes exactly one of data, url and id")


Part: TypeAlias = Text | Json | Binary


class UserMessage(Struct, frozen=True, gc=False, tag="user", omit_defaults=True):
    """What a person, or the application for them, said."""

    parts: tuple[Part, ...]
    preview: str = ""
    """What everybody may read of it, if it has something secret of a call."""

    @property
    def text(self) -> str:
        """The words of the message, without its other parts."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


class Reasoning(Struct, frozen=True, gc=False, omit_defaults=True):
    """A model's own thinking. `opaque` is signed or encrypted and goes back to the same provider unchanged."""

    text: str = ""
    opaque: str = ""


class CallRequest(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call as the model wrote it. `label` is the model's own id for it, `id` is ours."""

    id: str
    label: str
    tool: str
    arguments: str
    preview: str = ""
    """The arguments as everybody may read them, if something in them is secret."""


class AssistantMessage(Struct, frozen=True, gc=False, tag="assistant", omit_defaults=True):
    """One whole reply of the model."""

    text: str = ""
    reasoning: tuple[Reasoning, ...] = ()
    calls: tuple[CallRequest, ...] = ()


class ToolMessage(Struct, frozen=True, gc=False, tag="tool", omit_defaults=True):
    """How one call ended, as the model is told it."""

    call_id: str
    label: str
    tool: str
    outcome: Outcome
    result: Raw = Raw(b"null")
    multipart: bool = False
    failure: Failure | None = None
    note: str = ""
    preview: str = ""
    """The result as everybody may read it, if something in it is secret."""
    note_preview: str = ""
    """And the note."""
    source: str = ""
    """Where the result comes from, unless from the agent's own server: a client, an MCP server, another agent."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the model reads, with images and files as parts of their own."""
        if self.failure is not None:
            body: tuple[Part, ...] = (Text(f"Error: {self.failure.message or 'Unknown error'}"),)
        elif self.multipart:
            body = decode_parts(self.result) or (Json(None),)
        else:
            value = json.decode(self.result)
            body = (Text(value),) if isinstance(value, str) else (Json(value),)
        return (Text(self.note), *body) if self.note else body

    @property
    def text(self) -> str:
        """The same as text: a string result is itself, any other value is its JSON, as the tool wrote it."""
        if self.failure is None and not self.multipart and not self.note:
            raw = bytes(self.result).strip()
            return json.decode(raw) if raw[:1] == b'"' else raw.decode()
        return "\n".join(part_text(part) for part in self.parts)


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage

_PARTS = json.Decoder(tuple[Part, ...])


def decode_parts(raw: Raw | bytes) -> tuple[Part, ...]:
    """Read parts from their JSON; raises `msgspec.ValidationError`."""
    return _PARTS.decode(raw)


def plain_value(parts: tuple[Part, ...]) -> Any:
    """What parts say as one value: nothing is null, one text its string, one JSON its value, else the list of them."""
    values = [_plain(part) for part in parts]
    return None if not values else values[0] if len(values) == 1 else values


def _plain(part: Part) -> Any:
    match part:
        case Text(text=text):
            return text
        case Json(value=value):
            return value
        case _:
            return to_builtins(part)


def part_text(part: Part) -> str:
    """A part as text, for models and places that take nothing else."""
    match part:
        case Text(text=text):
            return text
        case Json(value=value):
            return json.encode(value).decode()
        case _:
            return f"[{part.mime_type}{' ' + part.filename if part.filename else ''}]"
