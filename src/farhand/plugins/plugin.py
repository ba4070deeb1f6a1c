"""What a plugin is: a value. It does nothing until somebody registers it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from farhand.core.definition import Definition
from farhand.places.running import CallContext
from farhand.tool import Tool

AnyTool: TypeAlias = Tool[Any, Any] | Definition | Mapping[str, Any]
"""A tool, its definition, or that as JSON objects: `{"name", "description", "parameters"}`, plain or wrapped."""

Executor: TypeAlias = Callable[[Any], Any] | Callable[[Any, CallContext], Any]
"""Runs a tool: takes its arguments, and as a second parameter a `CallContext` if it wants one. Sync or async."""


class NotMine:
    """Return this (or an instance) from `on_tool_call` to leave the call to whoever comes next. `None` is a result."""


class Plugin(Struct, frozen=True):
    """Tools, the functions that run them, and hooks. Hooks may be sync or async; one that is not given does nothing."""

    name: str = ""
    """Unique among the plugins of one set."""
    version: str = ""
    """What `requires` of other plugins is compared with."""
    tools: Sequence[AnyTool] = ()
    """Definitions, or tools that have a function already."""
    executors: Mapping[str, Executor] = field(default_factory=dict[str, Executor])
    """The functions of this plugin's own tools, by name."""
    requires: Sequence[str] = ()
    """Plugins that have to be there before this one: `"files"`, `"files>=1.2"`, `"files>=1,<2"`."""
    on_register: Callable[[Any], Any] | None = None
    """Takes the client (or whatever else registers it), last of all. If it raises, nothing is registered."""
    before_request: Callable[[Any], Any] | None = None
    """Takes each request to begin a run before it leaves, and gives it back, perhaps changed by
    `msgspec.structs.replace`. `None`: unchanged. If it raises, the request is not made."""
    after_response: Callable[[Any], Any] | None = None
    """Takes the result of a run, and may give another one. If it raises, the error is reported and the result stays."""
    on_tool_call: Callable[[Any], Any] | None = None
    """Is asked for each call before its function runs. Gives the result, or `NotMine`; the first one to answer wins."""
    on_tool_result: Callable[[Any, Any], Any] | None = None
    """Takes a call and its result, and may give another one. `None`: unchanged; to make it null give `Json(None)`."""
    on_unregister: Callable[[], Any] | None = None
    """Is told that the plugin goes. If it raises, the plugin goes all the same, and the error is reported."""
    on_error: Callable[[BaseException, str], Any] | None = None
    """Is told of every error and where it happened, and changes nothing."""
