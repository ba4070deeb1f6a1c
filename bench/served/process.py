"""A server of the served cases, seen from outside: started, measured, stopped."""

import json
import subprocess
import threading
from pathlib import Path

from bench.environment import CACHE, ROOT, UnavailableError
from bench.served.client import resident

FILE = ROOT / "bench" / "served" / "server.py"
LOG = CACHE / "served.log"
PATIENCE = 30.0


class Server:
    """One process that serves until it is closed."""

    def __init__(self, python: Path, store: str, patience: float | None = None) -> None:
        command = [str(python), "-I", str(FILE), store, *([] if patience is None else [str(patience)])]
        with LOG.open("w") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=CACHE
            )
        self.pid = self._process.pid
        self.port = self._listening()

    def _listening(self) -> int:
        assert self._process.stdout is not None
        timer = threading.Timer(PATIENCE, self._process.kill)
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            self.close()
            raise UnavailableError("the server ended before it listened, see .cache/bench/served.log")
        return json.loads(line)["port"]

    @property
    def memory(self) -> float:
        """Megabytes."""
        return resident(self.pid) / 1024

    @property
    def files(self) -> int:
        """Descriptors that are open."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def sockets(self) -> float:
        """Megabytes that the system has for what is on its way over TCP, on the whole machine."""
        told = Path("/proc/net/sockstat").read_text().partition("TCP:")[2].split()
        return int(told[told.index("mem") + 1]) * 4096 / 1e6

    def close(self) -> None:
        """Let it end by itself, or else end it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(timeout=PATIENCE)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
