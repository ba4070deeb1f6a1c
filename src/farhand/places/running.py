"""What a running tool may know and do besides its arguments, and what it may give instead of a result."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Accepted(Struct, frozen=True):
    """A client's function returns this to go on in the background; the run goes on, and `report` says how it ended."""

    note: str = ""
    """What the model is told meanwhile."""


class Augmented(Struct, frozen=True):
    """A client's function returns this if it wishes something to be changed beside its result."""

    value: Any
    """The result itself."""
    augmentation: Any
    """The wish, as `run.answer(…, augmentation=…)` takes it."""


class CallContext:
    """Ask for it with a parameter of this type: `async def move(x: int, context: CallContext)`."""

    __slots__ = (
        "_on_progress",
        "attempt",
        "call_id",
        "cancelled",
        "payload",
        "principal",
        "run_id",
        "thread_id",
        "tool",
    )

    def __init__(
        self,
        *,
        call_id: str,
        tool: str,
        attempt: int,
        run_id: str,
        thread_id: str,
        principal: str,
        payload: Any,
        on_progress: Callable[[str, Any], None],
    ) -> None:
        self.call_id = call_id
        """Ours, the same on every attempt: the key under which an idempotent tool removes duplicates."""
        self.tool = tool
        self.attempt = attempt
        self.run_id = run_id
        self.thread_id = thread_id
        self.principal = principal
        self.payload = payload
        """What the person added to an approval."""
        self.cancelled = False
        """Turns true when the call was called off. An async tool is cancelled as well; one in a thread has to look."""
        self._on_progress = on_progress

    def progress(self, value: Any, name: str = "progress") -> None:
        """Tell watchers how far the tool is; any JSON value. May be called from the tool's thread."""
        self._on_progress(name, value)
