"""AI agents whose tools are defined once and run where they belong. A newcomer needs `tool`, `Agent` and a model.

`Client` needs the extra `client`, and is loaded when somebody asks for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from farhand.agent import Agent
from farhand.calls import Call
from farhand.core.errors import ToolError
from farhand.core.limits import Limits
from farhand.core.messages import Binary
from farhand.models.manual import manual
from farhand.models.scripted import scripted
from farhand.places.running import CallContext
from farhand.runner.decision import Approve, Deny
from farhand.runner.live import LiveRun
from farhand.stopping import until
from farhand.tool import tool

if TYPE_CHECKING:
    from farhand.asgi import serve
    from farhand.client import Client

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Approve",
    "Binary",
    "Call",
    "CallContext",
    "Client",
    "Deny",
    "Limits",
    "LiveRun",
    "ToolError",
    "manual",
    "scripted",
    "serve",
    "tool",
    "until",
]

_LATER = {"Client": ("farhand.client", "client"), "serve": ("farhand.asgi", "server")}
"""Where what is loaded late comes from, and the extra that it needs."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _LATER[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("farhand"):
            raise
        raise ImportError(f"farhand.{name} needs {error.name}: pip install 'farhand[{extra}]'") from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
