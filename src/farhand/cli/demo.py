"""`farhand demo`: a session in the terminal with the demo agent, or with you in the model's place."""

import asyncio

from rich.console import Console
from rich.panel import Panel

from farhand.cli.session import Session
from farhand.cli.stage import PlayedByPerson
from farhand.demo import TRY, demo_agent


def demo(*, manual: bool = False) -> None:
    """Talk to the demo agent. No key and no network are needed.

    Parameters
    ----------
    manual
        You play the model: you see what it is asked, and type its reply.
    """
    console = Console()
    model = PlayedByPerson(console) if manual else None
    console.print(Panel("\n".join(TRY), title="Farhand demo: try one of these", subtitle="empty line or Ctrl-D ends"))
    asyncio.run(Session(demo_agent(model), console).talk())
