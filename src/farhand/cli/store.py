"""`farhand store`: look after the place where runs are kept. Every command works beside the processes that use it."""

import os
import re
import sys
from contextlib import aclosing
from pathlib import Path
from typing import IO, Annotated

from cyclopts import App, Parameter

from farhand.cli.exits import Exit
from farhand.cli.opening import Url, finish, named, opened, rows_of, shown
from farhand.cli.options import Json
from farhand.cli.output import write_json
from farhand.cli.store_check import check
from farhand.core.errors import InvalidInput
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
def migrate(url: Url, /, *, as_json: Json = False) -> Exit:
    """Bring the tables to the version that this build reads. A store that is not there is made.

    Parameters
    ----------
    url
        The store.
    """
    return finish(_migrate(url, as_json=as_json))


@store.command
def export(url: Url, file: Path | None = None) -> Exit:
    """Write everything that is in a store as JSON lines, as it is at one moment.

    Parameters
    ----------
    url
        The store.
    file
        Where to; without it, to the standard output.
    """
    return finish(_export(url, file))


@store.command(name="import")
def import_(url: Url, file: Path | None = None, *, as_json: Json = False) -> Exit:
    """Fill an empty store with what was exported, also from a store of another kind: all of it or nothing.

    Parameters
    ----------
    url
        The store.
    file
        What to read; without it, the standard input.
    """
    return finish(_import(url, file, as_json=as_json))


@store.command
def prune(
    url: Url,
    /,
    *,
    older_than: str,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    as_json: Json = False,
) -> Exit:
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
    return finish(_prune(url, _seconds(older_than), dry_run=dry_run, as_json=as_json))


async def _migrate(url: str, *, as_json: bool) -> bool:
    found = named(url)
    before = await found.version()
    steps = await found.migrate()
    async with opened(url):  # a store of a newer build is refused here
        after = await found.version()
    if as_json:
        write_json({"store": shown(url), "before": before, "version": after})
    elif not before:
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


async def _import(url: str, file: Path | None, *, as_json: bool) -> bool:
    if file is None:
        return await _import_from(url, sys.stdin.buffer, as_json=as_json)
    with file.open("rb") as lines:  # before the store: if there is no such file, none is made
        return await _import_from(url, lines, as_json=as_json)


async def _import_from(url: str, lines: IO[bytes], *, as_json: bool) -> bool:
    async with opened(url, new=True) as found:
        await load(found, lines)
        there = await found.summary()
    runs = sum(there.runs.values())
    if as_json:
        write_json({"store": shown(url), "threads": there.threads, "runs": runs})
    else:
        print(f"{shown(url)}: {there.threads} threads, {runs} runs")
    return True


async def _prune(url: str, seconds: int, *, dry_run: bool, as_json: bool) -> bool:
    async with opened(url) as found:
        before = await found.time() - seconds * 1000
        gone = await (_idle(found, before) if dry_run else _pruned(found, before))
    if as_json:
        write_json({"store": shown(url), "threads": gone, "dry_run": dry_run})
    else:
        print(f"{gone} threads {'would be ' if dry_run else ''}deleted")
    return True


async def _pruned(found: Store, before: int) -> int:
    gone = some = await found.prune(before, BATCH)
    while some == BATCH:
        some = await found.prune(before, BATCH)
        gone += some
    return gone


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
        raise InvalidInput(f"{text!r} is no age: 12h, 30d, 4w; the units are s, m, h, d and w")
    return int(number[1]) * SECONDS[number[2]]
