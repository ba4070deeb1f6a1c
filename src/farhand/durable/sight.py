"""What observers see of a process and the runs it works on. Where nobody looks on, nothing is done for them."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import structs

from farhand.durable.held import Held
from farhand.runner.activity import Working, Writing
from farhand.runner.driver import Change, LetGo, Means, Perform
from farhand.runner.observed import observed
from farhand.runner.observer import Observer, Onlookers
from farhand.runner.perform import perform
from farhand.stores.base import Store, Write


class Sight:
    """Between a process and those who look on."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self.observers = tuple(observers)
        self.onlookers = Onlookers(observers) if observers else None
        self.perform: Perform = perform if self.onlookers is None else observed(self.onlookers)

    def means(self, agent: str, means: Means) -> Means:
        """What runs of an agent work with."""
        return structs.replace(means, agent=agent, onlookers=self.onlookers)

    def trace(self) -> str:
        """How a run that is started now is to be found."""
        return "" if self.onlookers is None else self.onlookers.trace()

    @contextmanager
    def working(self, held: Held) -> Generator[None]:
        """A stretch of work on a run, while this is entered."""
        if self.onlookers is None:
            yield
            return
        row = held.row
        seen = Working(agent=row.agent, thread=row.thread, run=held.driver.state, lost=held.lost)
        held.lost = False
        self.onlookers.began(seen)
        error: BaseException | None = None
        try:
            yield
        except LetGo:  # as it ends wherever a run comes to rest
            raise
        except BaseException as raised:
            error = raised
            raise
        finally:
            seen.run = held.driver.state
            self.onlookers.ended(seen, error)

    def write(self, store: Store, write: Write) -> "asyncio.Future[bool]":
        """Have a change written."""
        writing = asyncio.ensure_future(store.write(write))
        if self.onlookers is not None:
            seen = Writing(run=write.run.id)
            self.onlookers.began(seen)
            writing.add_done_callback(partial(_written, self.onlookers, seen))
        return writing

    def changed(self, agent: str, changes: Sequence[Change]) -> None:
        """Changes were kept here of a run that nobody holds any more: whoever held it does not see them."""
        if self.onlookers is not None:
            for change in changes:
                self.onlookers.changed(agent, change.before, change.event, change.after)


def _written(onlookers: Onlookers, seen: Writing, writing: "asyncio.Future[bool]") -> None:
    error = asyncio.CancelledError() if writing.cancelled() else writing.exception()
    seen.kept = None if error is not None else writing.result()
    onlookers.ended(seen, error)
