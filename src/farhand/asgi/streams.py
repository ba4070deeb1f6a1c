"""Event streams on their way out: what is ready together leaves in one write, and nobody waits for a slow reader.

An update is encoded once, however many watch it. One task looks after all streams: it says that they live, and ends
those whose reader takes nothing any more.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, TypeAlias, cast

from msgspec import Struct, json

from farhand.core.errors import FarhandError
from farhand.core.updates import Update
from farhand.durable.position import Position
from farhand.places.faults import trail
from farhand.protocols import sse
from farhand.protocols.native import CallOffered, CallWithdrawn

logger = logging.getLogger("farhand.asgi")

Send: TypeAlias = Callable[[Any], Awaitable[None]]
Receive: TypeAlias = Callable[[], Awaitable[Any]]
Frames: TypeAlias = AsyncGenerator[bytes, None]
Batches: TypeAlias = AsyncGenerator[Sequence[Struct], None]
"""What a stream says: what is ready together comes together."""

HEARTBEAT = 15.0
"""Seconds between two signs of life of a stream that has nothing to say."""
STUCK = 60.0
"""Seconds after which a reader who takes nothing is cut off. It can come back and go on where it was."""
KEPT = 512
"""Encoded updates that are kept for others who watch."""

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Encoder:
    """What streams say, as JSON and as frames of an event stream; the same update gives the same bytes."""

    def __init__(self) -> None:
        self.encode = json.Encoder().encode
        self.encoded = 0
        """How many were encoded so far."""
        self.sent = 0
        """How many were handed to readers."""
        self._known: dict[int, tuple[Struct, bytes]] = {}

    async def frames(self, batches: Batches) -> Frames:
        """A stream as bytes: what is ready together is one piece."""
        async with aclosing(batches):
            async for batch in batches:
                self.sent += len(batch)
                yield b"".join([self.frame(said) for said in batch])

    def frame(self, said: Struct) -> bytes:
        """One update; its id is the position after it, if it has moved the reader on."""
        known = self._known.get(id(said))
        if known is not None and known[0] is said:
            return known[1]
        made = sse.frame(self.encode(said), position_after(said))
        self.encoded += 1
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[id(said)] = (said, made)  # it holds the update, so that its address is not another one's
        return made


def position_after(said: Struct) -> str:
    """What a reader sends to go on after this; empty if it is no further than before."""
    if type(said) in _PROVIDERS:
        return ""
    position = Position.of(cast("Update", said))
    return "" if position is None else str(position)


_PROVIDERS = frozenset({CallOffered, CallWithdrawn})
"""What a provider is told; when it connects again it is told of everything that is open."""


class Streams:
    """All streams that are open, of every door."""

    def __init__(self, heartbeat: float = HEARTBEAT, stuck: float = STUCK) -> None:
        self.heartbeat = heartbeat
        self.stuck = stuck
        self._open: set[Stream] = set()
        self._sockets: set[Callable[[], Awaitable[None]]] = set()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    @property
    def sockets(self) -> int:
        """How many sockets are open."""
        return len(self._sockets)

    def add(self, stream: "Stream") -> None:
        """A stream has begun."""
        self._open.add(stream)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._look_after())

    def remove(self, stream: "Stream") -> None:
        """A stream has ended."""
        self._open.discard(stream)

    def closing(self, close: Callable[[], Awaitable[None]]) -> Callable[[], None]:
        """Have a socket closed when all streams are; returns what ends that."""
        self._sockets.add(close)
        return lambda: self._sockets.discard(close)

    async def close(self) -> None:
        """End all of them: the server is going, and whoever reads can go on at another one."""
        for stream in self._open:
            stream.end()
        for close in list(self._sockets):
            with suppress(Exception):  # it may be gone by itself
                await close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _look_after(self) -> None:
        tick = min(self.heartbeat, self.stuck) / 4
        loop = asyncio.get_running_loop()
        while self._open:
            await asyncio.sleep(tick)
            now = loop.time()
            for stream in list(self._open):
                if stream.sending_since and now - stream.sending_since > self.stuck:
                    logger.info("the reader of a stream takes nothing; cut off")
                    stream.end()
                elif not stream.sending_since and now - stream.last_sent > self.heartbeat:
                    stream.beat()


class Stream:
    """One response that goes on: sends what comes, until it ends or the reader is gone."""

    __slots__ = ("_ending", "_send", "_streams", "_task", "last_sent", "sending_since")

    def __init__(self, streams: Streams, send: Send) -> None:
        self._streams = streams
        self._send = send
        self._task: asyncio.Task[Any] | None = None
        self._ending = False
        self.sending_since = 0.0
        self.last_sent = 0.0

    async def run(self, receive: Receive, frames: Frames, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """The whole response."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        await self._send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *headers]})
        await self.put(b":\n\n")  # the head leaves at once, also through a proxy
        gone = asyncio.ensure_future(_until_gone(receive))
        gone.add_done_callback(lambda _: self.end())
        self.last_sent = loop.time()
        self._streams.add(self)
        try:
            async with aclosing(frames):
                async for frame in frames:
                    await self.put(frame)
        except Exception as error:  # noqa: BLE001  nothing but the end can be told any more; the reader comes back
            level = logging.WARNING if isinstance(error, FarhandError) else logging.ERROR
            logger.log(level, "a stream broke off: %s", trail(error))
        except asyncio.CancelledError:
            if not self._ending or self._task is None or self._task.uncancel():
                raise
        finally:
            self._ending = True
            self._streams.remove(self)
            gone.cancel()
        with suppress(Exception):  # there may be nobody left to tell
            await self._send({"type": "http.response.body", "body": b""})

    async def put(self, data: bytes) -> None:
        """Send a piece; waits while the reader is too slow."""
        self.sending_since = asyncio.get_running_loop().time()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self.last_sent, self.sending_since = self.sending_since, 0.0

    def beat(self) -> None:
        """Say that the stream lives. What is sent is whole, so that it may go between two frames."""
        self.last_sent = asyncio.get_running_loop().time()
        beating = asyncio.ensure_future(
            self._send({"type": "http.response.body", "body": sse.HEARTBEAT, "more_body": True})
        )
        beating.add_done_callback(_forget)

    def end(self) -> None:
        """Stop sending."""
        if not self._ending and self._task is not None:
            self._ending = True
            self._task.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _forget(task: "asyncio.Future[Any]") -> None:
    """The reader may be gone by now; the stream finds that out by itself."""
    if not task.cancelled():
        task.exception()
