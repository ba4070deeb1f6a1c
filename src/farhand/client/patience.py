"""How long a client puts up with a server that cannot be reached, and how long it waits between two attempts."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from farhand.core.errors import ConnectionLost, StoreAway, TooMuch

T = TypeVar("T")
PASSING = (ConnectionLost, StoreAway, TooMuch)
"""What goes by: the same may be asked again."""


class Patience(Struct, frozen=True, kw_only=True):
    """Seconds. The delay doubles from `first` to `most`; each one is shortened by chance, so that clients spread."""

    total: float | None = 60.0
    """From the first failure to the last attempt, as long as none succeeds; None: for ever."""
    first: float = 0.1
    """The first delay."""
    most: float = 5.0
    """The longest delay."""

    def delay(self, attempt: int) -> float:
        """Before the attempt of this number, counted from 1."""
        longest = min(self.most, self.first * 2 ** min(attempt - 1, 32))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  no secret


USUAL = Patience()

OnRetry = Callable[[int, float, Exception], None]
"""Is told the number of the attempt, the delay before it, and why it is needed."""


class Outage:
    """Failures in a row."""

    def __init__(self, patience: Patience, on_retry: OnRetry) -> None:
        self._patience = patience
        self._on_retry = on_retry
        self._since: float | None = None
        self.attempts = 0

    def over(self) -> None:
        """It works again."""
        self._since = None
        self.attempts = 0

    async def bear(self, error: Exception) -> None:
        """Wait until the next attempt is due; raises the error when patience is at its end."""
        now = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = now
        self.attempts += 1
        delay = self._patience.delay(self.attempts)
        if isinstance(error, TooMuch):
            delay = max(delay, error.retry_after)
        total = self._patience.total
        if total is not None and now + delay - self._since > total:
            raise error
        self._on_retry(self.attempts, delay, error)
        await asyncio.sleep(delay)


async def insist(patience: Patience, on_retry: OnRetry, ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until there is an answer. Only for what may be asked twice."""
    outage = Outage(patience, on_retry)
    while True:
        try:
            return await ask()
        except PASSING as error:
            await outage.bear(error)
