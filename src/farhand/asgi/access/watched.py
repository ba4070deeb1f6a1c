"""A file that is read again when it has changed."""

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from farhand.core.errors import FarhandError, InvalidInput

logger = logging.getLogger("farhand.access")

LOOK: Final = 1_000
"""Milliseconds between two looks at the file."""
LARGEST: Final = 1 << 20
FOREIGN: Final = stat.S_IRWXO | stat.S_IWGRP

T = TypeVar("T")


class Watched(Generic[T]):
    """What a file says. Once it was read, a later fault of the file leaves what it said before, and is in the log."""

    def __init__(self, path: Path, read: Callable[[bytes], T], now: Callable[[], int], *, secret: bool = False) -> None:
        self._path = path
        self._read = read
        self._now = now
        self._secret = secret
        self._looked = now()
        self._seen, self._value = self._load()

    def value(self) -> T:
        """What it says now."""
        now = self._now()
        if not 0 <= now - self._looked < LOOK:
            self._looked = now
            self._renew()
        return self._value

    def _renew(self) -> None:
        seen: object = None
        try:
            seen = _identity(self._path.stat())
            if seen != self._seen:
                self._seen = seen  # a fault is told once, not every second
                self._seen, self._value = self._load()
                logger.info("%s was read again", self._path)
        except (OSError, FarhandError) as error:
            if seen is not None or self._seen is not None:
                logger.error("what was read before still counts: %s", error)
            self._seen = seen

    def _load(self) -> tuple[object, T]:
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                if self._secret and os.name == "posix" and found.st_mode & FOREIGN:
                    raise InvalidInput(f"others may read or change {self._path}: chmod 600 {self._path}")
                data = file.read(LARGEST + 1)
        except OSError as error:
            raise InvalidInput(f"{self._path} cannot be read: {error.strerror}") from None
        if len(data) > LARGEST:
            raise InvalidInput(f"{self._path} has more than {LARGEST} bytes")
        return _identity(found), self._read(data)


def _identity(found: os.stat_result) -> object:
    """What is another one when a file has changed."""
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode
