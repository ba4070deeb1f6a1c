"""Updates of a thread over as many connections as it takes: each one goes on where the one before it stopped."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TypeAlias

from msgspec import DecodeError, ValidationError, json

from farhand.client.events import Events, Reconnected
from farhand.client.patience import PASSING, Outage, Patience
from farhand.client.wire import Streaming, Wire
from farhand.core.errors import ConnectionLost, DuplicateToolName, ServerFailed
from farhand.core.updates import RunStarted, Update
from farhand.protocols.native import RunRequest, WatchQuery
from farhand.protocols.sse import ServerEvent

logger = logging.getLogger("farhand.client")

Told: TypeAlias = tuple[Update, str]
"""An update, and the position of whoever has seen it."""

_UPDATE = json.Decoder(Update)


class Feed:
    """A thread from a position on, or from the run on that `start` begins."""

    def __init__(
        self,
        wire: Wire,
        events: Events,
        thread: str,
        *,
        position: str,
        client: str = "",
        offers: tuple[str, ...] = (),
        start: RunRequest | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._position = position
        """Of the last update that was read; `start` looks for its run behind it."""
        self.run_id = ""
        self._wire = wire
        self._events = events
        self._thread = thread
        self._client = client
        self._offers = offers
        self._start = start
        self._seeks = False
        """Whether updates are passed over until the run begins."""
        self._patience = patience or wire.patience

    async def batches(self) -> AsyncGenerator[list[Told], None]:
        """What comes together, each update with the position behind it, without gap or repeat."""
        outage = Outage(self._patience, self._wire.on_retry)
        loop = asyncio.get_running_loop()
        while True:
            since = None
            try:
                async with await self._connection() as streaming:
                    since = loop.time()
                    if outage.attempts:
                        self._events.tell(Reconnected(self._thread, outage.attempts))
                    self.run_id = streaming.run_id or self.run_id
                    async with aclosing(streaming.events()) as arriving:
                        async for events in arriving:
                            outage.over()
                            if batch := self._read(events):
                                yield batch
                raise ConnectionLost("the server has ended the stream")
            except DuplicateToolName as error:
                error.add_note("To run a tool that the server defines: client.implement(…) instead of its definition.")
                raise
            except PASSING as error:
                if since is not None and loop.time() - since > self._patience.most:
                    outage.over()  # it was quiet, and well
                await outage.bear(error)

    async def _connection(self) -> AbstractAsyncContextManager[Streaming]:
        ids = {"thread": self._thread}
        if self._start is not None:
            start = self._start
            if not self._seeks:
                self._seeks = True  # if this breaks before the first update, the run may have begun or not
                return self._wire.stream("start-run", ids, body=start)
            if not self.run_id:
                self.run_id = (await self._wire.ask_once("start-run", ids, body=start)).run_id
        query = WatchQuery(client=self._client, offers=",".join(self._offers))
        return self._wire.stream("watch-thread", ids, query=query, last=self._position)

    def _read(self, events: list[ServerEvent]) -> list[Told]:
        batch: list[Told] = []
        for event in events:
            update = read_update(event.data)
            if self._seeks and self._start is not None:
                if not isinstance(update, RunStarted) or update.run_id != self.run_id:
                    continue
                self._start = None
            self._position = event.id or self._position
            if update is not None:
                batch.append((update, self._position))
        return batch


def read_update(text: str) -> Update | None:
    """One update; None for a kind that a newer server may send, which is passed over."""
    try:
        return _UPDATE.decode(text)
    except ValidationError as error:
        if "Invalid value" in str(error):  # of the field that says what it is
            logger.debug("an update that is not known here: %s", error)
            return None
        raise ServerFailed(f"the server sent an update that cannot be read: {error}") from None
    except (DecodeError, RecursionError) as error:
        raise ServerFailed(f"the server sent something that is no update: {error}") from None
