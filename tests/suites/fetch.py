"""Fetches what the outside suites need, by package name, into `.cache/` of this checkout; none of it is committed."""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "suites"
JSON_SCHEMA_SUITE = "jsonschema==4.26.0"
"""The source distribution of this package holds the official JSON-Schema-Test-Suite in its folder `json`."""


def json_schema_suite() -> Path:
    """The folder of the official JSON-Schema-Test-Suite, with `tests` and `remotes`."""
    wanted = CACHE / JSON_SCHEMA_SUITE.replace("==", "-")
    if not wanted.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            subprocess.run([*pip, "--dest", scratch, JSON_SCHEMA_SUITE], check=True, timeout=300)
            (archive,) = Path(scratch).glob("*.tar.gz")
            with tarfile.open(archive) as source:
                source.extractall(scratch, filter="data")
            (unpacked,) = (path for path in Path(scratch).iterdir() if path.is_dir())
            try:
                unpacked.rename(wanted)
            except OSError:
                # Another test process was faster; its copy is as good.
                if not wanted.exists():
                    raise
    return wanted / "json"


if __name__ == "__main__":
    sys.stdout.write(f"{json_schema_suite()}\n")
