"""The systems of a pass and their virtual environments: one each, exact pins, plain pip, bytecode compiled."""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bench"
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")


class UnavailableError(Exception):
    """A system cannot take part; the text says why."""


@dataclass(frozen=True)
class System:
    """Somebody who takes part: the floor, Farhand, or a peer."""

    key: str
    title: str
    file: Path
    requires: tuple[str, ...] = ()
    statement: str = ""
    stores: tuple[str, ...] = ()
    """Where it keeps its runs; who names none takes part in the cases that keep nothing."""
    extra: str = ""
    beside: tuple[str, ...] = ()
    """Pins of what its cases need in the environment of Farhand."""

    @property
    def is_peer(self) -> bool:
        return bool(self.requires)


BARE = System("bare", "bare loop (floor)", ROOT / "bench/peers/bare.py")
OURS = System("farhand", "Farhand", ROOT / "bench/ours.py", statement="from farhand import Agent, tool")
OURS_KEPT = System(
    "farhand_durable",
    "Farhand",
    ROOT / "bench/durable/ours.py",
    stores=("SQLite FULL", "SQLite NORMAL", "PostgreSQL"),
    extra="[postgres]",
)
OURS_SERVED = System(
    "farhand_served",
    "Farhand",
    ROOT / "bench/served/server.py",
    stores=("SQLite FULL", "SQLite NORMAL", "memory"),
    extra="[server]",
)
OURS_COUNTED = System(
    "farhand_tokens",
    "Farhand",
    ROOT / "bench/tokens/ours.py",
    beside=("splintr-rs==0.22.0",),
)


def peers() -> list[System]:
    """The peers of `peers.toml`, in its order."""
    table = tomllib.loads((ROOT / "bench/peers.toml").read_text())
    return [
        System(
            key,
            entry["title"],
            ROOT / f"bench/peers/{key}.py",
            tuple(entry["requires"]),
            entry.get("import", ""),
            tuple(entry.get("stores", ())),
        )
        for key, entry in table.items()
    ]


def prepare(system: System) -> Path:
    """Return the interpreter of a system's environment; make the environment when its pins or sources changed."""
    if system.key == "bare":
        return Path(sys.executable)
    home = CACHE / system.key
    python = home / "bin" / "python"
    stamp = home / "bench.json"
    pins = [*system.requires, *system.beside]
    wanted = json.dumps({"python": sys.version, "requires": pins, "sources": fingerprint(system)})
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"installing {system.title} …", file=sys.stderr)
    run([sys.executable, "-m", "venv", "--clear", str(home)])
    if system.is_peer:
        run([str(python), "-m", "pip", "install", "-q", *system.requires])
    else:
        install_ours(python, system)
    subprocess.run([str(python), "-m", "compileall", "-q", str(home / "lib")], capture_output=True)
    stamp.write_text(wanted)
    return python


def install_ours(python: Path, system: System) -> None:
    """`pip install .` of a copy, so that the build leaves nothing behind in the checkout and finds nothing stale."""
    with tempfile.TemporaryDirectory() as folder:
        for name in SOURCES:
            source = ROOT / name
            if source.is_dir():
                unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(source, Path(folder) / name, ignore=unwanted)
            else:
                shutil.copy(source, folder)
        run([str(python), "-m", "pip", "install", "-q", f".{system.extra}", *system.beside], cwd=folder)


def fingerprint(system: System) -> str:
    """A digest of Farhand's own sources; peers are told apart by their pins."""
    digest = hashlib.sha256()
    if not system.is_peer:
        files = [ROOT / "pyproject.toml", *sorted((ROOT / "src").rglob("*"))]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts and ".egg-info" not in str(file):
                digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def run(command: list[str], cwd: str | None = None) -> None:
    """Run a command of the set-up; its last words are the reason when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")]
        raise UnavailableError("not installable: " + (errors or lines or ["no message"])[-1])
