"""`farhand demo`: the demo agent at a server of this machine."""

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farhand.cli.extras import needing
from farhand.cli.options import Json
from farhand.cli.serve import EVERYBODY, Style

PORT = 8000


def demo(*, port: Annotated[int | None, Parameter()] = None, store: str = "", as_json: Json = False) -> None:
    """Serve an agent to try things with. No key and no network are needed.

    Parameters
    ----------
    port
        The port to listen on; without it 8000, or any free one if that is taken.
    store
        Where runs are kept; without it, in a file of your cache.
    """
    serving = needing("server", "farhand.cli.serving")
    from farhand.demo import TRY, demo_agent

    serving.serve(
        [demo_agent()],
        serving.Listening("127.0.0.1", PORT if port is None else port, moves=port is None),
        store=store or f"sqlite:{_file()}",
        access=EVERYBODY,
        style=Style(),
        as_json=as_json,
        say=TRY[0],
    )


def _file() -> Path:
    """Where the demo keeps its runs, so that they are there at its next start."""
    folder = _cache() / "farhand"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "demo.db"


def _cache() -> Path:
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()))
    return Path.home() / ".cache"
