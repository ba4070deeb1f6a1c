"""Who works on a SQLite file is told by locks that the system lets go of when a process dies, however it dies."""

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from farhand.core.errors import StoreError

if sys.platform != "win32":
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
else:

    def _lock(descriptor: int) -> bool:
        return False


HAVE_LOCKS = sys.platform != "win32"
SUFFIX = ".lock"


def machine() -> bytes:
    """This machine, as it runs since it was started: whoever else has it can rely on its locks."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return platform.node().encode()


class WorkerLocks:
    """The locks of the workers of this process, and a look at those of others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}
        self._machine = machine()

    def take(self, worker: str) -> None:
        """Lock as long as this process lives."""
        if worker in self._held or not HAVE_LOCKS:
            return
        try:
            descriptor = os.open(self._path(worker), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(f"no lock for worker {worker!r}: {error.strerror}") from error
        if not _lock(descriptor):
            os.close(descriptor)
            raise StoreError(f"another process has a worker {worker!r}")
        os.truncate(descriptor, 0)
        os.write(descriptor, self._machine)
        self._held[worker] = descriptor

    def drop(self, worker: str) -> None:
        """The worker has left."""
        descriptor = self._held.pop(worker, None)
        if descriptor is not None:
            self.remove(worker)
            os.close(descriptor)

    def is_dead(self, worker: str) -> bool:
        """Whether a worker was locked on this machine and is not any more."""
        if worker in self._held or not HAVE_LOCKS:
            return False
        try:
            descriptor = os.open(self._path(worker), os.O_RDONLY)
        except OSError:
            return False
        try:
            return _lock(descriptor) and os.read(descriptor, 256) == self._machine
        finally:
            os.close(descriptor)

    def remove(self, worker: str) -> None:
        """Take away what a dead worker left."""
        with suppress(OSError):
            self._path(worker).unlink()

    def close(self) -> None:
        """Let go of everything. The files of workers that have not left stay, and say that they are dead."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def _path(self, worker: str) -> Path:
        return self._folder / (quote(worker, safe="") + SUFFIX)
