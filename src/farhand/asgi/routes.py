"""Which endpoint a path means. Used for requests over HTTP and over a socket alike."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from farhand.core.errors import InvalidInput, NotFound, WrongMethod
from farhand.protocols.endpoints import Endpoint
from farhand.protocols.native import MAX_ID

_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


class Routes:
    """Endpoints by the shape of their path."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._by_shape: dict[tuple[str, ...], dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            self._by_shape.setdefault(_parts(endpoint.path), {})[endpoint.method] = endpoint
        self._shapes: dict[int, list[tuple[tuple[str, ...], dict[str, Endpoint]]]] = {}
        for shape, methods in sorted(self._by_shape.items(), key=lambda item: sum(map(_is_id, item[0]))):
            self._shapes.setdefault(len(shape), []).append((shape, methods))

    def find(self, method: str, path: str) -> tuple[Endpoint, Mapping[str, str]]:
        """The endpoint and the ids in the path, which comes as it was sent. Raises `NotFound`."""
        parts = _parts(path)
        for shape, methods in self._shapes.get(len(parts), ()):
            if all(_is_id(wanted) or wanted == part for wanted, part in zip(shape, parts, strict=True)):
                endpoint = methods.get(method)
                if endpoint is None:
                    raise WrongMethod(f"{method} is not taken here", tuple(methods))
                return endpoint, {
                    wanted[1:-1]: _id(part) for wanted, part in zip(shape, parts, strict=True) if _is_id(wanted)
                }
        raise NotFound("there is nothing at this path")


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.strip("/").split("/"))


def _is_id(part: str) -> bool:
    return part.startswith("{")


def _id(part: str) -> str:
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError:
        text = ""
    return checked_id(text, "an id in the path")


def checked_id(text: str, what: str) -> str:
    """A name that a client chose for something of its own."""
    if not 0 < len(text) <= MAX_ID or not _ID.fullmatch(text):
        raise InvalidInput(f"{what} has 1 to {MAX_ID} characters, none of them a control character")
    return text
