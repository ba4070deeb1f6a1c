"""The machine a pass ran on: what it is, how busy it is, and the lock that lets one measurement run at a time."""

import fcntl
import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.environment import CACHE, ROOT

NOISY_LOAD = 1.5


@contextmanager
def lock() -> Iterator[None]:
    """Wait until no other pass is running."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another pass is running; waiting for it …")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]


def facts() -> dict[str, Any]:
    """What has to be known to read a figure."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "python": platform.python_version(),
        "kernel": f"{platform.system()} {platform.release()}",
        "cpu": cpu(),
        "cores": os.cpu_count(),
    }


def commit() -> str:
    """The checkout's commit, marked when something in it is not committed."""
    head = git("rev-parse", "--short", "HEAD") or "none"
    return f"{head}, with uncommitted changes" if git("status", "--porcelain") else head


def git(*arguments: str) -> str:
    done = subprocess.run(["git", "--no-optional-locks", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def cpu() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
