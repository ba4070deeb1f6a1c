"""What threads are called: by their principals, and in the store."""

from hashlib import sha256

from msgspec import Struct

from farhand.stores.base import Store

LOCAL = "local"
"""Whoever asks, where nobody is told apart."""
KEPT = 10_000


class ThreadName(Struct, frozen=True):
    """Whose thread it is, and what he calls it."""

    owner: str
    name: str


def thread_key(principal: str, thread: str) -> str:
    """What a thread is called in the store. Two principals never share one, whatever names they choose."""
    return sha256(f"{len(principal)}:{principal}{thread}".encode()).hexdigest()[:32]


class ThreadNames:
    """The way back. A key stands for one name for ever, so that what was read once need not be read again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, ThreadName] = {}

    async def of(self, key: str) -> ThreadName | None:
        """The name behind a key; None if there is no such thread."""
        known = self._known.get(key)
        if known is None:
            row = await self._store.thread(key)
            if row is None:
                return None
            if len(self._known) >= KEPT:
                self._known.clear()
            known = self._known[key] = ThreadName(row.owner, row.name)
        return known
