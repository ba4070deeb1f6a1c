"""How processes on one SQLite file tell each other that they have written: a socket each, in a folder next to the file.

A bell says where to look, never what happened, and it may get lost: whoever listens also looks by himself now and then.
"""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import msgspec

from farhand.stores.base import Ring
from farhand.stores.sqlite_changes import EVERYTHING, Rung

SUFFIX = ".bell"
LONGEST = 100
"""Of a socket's address in bytes; the systems allow a little over a hundred."""
AT_ONCE = 48_000
"""Bytes of one message; where more is to be told, the others look everywhere."""
LOOK = 0.25
"""Seconds between two looks for who else is there."""
HELLO = b"null"


class Doorbell:
    """Rings the others, and hears them once it listens. Without unix sockets it does neither."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = secrets.token_hex(8) + SUFFIX
        self._others: list[str] = []
        self._look_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ear: socket.socket | None = None
        self._mouth: socket.socket | None = None
        self._short = -1
        if not hasattr(socket, "AF_UNIX"):
            return
        self._mouth = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._mouth.setblocking(False)
        if len(os.fsencode(folder / self._name)) > LONGEST:
            self._short = os.open(folder, os.O_RDONLY)

    def listen(self, heard: Callable[[Ring], None]) -> None:
        """Call back on this event loop; it has to be one that watches files."""
        if self._mouth is None:
            return
        ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ear.setblocking(False)
        try:
            ear.bind(self._address(self._name))
            loop = asyncio.get_running_loop()
            loop.add_reader(ear, self._hear, heard)
        except (OSError, NotImplementedError):
            ear.close()
            return
        self._ear, self._loop = ear, loop
        self._send(HELLO)

    def ring(self, rung: Rung) -> None:
        """Tell the others; never waits for them."""
        if self._mouth is None or (monotonic() < self._look_at and not self._others):
            return
        message = b"[]" if EVERYTHING in rung else msgspec.json.encode(list(dict.fromkeys(rung)))
        self._send(message if len(message) <= AT_ONCE else b"[]")

    def close(self) -> None:
        """Hear nothing more."""
        if self._ear is not None and self._loop is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._ear)
            self._ear.close()
            (self._folder / self._name).unlink(missing_ok=True)
        if self._mouth is not None:
            self._mouth.close()
        if self._short >= 0:
            os.close(self._short)
            self._short = -1
        self._ear = self._mouth = None

    def _address(self, name: str) -> str:
        return f"/proc/self/fd/{self._short}/{name}" if self._short >= 0 else str(self._folder / name)

    def _send(self, message: bytes) -> None:
        mouth = self._mouth
        if mouth is None:
            return
        for name in self._present():
            try:
                mouth.sendto(message, self._address(name))
            except (ConnectionRefusedError, FileNotFoundError):  # whoever listened there is dead
                with contextlib.suppress(OSError):
                    (self._folder / name).unlink()
                self._look_at = 0.0
            except OSError:  # it has its hands full; it will look by itself
                continue

    def _present(self) -> list[str]:
        if monotonic() >= self._look_at:
            self._look_at = monotonic() + LOOK
            try:
                names = os.listdir(self._folder)
            except OSError:
                names = []
            self._others = [name for name in names if name.endswith(SUFFIX) and name != self._name]
        return self._others

    def _hear(self, heard: Callable[[Ring], None]) -> None:
        ear = self._ear
        while ear is self._ear and ear is not None:
            try:
                message = ear.recv(AT_ONCE)
            except OSError:
                return
            if message == HELLO:
                self._look_at = 0.0
                continue
            for ring in _rings(message):
                heard(ring)


def _rings(message: bytes) -> list[Ring]:
    try:
        pairs = msgspec.json.decode(message, type=list[tuple[str, str]])
    except msgspec.DecodeError:
        pairs = []
    return [Ring(thread, run) for thread, run in pairs] or [Ring()]
