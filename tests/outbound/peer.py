"""A real peer on this machine: counts connections, keeps requests, answers what it was told to."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


def answer(body: bytes = b"hello", status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


HELLO = answer()


class Peer:
    """What came, and what is said to it. An answer of None is none: the connection stays as it is."""

    def __init__(self, say: Callable[[], bytes | None] | bytes) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self.say: Callable[[], bytes | None] = say if callable(say) else lambda: say
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                if (said := self.say()) is not None:
                    writer.write(said)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def listening(
    say: Callable[[], bytes | None] | bytes = HELLO,
    *,
    hosts: tuple[str, ...] = ("127.0.0.1",),
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Peer]:
    """A peer that listens on a port of its own."""
    peer = Peer(say)
    server = await asyncio.start_server(peer.serve, hosts, port, ssl=tls)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()
