"""The one thread that writes to a SQLite file. Whatever waits for it is committed together.

It waits for nobody: it takes what is there, commits, and looks again. What fails takes nothing else with it.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Collection, Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from farhand.core.errors import StoreAway, StoreError
from farhand.stores import sqlite_queries as sql
from farhand.stores.sqlite_changes import Rung

logger = logging.getLogger("farhand.stores")

GROUP = 512
"""How many changes share a commit at most."""

T = TypeVar("T")
Argument = TypeVar("Argument")
Change: TypeAlias = Callable[[sqlite3.Cursor, Rung, Any], Any]
Asked: TypeAlias = tuple[Change, Any, "asyncio.Future[Any]"]
Answer: TypeAlias = tuple["asyncio.Future[Any]", Any, Exception | None]


class Writer:
    """Changes go in from any thread with an event loop; each answer comes back on the loop that asked."""

    def __init__(
        self, connection: sqlite3.Connection, ring: Callable[[Rung], None], light: Collection[Change] = ()
    ) -> None:
        self._cursor = connection.cursor()
        self._ring = ring
        self._light = frozenset(light)
        """Changes that nobody needs when the power has failed: alone in a group, they wait for no disk."""
        self._care = self._most_care = int(connection.execute(sql.CARE).fetchone()[0])
        self._queue: SimpleQueue[Asked | None] = SimpleQueue()
        self._stopping = False
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="farhand-sqlite", daemon=True)
        self._thread.start()

    def ask(self, change: Callable[[sqlite3.Cursor, Rung, Argument], T], argument: Argument) -> "asyncio.Future[T]":
        """Have a change made; the future is always resolved, also when the store is closed meanwhile."""
        if self._stopping:
            raise StoreAway("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put((change, argument, future))
        if self._ended:  # between the question above and the put
            self._fail_rest()
        return future

    def stop(self) -> None:
        """Make what was asked for so far, then end; blocks until that is done."""
        self._stopping = True
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        queue = self._queue
        while not (self._stopping and queue.empty()):
            first = queue.get()
            taken = [first, *(queue.get() for _ in range(min(queue.qsize(), GROUP - 1)))]
            group = [asked for asked in taken if asked is not None]
            if group:
                self._commit(group)
        self._ended = True
        self._fail_rest()

    def _commit(self, group: Sequence[Asked]) -> bool:
        """Commit all, or each for itself if that fails; false if nothing can be begun."""
        cursor, rung = self._cursor, Rung()
        try:
            self._take_care(1 if all(change in self._light for change, _, _ in group) else self._most_care)
            cursor.execute(sql.BEGIN)
        except sqlite3.Error as error:  # nobody's fault in here: whoever comes next would wait as long, in vain
            self._roll_back()
            answer([(future, None, failure(error)) for _, _, future in group])
            return False
        try:
            answers = [(future, change(cursor, rung, argument), None) for change, argument, future in group]
            cursor.execute(sql.COMMIT)
        except Exception as error:  # noqa: BLE001  whatever it is, the thread lives and everybody is told
            self._roll_back()
            if len(group) == 1:
                answer([(group[0][2], None, failure(error))])
            else:
                self._commit_each(group)
            return True
        answer(answers)
        if rung:
            self._tell(rung)
        return True

    def _take_care(self, care: int) -> None:
        """Have commits wait for the disk, or not. What is written with care takes what was before it along."""
        care = min(care, self._most_care)
        if care != self._care:
            self._cursor.execute(f"{sql.CARE} = {care}")
            self._care = care

    def _commit_each(self, group: Sequence[Asked]) -> None:
        for position, asked in enumerate(group):
            if not self._commit([asked]):
                rest = group[position + 1 :]
                answer([(future, None, StoreAway("the store cannot be written just now")) for _, _, future in rest])
                return

    def _roll_back(self) -> None:
        try:
            if self._cursor.connection.in_transaction:
                self._cursor.execute(sql.ROLLBACK)
        except sqlite3.Error as error:
            logger.error("a transaction could not be rolled back: %s", error)

    def _tell(self, rung: Rung) -> None:
        try:
            self._ring(rung)
        except Exception:  # what others miss, they find when they look by themselves
            logger.exception("other processes could not be told of a write")

    def _fail_rest(self) -> None:
        while True:
            try:
                asked = self._queue.get_nowait()
            except Empty:
                return
            if asked is not None:
                answer([(asked[2], None, StoreAway("the store is closed"))])


def answer(answers: Sequence[Answer]) -> None:
    """Resolve futures, each on its own loop, and all of one loop in one go."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Answer]] = {}
    for each in answers:
        by_loop.setdefault(each[0].get_loop(), []).append(each)
    for loop, own in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, own)
        except RuntimeError:  # whoever asked is gone, with his loop
            logger.debug("an answer came after the end of its event loop")


def _resolve(answers: Sequence[Answer]) -> None:
    for future, result, error in answers:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def failure(error: Exception) -> StoreError:
    """What a caller is told: to try again, or that what he asked for cannot be stored at all."""
    fault = isinstance(error, sqlite3.IntegrityError | sqlite3.InterfaceError | sqlite3.ProgrammingError)
    if isinstance(error, sqlite3.Error) and not fault:
        told: StoreError = StoreAway(f"the store cannot be written just now: {error}")
    else:
        told = StoreError(f"this cannot be stored: {error}")
    told.__cause__ = error
    return told
