"""An editor that offers its tools to every conversation of its user, wherever that takes place.

    python examples/provider.py http://127.0.0.1:8000/#token=…

stays connected to a server of yours until you stop it: talk to the agent elsewhere (`farhand chat`, a web page), and
watch what it does here. Without an address it serves an agent of its own, talks to it, and stops.
"""

import asyncio
import sys
from typing import Literal

from farhand import Agent, Client, ToolError, scripted
from farhand.asgi import create_app
from farhand.asgi.access import Tokens
from farhand.client.events import Reconnected
from farhand.core.messages import ToolMessage
from farhand.models import Request, Turn, Use
from farhand.testing.server import served

TOKEN = "a-token-of-twenty-characters"  # noqa: S105  of a server that lives for a second


class Editor:
    """What an editor has: files, one of them shown, with something selected."""

    def __init__(self) -> None:
        self.files = {"main.py": 'print("hello")\n', "README.md": "# Hello\n"}
        self.shown = "main.py"
        self.selected = "hello"


def offer(client: Client, editor: Editor) -> None:
    """The editor's tools."""

    @client.tool
    def open_file(path: str, line: int = 1) -> dict[str, object]:
        """Show a file in the editor."""
        if path not in editor.files:
            raise ToolError(f"there is no file {path!r}; there are {', '.join(editor.files)}", code="no_file")
        editor.shown = path
        print(f"  editor: shows {path}, line {line}")
        return {"path": path, "lines": editor.files[path].count("\n")}

    @client.tool(effect="pure")
    def get_selection() -> str:
        """What the user has selected; empty if nothing is."""
        return editor.selected

    @client.tool
    def notify(message: str, severity: Literal["info", "warning", "error"] = "info") -> None:
        """Show a message to the user."""
        print(f"  editor: [{severity}] {message}")


def reconnected(event: Reconnected) -> None:
    """The server was away for a while."""
    print(f"  editor: connected again after {event.attempts} attempts")


async def provide(url: str) -> None:
    """Be there until somebody stops this."""
    async with Client(url, id="editor") as client:
        offer(client, Editor())
        client.on("reconnected", reconnected)
        print("offering", ", ".join(definition.name for definition in client.tools_offered))
        await client.provide()


def reply(request: Request) -> Turn | str:
    """Plays the model: opens a file and says what is selected in it."""
    told = {message.tool: message.text for message in request.messages if isinstance(message, ToolMessage)}
    if not told:
        return Turn("", Use("open_file", {"path": "main.py", "line": 1}), Use("get_selection"))
    return f"It is open, and you have selected {told['get_selection']!r}."


async def show() -> None:
    """A server, an editor, and a chat that knows nothing of the editor."""
    app = create_app(Agent(scripted(reply)), store="memory:", authenticate=Tokens({TOKEN: "ann"}))
    async with (
        served(app) as url,
        Client(url, token=TOKEN, id="editor") as editor,
        Client(url, token=TOKEN, id="chat") as chat,
    ):
        offer(editor, Editor())
        async with editor.providing():
            result = await chat.thread("work").run("Open main.py. What did I select?")
            print(result.output)


async def main() -> None:
    """Provide for the server that is named, or show how that is with one that is started for it."""
    if len(sys.argv) > 1:
        await provide(sys.argv[1])
    else:
        await show()


if __name__ == "__main__":
    asyncio.run(main())
