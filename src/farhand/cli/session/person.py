"""The person at the other end: one question at a time, with the display still meanwhile."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from farhand.cli.session.display import Display
from farhand.cli.session.terminal import Terminal

COLOURS: Final = {"cyan": "36", "yellow": "33", "magenta": "35"}


class Person:
    """Asks, and shows what is asked about."""

    def __init__(self, terminal: Terminal, display: Display, *, silent: bool = False) -> None:
        self.terminal = terminal
        self.display = display
        self._silent = silent
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def asked(self) -> AsyncGenerator[None]:
        """In here the person is busy with one thing; nothing else is shown or asked."""
        async with self._turn:
            self.display.hold()
            try:
                yield
            finally:
                self.display.go_on()

    async def line(self, prompt: str, *, colour: str = "yellow", text: str = "", fresh: bool = False) -> str:
        """What is typed behind the prompt. To be called inside `asked`."""
        if self.terminal.interactive:
            return await self.terminal.ask(_coloured(prompt, colour), text=text, fresh=fresh)
        line = await self.terminal.ask("")
        if not self._silent:
            self.display.say(f"{prompt}{line}")
        return line

    def say(self, text: str, style: str = "") -> None:
        """A line of ours."""
        self.display.say(text, style)


def _coloured(prompt: str, colour: str) -> str:
    """In marks that tell the editing of lines what takes no room."""
    return f"\x01\x1b[1;{COLOURS[colour]}m\x02{prompt}\x01\x1b[0m\x02"
