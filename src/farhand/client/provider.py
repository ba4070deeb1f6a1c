"""A provider: a client that offers its tools to every thread of its principal, over a connection that is kept up."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

from msgspec import DecodeError, ValidationError, json

from farhand.client.calls import Offer
from farhand.client.events import Reconnected
from farhand.client.hands import Hands
from farhand.client.kit import Kit
from farhand.client.patience import PASSING, Outage, Patience
from farhand.client.toolbox import sent
from farhand.client.wire import Streaming
from farhand.core.errors import ConnectionLost, ServerFailed
from farhand.protocols.native import CallOffered, CallWithdrawn, ProviderRequest, ProviderUpdate

logger = logging.getLogger("farhand.client")

_UPDATE = json.Decoder(ProviderUpdate)


class Provider:
    """Keeps the connection, and has the pool work on what is offered. When the tools change it connects anew."""

    def __init__(self, kit: Kit, patience: Patience) -> None:
        self._kit = kit
        self._patience = patience
        self.there = asyncio.Event()
        """Set once the server knows what is offered."""

    async def run(self) -> None:
        """Until it is cancelled, patience is at its end, or the server refuses."""
        try:
            await self._run()
        except Exception as error:
            await self._kit.toolbox.plugins.report(error, "providing tools")
            raise

    async def _run(self) -> None:
        kit = self._kit
        outage = Outage(self._patience, kit.wire.on_retry)
        loop = asyncio.get_running_loop()
        while True:
            since = None
            try:
                request, hands, version = self._request()
                async with kit.wire.stream("provide-tools", {}, body=request) as streaming:
                    since = loop.time()
                    if outage.attempts:
                        kit.events.tell(Reconnected("", outage.attempts))
                    self.there.set()
                    await self._serve(streaming, hands, outage.over, version)
            except PASSING as error:
                if since is not None and loop.time() - since > self._patience.most:
                    outage.over()
                await outage.bear(error)

    def _request(self) -> tuple[ProviderRequest, Hands, int]:
        toolbox = self._kit.toolbox
        brought, implemented = toolbox.brought, toolbox.implemented
        tools = {**implemented, **brought}
        request = ProviderRequest(client=self._kit.id, tools=sent(brought), offers=tuple(implemented))
        return request, Hands(tools, offers=tuple(tools)), toolbox.version

    async def _serve(self, streaming: Streaming, hands: Hands, heard: Callable[[], None], version: int) -> None:
        """Until the connection breaks, or other tools are to be offered."""
        reading = asyncio.create_task(self._read(streaming, hands, heard))
        changed = asyncio.create_task(self._kit.toolbox.changed(version))
        try:
            await asyncio.wait((reading, changed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            reading.cancel()
            changed.cancel()
            await asyncio.wait((reading, changed))
        if not reading.cancelled():
            reading.result()

    async def _read(self, streaming: Streaming, hands: Hands, heard: Callable[[], None]) -> None:
        pool = self._kit.pool
        async with aclosing(streaming.events()) as arriving:
            async for events in arriving:
                heard()
                for event in events:
                    match read_offer(event.data):
                        case CallOffered(call=call):
                            pool.take_unless_followed(Offer.of_view(call), hands)
                        case CallWithdrawn(call_id=call_id, attempt=attempt):
                            pool.withdraw(call_id, attempt)
                        case None:
                            pass
        raise ConnectionLost("the server has ended the stream")


def read_offer(text: str) -> ProviderUpdate | None:
    """One update to a provider; None for a kind that a newer server may send."""
    try:
        return _UPDATE.decode(text)
    except ValidationError as error:
        if "Invalid value" in str(error):  # of the field that says what it is
            logger.debug("an update that is not known here: %s", error)
            return None
        raise ServerFailed(f"the server sent an update that cannot be read: {error}") from None
    except (DecodeError, RecursionError) as error:
        raise ServerFailed(f"the server sent something that is no update: {error}") from None
