"""`farhand store`: look after the place where runs are kept. Every command works beside the processes that use it."""

import os
import re
import sys
from contextlib import aclosing
from pathlib import Path
from typing import IO

from cyclopts import App

from farhand.cli.opening import Url, finish, named, opened, rows_of, shown
from farhand.cli.store_check import check
from farhand.stores.base import Store
from farhand.stores.transfer import dump, load

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
BATCH = 500
"""Threads that are asked for at once. The store deletes them in still smaller transactions."""

store = App(
    name="store", help="Look after a store: sqlite:runs.db, postgresql://user@host/database, or $FARHAND_STORE."
)
store.command(check)


@store.command
def migrate(url: Url, /) -> None:
    """Bring the tables to the version that this build reads. A store that is not there is made.

    Parameters
    ----------
    url
        The store.
    """
    finish(_migrate(url))


@store.command
def export(url: Url, file: Path | None = None) -> None:
    """Write everything that is in a store as JSON lines, as it is at one moment.

    Parameters
    ----------
    url
        The store.
    file
        Where to; without it, to the standard output.
    """
    finish(_export(url, file))


@store.command(name="import")
def import_(url: Url, file: Path | None = None) -> None:
    """Fill an empty store with what was exported, also from a store of another kind: all of it or nothing.

    Parameters
    ----------
    url
        The store.
    file
        What to read; without it, the standard input.
    """
    finish(_import(url, file))


@store.command
def prune(url: Url, /, *, older_than: str, dry_run: bool = False) -> None:
    """Delete conversations that nothing has happened in for a while. One with an open run is never deleted.

    Parameters
    ----------
    url
        The store.
    older_than
        A number and s, m, h, d or w: seconds, minutes, hours, days, weeks.
    dry_run
        Count them only.
    """
    finish(_prune(url, _seconds(older_than), dry_run=dry_run))


async def _migrate(url: str) -> bool:
    found = named(url)
    before = await found.version()
    steps = await found.migrate()
    async with opened(url):  # a store of a newer build is refused here
        after = await found.version()
    if not before:
        print(f"{shown(url)}: set up with version {after}")
    elif not steps:
        print(f"{shown(url)}: version {after} already, nothing to do")
    else:
        print(f"{shown(url)}: from version {before} to version {after}")
    return True


async def _export(url: str, file: Path | None) -> bool:
    async with opened(url) as found:
        if file is None:
            rows = await dump(found, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            rows = await _export_to(found, file)
    print(f"{rows} rows", file=sys.stderr)
    return True


async def _export_to(found: Store, file: Path) -> int:
    """Under another name until it is whole, and for nobody else's eyes: it holds what people said."""
    part = file.with_name(file.name + ".part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            rows = await dump(found, out)
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return rows


async def _import(url: str, file: Path | None) -> bool:
    if file is None:
        return await _import_from(url, sys.stdin.buffer)
    with file.open("rb") as lines:  # before the store: if there is no such file, none is made
        return await _import_from(url, lines)


async def _import_from(url: str, lines: IO[bytes]) -> bool:
    async with opened(url, new=True) as found:
        await load(found, lines)
        there = await found.summary()
    print(f"{shown(url)}: {there.threads} threads, {sum(there.runs.values())} runs")
    return True


async def _prune(url: str, seconds: int, *, dry_run: bool) -> bool:
    async with opened(url) as found:
        before = await found.time() - seconds * 1000
        if dry_run:
            print(f"{await _idle(found, before)} threads would be deleted")
            return True
        gone = some = await found.prune(before, BATCH)
        while some == BATCH:
            some = await found.prune(before, BATCH)
            gone += some
    print(f"{gone} threads deleted")
    return True


async def _idle(found: Store, before: int) -> int:
    """How many threads without an open run nothing has happened to since."""
    idle = 0
    async with aclosing(rows_of(found, "threads")) as threads:
        async for row in threads:
            idle += not row["run"] and row["updated"] < before
    return idle


def _seconds(text: str) -> int:
    number = re.fullmatch(r"(\d{1,9})([smhdw])", text)
    if number is None:
        sys.exit(f"{text!r} is no age: 12h, 30d, 4w; the units are s, m, h, d and w")
    return int(number[1]) * SECONDS[number[2]]
