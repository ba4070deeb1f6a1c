"""The checks of `farhand doctor`, in the order in which they are told; and those of this machine."""

import asyncio
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from farhand import __version__
from farhand.cli.checkup_server import server_checks
from farhand.cli.checkup_store import store_checks
from farhand.cli.extras import EXTRAS, install, missing
from farhand.cli.finding import Check, Health
from farhand.cli.options import Login
from farhand.cli.remote import FOREIGN, TOKEN_FILE

URL: Final = "FARHAND_URL"
FEW_FILES: Final = 4096


def checkup(server: str, store: str, who: Login) -> list[Check]:
    """All checks."""
    url = server or os.environ.get(URL, "")
    found = [_python(), *_extras(), _files(), *_token_file(who)]
    found += asyncio.run(store_checks(store))
    if url:
        found += asyncio.run(server_checks(url, who))
    return found


def _python() -> Check:
    text = f"farhand {__version__} on {platform.python_implementation()} {platform.python_version()}, {sys.platform}"
    if sys.version_info < (3, 11):  # noqa: UP036  whoever got around the check of the installer
        return Check("python", Health.BROKEN, text, "Farhand needs Python 3.11 or newer")
    return Check("python", Health.WELL, text)


def _extras() -> Iterator[Check]:
    for name, extra in EXTRAS.items():
        lacking = missing(name)
        if lacking:
            text = f"{name} is not installed ({', '.join(lacking)}); it is to {extra.what}"
            yield Check("extra", Health.NOTE, text, install(name))
        else:
            yield Check("extra", Health.WELL, f"{name}: {extra.what}")


def _files() -> Check:
    try:
        import resource
    except ImportError:  # a platform without it
        return Check("files", Health.WELL, "this platform has no limit of open files that could be asked for")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = "as many as the machine has" if soft == resource.RLIM_INFINITY else f"{soft} may be open at once"
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        more = "the limit of the machine allows" if hard == resource.RLIM_INFINITY else hard
        fix = f"each stream takes one; before you serve many: ulimit -n {min(65_536, hard) if hard > 0 else more}"
        return Check("files", Health.NOTE, text, fix)
    return Check("files", Health.WELL, text)


def _token_file(who: Login) -> Iterator[Check]:
    path = who.token_file or (Path(os.environ[TOKEN_FILE]) if os.environ.get(TOKEN_FILE) else None)
    if path is None:
        return
    try:
        mode = path.stat().st_mode
    except OSError as error:
        yield Check("token", Health.BROKEN, f"{path} cannot be read: {error.strerror}", "make it, or name another one")
        return
    if os.name == "posix" and mode & FOREIGN:
        yield Check("token", Health.BROKEN, f"others may read or change {path}", f"chmod 600 {path}")
    else:
        yield Check("token", Health.WELL, f"{path} is for you alone")
