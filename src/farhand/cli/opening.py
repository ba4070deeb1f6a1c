"""A store as the commands get it: by its URL, opened for as long as it takes, and every fault in one line."""

import asyncio
import re
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from farhand.cli.exits import Exit
from farhand.core.errors import StoreError
from farhand.stores import POSSIBLE, open_store
from farhand.stores.base import Row, Store

Url: TypeAlias = Annotated[str, Parameter(env_var="FARHAND_STORE")]
SHORTLY = (
    "A store is memory:, sqlite:runs.db, sqlite:///from/the/root.db, postgresql://user@host/database, or a .db file"
)


def finish(work: Coroutine[None, None, bool]) -> Exit:
    """Do a command's work; false is a no."""
    return Exit.OK if asyncio.run(work) else Exit.NO


def named(url: str) -> Store:
    """The store of a URL, if it is one that lasts."""
    if url == "memory:":
        raise StoreError("memory: keeps nothing that one could look after")
    try:
        return open_store(url)
    except StoreError as error:
        raise StoreError(str(error).replace(POSSIBLE, SHORTLY)) from error.__cause__


@asynccontextmanager
async def opened(url: str, *, new: bool = False) -> AsyncGenerator[Store]:
    """The store of a URL, which has to be there already unless it may be new."""
    found = named(url)
    if not new and not await found.version():
        raise StoreError(f"there is no store at {shown(url)}; `farhand store migrate` makes one")
    await found.open()
    try:
        yield found
    finally:
        await found.close()


async def rows_of(found: Store, table: str) -> AsyncGenerator[Row]:
    """The rows of one table, as they are at one moment."""
    rows = found.export()
    begun = False
    try:
        async for name, row in rows:
            if name == table:
                begun = True
                yield row
            elif begun:
                return
    finally:
        if isinstance(rows, AsyncGenerator):
            await rows.aclose()


def shown(url: str) -> str:
    """A URL without the password that may be in it."""
    return re.sub(r"(://[^/@:]*):[^/]*@", r"\1:***@", re.sub(r"([?&]password=)[^&]*", r"\1***", url))
