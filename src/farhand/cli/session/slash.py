"""Lines that begin with a slash: what a person may ask of the chat itself."""

from collections.abc import Awaitable, Callable
from typing import Final
from uuid import uuid4

from msgspec import Struct

from farhand.cli.session.person import Person
from farhand.client import Client, Thread
from farhand.core.errors import UnknownCall

HELP: Final = {
    "help": "what there is",
    "thread": "which conversation this is; with a name, another one; with `new`, a new one",
    "tools": "which tools there are, and where they run",
    "runs": "the latest runs",
    "cancel": "call the open run off",
    "quit": "leave; a run that is open goes on",
}


class Then(Struct, frozen=True):
    """How the chat goes on."""

    thread: Thread
    leaves: bool = False


class Slash:
    """Takes such lines."""

    def __init__(self, client: Client, person: Person, runs: Callable[[str], bool]) -> None:
        self._client = client
        self._person = person
        self._runs_here = runs
        self._commands: dict[str, Callable[[Thread, str], Awaitable[Then]]] = {
            "help": self._help,
            "thread": self._thread,
            "tools": self._tools,
            "runs": self._runs,
            "cancel": self._cancel,
            "quit": self._quit,
        }

    async def take(self, line: str, thread: Thread) -> Then:
        """One line, without the slash."""
        word, _, rest = line.strip().partition(" ")
        command = self._commands.get(word.lower())
        if command is None:
            self._person.say(f"there is no /{word}; there are {', '.join('/' + name for name in HELP)}")
            return Then(thread)
        return await command(thread, rest.strip())

    async def _help(self, thread: Thread, _: str) -> Then:
        for name, text in HELP.items():
            self._person.say(f"/{name:<8}{text}")
        self._person.say("Ctrl-C   call the run off; once more leaves it")
        self._person.say("//text   says a line that begins with a slash")
        return Then(thread)

    async def _thread(self, thread: Thread, name: str) -> Then:
        if name:
            thread = self._client.thread(new_thread() if name == "new" else name)
        self._person.say(f"thread {thread.id}")
        return Then(thread)

    async def _tools(self, thread: Thread, _: str) -> Then:
        for tool in await self._client.tools():
            here = " (here)" if self._runs_here(tool.name) else ""
            self._person.say(f"{tool.name}: {tool.place}{here}: {_first(tool.description)}")
        for definition in self._client.tools_offered:
            self._person.say(f"{definition.name}: brought from here: {_first(definition.description)}")
        return Then(thread)

    async def _runs(self, thread: Thread, _: str) -> Then:
        for run in await self._client.runs(limit=10):
            self._person.say(f"{run.id}  {run.thread_id}  {run.state}")
        return Then(thread)

    async def _cancel(self, thread: Thread, _: str) -> Then:
        try:
            done = await thread.cancel()
        except UnknownCall:  # nothing has been said in it yet
            done = False
        self._person.say("called off" if done else "no run is open here")
        return Then(thread)

    async def _quit(self, thread: Thread, _: str) -> Then:
        return Then(thread, leaves=True)


def _first(text: str) -> str:
    return text.strip().partition("\n")[0]


def new_thread() -> str:
    """A name for a conversation that nobody has named."""
    return f"chat-{uuid4().hex[:8]}"
