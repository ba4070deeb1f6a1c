"""What it costs to import a system and to have it installed: fresh processes, warm bytecode, best of the rounds."""

import subprocess
import time
from pathlib import Path
from typing import Any

from bench.environment import CACHE, System

NOT_COUNTED = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
MODULES = "import sys; before = len(sys.modules); {}; print(len(sys.modules) - before)"


def measure(systems: dict[System, Path], rounds: int) -> dict[System, dict[str, Any]]:
    """Import milliseconds over a bare interpreter, modules, distributions and megabytes of every system."""
    results: dict[System, dict[str, Any]] = {}
    walls: dict[System, list[tuple[float, float]]] = {}
    for system, python in systems.items():
        try:
            modules = int(start(python, MODULES.format(system.statement)))
        except subprocess.CalledProcessError as error:
            results[system] = {"error": (error.stderr.splitlines() or ["no message"])[-1]}
            continue
        walls[system] = []
        results[system] = {"modules": modules, **installed(python)}
    for _ in range(rounds):
        for system, taken in walls.items():
            taken.append((timed(systems[system], "pass"), timed(systems[system], system.statement)))
    for system, taken in walls.items():
        empty = min(bare for bare, _ in taken)
        results[system]["ms"] = min(full for _, full in taken) - empty
        results[system]["empty_ms"] = empty
    return results


def timed(python: Path, statement: str) -> float:
    begin = time.perf_counter()
    start(python, statement)
    return (time.perf_counter() - begin) * 1000


def start(python: Path, statement: str) -> str:
    command = [str(python), "-I", "-c", statement]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=CACHE).stdout


def installed(python: Path) -> dict[str, Any]:
    """Distributions and megabytes in site-packages, without bytecode and without pip itself."""
    site = next(python.parent.parent.glob("lib/python*/site-packages"))
    entries = [entry for entry in site.iterdir() if not entry.name.startswith(NOT_COUNTED)]
    files = [file for entry in entries for file in (entry.rglob("*") if entry.is_dir() else [entry])]
    size = sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")
    return {"distributions": sum(entry.suffix == ".dist-info" for entry in entries), "mb": size / 1e6}
