"""What those who look on are told of: pieces of work that begin and end. Values; whoever does the work fills them in.

What is not known at the beginning is there at the end.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.events import Answered, Faulted, ModelFailed, Replied
from farhand.core.run import Run


class _Timed(Struct, kw_only=True, eq=False):
    """Begins, and ends once."""

    since: float = 0.0
    """By a clock that only goes forward, in seconds; means nothing outside this process."""
    took: float = 0.0
    """Seconds, at the end."""
    notes: dict[object, Any] = {}
    """What observers keep with it, each under itself."""


class Answering(_Timed, kw_only=True, eq=False):
    """A request is answered, over HTTP or in a frame of a socket. It ends when its answer, or the head of a stream, is
    on its way."""

    id: str
    """Ours; whoever asked is told it."""
    method: str
    """`_OTHER` if it is none of those that there are."""
    headers: Mapping[bytes, bytes]
    endpoint: str = ""
    """By its name; empty if there is none."""
    path: str = ""
    """The shape of the path, with names in place of ids."""
    principal: str = ""
    """Who asks, once that is known."""
    status: int = 0
    code: str = ""
    """Of the problem that it was answered with."""
    run: str = ""
    """The run that it has begun, or that it was about."""


class Working(_Timed, kw_only=True, eq=False):
    """A stretch of work on a run: from when a process takes it up until it waits, has ended or is given away."""

    agent: str
    thread: str
    """What the thread is called in the store."""
    run: Run
    """At the end, the run as it is then."""
    lost: bool = False
    """The process that worked on it before is gone."""


class Asking(_Timed, kw_only=True, eq=False):
    """The model is asked."""

    agent: str
    model: str
    run: Run
    tools: bool
    first_text: float | None = None
    """Seconds until the first of the reply's text, if it has any."""
    event: Replied | ModelFailed | None = None
    """What came of it; None if it was called off."""


class Running(_Timed, kw_only=True, eq=False):
    """A function or callback of this process runs a call."""

    agent: str
    run: Run
    call: Call
    event: Answered | Faulted | None = None
    """What came of it; None if it was called off."""


class Writing(_Timed, kw_only=True, eq=False):
    """A change of a run is written to the store."""

    run: str
    kept: bool | None = None
    """Whether it counts; None if the store could not say."""


Activity: TypeAlias = Answering | Working | Asking | Running | Writing
