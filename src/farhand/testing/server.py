"""A real server in the test's own event loop: on loopback, on a free port, gone when the test is."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from farhand.asgi import App
from farhand.asgi.serve import make_server


@asynccontextmanager
async def served(app: App) -> AsyncGenerator[str]:
    """Serve an application; gives its URL. It is ready when this is entered."""
    # Only a socket that says its protocol is told by asyncio not to wait for more before it sends.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    host, port = listening.getsockname()[:2]
    server = make_server(app, host=host, port=port, signals=False)
    serving = asyncio.ensure_future(server.serve([listening]))
    try:
        async with asyncio.timeout(10):
            ready = asyncio.ensure_future(server.ready.wait())
            await asyncio.wait((ready, serving), return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                ready.cancel()
                serving.result()
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await serving
        listening.close()
