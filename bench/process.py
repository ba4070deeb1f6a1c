"""The driver's end of a worker: start it in a system's interpreter, ask it for one case at a time, end it."""

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from bench.environment import CACHE, ROOT, System, UnavailableError

PATIENCE = 600.0  # seconds for one case


class Worker:
    """A living process that runs one system's cases. The protocol is in `worker.py`."""

    def __init__(self, system: System, python: Path) -> None:
        if not system.file.exists():
            raise UnavailableError(f"{system.file.relative_to(ROOT)} does not exist")
        self.log = CACHE / f"{system.key}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [str(python), "-I", str(ROOT / "bench" / "worker.py"), str(system.file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=CACHE,
            )
        self.versions: dict[str, str] = {}
        ready = self.read()
        if "error" in ready:
            self.close()
            raise UnavailableError(ready["error"])
        self.versions = ready["versions"]

    def ask(self, case: str, **how: Any) -> dict[str, Any]:
        """Run one case; an error is an answer too."""
        assert self.process.stdin is not None
        request = {"case": case, **how}
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": f"its worker has ended, see {self.log.relative_to(ROOT)}"}
        return self.read()

    def read(self) -> dict[str, Any]:
        """The next line of the worker, or an error when it ends or takes too long."""
        assert self.process.stdout is not None
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            return {"error": f"its worker ended without an answer, see {self.log.relative_to(ROOT)}"}
        return json.loads(line)

    def close(self) -> None:
        """Let the worker end by itself, or else end it."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            self.process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
