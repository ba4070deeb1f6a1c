"""Access by tokens that the operator has given out, from a mapping or a file. Only their hashes are kept."""

import secrets
import tomllib
from collections.abc import Mapping
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from farhand.asgi.access.base import Connection, because
from farhand.asgi.access.bearer import bearer_of
from farhand.asgi.access.loopback import checked
from farhand.asgi.access.principal import USUAL, Principal
from farhand.asgi.access.watched import Watched
from farhand.core.errors import InvalidInput
from farhand.runner.clock import Clock, SystemClock

Table: TypeAlias = Mapping[bytes, Principal]


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """One token of a file: itself, or better its SHA-256 in hexadecimal digits."""

    principal: str
    token: str = ""
    sha256: str = ""
    scopes: frozenset[str] = USUAL


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    tokens: tuple[_Entry, ...]


class Tokens:
    """Whoever has one of these tokens. A principal, or its id, by token; or the path of a TOML or JSON file."""

    def __init__(self, source: Mapping[str, Principal | str] | Path | str, *, clock: Clock | None = None) -> None:
        # A table is asked by a hash with a key that nobody knows: how long that takes tells nothing of any token.
        self._key = secrets.token_bytes(32)
        self._fixed: Table = {}
        self._file: Watched[Table] | None = None
        if isinstance(source, Mapping):
            self._fixed = self._table({_digest(checked(token)): _principal(who) for token, who in source.items()})
        else:
            path = Path(source)
            self._file = Watched(path, lambda data: self._read(path, data), (clock or SystemClock()).now, secret=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    async def __call__(self, connection: Connection) -> Principal | None:
        """Whoever the token was given to."""
        token = bearer_of(connection)
        if token is None:
            return None
        table = self._fixed if self._file is None else self._file.value()
        return table.get(self._place(_digest(token))) or because(connection, "a token that was given to nobody")

    def _place(self, digest: bytes) -> bytes:
        return blake2b(digest, key=self._key, digest_size=32).digest()

    def _table(self, found: Mapping[bytes, Principal]) -> Table:
        return {self._place(digest): principal for digest, principal in found.items()}

    def _read(self, path: Path, data: bytes) -> Table:
        found: dict[bytes, Principal] = {}
        for number, entry in enumerate(_parsed(path, data).tokens, 1):
            try:
                digest = _entry_digest(entry)
                principal = Principal(entry.principal, entry.scopes)
            except InvalidInput as error:
                raise InvalidInput(f"{path}, token {number}: {error}") from None
            if digest in found:
                raise InvalidInput(f"{path}, token {number}: this token was given out before")
            found[digest] = principal
        return self._table(found)


def _principal(who: Principal | str) -> Principal:
    return Principal(who) if isinstance(who, str) else who


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()


def _entry_digest(entry: _Entry) -> bytes:
    if bool(entry.token) == bool(entry.sha256):
        raise InvalidInput("give either `token` or `sha256`")
    if entry.token:
        return _digest(checked(entry.token))
    try:
        digest = bytes.fromhex(entry.sha256)
    except ValueError:
        digest = b""
    if len(digest) != sha256().digest_size:
        raise InvalidInput("`sha256` has 64 hexadecimal digits")
    return digest


def _parsed(path: Path, data: bytes) -> _File:
    """What a file says. Its text is never repeated, since tokens are in it."""
    try:
        if path.suffix == ".json":
            return msgspec.json.decode(data, type=_File)
        return msgspec.convert(tomllib.loads(data.decode()), _File)
    except msgspec.ValidationError as error:
        said = str(error)
        if "unknown field" in said:  # its name could be a token in a wrong place
            said = f"besides {', '.join(_Entry.__struct_fields__)} of each of the `tokens` nothing is known"
        raise InvalidInput(f"{path} cannot be read: {said}") from None
    except (ValueError, msgspec.DecodeError, RecursionError):
        raise InvalidInput(f"{path} is neither TOML nor, with the ending .json, JSON") from None
