"""Who is told what a run does. Order is kept even when a watcher answers a call in the middle of being told."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from farhand.core.updates import Update

logger = logging.getLogger("farhand.runner")

Watcher: TypeAlias = Callable[[Update], None]


class Watchers:
    """Passes updates to every watcher in turn; one that raises is told nothing more."""

    __slots__ = (
        "_kept",
        "_later",
        "_telling",
        "_watchers",
    )

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._kept: list[Update] = []
        self._later: deque[Sequence[Update]] = deque()
        self._telling = False

    def add(self, watcher: Watcher) -> Callable[[], None]:
        """Tell `watcher` every update from now on; returns what ends that.

        What was told while nobody watched or drove (a start, an answer to a paused run) goes to the first watcher.
        """
        kept, self._kept = self._kept, []
        self._watchers = [*self._watchers, watcher]
        if kept:
            self.tell(kept, False)
        return lambda: self._remove(watcher)

    def forget(self) -> None:
        """Nobody asked for what was told so far."""
        self._kept.clear()

    def tell(self, told: Sequence[Update], keep: bool) -> None:
        """Tell everybody, then whatever was to be told meanwhile; with `keep`, hold it for the first watcher."""
        if self._telling:
            self._later.append(told)
            return
        self._telling = True
        try:
            while True:
                if keep and not self._watchers:  # the last one may have failed or left meanwhile
                    self._kept += told
                for watcher in self._watchers:
                    try:
                        for update in told:
                            watcher(update)
                    except Exception as error:  # noqa: BLE001  whatever a watcher raises, the run goes on
                        self._give_up(watcher, error)
                if not self._later:
                    return
                told = self._later.popleft()
        finally:
            self._telling = False

    def tell_one(self, watcher: Watcher, told: Sequence[Update]) -> None:
        """Tell one watcher."""
        try:
            for update in told:
                watcher(update)
        except Exception as error:  # noqa: BLE001
            self._give_up(watcher, error)

    def _give_up(self, watcher: Watcher, error: Exception) -> None:
        logger.error("a watcher failed (%s) and is told nothing more", type(error).__name__)
        self._remove(watcher)

    def _remove(self, watcher: Watcher) -> None:
        self._watchers = [other for other in self._watchers if other is not watcher]
