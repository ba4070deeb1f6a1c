"""What the operating system says of this process. Where it says nothing, neither do we."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from farhand.telemetry.meters import Gauge, Meter, Reading

_SELF = Path("/proc/self")


def process_meters(self: Path = _SELF) -> list[Meter]:
    """Memory, open descriptors and time, under the names that everybody gives them."""
    started = time.time()
    return [
        Gauge("process_resident_memory_bytes", "Memory that the process has in RAM.", _known(lambda: _memory(self))),
        Gauge("process_open_fds", "Descriptors that the process has open.", _known(lambda: _descriptors(self))),
        Reading("process_cpu_seconds_total", "Time that processors have worked for the process.", time.process_time),
        Gauge("process_start_time_seconds", "When the server was made, in seconds since 1970.", lambda: started),
    ]


def _memory(self: Path) -> float:
    return int((self / "statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _descriptors(self: Path) -> float:
    return len(os.listdir(self / "fd")) - 1  # the one that reads the list is closed again


def _known(read: Callable[[], float]) -> Callable[[], float | None]:
    def look() -> float | None:
        try:
            return read()
        except OSError:
            return None

    return look
