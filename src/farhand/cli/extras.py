"""The extras of the package: what each is for, and whether it is installed."""

import importlib
import importlib.util
from collections.abc import Mapping
from types import ModuleType
from typing import Final

from msgspec import Struct

from farhand.core.errors import UsageError


class Extra(Struct, frozen=True):
    """Some packages that are not always needed."""

    modules: tuple[str, ...]
    """Those without which it does not work; the others only make it faster."""
    what: str


EXTRAS: Final[Mapping[str, Extra]] = {
    "cli": Extra(("cyclopts", "rich"), "the command line"),
    "client": Extra(("httpx2",), "talk to a server"),
    "server": Extra(("starlette", "uvicorn", "websockets", "httpx2"), "serve agents"),
    "jwt": Extra(("jwt", "cryptography"), "let people in by JWT"),
    "postgres": Extra(("asyncpg",), "keep runs in PostgreSQL"),
}


def missing(name: str) -> tuple[str, ...]:
    """What an extra would bring and is not there."""
    return tuple(module for module in EXTRAS[name].modules if not _is_there(module))


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # whatever looks for modules here says so in this way
        return False


def install(*names: str) -> str:
    """The command that brings extras."""
    return f"pip install 'farhand[{','.join(names)}]'"


def needing(name: str, module: str) -> ModuleType:
    """A module that needs an extra; an error that says what to type if it is not there."""
    lacking = missing(name)
    if lacking:
        raise UsageError(f"this needs {', '.join(lacking)} to {EXTRAS[name].what}: {install(name)}")
    return importlib.import_module(module)
