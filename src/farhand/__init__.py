"""AI agents whose tools are defined once and run where they belong. A newcomer needs `tool`, `Agent` and a model."""

from farhand.agent import Agent
from farhand.calls import Call
from farhand.core.definition import safe_validate_tool_definitions, validate_tool_definitions
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

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Approve",
    "Binary",
    "Call",
    "CallContext",
    "Deny",
    "Limits",
    "LiveRun",
    "ToolError",
    "manual",
    "safe_validate_tool_definitions",
    "scripted",
    "tool",
    "until",
    "validate_tool_definitions",
]
