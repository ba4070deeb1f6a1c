"""A person at a terminal, or a file in the place of one: questions and answers, Ctrl-C, and an editor.

Lines are read in the main thread, where the terminal's own editing works and a signal can take a question back.
Everything else runs in an event loop in another thread.
"""

import asyncio
import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any, Final, TypeVar

try:
    import readline  # its mere presence makes lines editable
    import termios
except ImportError:  # a platform without them: lines can be typed all the same
    readline = None
    termios = None

T = TypeVar("T")
TAKE_BACK: Final = getattr(signal, "SIGUSR1", None)
POKE: Final = getattr(signal, "SIGUSR2", None)
SHOW_CURSOR: Final = "\x1b[?25h"
HEARING: Final = 0.05
"""Seconds within which a signal is heard of. One that comes just before a wait begins does not end it; a second one
does."""


class Interrupted(Exception):
    """Ctrl-C at a question."""


class _TakenBack(Exception):
    """Nobody wants to know any more."""


class _Told(BaseException):
    """The process is told to end by a signal of this number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Terminal:
    """Asks one question at a time."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty()
        self.on_interrupt: Callable[[], None] = lambda: None
        """Is called in the loop on Ctrl-C when there is no question."""
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading = False
        self._heard = True
        self._main = threading.main_thread()
        self._woken: socket.socket

    # The main thread

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do the work in an event loop, and answer its questions here until it is done."""
        result: list[T] = []
        failed: list[BaseException] = []

        def loop() -> None:
            try:
                result.append(asyncio.run(self._with_loop(work)))
            except BaseException as error:  # noqa: BLE001  raised again in the main thread
                failed.append(error)
            finally:
                self._jobs.put(None)

        try:
            with self._signals(), self._still():
                thread = threading.Thread(target=loop, name="farhand-chat", daemon=True)
                thread.start()
                while (job := self._jobs.get()) is not None:
                    job()
                thread.join()
        except _Told as told:
            os._exit(128 + told.number)  # at once: the other thread may be in the middle of anything
        if failed:
            raise failed[0]
        return result[0]

    async def _with_loop(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._woken, self._signalled)
        try:
            return await work()
        finally:
            self._loop.remove_reader(self._woken)

    @contextlib.contextmanager
    def _signals(self) -> Generator[None]:
        wanted: dict[int, Any] = {signal.SIGINT: self._interrupt, signal.SIGTERM: self._leave}
        if TAKE_BACK is not None and POKE is not None:
            wanted |= {TAKE_BACK: self._take_back, POKE: self._poked}
        self._woken, waking = socket.socketpair()
        with self._woken, waking:
            self._woken.setblocking(False)
            waking.setblocking(False)
            woken_before = signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
            before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
                signal.set_wakeup_fd(woken_before)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        self._loop = None  # nothing more is heard of it
        raise _Told(number)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._heard = True
        if self._reading:
            self._reading = False
            raise Interrupted
        if self._loop is not None:
            _call(self._loop, self.on_interrupt)

    def _take_back(self, number: int, frame: FrameType | None) -> None:
        self._heard = True
        if self._reading:
            self._reading = False
            raise _TakenBack

    def _poked(self, number: int, frame: FrameType | None) -> None:
        self._heard = True

    def _signalled(self) -> None:
        """In the loop: a signal has come, which the main thread may have missed."""
        numbers = set(self._woken.recv(4096))
        loop = self._loop
        if numbers - {POKE} and loop is not None:
            self._heard = False
            loop.call_later(HEARING, self._poke)

    def _poke(self) -> None:
        loop = self._loop
        if not self._heard and POKE is not None and loop is not None and self._main.ident is not None:
            signal.pthread_kill(self._main.ident, POKE)
            loop.call_later(HEARING, self._poke)

    @contextlib.contextmanager
    def _still(self) -> Generator[None]:
        """What is typed between questions is not shown, so that it does not stand in the middle of an answer."""
        if termios is None or not self.interactive:
            yield
            return
        before = termios.tcgetattr(sys.stdin)
        try:
            self._echo(False)
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
            if os.environ.get("TERM") != "dumb":
                sys.stdout.write(SHOW_CURSOR)
                sys.stdout.flush()

    def _echo(self, on: bool) -> None:
        if termios is not None and self.interactive:
            settings = termios.tcgetattr(sys.stdin)
            settings[3] = settings[3] | termios.ECHO if on else settings[3] & ~termios.ECHO
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)

    def _read(self, prompt: str, text: str, fresh: bool) -> str:
        if not self.interactive:
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            return line.rstrip("\n")
        if fresh and termios is not None:
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        self._echo(True)
        with _begun(text):
            try:
                return _input(prompt)
            except BaseException:
                print(flush=True)  # what comes next begins a line
                raise
            finally:
                self._reading = False
                self._echo(False)

    def _edited(self, text: str) -> str:
        self._echo(True)
        try:
            with tempfile.TemporaryDirectory(prefix="farhand-") as folder:  # for nobody else's eyes
                file = Path(folder) / "arguments.json"
                file.write_text(text, encoding="utf-8")
                ended = subprocess.run([*shlex.split(_editor()), str(file)]).returncode  # noqa: S603  the person's own
                if ended:
                    raise OSError(f"the editor ended with {ended}")
                return file.read_text(encoding="utf-8")
        finally:
            self._echo(False)

    # The loop

    async def ask(self, prompt: str, *, text: str = "", fresh: bool = False) -> str:
        """A line. Raises `EOFError` at the end of the input and `Interrupted` on Ctrl-C; cancelling takes it back.

        `text` is there already, to be changed. With `fresh`, what was typed before the question does not count.
        """
        return await self._in_main(lambda: self._read(prompt, text, fresh), taken_back=True)

    async def edit(self, text: str) -> str:
        """JSON as the person leaves it in the editor that $VISUAL or $EDITOR names. Raises `OSError` if that fails."""
        return await self._in_main(lambda: self._edited(text), taken_back=False)

    @property
    def editor(self) -> str:
        """The person's editor; empty if none is known."""
        return _editor() if self.interactive else ""

    async def _in_main(self, work: Callable[[], T], *, taken_back: bool) -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        wanted = True

        def job() -> None:
            try:
                self._reading = taken_back  # first of all: whoever takes back looks at it last of all
                if not wanted:
                    raise _TakenBack
                value = work()
                self._reading = False
            except Exception as error:  # noqa: BLE001  it goes to whoever has asked
                self._reading = False
                _call(loop, _fail, answer, error)
            else:
                _call(loop, _settle, answer, value)

        self._jobs.put(job)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            wanted = False
            if self._reading and TAKE_BACK is not None and self._main.ident is not None:
                signal.pthread_kill(self._main.ident, TAKE_BACK)
                await asyncio.wait((answer,))
            if answer.done():
                answer.exception()
            raise


@contextlib.contextmanager
def _begun(text: str) -> Generator[None]:
    """A line that has begun already, where lines can be edited."""
    if readline is None or not text:
        yield
        return
    readline.set_startup_hook(partial(readline.insert_text, text))
    try:
        yield
    finally:
        readline.set_startup_hook(None)


def _input(prompt: str) -> str:
    try:
        return input(prompt)
    except SystemError as error:
        # `input` has a second signal handled on top of what the first one has raised; the interpreter minds that.
        raise error.__cause__ or error from None


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., Any], *given: Any) -> None:
    with contextlib.suppress(RuntimeError):  # it is closed by now
        loop.call_soon_threadsafe(function, *given)


def _editor() -> str:
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""


def _settle(answer: "asyncio.Future[T]", value: T) -> None:
    if not answer.done():
        answer.set_result(value)


def _fail(answer: "asyncio.Future[Any]", error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
