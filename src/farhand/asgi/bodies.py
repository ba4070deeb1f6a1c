"""Bodies and queries of requests: measured before they are read, and read into the types of the protocol."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import ValidationError, json

from farhand.core.errors import InvalidInput, NotJson, TooLarge
from farhand.core.problem import Problem, pointer
from farhand.core.strict_json import MAX_DEPTH, BadJson, parse

Receive = Callable[[], Awaitable[Any]]
T = TypeVar("T")

MAX_BODY = 1 << 20
"""Bytes."""
ENVELOPE = 4
"""So many levels may stand around a value."""

_STEP = re.compile(r"\.([^.\[\]`]+)|\[(\d+|\.\.\.)\]")
_AT = re.compile(r" - at `(?:key in )?\$([^`]*)`$")


class Gone(Exception):
    """Whoever asked has hung up."""


def announced(headers: Mapping[bytes, bytes], limit: int) -> int:
    """How many bytes are to come, as far as that is told. Raises `TooLarge`."""
    told = headers.get(b"content-length", b"")
    if not told.isdigit():
        return 0
    if len(told) > 12 or int(told) > limit:
        raise TooLarge(f"a body has at most {limit} bytes; this one has {told[:20].decode()}")
    return int(told)


async def read_body(
    headers: Mapping[bytes, bytes], receive: Receive, limit: int, patience: float | None = None
) -> bytes:
    """The whole body. Raises `TooLarge` as soon as it is known to be so, `Gone` if it does not come.

    Who takes more than `patience` seconds to send it has sent something that cannot be read.
    """
    announced(headers, limit)
    try:
        async with asyncio.timeout(patience):
            return await _pieces(receive, limit)
    except TimeoutError:
        raise InvalidInput(f"the body was not there within {patience:g} seconds") from None


async def _pieces(receive: Receive, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise TooLarge(f"a body has at most {limit} bytes")
        pieces.append(piece)
        if not message.get("more_body"):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def expect_json(headers: Mapping[bytes, bytes]) -> None:
    """Raises `NotJson` for a body that a web page could have another server send without being asked first."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json" and not (kind.startswith(b"application/") and kind.endswith(b"+json")):
        raise NotJson("send a body as `Content-Type: application/json`")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise NotJson("bodies are taken as they are: send them without a Content-Encoding")


def decode(body: bytes, kind: type[T], depth: int = MAX_DEPTH) -> T:
    """A body as its type. `depth` is how many levels a value in it may have, which may be read later as it stands."""
    try:
        body = body or b"null"
        value: Any = _decoder(kind).decode(body)
        parse(body, max_bytes=len(body), max_depth=depth + ENVELOPE)
    except ValidationError as error:
        raise _invalid(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise InvalidInput("the body has too many levels") from None
    except BadJson as error:
        raise InvalidInput(f"the body cannot be taken: {error.reason}") from None
    return value


def query(text: bytes, kind: type[T]) -> T:
    """A query as its type."""
    try:
        fields = dict(parse_qsl(text.decode("ascii"), strict_parsing=bool(text), max_num_fields=50, errors="strict"))
        return msgspec.convert(fields, kind, strict=False)
    except ValidationError as error:
        raise _invalid(error) from None
    except ValueError:
        raise InvalidInput("the query cannot be read") from None


@cache
def _decoder(kind: type[T]) -> json.Decoder[T]:
    return json.Decoder(kind)


def _invalid(error: ValidationError) -> InvalidInput:
    """What is wrong and where, without the value: it may be a secret."""
    text = str(error)
    place = _AT.search(text)
    path = "" if place is None else pointer(step[1] or step[2] for step in _STEP.finditer(place[1]))
    said = "is none of the values that are taken" if text.startswith("Invalid ") else _AT.sub("", text)
    return InvalidInput(f"{path or 'the request'}: {said}", (Problem(path, said, "type"),))
