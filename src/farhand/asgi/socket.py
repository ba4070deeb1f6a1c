"""The native protocol over a WebSocket: the same requests and the same answers, as frames of one connection."""

import asyncio
import logging
from contextlib import aclosing
from typing import Any

from msgspec import Raw, ValidationError, json
from starlette.types import Scope

from farhand.asgi.access.base import Connection as Access
from farhand.asgi.bodies import decode, query
from farhand.asgi.desk import Asked, Streamed
from farhand.asgi.door import Door, failure, path_of, problem
from farhand.asgi.streams import Receive, Send, position_after
from farhand.core.errors import FarhandError, InvalidInput, TooMuch
from farhand.protocols import native

logger = logging.getLogger("farhand.asgi")

AT_ONCE = 64
"""Requests and streams of one connection that may be open together."""
PROTOCOL_ERROR = 1002
NOT_ALLOWED = 4401
"""Closed with this: no valid credentials were sent with the handshake."""

_FRAME = json.Decoder(native.SocketRequest)
_STOP = json.Decoder(native.SocketStop)
_SOCKET = native.Endpoint(name="socket", method="GET", path="/socket", does="", scope="chat")


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
            if path_of(scope) != "/socket":
                await send({"type": "websocket.close", "code": 4404})
                return
            await Connection(self._door, scope, receive, send).run()


class Connection:
    """One client's connection: a task for each request, and one that sends what they say."""

    def __init__(self, door: Door, scope: Scope, receive: Receive, send: Send) -> None:
        self._door = door
        self._scope = scope
        self._receive = receive
        self._send = send
        self._tasks: dict[int | str, asyncio.Task[None]] = {}
        self._encode = json.Encoder().encode

    async def run(self) -> None:
        """Until either side closes it."""
        try:
            await self._door.admit(Access(self._scope), _SOCKET)
        except FarhandError:
            await self._send({"type": "websocket.close", "code": NOT_ALLOWED})
            return
        await self._send({"type": "websocket.accept"})
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
        await self._send({"type": "websocket.close", "code": 1012})

    async def _take(self, data: bytes) -> None:
        try:
            request = _FRAME.decode(data)
        except (ValidationError, ValueError, RecursionError):
            try:
                task = self._tasks.get(_STOP.decode(data).stop)
            except (ValidationError, ValueError, RecursionError):
                await self._send({"type": "websocket.close", "code": PROTOCOL_ERROR})
                return
            if task is not None:
                task.cancel()
            return
        if request.id in self._tasks:
            await self._reply(request.id, problem(InvalidInput(f"a request {request.id!r} is under way")))
        elif len(self._tasks) >= AT_ONCE:
            text = f"{AT_ONCE} requests of a connection may be under way"
            await self._reply(request.id, problem(TooMuch(text, retry_after=1.0)))
        else:
            task = asyncio.ensure_future(self._answer(request))
            self._tasks[request.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(request.id, None))

    async def _answer(self, request: native.SocketRequest) -> None:
        try:
            await self._reply(request.id, await self._ask(request))
        except FarhandError as error:
            await self._reply(request.id, problem(error))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  said by its number, and logged
            await self._reply(request.id, problem(failure(error, request.method)))

    async def _ask(self, request: native.SocketRequest) -> Any:
        path, _, question = request.path.partition("?")
        door = self._door
        endpoint, ids = door.routes.find(request.method, path)
        who = await door.admit(Access(self._scope), endpoint)
        asked = Asked(
            who,
            ids,
            None if endpoint.body is None else decode(bytes(request.body), endpoint.body),
            None if endpoint.query is None else query(question.encode(), endpoint.query),
        )
        if endpoint.stream is None or (endpoint.reply is not None and not request.stream):
            return door.reply(endpoint, await door.desk.answers[endpoint.name](asked))
        with door.quotas.stream(who.id):
            await self._stream(request.id, await door.desk.streams[endpoint.name](asked))
        return door.reply(_SOCKET, None)

    async def _stream(self, request: int | str, streamed: Streamed) -> None:
        encode = self._door.desk.encoder.encode
        async with aclosing(streamed.batches) as batches:
            async for batch in batches:
                frame = native.SocketUpdates(
                    id=request,
                    updates=tuple([Raw(encode(said)) for said in batch]),
                    positions=tuple([position_after(said) for said in batch]),
                )
                await self._send({"type": "websocket.send", "text": self._encode(frame).decode()})

    async def _reply(self, request: int | str, reply: Any) -> None:
        answer = native.SocketAnswer(id=request, status=reply.status, body=Raw(reply.body or b"null"))
        await self._send({"type": "websocket.send", "text": self._encode(answer).decode()})
