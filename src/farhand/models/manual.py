"""A model that is played by a person, or by a test: every request waits until somebody says what the reply is."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from farhand.core.errors import ModelError
from farhand.core.pieces import Piece
from farhand.models.base import Request
from farhand.models.scripted import Turn, Use


class Manual:
    """Take a request with `await model.asked()`, then reply with `say`, `call` or `fail`."""

    name = "manual"

    def __init__(self) -> None:
        self._requests: asyncio.Queue[Request] = asyncio.Queue()
        self._replies: asyncio.Queue[Turn] = asyncio.Queue()

    async def asked(self) -> Request:
        """The next request, once there is one."""
        return await self._requests.get()

    def say(self, text: str) -> None:
        """Reply with text."""
        self._replies.put_nowait(Turn(text))

    def call(self, tool: str, arguments: Any = None, *more: Use, text: str = "") -> None:
        """Reply with a call, or several."""
        self._replies.put_nowait(Turn(text, Use(tool, arguments), *more))

    def fail(self, message: str) -> None:
        """Fail instead of replying."""
        self._replies.put_nowait(Turn(error=ModelError(message)))

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """The reply that somebody gives."""
        self._requests.put_nowait(request)
        turn = await self._replies.get()
        for piece in turn.pieces:
            yield piece
        if turn.error is not None:
            raise turn.error


def manual() -> Manual:
    """A model for a person to play."""
    return Manual()
