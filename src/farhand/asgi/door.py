"""The native protocol over HTTP: one ASGI application for everything below `/v1`.

One way for every request, in this order: which endpoint, who asks, may they, not too often, the body, the answer. What
goes wrong on the way is a problem document.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, json
from starlette.types import Scope

from farhand.asgi.access.base import Connection
from farhand.asgi.access.gate import Gate
from farhand.asgi.access.principal import Principal
from farhand.asgi.access.quota import Quotas
from farhand.asgi.bodies import MAX_BODY, Gone, announced, decode, expect_json, query, read_body
from farhand.asgi.desk import Asked, Desk
from farhand.asgi.routes import Routes
from farhand.asgi.sighting import Sighting, sighting_of
from farhand.asgi.streams import Receive, Send, Stream, Streams
from farhand.core.errors import (
    FarhandError,
    NotAuthenticated,
    ServerFailed,
    StoreAway,
    TooMuch,
    WrongMethod,
)
from farhand.places.faults import trail
from farhand.protocols import native
from farhand.protocols.describe import openapi
from farhand.protocols.endpoints import ENDPOINTS, Endpoint
from farhand.protocols.problems import MEDIA_TYPE, details
from farhand.runner.observer import Onlookers

logger = logging.getLogger("farhand.asgi")

JSON = (b"content-type", b"application/json")
PROBLEM = (b"content-type", MEDIA_TYPE.encode())
NO_CONTENT = 204
PRIVATE = (b"cache-control", b"no-store")
HELD_BACK = 1.0
"""Seconds that a refusal is held back from those who do not take it: they cost the others less."""
UNKNOWN = ""
"""All whom nobody knows, as far as it is counted what they are refused."""


class Reply(Struct, frozen=True):
    """A whole answer."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class Door:
    """Answers requests over HTTP."""

    def __init__(
        self,
        desk: Desk,
        gate: Gate,
        quotas: Quotas,
        streams: Streams,
        *,
        onlookers: Onlookers,
        max_body: int = MAX_BODY,
    ) -> None:
        self.desk = desk
        self.onlookers = onlookers
        self.routes = Routes(ENDPOINTS)
        self.streams = streams
        self._gate = gate
        self.quotas = quotas
        self.max_body = max_body
        self.depth = max(agent.admission.json_depth for agent in desk.runner.agents.values())
        """Levels that a value in a body may have: as many as a definition."""
        self._encode = json.Encoder().encode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        sighting = sighting_of(scope)
        try:
            reply = await self._answer(scope, receive, send)
        except Gone:
            return
        except FarhandError as error:
            reply = problem(error, sighting)
        except Exception as error:  # noqa: BLE001  told by its number, and logged
            reply = problem(failure(error, sighting), sighting)
        if reply is not None:
            sized = () if reply.status == NO_CONTENT else ((b"content-length", b"%d" % len(reply.body)),)
            await send({"type": "http.response.start", "status": reply.status, "headers": [*reply.headers, *sized]})
            await send({"type": "http.response.body", "body": reply.body})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply | None:
        path = path_of(scope)
        if path == "/openapi.json":
            return Reply(200, (JSON,), openapi(self.desk.version))
        endpoint, ids = self.routes.find(scope["method"], path)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        who = await self.admit(Connection(scope), endpoint, sighting_of(scope))
        body = await self._body(endpoint, headers, receive, who)
        asked = Asked(
            who,
            ids,
            body,
            query(scope["query_string"], endpoint.query) if endpoint.query is not None else None,
            headers.get(b"last-event-id", b"").decode("ascii", "replace"),
        )
        if endpoint.stream is not None and (endpoint.reply is None or wants_stream(headers)):
            await self._stream(endpoint, asked, receive, send)
            return None
        return self.reply(endpoint, await self.desk.answers[endpoint.name](asked))

    def sighting(self, method: str, scope: Scope) -> Sighting:
        """A request that comes in a frame of a socket."""
        return Sighting(self.onlookers, method, dict(scope["headers"]))

    async def admit(self, connection: Connection, endpoint: Endpoint, sighting: Sighting) -> Principal:
        """Whoever asks, if they may."""
        sighting.meant(endpoint)
        try:
            who = await self._gate.admit(connection, endpoint.scope)
        except NotAuthenticated:
            await self._hold_back(UNKNOWN)
            raise
        if who is None:
            return NOBODY
        sighting.seen.principal = who.id
        await self._judge(who.id, self.quotas.asked)
        return who

    async def _body(self, endpoint: Endpoint, headers: Mapping[bytes, bytes], receive: Receive, who: Principal) -> Any:
        if endpoint.body is None:
            return None
        expect_json(headers)
        told = announced(headers, self.max_body)
        await self._judge(who.id, self.quotas.sent, told)  # before anything of it is read
        raw = await read_body(headers, receive, self.max_body, self.streams.stuck)
        if len(raw) > told:
            await self._judge(who.id, self.quotas.sent, len(raw) - told)
        return decode(raw, endpoint.body, self.depth)

    async def _judge(self, who: str, quota: Callable[..., None], *amount: int) -> None:
        """Raise if somebody has had enough. Who insists has to wait for being told so."""
        try:
            quota(who, *amount)
        except TooMuch:
            await self._hold_back(who)
            raise

    async def _hold_back(self, who: str) -> None:
        if self.quotas.insists(who):
            await asyncio.sleep(HELD_BACK)

    async def _stream(self, endpoint: Endpoint, asked: Asked, receive: Receive, send: Send) -> None:
        with self.quotas.stream(asked.who.id):
            streamed = await self.desk.streams[endpoint.name](asked)
            await Stream(self.streams, send).run(receive, self.desk.encoder.frames(streamed.batches), streamed.headers)

    def reply(self, endpoint: Endpoint, value: Any) -> Reply:
        """What an endpoint answers, as it is sent."""
        if endpoint.text:
            return Reply(endpoint.status, ((b"content-type", endpoint.text.encode()), PRIVATE), value.encode())
        if isinstance(value, native.Health) and value.status != "ok":
            return Reply(503, (JSON, PRIVATE), self._encode(value))
        if value is None:
            return Reply(endpoint.status, (PRIVATE,), b"")
        return Reply(endpoint.status, (JSON, PRIVATE), self._encode(value))


NOBODY = Principal("nobody", frozenset())
"""Who asks for what is public."""


def path_of(scope: Scope) -> str:
    """The path below where the application stands, as it was sent: an id may hold an escaped slash."""
    raw = scope.get("raw_path") or scope["path"].encode()
    path = raw.decode("ascii", "replace").partition("?")[0]
    return path.removeprefix(scope.get("root_path", ""))


def wants_stream(headers: Mapping[bytes, bytes]) -> bool:
    """Whether an event stream is asked for by name: whoever takes anything gets a whole answer."""
    return b"text/event-stream" in headers.get(b"accept", b"").lower()


def problem(error: FarhandError, sighting: Sighting | None = None) -> Reply:
    """An error as it is sent, and seen."""
    said = details(error)
    if sighting is not None:
        sighting.seen.code = said.code
    headers: list[tuple[bytes, bytes]] = [PROBLEM, PRIVATE]
    if isinstance(error, NotAuthenticated):
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, WrongMethod) and error.allowed:
        headers.append((b"allow", ", ".join(error.allowed).encode()))
    if said.retry_after is not None and isinstance(error, TooMuch | StoreAway):
        headers.append((b"retry-after", str(math.ceil(said.retry_after)).encode()))
    return Reply(said.status, tuple(headers), json.encode(said))


def failure(error: Exception, sighting: Sighting) -> ServerFailed:
    """A fault of ours: whoever asked gets a number, and the log has the rest, but for the text of what went wrong."""
    what = sighting.seen.endpoint or "a request"
    more = {"farhand": {"error": sighting.id}}
    logger.error("failure %s while answering %s: %s", sighting.id, what, trail(error), extra=more)
    return ServerFailed(f"failure {sighting.id}")
