"""A thread that is only looked at: every update after a position, without end. Nothing is worked on."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from farhand.client.feed import Feed
from farhand.core.updates import Update


class Watch:
    """`async for update in watch`: what was missed, then what happens, whatever becomes of the connection."""

    def __init__(self, feed: Feed, position: str) -> None:
        self._feed = feed
        self.position = position
        """After the last update that was given: keep it, and watch on from there later, in another program too."""

    def __aiter__(self) -> AsyncGenerator[Update, None]:
        return self._updates()

    async def _updates(self) -> AsyncGenerator[Update, None]:
        async with aclosing(self._feed.batches()) as batches:
            async for batch in batches:
                for update, self.position in batch:
                    yield update
