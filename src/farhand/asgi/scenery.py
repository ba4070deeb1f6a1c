"""What comes with the start of a run besides the message and tools that stand alone, as the runner takes it."""

from msgspec import UNSET, Raw, json

from farhand.core.definition import InvalidToolDefinitions
from farhand.core.group import validate_tool_groups
from farhand.groups import Scenery
from farhand.protocols.native import RunRequest

_NONE = b"[]"


def scenery_of(body: RunRequest, *, takes_tools: bool) -> Scenery:
    """All of it that was sent. Without tools of clients there is nothing to open or to hide either."""
    scenery: Scenery = {}
    if takes_tools:
        if bytes(body.groups) != _NONE:
            scenery["groups"] = bytes(body.groups)
            scenery["replace"] = body.replace
        if bytes(body.declared) != _NONE:
            scenery["declared"] = bytes(body.declared)
        if body.expanded:
            scenery["expanded"] = body.expanded
        if body.hidden:
            scenery["hidden"] = body.hidden
    if bytes(body.context) != _NONE:
        scenery["context"] = json.decode(body.context)
    if body.state is not UNSET:
        scenery["state"] = body.state
    if body.reset_client_state:
        scenery["reset_client_state"] = True
    return scenery


def tools_in(groups: Raw) -> tuple[str, ...]:
    """The tools of somebody's groups; of groups that are refused, none."""
    if bytes(groups) == _NONE:
        return ()
    try:
        return tuple([tool.name for group in validate_tool_groups(bytes(groups)) for tool in group.tools])
    except InvalidToolDefinitions:
        return ()
