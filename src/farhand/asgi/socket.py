"""The native protocol over a WebSocket: the same requests and the same answers, as frames of one connection."""

import asyncio
from contextlib import aclosing
from typing import Any

from msgspec import Raw, json
from starlette.types import Scope

from farhand.asgi.access.base import Connection as Access
from farhand.asgi.access.principal import Principal
from farhand.asgi.bodies import decode, query
from farhand.asgi.desk import Asked, Streamed
from farhand.asgi.door import JSON, PRIVATE, PROBLEM, Door, Reply, failure, path_of, problem
from farhand.asgi.sighting import Sighting, sighting_of
from farhand.asgi.streams import Receive, Send, position_after
from farhand.core.errors import FarhandError, InvalidInput, NotFound, TooMuch
from farhand.protocols import native
from farhand.protocols.endpoints import Endpoint

AT_ONCE = 64
"""Requests and streams of one connection that may be open together."""
PROTOCOL_ERROR = 1002
RESTART = 1012
SUBPROTOCOL = "farhand"
"""For pages, which have to offer one beside the one that bears their token."""

_FRAME = json.Decoder(native.SocketRequest)
_STOP = json.Decoder(native.SocketStop)
_SOCKET = Endpoint(name="socket", method="GET", path="/socket", does="", scope="chat")
"""Whoever may ask anything may open one; each request is judged by itself."""


class Socket:
    """Gives requests to the door, and takes WebSocket connections itself."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] == "http":
            await self._door(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()  # the handshake
            try:
                if path_of(scope) != "/socket":
                    raise NotFound("the socket is at /v1/socket")
                who = await self._door.admit(Access(scope), _SOCKET, sighting_of(scope))
            except FarhandError as error:
                await _refuse(scope, send, problem(error, sighting_of(scope)))
                return
            await Connection(self._door, scope, who, receive, send).run()


async def _refuse(scope: Scope, send: Send, reply: Reply) -> None:
    """Answer the handshake with a problem document, where the server can do that."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    headers = [*reply.headers, (b"content-length", b"%d" % len(reply.body))]
    await send({"type": "websocket.http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": reply.body})


class Connection:
    """One client's connection: a task for each request, and one that sends what they say."""

    def __init__(self, door: Door, scope: Scope, who: Principal, receive: Receive, send: Send) -> None:
        self._door = door
        self._scope = scope
        self._who = who
        self._receive = receive
        self._send = send
        self._tasks: dict[int | str, asyncio.Task[None]] = {}
        self._encode = json.Encoder().encode

    async def run(self) -> None:
        """Until either side closes it."""
        spoken = SUBPROTOCOL if SUBPROTOCOL in self._scope.get("subprotocols", ()) else None
        await self._send({"type": "websocket.accept", "subprotocol": spoken})
        closing = self._door.streams.closing(self._close)
        try:
            while (message := await self._receive())["type"] != "websocket.disconnect":
                await self._take(message.get("bytes") or (message.get("text") or "").encode())
        finally:
            closing()
            for task in self._tasks.values():
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks.values())

    async def _close(self) -> None:
        await self._send({"type": "websocket.close", "code": RESTART})

    async def _take(self, data: bytes) -> None:
        frame = _frame(data)
        if frame is None:
            await self._send({"type": "websocket.close", "code": PROTOCOL_ERROR})
        elif isinstance(frame, native.SocketStop):
            await self._stop(frame.stop)
        elif frame.id in self._tasks:
            await self._refuse(frame, InvalidInput("a request of this id is under way"))
        elif len(self._tasks) >= AT_ONCE:
            text = f"{AT_ONCE} requests of a connection may be under way"
            await self._refuse(frame, TooMuch(text, retry_after=1.0))
        else:
            self._tasks[frame.id] = asyncio.ensure_future(self._answer(frame))

    async def _refuse(self, request: native.SocketRequest, error: FarhandError) -> None:
        with self._door.sighting(request.method, self._scope) as sighting:
            reply = problem(error, sighting)
            sighting.answered(reply.status)
        await self._reply(request.id, reply)

    async def _answer(self, request: native.SocketRequest) -> None:
        with self._door.sighting(request.method, self._scope) as sighting:
            try:
                reply = await self._ask(request, sighting)
            except FarhandError as error:
                reply = problem(error, sighting)
            except Exception as error:  # noqa: BLE001  told by its number, and logged
                reply = problem(failure(error, sighting), sighting)
            sighting.answered(reply.status)
        self._tasks.pop(request.id, None)
        await self._reply(request.id, reply)

    async def _stop(self, request: int | str) -> None:
        task = self._tasks.pop(request, None)
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
            await self._reply(request, self._door.reply(_SOCKET, None))

    async def _ask(self, request: native.SocketRequest, sighting: Sighting) -> Reply:
        path, _, question = request.path.partition("?")
        door = self._door
        endpoint, ids = door.routes.find(request.method, path)
        who = await door.admit(Access(self._scope), endpoint, sighting)
        if endpoint.body is not None:
            door.quotas.sent(who.id, len(bytes(request.body)))
        asked = Asked(
            who,
            ids,
            None if endpoint.body is None else decode(bytes(request.body), endpoint.body, door.depth),
            None if endpoint.query is None else query(question.encode(), endpoint.query),
        )
        if endpoint.stream is None or (endpoint.reply is not None and not request.stream):
            return door.reply(endpoint, await door.desk.answers[endpoint.name](asked))
        with door.quotas.stream(who.id):
            streamed = await door.desk.streams[endpoint.name](asked)
            sighting.answered(200)
            await self._stream(request.id, streamed)
        return door.reply(_SOCKET, None)

    async def _stream(self, request: int | str, streamed: Streamed) -> None:
        encoder = self._door.desk.encoder
        encode = encoder.encode
        async with aclosing(streamed.batches) as batches:
            async for batch in batches:
                encoder.sent += len(batch)
                frame = native.SocketUpdates(
                    id=request,
                    updates=tuple([Raw(encode(said)) for said in batch]),
                    positions=tuple([position_after(said) for said in batch]),
                )
                await self._send({"type": "websocket.send", "text": self._encode(frame).decode()})

    async def _reply(self, request: int | str, reply: Reply) -> None:
        body = reply.body or b"null"
        if reply.headers[0] not in (JSON, PROBLEM, PRIVATE):  # a text
            body = self._encode(body.decode())
        answer = native.SocketAnswer(id=request, status=reply.status, body=Raw(body))
        await self._send({"type": "websocket.send", "text": self._encode(answer).decode()})


def _frame(data: bytes) -> native.SocketRequest | native.SocketStop | None:
    """What a client sends; None if it is neither."""
    for decoder in (_FRAME, _STOP):
        try:
            return decoder.decode(data)
        except (ValueError, RecursionError):
            continue
    return None
