"""Host and Origin allow-lists before an application, and what pages of listed origins may read: CORS. Plain ASGI."""

from collections.abc import Iterable, MutableMapping
from typing import Any, Final

from msgspec import json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farhand.asgi.access.site import Site
from farhand.core.errors import FarhandError
from farhand.protocols.problems import MEDIA_TYPE, details

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
SENT: Final = ("authorization", "content-type", "last-event-id", "traceparent", "tracestate")
"""Headers that pages may send, besides those that browsers always let through."""
EXPOSED: Final = ("farhand-request", "farhand-run", "farhand-thread", "retry-after", "www-authenticate")
"""Headers that pages may read, besides those that browsers always show."""
KEPT: Final = 600
"""Seconds for which a browser need not ask again."""
POLICY_VIOLATION: Final = 1008


class Origins:
    """Lets through what is meant for this site, answers what browsers ask first, says which pages may read."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        sent: Iterable[str] = SENT,
        exposed: Iterable[str] = EXPOSED,
        credentials: bool = False,
    ) -> None:
        self._app = app
        self._site = Site(hosts, origins)
        self._asked = [
            (b"access-control-allow-methods", ", ".join(METHODS).encode()),
            (b"access-control-allow-headers", ", ".join(sent).encode()),
            (b"access-control-max-age", str(KEPT).encode()),
        ]
        self._shown = [(b"access-control-expose-headers", ", ".join(exposed).encode())]
        self._credentials = [(b"access-control-allow-credentials", b"true")] if credentials else []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        headers = {name: value for name, value in scope["headers"] if name in {b"origin", _ASKS, _ASKS_PRIVATE}}
        listed = self._listed(headers.get(b"origin", b""))
        answer = self._telling(send, listed) if scope["type"] == "http" else send
        try:
            self._site.judge(scope)
        except FarhandError as error:
            await _refuse(scope, receive, answer, error)
            return
        if scope["type"] == "http" and scope["method"] == "OPTIONS" and _ASKS in headers and listed:
            private = [(b"access-control-allow-private-network", b"true")] if _ASKS_PRIVATE in headers else []
            await _answer(answer, 204, [*self._asked, *private], b"")
            return
        await self._app(scope, receive, answer)

    def _listed(self, origin: bytes) -> list[tuple[bytes, bytes]]:
        """What tells a browser that pages of this origin may read the answer; nothing if they may not."""
        if not self._site.lists(origin.decode("latin-1")):
            return []
        return [(b"access-control-allow-origin", origin), *self._credentials]

    def _telling(self, send: Send, listed: list[tuple[bytes, bytes]]) -> Send:
        if not self._site.origins:
            return send

        async def tell(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                shown = [*listed, *self._shown] if listed else []
                message = {**message, "headers": [*message.get("headers", ()), *shown, (b"vary", b"Origin")]}
            await send(message)

        return tell


_ASKS = b"access-control-request-method"
_ASKS_PRIVATE = b"access-control-request-private-network"


async def _refuse(scope: Scope, receive: Receive, send: Send, error: FarhandError) -> None:
    if scope["type"] == "websocket":
        await receive()  # the opening; closing it now is answered with 403
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": ""})
        return
    problem = details(error)
    await _answer(send, problem.status, [(b"content-type", MEDIA_TYPE.encode())], json.encode(problem))


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    start: Message = {"type": "http.response.start", "status": status, "headers": headers}
    if body:
        headers.append((b"content-length", str(len(body)).encode()))
    await send(start)
    await send({"type": "http.response.body", "body": body})
