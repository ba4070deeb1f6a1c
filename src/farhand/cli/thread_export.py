"""`farhand thread export`: a conversation as JSON lines, to be kept, looked at, or replayed without its server."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from msgspec import Struct, json

from farhand.cli.options import NOBODY, Login, Server, Who
from farhand.cli.remote import reached
from farhand.cli.thread import Name
from farhand.core.messages import Message
from farhand.core.updates import Update
from farhand.durable.position import LIVE

if TYPE_CHECKING:
    from farhand.client import Client

FORMAT: Final = 1
HOLDS: Final = "farhand thread"


class First(Struct, frozen=True, kw_only=True):
    """The first line: what this is."""

    holds: str = HOLDS
    format: int = FORMAT
    thread: str
    seq: int


class Said(Struct, frozen=True):
    """A line for a message, in the order in which they were said."""

    message: Message


class Happened(Struct, frozen=True):
    """A line for an update, in the order of their numbers."""

    update: Update


class Last(Struct, frozen=True, kw_only=True):
    """The last line counts the others, so that half a file is known for what it is."""

    messages: int
    updates: int


def export(server: Server, name: Name, file: Path | None = None, /, *, who: Who = NOBODY) -> None:
    """Write a conversation as JSON lines: messages and updates.

    Parameters
    ----------
    file
        Where to, for nobody else to read; without it, to the standard output.
    """
    if file is None:
        asyncio.run(_export(server, name, who, sys.stdout.buffer))
        sys.stdout.buffer.flush()
        return
    part = file.with_name(file.name + ".part")  # under another name until it is whole
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            asyncio.run(_export(server, name, who, out))
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


async def _export(server: str, name: str, who: Login, out: IO[bytes]) -> None:
    async with reached(server, who) as client:
        state = await client.thread(name).state()
        _write(out, First(thread=name, seq=state.seq))
        for message in state.messages:
            _write(out, Said(message))
        updates = 0
        async for update in stored(client, name, state.seq):
            _write(out, Happened(update))
            updates += 1
        _write(out, Last(messages=len(state.messages), updates=updates))


async def stored(client: "Client", name: str, until: int) -> AsyncGenerator[Update]:
    """The stored updates of a thread up to a number."""
    if not until:
        return
    async with aclosing(aiter(client.thread(name).watch())) as updates:
        async for update in updates:
            if type(update) not in LIVE:
                yield update
                if update.seq >= until:
                    return


def _write(out: IO[bytes], line: Struct) -> None:
    out.write(json.encode(line) + b"\n")
