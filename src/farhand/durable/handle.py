"""A stored run in the hand of whoever started it: an id, with what can be asked of it. It holds nothing of the run."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Generic

from farhand.core.errors import UnknownCall
from farhand.core.updates import RunEnded, RunWaiting, Update
from farhand.durable.held import Held
from farhand.durable.position import Position
from farhand.durable.replica import Replica
from farhand.runner.view import Output, RunView


class StoredRun(Generic[Output]):
    """A run by its id. Losing this loses nothing: `Runner.find` gives another one, in any process."""

    def __init__(self, replica: Replica, run: str, *, thread: str, key: str, agent: str, seq: int) -> None:
        self._replica = replica
        self._key = key
        self.agent = agent
        """The name of its agent."""
        self.id = run
        self.thread = thread
        """The id of its conversation."""
        self.seq = seq
        """Number of the last update that was seen through this handle; at first, of the last one before the run."""

    async def wait(self) -> RunView[Output]:
        """Until the run waits for somebody or has ended. Cancelling this does not touch the run."""
        found = await self._replica.rested(self.id)
        if found is None:
            raise UnknownCall("there is no such run")
        return RunView(found.driver.state if isinstance(found, Held) else found.run, self._replica.means(self.agent))

    async def look(self) -> RunView[Output]:
        """The run as it is now."""
        found = await self._replica.read(self.id)
        if found is None:
            raise UnknownCall("there is no such run")
        return RunView(found.run, self._replica.means(self.agent))

    async def updates(self, *, hold: bool = False) -> AsyncGenerator[Update, None]:
        """Every update from the last one that was seen here, until the run waits or has ended; with `hold`, ended."""
        now = await self._replica.read(self.id)
        at_rest = now is None or now.run.ending is not None or (now.run.waiting and not hold)
        if at_rest and (now is None or now.row.seq <= self.seq):
            return
        last = None if now is None or not at_rest else now.row.seq
        async with aclosing(self._replica.watch(self._key, Position(self.seq))) as batches:
            async for batch in batches:
                for update in batch:
                    self.seq = update.seq
                    yield update
                    if update.seq == last or type(update) is RunEnded or (type(update) is RunWaiting and not hold):
                        return

    def __repr__(self) -> str:
        return f"<StoredRun {self.id} in thread {self.thread!r}>"


AnyRun = StoredRun[Any]
