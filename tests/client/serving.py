"""A server process for tests that kill it: `python serving.py PORT STORE`. Its model can be asked again at any time."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from farhand import Agent, tool
from farhand.asgi import create_app
from farhand.asgi.access.tokens import Tokens
from farhand.asgi.serve import make_server
from farhand.core.messages import ToolMessage
from farhand.core.pieces import Done, Finish, Piece, TextDelta, ToolEnd, ToolStart
from farhand.durable import Timing
from farhand.models import Request
from tests.client.story import ANN

slow = tool.define("slow", input={"type": "object"}, description="Takes a while.", absent="wait")


class Slowly:
    """Calls a tool for each word of the input, then says fifty numbers slowly."""

    name = "slowly"

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """The next reply."""
        if any(isinstance(message, ToolMessage) for message in request.messages) or not request.tools:
            for number in range(50):
                await asyncio.sleep(0.01)
                yield TextDelta(f"{number} ")
            yield Done(Finish.STOP)
        else:
            for index in range(3):
                yield ToolStart(index, "slow", f"call_{index}")
                yield ToolEnd(index, f'{{"n": {index}}}')
            yield Done(Finish.TOOLS)


def main() -> None:
    """Serve until killed."""
    app = create_app(
        Agent(Slowly(), tools=[slow]),
        store=f"sqlite:{sys.argv[2]}",
        authenticate=Tokens({ANN: "ann"}),
        timing=Timing(lease=0.6, beat=0.1, tick=0.05, check=0.1, drain=1.0),
    )
    make_server(app, port=int(sys.argv[1])).run()


if __name__ == "__main__":
    main()
