"""What a client tells a program that listens: one value a kind of event. `NAMES` is the whole list."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from farhand.calls import Call
from farhand.core.errors import UsageError
from farhand.core.failure import Failure
from farhand.core.problem import Problem
from farhand.places.faults import where

logger = logging.getLogger("farhand.client")

AnyCall: TypeAlias = Call[Any, Any]


class StreamStart(Struct, frozen=True):
    """A run is followed from now on."""

    thread_id: str
    run_id: str


class StreamEnd(Struct, frozen=True):
    """It is followed no more: it has ended, or waits for somebody else."""

    thread_id: str
    run_id: str
    status: str


class ToolStart(Struct, frozen=True):
    """A call was taken up here, and its function begins."""

    call: AnyCall


class ToolEnd(Struct, frozen=True):
    """A call was answered from here, or was called off while it ran."""

    call: AnyCall
    outcome: Literal["ok", "failed", "accepted", "cancelled"]
    result: Any
    """As JSON has it."""
    failure: Failure | None
    seconds: float


class MaxToolsReached(Struct, frozen=True):
    """The model has called tools in more rounds than `max_tool_rounds`; further calls are answered with a failure."""

    run_id: str
    limit: int


class Timeout(Struct, frozen=True):
    """A function took longer than its tool may."""

    call: AnyCall
    seconds: float


class AutoRetry(Struct, frozen=True):
    """A request came to nothing and is made again after a delay."""

    attempt: int
    delay: float
    error: Exception


class ToolValidationError(Struct, frozen=True):
    """Arguments do not fit the tool as it is defined here, or the server refused a result or edited arguments."""

    call: AnyCall
    what: Literal["arguments", "result", "edit"]
    problems: tuple[Problem, ...]


class AugmentationRefused(Struct, frozen=True):
    """A result counts, and nothing is done of what was wished for beside it."""

    call: AnyCall
    reason: str


class MissingTool(Struct, frozen=True):
    """Nothing here runs the tool of this call, and nobody else is there to do it."""

    call: AnyCall


class Reconnected(Struct, frozen=True):
    """A stream that broke goes on where it stopped."""

    thread_id: str
    """Empty for the stream of a provider."""
    attempts: int


NAMES: Mapping[type[Struct], str] = {
    StreamStart: "stream_start",
    StreamEnd: "stream_end",
    ToolStart: "tool_start",
    ToolEnd: "tool_end",
    MaxToolsReached: "max_tools_reached",
    Timeout: "timeout",
    AutoRetry: "auto_retry",
    ToolValidationError: "tool_validation_error",
    AugmentationRefused: "augmentation_refused",
    MissingTool: "missing_tool",
    Reconnected: "reconnected",
}

EventName: TypeAlias = Literal[
    "stream_start",
    "stream_end",
    "tool_start",
    "tool_end",
    "max_tools_reached",
    "timeout",
    "auto_retry",
    "tool_validation_error",
    "augmentation_refused",
    "missing_tool",
    "reconnected",
]
Handler: TypeAlias = Callable[[Any], Any]


class Events:
    """Who listens to what. A handler that fails is logged and disturbs nobody; an async one runs beside the rest."""

    def __init__(self) -> None:
        self._handlers: dict[str, tuple[Handler, ...]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def on(self, name: str, handler: Handler) -> Callable[[], None]:
        """Call `handler` with each event of this name; gives the function that ends that."""
        if name not in NAMES.values():
            raise UsageError(f"there is no event {name!r}; there are {', '.join(NAMES.values())}")

        def mine(event: Any) -> Any:  # a function of its own: who listens twice leaves twice
            return handler(event)

        def off() -> None:
            self._handlers[name] = tuple(each for each in self._handlers[name] if each is not mine)

        self._handlers[name] = (*self._handlers.get(name, ()), mine)

        return off

    def tell(self, event: Struct) -> None:
        """Something happened."""
        name = NAMES[type(event)]
        for handler in self._handlers.get(name, ()):
            try:
                answer = handler(event)
            except Exception as error:  # noqa: BLE001
                _report(name, error)
            else:
                if inspect.isawaitable(answer):
                    task = asyncio.ensure_future(self._finish(name, answer))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def close(self, seconds: float) -> None:
        """Let async handlers come to their end, for so long."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def _finish(self, name: str, answer: Any) -> None:
        try:
            await answer
        except Exception as error:  # noqa: BLE001
            _report(name, error)


def _report(name: str, error: Exception) -> None:
    logger.error("a handler of %s failed: %s", name, where(error))
