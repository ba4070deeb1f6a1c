"""A store as JSON lines: to look at, to keep, and to take into another store, also of another kind.

The first line names the format, the last one counts the rows, so that half a file is known for what it is.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

import msgspec
from msgspec import Struct

from farhand.core.errors import StoreError
from farhand.stores.base import TABLES, Row, Store

FORMAT = 1
"""Of the lines, and of nothing that is in them."""
NAME = "farhand store"
BYTES = {
    "toolsets": {"body"},
    "snapshots": {"body"},
    **{
        table: {field.name for field in msgspec.structs.fields(row) if field.type is bytes}
        for table, row in TABLES.items()
    },
}
MARK = "$base64"


class _First(Struct):
    holds: str
    format: int


class _Line(Struct):
    table: str
    row: dict[str, msgspec.Raw]


class _Last(Struct, forbid_unknown_fields=True):
    rows: int


async def dump(store: Store, file: IO[bytes]) -> int:
    """Write everything down, as of one moment; gives the number of rows. A run that somebody holds is ready then."""
    rows = 0
    file.write(msgspec.json.encode(_First(NAME, FORMAT)) + b"\n")
    async for table, row in store.export():
        fields = {name: _shown(value) for name, value in _let_go(table, row).items()}
        file.write(msgspec.json.encode({"table": table, "row": fields}) + b"\n")
        rows += 1
    file.write(msgspec.json.encode(_Last(rows)) + b"\n")
    return rows


async def load(store: Store, file: IO[bytes]) -> None:
    """Fill an empty store with what was written down; all of it or nothing."""
    first = file.readline()
    try:
        header = msgspec.json.decode(first, type=_First)
    except msgspec.DecodeError:
        header = None
    if header is None or header.holds != NAME:
        raise StoreError("this is no export of a store")
    if header.format != FORMAT:
        raise StoreError(f"this export has format {header.format}, and this build reads {FORMAT}")
    await store.take_in(_rows(file))


def _rows(lines: Iterable[bytes]) -> Iterator[tuple[str, Row]]:
    for number, line in enumerate(lines):
        try:
            if line.startswith(b'{"rows"'):
                _check_end(lines, number, msgspec.json.decode(line, type=_Last).rows)
                return
            read = msgspec.json.decode(line, type=_Line)
            binary = BYTES.get(read.table, set())
            row = {name: _read(value, name in binary) for name, value in read.row.items()}
        except (msgspec.DecodeError, ValueError) as error:
            raise StoreError(f"line {number + 2} of the export cannot be read: {error}") from None
        yield read.table, row
    raise StoreError("the export ends in the middle")


def _check_end(lines: Iterable[bytes], rows: int, counted: int) -> None:
    if counted != rows:
        raise StoreError(f"the export should have {counted} rows, and has {rows}")
    if any(line.strip() for line in lines):
        raise StoreError("the export goes on after its end")


def _let_go(table: str, row: Row) -> Mapping[str, Any]:
    """Whoever held a run is not there where it is taken in."""
    if table != "runs" or not row["holder"]:
        return row
    state = "ready" if row["state"] == "running" else row["state"]
    return {**row, "holder": "", "state": state}


def _shown(value: Any) -> Any:
    """JSON as it is, byte for byte; other bytes under a mark, and none at all as null."""
    if not isinstance(value, bytes):
        return value
    if not value:
        return None
    if _is_plain(value):
        return msgspec.Raw(value)
    return {MARK: base64.b64encode(value).decode()}


def _is_plain(value: bytes) -> bool:
    """Whether bytes are JSON that comes back as it was, and as nothing else."""
    marked = value == b"null" or value.startswith(f'{{"{MARK}"'.encode())
    if marked or value != value.strip() or b"\n" in value or b"\r" in value:
        return False
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _read(value: msgspec.Raw, binary: bool) -> Any:
    given = bytes(value)
    if not binary:
        return msgspec.json.decode(given)
    if given == b"null":
        return b""
    if given.startswith(f'{{"{MARK}"'.encode()):
        return base64.b64decode(msgspec.json.decode(given, type=dict[str, str])[MARK], validate=True)
    return given
