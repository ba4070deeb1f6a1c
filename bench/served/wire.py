"""As little HTTP as a load generator needs, over asyncio's streams. Standard library only."""

import asyncio
import json
from typing import Any, Self

from bench.served import people

PIECE = 1 << 18
END = b"\r\n0\r\n\r\n"
"""Of a chunked answer, when the connection is kept."""


class Line:
    """One connection of somebody: one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        self.reader, self.writer = reader, writer
        self._headers = (
            f"Host: 127.0.0.1\r\nAuthorization: Bearer {people.token(name)}\r\nContent-Type: application/json\r\n"
        )
        self._seen = b""

    @classmethod
    async def open(cls, port: int, name: str) -> Self:
        """Connect, and send what there is at once."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=PIECE), name)

    def head(self, method: str, path: str, size: int, *, stream: bool = False) -> bytes:
        """The head of a request."""
        accept = "Accept: text/event-stream\r\n" if stream else ""
        return f"{method} /v1{path} HTTP/1.1\r\n{self._headers}{accept}Content-Length: {size}\r\n\r\n".encode()

    def send(self, method: str, path: str, body: Any = None, *, stream: bool = False) -> None:
        """A whole request."""
        data = b"" if body is None else json.dumps(body).encode()
        self.writer.write(self.head(method, path, len(data), stream=stream) + data)

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """A request and its answer, which has to be a success."""
        self.send(method, path, body)
        status, answer = await self.answer()
        if status >= 300:
            raise RuntimeError(f"{method} {path} was answered with {status}: {answer[:200]!r}")
        return json.loads(answer)

    async def answer(self) -> tuple[int, bytes]:
        """The status and the body of an answer that has a length."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        return int(head[9:12]), await self.reader.readexactly(size)

    @property
    def unread(self) -> bool:
        """Whether a stream has not been read to its end."""
        return bool(self._seen)

    async def until(self, mark: bytes) -> bytes:
        """All of a stream up to and with what `mark` is in; what follows on it begins anew."""
        seen = self._seen
        while mark not in seen:
            piece = await self.reader.read(PIECE)
            if not piece:
                raise ConnectionError(f"the stream ended before {mark!r}: {seen[-300:]!r}")
            seen += piece
        self._seen = b"" if mark == END else seen
        return seen

    def close(self) -> None:
        """At once, whatever is under way."""
        self.writer.transport.abort()
