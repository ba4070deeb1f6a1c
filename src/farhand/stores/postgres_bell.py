"""Wake-ups between processes over NOTIFY. They say where to look, never what happened, and any of them may be lost.

NOTIFY inside a write would take a lock that all commits of the cluster share. So it follows the commit, on the
connection that also listens. Whoever listens says hello and is answered: with nobody there, nothing is sent.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic

from farhand.core.errors import StoreError
from farhand.stores.base import OnRing, Ring
from farhand.stores.postgres_connection import Connection, Line, told

logger = logging.getLogger("farhand.stores")

PAYLOAD = 7_900
"""Bytes; PostgreSQL takes less than 8,000."""
_SAY = "select pg_notify($1, $2)"
# Wake-ups are not worth an fsync.
_HASTE = "set synchronous_commit = off"
_HELLO, _HERE, _BYE = "?", "!", "."
_ASK = 30.0
"""Seconds between two questions who else is there; who was silent twice is gone."""
_DOUBT = 1.0
"""Seconds after a hello in which nobody is sure to be alone."""
_MANY = 10_000
"""Wake-ups that may wait while the connection is away; beyond that everybody looks everywhere."""


class Bell:
    """The rings of one store, out and in. Its own it does not hear."""

    def __init__(self, dsn: str, channel: str, hear: OnRing | None, poll: float) -> None:
        self._channel = channel
        self._hear = hear
        self._poll = poll
        self._id = secrets.token_hex(6)
        self._line = Line("wake-ups", dsn, self._greet)
        self._peers: dict[str, float] = {}
        self._sure_at = 0.0
        self._asked_at = 0.0
        self._words: deque[str] = deque()
        self._rings: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Listen, and say hello."""
        await self._line.open()
        self._polling = asyncio.create_task(self._keep_polling())

    async def close(self) -> None:
        """Say good-bye and hang up."""
        polling, self._polling = self._polling, None
        if polling is not None:
            polling.cancel()
            with suppress(asyncio.CancelledError):
                await polling
        self._say(_BYE)
        if self._sending is not None:
            await self._sending
        await self._line.close()

    def ring(self, rings: Iterable[Ring]) -> None:
        """Tell the others, at once if nothing is under way; what gathers meanwhile goes out together."""
        if not self._peers and monotonic() > self._sure_at:
            return
        self._rings.update((_encoded(ring), None) for ring in rings)
        if len(self._rings) > _MANY:
            self._rings = {"": None}
        self._send_soon()

    def _say(self, word: str) -> None:
        self._words.append(word)
        self._send_soon()

    def _send_soon(self) -> None:
        if self._sending is None and self._line.connection is not None and (self._words or self._rings):
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while (connection := self._line.connection) is not None and (self._words or self._rings):
                payload = self._words.popleft() if self._words else self._gathered()
                if not await self._sent(connection, payload):
                    break
        finally:
            self._sending = None

    async def _sent(self, connection: Connection, payload: str) -> bool:
        try:
            with told():
                await connection.fetchval(_SAY, self._channel, f"{self._id}:{payload}")
        except StoreError:
            # What was not sent is made good by the poll of the others.
            logger.warning("a wake-up was not sent; %d more wait", len(self._rings))
            self._line.drop(connection)
            return False
        return True

    def _gathered(self) -> str:
        """As many rings as fit into one payload."""
        if "" in self._rings:
            self._rings.clear()
            return ""
        left = PAYLOAD - len(self._id) - 1
        taken: list[str] = []
        for ring in self._rings:
            left -= len(ring.encode()) + 1
            if left < 0:
                break
            taken.append(ring)
        for ring in taken:
            del self._rings[ring]
        return ";".join(taken)

    # What comes in

    async def _greet(self, connection: Connection) -> None:
        await connection.execute(_HASTE)
        await connection.add_listener(self._channel, self._on_notification)
        if self._polling is not None:
            self._tell(Ring())  # the connection was lost, and nobody knows what was missed
        self._ask()

    def _ask(self) -> None:
        self._asked_at = monotonic()
        self._sure_at = self._asked_at + _DOUBT
        self._say(_HELLO)

    def _on_notification(self, _: Connection, __: int, ___: str, payload: str) -> None:
        sender, _colon, said = payload.partition(":")
        if sender == self._id:
            return
        if said == _BYE:
            self._peers.pop(sender, None)
            return
        self._peers[sender] = monotonic()
        if said == _HELLO:
            self._say(_HERE)
        elif said != _HERE:
            for ring in said.split(";"):
                self._tell(_decoded(ring))

    def _tell(self, ring: Ring) -> None:
        if self._hear is None:
            return
        try:
            self._hear(ring)
        except Exception:
            logger.exception("whoever hears of wake-ups failed")

    async def _keep_polling(self) -> None:
        while True:
            await asyncio.sleep(self._poll)
            self._tell(Ring())
            now = monotonic()
            if now - self._asked_at >= _ASK:
                self._peers = {peer: heard for peer, heard in self._peers.items() if now - heard < 2 * _ASK}
                self._ask()
            self._send_soon()


def _encoded(ring: Ring) -> str:
    """Empty, which means everywhere, for ids that cannot be told."""
    said = f"{ring.thread},{ring.run}"
    if said == "," or said.count(",") > 1 or ";" in said or len(said.encode()) > 1_000:
        return ""
    return said


def _decoded(said: str) -> Ring:
    thread, _, run = said.partition(",")
    return Ring(thread, run)
