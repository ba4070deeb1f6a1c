"""A real server in the test's own event loop, or in a thread: on loopback, on a free port, gone when the test is."""

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from farhand.asgi import App
from farhand.asgi.serve import make_server


@asynccontextmanager
async def served(app: App, **settings: Any) -> AsyncGenerator[str]:
    """Serve an application; gives its URL. It is ready when this is entered. Settings are those of `make_server`."""
    # Only a socket that says its protocol is told by asyncio not to wait for more before it sends.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    host, port = listening.getsockname()[:2]
    server = make_server(app, host=host, port=port, signals=False, **settings)
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


@contextmanager
def serving(app: App) -> Generator[str]:
    """The same for programs without an event loop: the server has a thread of its own."""
    entered: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        over = asyncio.Event()
        async with served(app) as url:
            entered.set_result((url, asyncio.get_running_loop(), over))
            await over.wait()

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)

    thread = threading.Thread(target=work, name="farhand-server", daemon=True)
    thread.start()
    url, loop, over = entered.result()
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
