"""Plugins that are registered, in their order: their tools, their functions, and their hooks one after another."""

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import DecodeError, json

from farhand.core.definition import Definition, skeleton
from farhand.core.errors import UsageError
from farhand.places.faults import where as place_of
from farhand.places.running import CallContext
from farhand.plugins.plugin import NotMine, Plugin
from farhand.plugins.requirement import Requirement
from farhand.plugins.rules import check_conflicts, check_requirements, tools_of
from farhand.tool import Tool

logger = logging.getLogger("farhand.plugins")

T = TypeVar("T")
Owner = Callable[[str], str | None]


def _nobody(_: str) -> str | None:
    return None


class PluginSet:
    """Registers plugins, all of one or nothing; finds and runs their tools; asks their hooks in order."""

    def __init__(self, owner_of: Owner = _nobody) -> None:
        self._owner_of = owner_of
        """Who else has a tool of this name (folded as by `skeleton`), in words; None if nobody has."""
        self._plugins: dict[str, Plugin] = {}
        self._tools: dict[str, dict[str, Tool[Any, Any]]] = {}

    # What is there

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """All of them, in the order of their registration."""
        return tuple(self._plugins.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._plugins)

    @property
    def tools(self) -> tuple[Tool[Any, Any], ...]:
        """All their tools, with the functions that run them."""
        return tuple(tool for tools in self._tools.values() for tool in tools.values())

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """All their definitions; none without plugins."""
        return tuple(tool.definition for tool in self.tools)

    def __contains__(self, name: object) -> bool:
        return name in self._plugins

    def find(self, tool: str) -> Tool[Any, Any] | None:
        """A tool by its name."""
        return next((tools[tool] for tools in self._tools.values() if tool in tools), None)

    def has_executor(self, tool: str) -> bool:
        """Whether a tool of this name is there and has a function."""
        found = self.find(tool)
        return found is not None and found.function is not None

    def owner_of(self, key: str) -> str | None:
        """Which plugin has a tool of this folded name, in words."""
        for plugin, tools in self._tools.items():
            if key in map(skeleton, tools):
                return f'tool from plugin "{plugin}"'
        return None

    # Coming and going

    async def register(self, plugin: Plugin, host: Any = None) -> None:
        """Take a plugin in, or raise and take nothing. In this order: form, name, needs, names of tools, its hook."""
        tools = tools_of(plugin)
        if plugin.name in self._plugins:
            raise UsageError(f'Plugin "{plugin.name}" is already registered')
        check_requirements(plugin, self.plugins)
        check_conflicts(plugin, list(tools), lambda key: self.owner_of(key) or self._owner_of(key))
        self._plugins[plugin.name] = plugin
        self._tools[plugin.name] = tools
        try:
            await _asked(plugin.on_register, host)
        except BaseException as error:
            self._forget(plugin.name)
            await self.report(error, f"on_register of plugin {plugin.name!r}", also=plugin)
            raise
        logger.debug("registered plugin %s %s with tools: %s", plugin.name, plugin.version, ", ".join(tools))

    async def unregister(self, name: str) -> None:
        """Remove a plugin with all it brought."""
        plugin = self._plugins.get(name)
        if plugin is None:
            raise UsageError(f'Plugin "{name}" is not registered')
        for other in self._plugins.values():
            if any(Requirement.parse(text).name == name for text in other.requires):
                raise UsageError(f'Plugin "{name}" is required by plugin "{other.name}"')
        self._forget(name)
        try:
            await _asked(plugin.on_unregister)
        except Exception as error:  # noqa: BLE001  it goes all the same
            await self.report(error, f"on_unregister of plugin {name!r}", also=plugin)
        logger.debug("unregistered plugin %s", name)

    def _forget(self, name: str) -> None:
        self._plugins.pop(name, None)
        self._tools.pop(name, None)

    # Running tools

    async def execute(self, call: Mapping[str, Any], context: CallContext | None = None) -> Any:
        """Run the function of a call that is written down as `{"toolName", "args"}` or `{"name", "arguments"}`."""
        name = call.get("toolName") or call.get("name")
        if not isinstance(name, str):
            raise UsageError("Tool call missing toolName")
        tool = self.find(name)
        if tool is None or tool.function is None:
            raise UsageError(f"No executor found for tool: {name}")
        given = call.get("args", call.get("arguments"))
        try:
            arguments: Any = json.decode(given) if isinstance(given, str | bytes) else given
        except DecodeError as error:
            raise UsageError(f"arguments of tool {name!r} are not JSON: {error}") from None
        arguments = {} if arguments is None else arguments
        problems = tool.check(arguments)
        if problems:
            raise UsageError(f"arguments of tool {name!r}: " + "; ".join(str(problem) for problem in problems))
        logger.debug("running tool %s of a plugin", name)
        return await tool.function.begin(arguments, context)

    # Hooks

    @property
    def answers_calls(self) -> bool:
        """Whether any plugin has to be asked about calls."""
        return any(plugin.on_tool_call is not None for plugin in self.plugins)

    async def before_request(self, request: T) -> T:
        """The request as the plugins want it. What a hook raises keeps it from being made."""
        for plugin in self.plugins:
            try:
                changed = await _asked(plugin.before_request, request)
            except Exception as error:
                await self.report(error, f"before_request of plugin {plugin.name!r}")
                raise
            request = request if changed is None else changed
        return request

    async def after_response(self, response: T) -> T:
        """The response as the plugins leave it."""
        for plugin in self.plugins:
            try:
                changed = await _asked(plugin.after_response, response)
            except Exception as error:  # noqa: BLE001  a finished answer is not lost to a hook
                await self.report(error, f"after_response of plugin {plugin.name!r}")
            else:
                response = response if changed is None else changed
        return response

    async def on_tool_call(self, call: Any) -> Any:
        """What the first plugin that answers gives, or `NotMine`. What a hook raises is the call's failure."""
        for plugin in self.plugins:
            if plugin.on_tool_call is not None:
                result = await _asked(plugin.on_tool_call, call)
                if not is_not_mine(result):
                    return result
        return NotMine

    async def on_tool_result(self, call: Any, result: Any) -> Any:
        """The result as the plugins leave it."""
        for plugin in self.plugins:
            try:
                changed = await _asked(plugin.on_tool_result, call, result)
            except Exception as error:  # noqa: BLE001  the tool did run
                await self.report(error, f"on_tool_result of plugin {plugin.name!r}")
            else:
                result = result if changed is None else changed
        return result

    async def report(self, error: BaseException, where: str, *, also: Plugin | None = None) -> None:
        """Tell the log and every plugin of an error."""
        logger.error("%s failed: %s", where, place_of(error))
        await self.tell(error, where, also=also)

    async def tell(self, error: BaseException, where: str, *, also: Plugin | None = None) -> None:
        """Tell every plugin of an error; nobody can change anything about it."""
        told = self.plugins if also is None or also in self.plugins else (*self.plugins, also)
        for plugin in told:
            try:
                await _asked(plugin.on_error, error, where)
            except Exception as again:  # noqa: BLE001
                logger.error("on_error of plugin %r failed: %s", plugin.name, place_of(again))


def is_not_mine(result: Any) -> bool:
    """Whether somebody leaves a call to whoever comes next."""
    return result is NotMine or isinstance(result, NotMine)


async def _asked(hook: Callable[..., Any] | None, *given: Any) -> Any:
    if hook is None:
        return None
    answer = hook(*given)
    return await answer if inspect.isawaitable(answer) else answer
