"""The connections of a server: how many there may be, and how long they may keep it waiting.

uvicorn waits for the head of a request and for whoever takes no answer as long as they like. Here whoever is late is
cut off, and where there are too many, those go first who have not asked for anything.
"""

import asyncio
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol

logger = logging.getLogger("farhand.asgi")

HEAD = 20.0
"""Seconds from the first byte of a request, or from connecting, until its head is whole."""
KEEP_ALIVE = 75
"""Seconds that a connection is kept for another request: longer than proxies keep theirs, so that they close first."""
MOST = 10_000
"""Connections."""
SPARE = 256
"""Descriptors for everything else."""
TAKEN = 16_384
"""Bytes. Who takes less than that in a minute takes nothing."""
UNSENT = 131_072
"""Bytes of a connection that the system keeps besides those that are on their way."""

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
else:
    Protocol = AutoHTTPProtocol  # another one where httptools is not installed, with the same attributes


class Connections:
    """All connections of a server. One look now and then for all of them, and nothing to be set for a request."""

    def __init__(self, *, stuck: float, head: float = HEAD, most: int = MOST) -> None:
        self.stuck = stuck
        self.head = head
        self.most = most
        self._waiting: dict[Connection, float] = {}
        """Who has not sent a whole head yet, and since when; the oldest first, as in the others."""
        self._idle: dict[Connection, None] = {}
        """Who may send another request."""
        self._full: dict[Connection, tuple[float, int]] = {}
        """Who has more to take than is kept for anybody: since when it takes nothing, and how much there was."""
        self._looking: asyncio.TimerHandle | None = None

    def protocol(self) -> type[asyncio.Protocol]:
        """What uvicorn makes for each connection."""
        return cast("type[asyncio.Protocol]", partial(Connection, self))

    def admit(self, connection: "Connection", others: int) -> bool:
        """Whether there is room for one more, which is made if somebody can be spared."""
        if others > self.most:
            spared = next(iter(self._waiting or self._idle), None)
            if spared is None:
                return False
            self.leaves(spared)
            spared.cut()
        self.waits(connection)
        return True

    def waits(self, connection: "Connection") -> None:
        """It has begun with a request, and the head is not whole."""
        self._idle.pop(connection, None)
        if connection not in self._waiting:
            self._waiting[connection] = connection.loop.time()
            self._look_later(connection.loop)

    def asks(self, connection: "Connection") -> None:
        """Its request is worked on."""
        self._waiting.pop(connection, None)
        self._idle.pop(connection, None)

    def rests(self, connection: "Connection") -> None:
        """Its request was answered."""
        self._idle[connection] = None

    def leaves(self, connection: "Connection") -> None:
        """It is gone."""
        self.asks(connection)
        self._full.pop(connection, None)

    def fills(self, connection: "Connection") -> None:
        """It takes less than it is sent."""
        self._full[connection] = (connection.loop.time(), connection.unsent)
        self._look_later(connection.loop)

    def drains(self, connection: "Connection") -> None:
        """It has taken most of it."""
        self._full.pop(connection, None)

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._looking is None:
            self._looking = loop.call_later(min(self.head, self.stuck) / 4, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking = None
        now = loop.time()
        late: list[Connection] = []
        for connection, since in self._waiting.items():
            if now - since < self.head:
                break
            late.append(connection)
        for connection, (since, size) in self._full.items():
            if connection.unsent <= size - TAKEN:
                self._full[connection] = (now, connection.unsent)
            elif now - since >= self.stuck:
                logger.info("a reader takes nothing; cut off")
                late.append(connection)
        for connection in late:
            self.leaves(connection)
            connection.cut()
        if self._waiting or self._full:
            self._look_later(loop)


class Connection(Protocol):
    """One connection."""

    def __init__(self, all_of_them: Connections, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._all = all_of_them

    @property
    def unsent(self) -> int:
        """Bytes that wait to be taken."""
        return self.transport.get_write_buffer_size()

    def cut(self) -> None:
        """End it at once, whatever is under way."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Somebody has connected."""
        prepare(transport.get_extra_info("socket"), self._all.stuck)
        super().connection_made(transport)
        if not self._all.admit(self, len(self.server_state.connections)):
            self.cut()

    def data_received(self, data: bytes) -> None:
        """It says something."""
        super().data_received(data)
        if self.cycle and not self.cycle.response_complete:
            self._all.asks(self)
        elif self in self.server_state.connections:
            self._all.waits(self)
        else:  # it is a socket by now, or gone
            self._all.leaves(self)

    def on_response_complete(self) -> None:
        """It was answered."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._all.rests(self)

    def timeout_keep_alive_handler(self) -> None:
        """It has not asked again. Who has not even taken the last answer is not waited for."""
        if self.unsent:
            self.cut()
        else:
            super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._all.leaves(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """It takes less than it is sent."""
        super().pause_writing()
        self._all.fills(self)

    def resume_writing(self) -> None:
        """It has taken most of it."""
        super().resume_writing()
        self._all.drains(self)


def prepare(connected: socket.socket | None, stuck: float) -> None:
    """Have the system send at once, keep little for whoever does not take it, and give up those who are gone."""
    if connected is None or connected.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    for name, value in (("TCP_NODELAY", 1), ("TCP_NOTSENT_LOWAT", UNSENT), ("TCP_USER_TIMEOUT", round(stuck * 1000))):
        option: int | None = getattr(socket, name, None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def room(most: int, spare: int = SPARE) -> int:
    """How many connections this process can have, with as many descriptors as the system gives it."""
    try:
        import resource  # not on every system
    except ImportError:
        return most
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + spare
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, soft - spare)
    return most
