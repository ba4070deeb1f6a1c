"""Where runs are kept: in memory, in a SQLite file, or in PostgreSQL. `base` is the contract."""

import importlib
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from farhand.core.errors import StoreError

if TYPE_CHECKING:
    from farhand.stores.base import Store

POSSIBLE = """A store is one of
  memory:                           nothing is kept
  sqlite:runs.db                    a file, from the folder the program runs in
  sqlite:///var/lib/farhand/runs.db  a file, from the root
  sqlite:runs.db?synchronous=normal  faster, and a power failure may take the last writes
  postgresql://user@host/database   a PostgreSQL database
or the path of a file that ends in .db or .sqlite."""


def open_store(url: str) -> "Store":
    """Make the store that a URL names. It is opened with its `open`, by whoever uses it."""
    scheme, colon, rest = url.partition(":")
    if url == "memory:":
        return importlib.import_module("farhand.stores.memory").MemoryStore()
    if colon and scheme == "sqlite":
        return _sqlite(url, rest)
    if scheme in {"postgres", "postgresql"} and rest.startswith("//"):
        return _postgres(url)
    if PurePath(url).suffix in {".db", ".sqlite"} and "://" not in url:
        return importlib.import_module("farhand.stores.sqlite").SqliteStore(url)
    raise StoreError(f"{url!r} names no store. {POSSIBLE}")


def _sqlite(url: str, rest: str) -> "Store":
    path, _, query = rest.partition("?")
    if path.startswith("//"):
        if not path.startswith("///"):
            raise StoreError(f"{url!r} names a host, and a SQLite file is on this one. {POSSIBLE}")
        path = "/" + path.lstrip("/")
    settings = dict(parse_qsl(query, keep_blank_values=True))
    synchronous = settings.pop("synchronous", "full").lower()
    if settings or synchronous not in {"full", "normal"}:
        raise StoreError(f"{url!r}: the one setting is synchronous=full or synchronous=normal")
    if not path:
        raise StoreError(f"{url!r} names no file. {POSSIBLE}")
    return importlib.import_module("farhand.stores.sqlite").SqliteStore(unquote(path), synchronous=synchronous)


def _postgres(url: str) -> "Store":
    try:
        module = importlib.import_module("farhand.stores.postgres")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "asyncpg":
            raise
        raise StoreError("PostgreSQL needs asyncpg: pip install 'farhand[postgres]'") from error
    return module.PostgresStore(url)
