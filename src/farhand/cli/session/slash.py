"""Lines that begin with a slash: what a person may ask of the chat itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from farhand.core.errors import UnknownCall

if TYPE_CHECKING:
    from farhand.cli.session.talk import Talk

HELP: Final = {
    "help": "what there is",
    "thread": "which conversation this is; with a name, another one; with `new`, a new one",
    "tools": "which tools there are, and where they run",
    "runs": "the latest runs",
    "cancel": "call the open run off",
    "quit": "leave; a run that is open goes on",
}


class Slash:
    """Takes one such line."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "help": self._help,
            "thread": self._thread,
            "tools": self._tools,
            "runs": self._runs,
            "cancel": self._cancel,
            "quit": self._quit,
        }

    async def take(self, line: str) -> None:
        """Without the slash."""
        word, _, rest = line.strip().partition(" ")
        command = self._commands.get(word.lower())
        if command is None:
            self._say(f"there is no /{word}; there are {', '.join('/' + name for name in HELP)}")
        else:
            await command(rest.strip())

    def _say(self, text: str) -> None:
        self._talk.person.say(text)

    async def _help(self, _: str) -> None:
        for name, text in HELP.items():
            self._say(f"/{name:<8}{text}")
        self._say("Ctrl-C   call the run off; once more leaves it")
        self._say("//text   says a line that begins with a slash")

    async def _thread(self, name: str) -> None:
        if name:
            self._talk.thread = self._talk.client.thread(new_thread() if name == "new" else name)
        self._say(f"thread {self._talk.thread.id}")

    async def _tools(self, _: str) -> None:
        for tool in await self._talk.client.tools():
            here = " (here)" if self._talk.runs(tool.name) else ""
            self._say(f"{tool.name}: {tool.place}{here}: {tool.description.strip().partition(chr(10))[0]}")
        for definition in self._talk.client.tools_offered:
            self._say(f"{definition.name}: brought from here: {definition.description.strip().partition(chr(10))[0]}")

    async def _runs(self, _: str) -> None:
        for run in await self._talk.client.runs(limit=10):
            self._say(f"{run.id}  {run.thread_id}  {run.state}")

    async def _cancel(self, _: str) -> None:
        try:
            done = await self._talk.thread.cancel()
        except UnknownCall:  # nothing has been said in it yet
            done = False
        self._say("called off" if done else "no run is open here")

    async def _quit(self, _: str) -> None:
        self._talk.leave()


def new_thread() -> str:
    """A name for a conversation that nobody has named."""
    return f"chat-{uuid4().hex[:8]}"
