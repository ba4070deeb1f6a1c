"""How long the disk takes to keep something. Every commit waits for it at least once, whoever asks."""

import os
import statistics
import tempfile
import time
from pathlib import Path

APPENDS = 200
PAGE = b"\0" * 4096


def sync_time(folder: Path) -> float:
    """Milliseconds of an append of 4 KiB that is on the disk: the median."""
    taken: list[float] = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(APPENDS):
            begin = time.perf_counter()
            file.write(PAGE)
            os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - begin) * 1000)
    return statistics.median(taken)
