"""The demo agent: one tool of each kind and a small model that follows rules instead of costing a key."""

import asyncio
import random
import re
from datetime import datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import DecodeError, json
from pydantic import BaseModel, Field

from farhand.agent import Agent
from farhand.core.errors import ToolError
from farhand.core.messages import ToolMessage, UserMessage
from farhand.models.base import Model, Request
from farhand.models.scripted import Turn, Use, scripted
from farhand.places.running import CallContext
from farhand.tool import tool

TRY = (
    "what time is it in Tokyo and in Lima?",
    "roll 3 dice, then count to 4",
    "save a note: buy oat milk",
    "show a warning: the kettle is on",
)

NOTES: list[str] = []


@tool(effect="pure")
async def what_time(zone: Annotated[str, Field(description="IANA name, such as Europe/Berlin")]) -> str:
    """The time of day in a time zone."""
    try:
        return datetime.now(ZoneInfo(zone)).strftime("%H:%M")
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ToolError(f"there is no time zone {zone!r}", code="unknown_zone", path="/zone") from error


@tool
def roll_dice(
    count: Annotated[int, Field(ge=1, le=20)] = 1, sides: Annotated[int, Field(ge=2, le=100)] = 6
) -> list[int]:
    """Roll some dice.

    Args:
        count: How many.
        sides: Faces of each.
    """
    return [random.randint(1, sides) for _ in range(count)]  # noqa: S311  dice, not keys


@tool(effect="pure")
async def count_slowly(to: Annotated[int, Field(ge=1, le=20, description="How far")], context: CallContext) -> str:
    """Count, and say how far it is."""
    for number in range(1, to + 1):
        await asyncio.sleep(0.3)
        context.progress({"done": number, "of": to})
    return f"counted to {to}"


@tool(needs_approval=True)
async def save_note(text: Annotated[str, Field(description="What to remember", max_length=500)]) -> str:
    """Save a note. A person has to agree."""
    NOTES.append(text)
    return f"saved, {len(NOTES)} in all"


class Message(BaseModel, extra="forbid"):
    """Show a message to the person at the screen."""

    message: str = Field(description="What to show")
    severity: Literal["info", "warning", "error"] = Field("info", description="How much it matters")


show_message = tool.define("show_message", input=Message, output=str, description=str(Message.__doc__))
"""A client tool: only its definition is here, the terminal runs it."""


OWN = {"what_time", "roll_dice", "count_slowly", "save_note", "show_message"}


def demo_agent(model: Model | None = None) -> Agent[str]:
    """An agent with all of them."""
    return Agent(
        model or scripted(reply),
        name="demo",
        instructions="Help with what the tools can do, and say in one sentence what they answered.",
        tools=[what_time, roll_dice, count_slowly, save_note, show_message],
    )


ZONES = {
    "tokyo": "Asia/Tokyo",
    "lima": "America/Lima",
    "berlin": "Europe/Berlin",
    "london": "Europe/London",
    "new york": "America/New_York",
    "sydney": "Australia/Sydney",
}


def reply(request: Request) -> Turn | Use | str:
    """What the demo model says: calls for what it was asked, then a sentence about what came back."""
    told = [message for message in request.messages[_last_input(request) + 1 :] if isinstance(message, ToolMessage)]
    if told:
        return Turn(_words("; ".join(f"{message.tool}: {message.text}" for message in told) + "."))
    asked = _asked(request)
    uses = [*_uses(asked), *_uses_of_others(asked, request)] if request.tools else []
    if uses:
        return Turn(_words("Let me see. "), *uses)
    return Turn(_words(f"I follow a few rules and need no key. Try: {' / '.join(TRY)}"))


def _uses(text: str) -> list[Use]:
    lower = text.lower()
    uses: list[Use] = []
    if "time" in lower:
        uses += [Use("what_time", {"zone": ZONES[city]}, chunk=4) for city in ZONES if city in lower]
    if dice := re.search(r"roll (\d+)?", lower):
        uses.append(Use("roll_dice", {"count": int(dice.group(1) or 1)}))
    if count := re.search(r"count to (\d+)", lower):
        uses.append(Use("count_slowly", {"to": int(count.group(1))}))
    if note := re.search(r"(?:save|remember)[^:]*: *(.+)", text, re.IGNORECASE):
        uses.append(Use("save_note", {"text": note.group(1)}, chunk=6))
    if shown := re.search(r"show[^:]*: *(.+)", text, re.IGNORECASE):
        severity = next((word for word in ("warning", "error") if word in lower), "info")
        uses.append(Use("show_message", {"message": shown.group(1), "severity": severity}))
    return uses


def _uses_of_others(text: str, request: Request) -> list[Use]:
    """Tools that clients have brought: `use open_file main.py and get_selection`."""
    uses: list[Use] = []
    for brought in request.tools:
        named = re.search(rf"\b{re.escape(brought.name)}\b(?: +(\{{.*?\}}|(?!and\b)[^ ,]+))?", text)
        if named is not None and brought.name not in OWN:
            uses.append(Use(brought.name, _arguments(named[1] or "", json.decode(brought.parameters))))
    return uses


def _arguments(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """JSON as it is; a word is whatever the tool needs first."""
    if text.startswith("{"):
        try:
            return json.decode(text, type=dict[str, Any])
        except DecodeError:
            return {}
    needed = [*schema.get("required", ()), *schema.get("properties", {})]
    return {needed[0]: text} if text and needed else {}


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)


def _last_input(request: Request) -> int:
    return max(index for index, message in enumerate(request.messages) if isinstance(message, UserMessage))


def _asked(request: Request) -> str:
    message = request.messages[_last_input(request)]
    return message.text if isinstance(message, UserMessage) else ""
