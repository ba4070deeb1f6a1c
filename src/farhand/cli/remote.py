"""A server as the commands get it: by its URL, with the token that goes with it. Needs the extra `client`."""

import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urldefrag

from msgspec import Struct

from farhand.cli.extras import needing
from farhand.cli.options import Login
from farhand.core.errors import InvalidInput

if TYPE_CHECKING:
    from farhand.client import Client

TOKEN: Final = "FARHAND_TOKEN"  # noqa: S105  the name of a variable
TOKEN_FILE: Final = "FARHAND_TOKEN_FILE"  # noqa: S105
FOREIGN: Final = stat.S_IRWXO | stat.S_IWGRP


class Address(Struct, frozen=True):
    """Where a server is, and who one is there."""

    url: str
    token: str = ""


def address(url: str, login: Login) -> Address:
    """The address behind what was typed. A token counts from the nearest place: option, URL, environment."""
    plain, fragment = urldefrag(url)
    named = parse_qs(fragment).get("token", [""])[0]
    file = login.token_file
    if not (login.token or file or named):
        named = os.environ.get(TOKEN, "")
        file = Path(os.environ[TOKEN_FILE]) if not named and os.environ.get(TOKEN_FILE) else None
    token = login.token or (read_token(file) if file is not None else named)
    return Address(plain.rstrip("/"), token.strip())


def read_token(path: Path) -> str:
    """The token in a file that nobody else may read."""
    with path.open("rb") as file:
        if os.name == "posix" and os.fstat(file.fileno()).st_mode & FOREIGN:
            raise InvalidInput(f"others may read or change {path}: chmod 600 {path}")
        text = file.read(65_536).decode("utf-8", "replace").strip()
    if not text or len(text.split()) != 1:
        raise InvalidInput(f"{path} holds no token; it is to hold one and nothing else")
    return text


@asynccontextmanager
async def reached(url: str, login: Login, *, patient: bool = False) -> AsyncGenerator["Client"]:
    """A server to be asked. Unless it is patient, a server that cannot be reached is told of at once."""
    there = address(url, login)
    module = needing("client", "farhand.client")
    settings = {} if patient else {"patience": module.Patience(total=0.0)}
    async with module.Client(there.url, token=there.token or None, **settings) as client:
        yield client
