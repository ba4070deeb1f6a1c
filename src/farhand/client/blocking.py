"""The client for programs without an event loop: the same one, at work in a thread of its own.

Each method below is the async one, waited for. Functions of tools and callbacks that are not async run in threads.
"""

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack

from farhand.agent import Input
from farhand.client.client import Client, ClientSettings
from farhand.client.credentials import Token
from farhand.client.result import RunResult
from farhand.client.stream import Stream
from farhand.client.thread import HandSettings, RunSettings, Thread
from farhand.client.watch import Watch
from farhand.core.definition import Definition
from farhand.core.updates import Update
from farhand.plugins import Plugin

P = ParamSpec("P")
T = TypeVar("T")
Inner = TypeVar("Inner")


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="farhand-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work that is done there. If this is interrupted, so is the work."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        """Have a function called there."""

        async def work() -> T:
            return function(*args, **keywords)

        return self.run(work())

    def close(self) -> None:
        """End it and its thread."""
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking(Generic[Inner]):
    """Something of the async client, and the loop that it lives in."""

    def __init__(self, inner: Inner, loop: Loop) -> None:
        self._inner = inner
        self._loop = loop

    def __repr__(self) -> str:
        return f"<Blocking {self._inner!r}>"


def waiting(
    method: Callable[Concatenate[Inner, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Blocking[Inner], P], T]:
    """An async method, waited for."""

    @functools.wraps(method)
    def wait(self: Blocking[Inner], /, *args: P.args, **keywords: P.kwargs) -> T:
        return self._loop.run(method(self._inner, *args, **keywords))  # pyright: ignore[reportPrivateUsage]

    return wait


def there(method: Callable[Concatenate[Inner, P], T]) -> Callable[Concatenate[Blocking[Inner], P], T]:
    """A method that does not wait, called where its client lives."""

    @functools.wraps(method)
    def call(self: Blocking[Inner], /, *args: P.args, **keywords: P.kwargs) -> T:
        return self._loop.call(method, self._inner, *args, **keywords)  # pyright: ignore[reportPrivateUsage]

    return call


def _each(updates: AsyncGenerator[Update, None], loop: Loop) -> Iterator[Update]:
    """Updates, one by one."""

    async def following() -> Update | None:
        return await anext(updates, None)

    async def leave() -> None:
        await updates.aclose()

    try:
        while (update := loop.run(following())) is not None:
            yield update
    finally:
        loop.run(leave())


class BlockingStream(Blocking[Stream]):
    """`for update in stream`, or `stream.result()`."""

    def __iter__(self) -> Iterator[Update]:
        return _each(self._loop.call(self._inner.__aiter__), self._loop)

    cancel = waiting(Stream.cancel)

    def result(self) -> RunResult:
        """What came of the run; waits for its end."""

        async def until_done() -> RunResult:
            return await self._inner

        return self._loop.run(until_done())

    @property
    def run_id(self) -> str:
        """Of the run; empty until it has begun."""
        return self._inner.run_id


class BlockingWatch(Blocking[Watch]):
    """`for update in watch`, without end."""

    def __iter__(self) -> Iterator[Update]:
        return _each(self._loop.call(self._inner.__aiter__), self._loop)

    @property
    def position(self) -> str:
        """After the last update that was given."""
        return self._inner.position


class BlockingThread(Blocking[Thread]):
    """One conversation."""

    run = waiting(Thread.run)
    start = waiting(Thread.start)
    cancel = waiting(Thread.cancel)
    state = waiting(Thread.state)

    @property
    def id(self) -> str:
        """Its name."""
        return self._inner.id

    def stream(self, message: Input, **settings: Unpack[RunSettings]) -> BlockingStream:
        """Say something, and follow what comes of it."""
        return BlockingStream(self._loop.call(self._inner.stream, message, **settings), self._loop)

    def resume(self, run_id: str | None = None, **settings: Unpack[HandSettings]) -> BlockingStream:
        """Follow a run that was begun before."""
        return BlockingStream(self._loop.call(self._inner.resume, run_id, **settings), self._loop)

    def watch(self, after: str | int = "") -> BlockingWatch:
        """Every update after a position, without end."""
        return BlockingWatch(self._loop.call(self._inner.watch, after), self._loop)


class BlockingClient(Blocking[Client]):
    """`with BlockingClient(url, token=…) as client`, with the settings of `Client`."""

    def __init__(self, url: str | None = None, *, token: Token = None, **settings: Unpack[ClientSettings]) -> None:
        client = Client(url, token=token, **settings)
        super().__init__(client, Loop())

    server = waiting(Client.server)
    tools = waiting(Client.tools)
    runs = waiting(Client.runs)
    get_run = waiting(Client.get_run)
    get_call = waiting(Client.get_call)
    pending = waiting(Client.pending)
    claim = waiting(Client.claim)
    release = waiting(Client.release)
    answer = waiting(Client.answer)
    answers = waiting(Client.answers)
    fail = waiting(Client.fail)
    accept = waiting(Client.accept)
    report = waiting(Client.report)
    progress = waiting(Client.progress)
    approve = waiting(Client.approve)
    deny = waiting(Client.deny)
    forget = waiting(Client.forget)
    cancel = waiting(Client.cancel)
    cancel_call = waiting(Client.cancel_call)
    unuse = waiting(Client.unuse)
    provide = waiting(Client.provide)
    tool = there(Client.tool)
    register = there(Client.register)
    register_group = there(Client.register_group)
    implement = there(Client.implement)
    unregister = there(Client.unregister)
    has_plugin = there(Client.has_plugin)
    on = there(Client.on)

    def use(self, *plugins: Plugin) -> Self:
        """Register plugins, each of them whole or not at all."""
        self._loop.run(self._inner.use(*plugins))
        return self

    def thread(self, name: str | None = None) -> BlockingThread:
        """A conversation, by a name of your own; a new one without."""
        return BlockingThread(self._loop.call(self._inner.thread, name), self._loop)

    @contextmanager
    def providing(self) -> Generator[Self]:
        """Offer the tools to all threads of this principal meanwhile."""
        provided = self._inner.providing()
        self._loop.run(provided.__aenter__())
        try:
            yield self
        finally:
            self._loop.run(provided.__aexit__(None, None, None))

    @property
    def id(self) -> str:
        """What this client is called."""
        return self._inner.id

    @property
    def tools_offered(self) -> tuple[Definition, ...]:
        """The definitions that are sent."""
        return self._inner.tools_offered

    @property
    def tools_implemented(self) -> tuple[str, ...]:
        """The server's tools that run here."""
        return self._inner.tools_implemented

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """In the order of their registration."""
        return self._inner.plugin_names

    def close(self) -> None:
        """Stop what runs here and close all connections."""
        self._loop.run(self._inner.close())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
