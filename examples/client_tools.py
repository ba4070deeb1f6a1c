"""A script whose tools an agent uses: the agent runs at a server, the tools run here, with the files that are here.

    python examples/client_tools.py http://127.0.0.1:8000/#token=…

talks to a server of yours. Without an address it serves an agent of its own first.
"""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from farhand import Agent, CallContext, Client, ToolError, scripted
from farhand.asgi import create_app
from farhand.asgi.access import Tokens
from farhand.client.events import ToolEnd, ToolStart
from farhand.core.messages import ToolMessage
from farhand.core.updates import TextStreamed
from farhand.models import Request, Use
from farhand.testing.server import served

TOKEN = "a-token-of-twenty-characters"  # noqa: S105  of a server that lives for a second


def reply(request: Request) -> Use | str:
    """Plays the model: looks what there is, counts the words of the first file, and says so."""
    told = [message for message in request.messages if isinstance(message, ToolMessage)]
    match len(told):
        case 0:
            return Use("list_files")
        case 1:
            return Use("count_words", {"name": "diary.txt"})
        case _:
            return f"Your diary has {told[-1].text} words."


async def talk(url: str, token: str | None, folder: Path) -> None:
    """One conversation in which the agent looks into a folder of this machine."""
    async with Client(url, token=token) as client:

        @client.tool(effect="pure")
        def list_files() -> list[str]:
            """The names of the user's files."""
            return sorted(path.name for path in folder.iterdir())

        @client.tool(effect="pure")
        def count_words(name: str, context: CallContext) -> int:
            """Count the words of one of the user's files."""
            path = folder / Path(name).name  # never outside of the folder
            if not path.is_file():
                raise ToolError(f"there is no file {name!r}", code="no_file")
            lines = path.read_text().splitlines()
            words = 0
            for number, line in enumerate(lines, 1):
                words += len(line.split())
                context.progress({"line": number, "of": len(lines)})
            return words

        def started(event: ToolStart) -> None:
            print(f"  runs {event.call.tool} {event.call.arguments}")

        def ended(event: ToolEnd) -> None:
            print(f"  {event.call.tool}: {event.outcome}")

        client.on("tool_start", started)
        client.on("tool_end", ended)
        stream = client.thread().stream("How long is my diary?")
        async for update in stream:
            if isinstance(update, TextStreamed):
                print(update.text)
        print((await stream).status)


async def main() -> None:
    """Talk to the server that is named, or to one that is started for it."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "diary.txt").write_text("Dear diary,\ntoday I gave an agent hands.\n")
        if len(sys.argv) > 1:
            url, token = sys.argv[1], None
        else:
            app = create_app(Agent(scripted(reply)), store="memory:", authenticate=Tokens({TOKEN: "ann"}))
            url, token = await stack.enter_async_context(served(app)), TOKEN
        await talk(url, token, folder)


asyncio.run(main())
