"""What `farhand doctor` looks at in a store."""

import os
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Final

from farhand.cli.exits import said
from farhand.cli.finding import SKEW, Check, Health, clock
from farhand.cli.opening import named, shown
from farhand.core.errors import FarhandError

USUAL: Final = Path("farhand.db")


async def store_checks(url: str) -> list[Check]:
    if not url and not USUAL.exists():
        return []
    where = url or f"sqlite:{USUAL}"
    try:
        store = named(where)
        version = await store.version()
        if not version:
            text = f"there is none at {shown(where)} yet"
            return [Check("store", Health.NOTE, text, "`farhand serve` makes it, and so does `farhand store migrate`")]
        await store.open()
        try:
            summary = await store.summary()
            ahead = (await store.time()) / 1000 - time()
        finally:
            await store.close()
    except (FarhandError, OSError) as error:
        what = said(error)
        return [Check("store", Health.BROKEN, what.detail, what.fix or "`farhand store check` says more")]
    text = f"{shown(where)}: version {version}, {summary.threads} threads, {sum(summary.runs.values())} runs"
    found = [Check("store", Health.WELL, text)]
    if abs(ahead) > SKEW:
        found.append(clock("the store", ahead))
    found += _readers(where)
    refused = summary.runs.get("refused", 0)
    if refused:
        fix = f"farhand store check {shown(where)}"
        found.append(Check("store", Health.BROKEN, f"{refused} runs were put aside, which cannot be read", fix))
    return found


def _readers(url: str) -> Iterator[Check]:
    """Who else may read a file."""
    file = Path(url.removeprefix("sqlite:").partition("?")[0])
    if os.name == "posix" and file.is_file() and file.stat().st_mode & 0o077:
        text = f"others may read {file}, and conversations are in it"
        yield Check("store", Health.NOTE, text, f"chmod 600 {file}")
