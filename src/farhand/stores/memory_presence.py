"""Who is there, in dictionaries."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from msgspec import structs

from farhand.stores.base import CallRow, Ring, WorkerRow
from farhand.stores.presence import ClientRow, ProgressRow


class PresenceTables:
    """What is shared by all handles."""

    def __init__(self) -> None:
        self.calls: dict[str, CallRow] = {}
        self.workers: dict[str, WorkerRow] = {}
        self.clients: dict[str, ClientRow] = {}
        self.progress: dict[str, ProgressRow] = {}


class MemoryPresence(ABC):
    """That part of the store in memory."""

    @property
    @abstractmethod
    def _there(self) -> PresenceTables: ...

    @abstractmethod
    def _ring(self, ring: Ring) -> None: ...

    async def attach(self, row: ClientRow) -> None:
        """A connection is open."""
        self._there.clients[row.connection] = row

    async def detach(self, connection: str) -> None:
        """Nothing is left of it."""
        self._there.clients.pop(connection, None)

    async def clients(self, principal: str, thread: str) -> Sequence[ClientRow]:
        """Who is there."""
        found = [
            row
            for row in self._there.clients.values()
            if row.principal == principal
            and row.thread in ("", thread)
            and not row.closing
            and row.worker in self._there.workers
        ]
        return sorted(found, key=_age)

    async def orphans(self, worker: str, limit: int) -> Sequence[ClientRow]:
        """Connections whose worker is gone, or sees to them."""
        lost = [
            row
            for row in self._there.clients.values()
            if row.worker not in self._there.workers or (row.closing and row.worker == worker)
        ]
        lost.sort(key=_age)
        taken = [structs.replace(row, worker=worker, closing=True) for row in lost[:limit]]
        self._there.clients.update((row.connection, row) for row in taken)
        return taken

    async def tell(self, row: ProgressRow) -> None:
        """How far a call is."""
        call = self._there.calls.get(row.call)
        if call is not None and call.record:
            self._there.progress[row.call] = row
            self._ring(Ring(call.thread, call.run))

    async def told(self, run: str) -> Sequence[ProgressRow]:
        """How far the calls of a run are."""
        mine = [row for row in self._there.progress.values() if row.run == run]
        return [row for row in mine if self._is_open(row.call) and row.at >= self._there.calls[row.call].updated]

    def _forget_progress(self) -> None:
        """Of calls that have ended."""
        for call in [call for call in self._there.progress if not self._is_open(call)]:
            del self._there.progress[call]

    def _is_open(self, call: str) -> bool:
        row = self._there.calls.get(call)
        return row is not None and bool(row.record)


def _age(row: ClientRow) -> tuple[int, str]:
    return row.since, row.connection
