"""Every request on its way in and out: it gets an id of ours, and those who look on see it begin and be answered.

A stream counts as answered when its head is on its way; how many are open is told by a number of its own.
"""

import secrets
from collections.abc import Awaitable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from starlette.types import ASGIApp, Receive, Scope, Send

from farhand.protocols.endpoints import Endpoint
from farhand.protocols.native import PREFIX
from farhand.runner.activity import Answering
from farhand.runner.observer import Onlookers

HEADER: Final = b"farhand-request"
"""What every answer bears: the id that logs, traces and answers with status 500 name."""
HUNG_UP: Final = 499
SWITCHING: Final = 101
NOT_LET_IN: Final = 403
FAILED: Final = 500
OTHER: Final = "_OTHER"
"""Instead of a method that there is not: in a frame of a socket it may be any text."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_KEY = "farhand.sighting"
_NOBODY = Onlookers(())
_HEADS = {
    "http.response.start": 0,
    "websocket.http.response.start": 0,
    "websocket.accept": SWITCHING,
    "websocket.close": NOT_LET_IN,
}


class Sighting:
    """One request, from when it comes in until it is answered."""

    __slots__ = ("_onlookers", "_over", "seen")

    def __init__(self, onlookers: Onlookers, method: str, headers: Mapping[bytes, bytes]) -> None:
        known = method if method in _METHODS else OTHER
        self.seen = Answering(id=secrets.token_hex(8), method=known, headers=headers)
        self._onlookers = onlookers
        self._over = False

    @property
    def id(self) -> str:
        """Of the request."""
        return self.seen.id

    def meant(self, endpoint: Endpoint) -> None:
        """It is known what is asked for."""
        self.seen.endpoint = endpoint.name
        self.seen.path = PREFIX + endpoint.path

    def answered(self, status: int, error: BaseException | None = None) -> None:
        """The answer is on its way; what comes after the first one is no answer."""
        if not self._over:
            self._over = True
            self.seen.status = status
            self._onlookers.ended(self.seen, error)

    def __enter__(self) -> Self:
        self._onlookers.began(self.seen)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.answered(FAILED if isinstance(error, Exception) else HUNG_UP, error)


class Sightings:
    """Stands before an application, and sees every request."""

    def __init__(self, app: ASGIApp, onlookers: Onlookers) -> None:
        self._app = app
        self._onlookers = onlookers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the opening of a socket."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        with Sighting(self._onlookers, scope.get("method", "GET"), dict(scope["headers"])) as sighting:
            scope[_KEY] = sighting
            await self._app(scope, receive, _telling(sighting, send))


def sighting_of(scope: Scope) -> Sighting:
    """The one of this request; one that nobody looks at, where nothing stands before the application."""
    found: Sighting | None = scope.get(_KEY)
    return Sighting(_NOBODY, scope.get("method", "GET"), {}) if found is None else found


def _telling(sighting: Sighting, send: Send) -> Send:
    """`send`, which looks for the head of the answer. What comes after that goes straight through."""
    waiting = True

    def tell(message: Any) -> Awaitable[None]:
        nonlocal waiting
        if waiting and message["type"] in _HEADS:
            waiting = False
            sighting.answered(message.get("status") or _HEADS[message["type"]])
            if message["type"] != "websocket.close":
                message = {**message, "headers": [*message.get("headers", ()), (HEADER, sighting.id.encode())]}
        return send(message)

    return tell
