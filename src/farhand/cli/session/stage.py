"""A person in the model's place at the terminal: sees the request, types the reply."""

from collections.abc import AsyncIterator

from msgspec import DecodeError, json

from farhand.cli.session.person import Person
from farhand.core.errors import ModelError
from farhand.core.messages import AssistantMessage, ToolMessage, UserMessage
from farhand.core.pieces import Piece
from farhand.models.base import Request
from farhand.models.manual import Manual


class PlayedByPerson:
    """Type text to answer, or `/tool {"json": "arguments"}` to call one."""

    name = "manual"

    def __init__(self, person: Person) -> None:
        self._person = person
        self._manual = Manual()

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """What the person types."""
        async with self._person.asked():
            self._show(request)
            while not await self._take():
                pass
        async for piece in self._manual.stream(request):
            yield piece

    def _show(self, request: Request) -> None:
        last = request.messages[-1]
        match last:
            case UserMessage():
                said = f"user: {last.text}"
            case ToolMessage():
                said = f"tool {last.tool}: {last.text}"
            case AssistantMessage():
                said = f"you: {last.text}"
        tools = ", ".join(f"/{tool.name}" for tool in request.tools) or "none"
        self._person.say(f"── you are the model ── {said} ── tools: {tools}", "dim")

    async def _take(self) -> bool:
        try:
            line = (await self._person.line("model> ", colour="magenta")).strip()
        except EOFError as error:
            raise ModelError("nobody plays the model any more") from error
        if not line.startswith("/"):
            self._manual.say(line)
            return True
        name, _, arguments = line[1:].partition(" ")
        try:
            self._manual.call(name, json.decode(arguments or "{}"))
        except DecodeError as error:
            self._person.say(f"the arguments are not JSON: {error}", "red")
            return False
        return True
