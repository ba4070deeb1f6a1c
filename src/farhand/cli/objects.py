"""What `module:name` stands for: an agent, tools, a plugin; or a function that makes one."""

import importlib
import sys
from typing import TYPE_CHECKING, Any, cast

from farhand.agent import Agent
from farhand.cli.exits import where
from farhand.core.errors import FarhandError, UsageError
from farhand.tool import Tool

if TYPE_CHECKING:
    from farhand.plugins import Plugin


def is_url(text: str) -> bool:
    """Whether this is the address of a server, and not `module:name`."""
    return text.startswith(("http://", "https://"))


def load(path: str, usual: str) -> Any:
    """What `module:name` stands for; without a name it is the usual one. The current folder has modules, too."""
    module, _, name = path.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(error.name + ".")):
            raise UsageError(f"module {module!r} cannot be loaded: {where(error)}") from error
        raise UsageError(f"there is no module {module!r} here or among what is installed") from error
    except (TypeError, ValueError) as error:  # an empty or relative name
        raise UsageError(f"{path!r} is no `module:name`") from error
    except Exception as error:
        raise UsageError(f"module {module!r} cannot be loaded: {where(error)}") from error
    for part in (name or usual).split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            there = _hint(found, usual)
            raise UsageError(f"module {module!r} has no {name or usual!r}{there}") from None
    return found


def load_agent(path: str) -> Agent[Any]:
    """The agent that `module:name` stands for."""
    found = _made(load(path, "agent"), path, Agent)
    if not isinstance(found, Agent):
        raise UsageError(f"{path!r} is a {type(found).__name__}, not an Agent")
    return cast("Agent[Any]", found)


def load_tools(path: str) -> tuple[Tool[Any, Any], ...]:
    """The tools that `module:name` stands for: one, several, or those of an agent."""
    found = _made(load(path, "tools"), path, (Tool, Agent))
    if isinstance(found, Agent):
        return tuple(cast("Agent[Any]", found).tools.values())
    if isinstance(found, Tool):
        return (cast("Tool[Any, Any]", found),)
    kind = type(cast("object", found)).__name__
    several = tuple(cast("list[Any]", found)) if isinstance(found, list | tuple) else ()
    if several and all(isinstance(tool, Tool) for tool in several):
        return several
    raise UsageError(f"{path!r} is a {kind}, neither a tool nor several")


def load_plugin(path: str) -> "Plugin":
    """The plugin that `module:name` stands for."""
    from farhand.plugins import Plugin

    found = _made(load(path, "plugin"), path, Plugin)
    if not isinstance(found, Plugin):
        raise UsageError(f"{path!r} is a {type(found).__name__}, not a Plugin")
    return found


def _made(found: Any, path: str, kinds: Any) -> Any:
    """What a function makes that stands in the place of the thing itself."""
    if not callable(found) or isinstance(found, kinds):
        return found
    try:
        return found()
    except FarhandError:
        raise
    except Exception as error:
        raise UsageError(f"{path!r} makes nothing: {where(error)}") from error


def _hint(module: Any, usual: str) -> str:
    """Names in a module that may have been meant."""
    kinds: dict[str, type] = {"agent": Agent, "tools": Tool}
    there = cast("dict[str, Any]", getattr(module, "__dict__", {})) if usual in kinds else {}
    names = [name for name, value in there.items() if isinstance(value, kinds[usual])]
    return f"; it has {', '.join(names)}" if names else ""
