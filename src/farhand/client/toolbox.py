"""The tools of a client: those it brings to the server, and those of the server's that it runs. Each name once."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Raw, json

from farhand.client.flat import flat
from farhand.core.definition import Definition, make_definition, skeleton
from farhand.core.errors import DuplicateToolName, UsageError
from farhand.core.group import ToolGroup, dump_group, register
from farhand.groups import Group
from farhand.places.values import RawCodec
from farhand.plugins import Plugin, PluginSet
from farhand.plugins.plugin import AnyTool, Executor
from farhand.plugins.rules import read_tool
from farhand.tool import Tool

Tools = Mapping[str, Tool[Any, Any]]
AnyGroup: TypeAlias = Group | ToolGroup


class Toolbox:
    """What is registered. It changes only between requests: a run keeps the tools it began with."""

    def __init__(self) -> None:
        self.plugins = PluginSet(self._owner_of)
        self.groups: tuple[ToolGroup, ...] = ()
        self.version = 0
        """Rises with every change."""
        self._news = asyncio.Event()
        self._own: dict[str, Tool[Any, Any]] = {}
        self._implemented: dict[str, Tool[Any, Any]] = {}

    @property
    def brought(self) -> dict[str, Tool[Any, Any]]:
        """Tools whose definitions are sent along: the client's own, and those of plugins."""
        return {**self._own, **{tool.name: tool for tool in self.plugins.tools}}

    @property
    def implemented(self) -> dict[str, Tool[Any, Any]]:
        """Tools that the server defines and this client runs."""
        return dict(self._implemented)

    def add(self, given: AnyTool, function: Executor | None = None) -> Tool[Any, Any]:
        """A tool of the client's own."""
        tool = read_tool(given)
        self._expect_free(tool.name)
        self._own[tool.name] = tool if function is None else tool.client(function)
        self._change()
        return self._own[tool.name]

    def add_group(self, given: AnyGroup, functions: Mapping[str, Executor]) -> None:
        """All tools of a group, or none."""
        group, tools = read_group(given)
        unknown = functions.keys() - {definition.name for definition in group.tools}
        if unknown:
            raise UsageError(f"group {group.name!r} has no tool {', '.join(sorted(unknown))}")
        groups = register(self.groups, [group])
        for definition in group.tools:
            self._expect_free(definition.name)
        for tool in tools:
            self.add(tool, functions.get(tool.name))
        self.groups = groups

    def implement(self, given: AnyTool | str, function: Executor | None) -> None:
        """A function for a tool that the server defines."""
        tool = _unknown(given) if isinstance(given, str) else read_tool(given)
        if function is not None:
            tool = tool.client(function)
        elif tool.function is None:
            raise UsageError(f"tool {tool.name!r} needs a function that runs it")
        self._expect_free(tool.name)
        self._implemented[tool.name] = tool
        self._change()

    def remove(self, name: str) -> None:
        """Neither bring nor run a tool any more."""
        if name not in self._own and name not in self._implemented:
            raise UsageError(f"no tool {name!r} is registered here")
        self._own.pop(name, None)
        self._implemented.pop(name, None)
        kept = [group for group in self.groups if name not in [tool.name for tool in group.tools]]
        self.groups = tuple(kept)
        self._change()

    async def use(self, plugin: Plugin, host: object) -> None:
        """Register a plugin."""
        await self.plugins.register(plugin, host)
        self._change()

    async def unuse(self, name: str) -> None:
        """Remove a plugin."""
        await self.plugins.unregister(name)
        self._change()

    async def changed(self, version: int) -> None:
        """Until the tools are others than they were."""
        while self.version == version:
            await self._news.wait()

    def _change(self) -> None:
        self.version += 1
        self._news.set()
        self._news = asyncio.Event()

    def _expect_free(self, name: str) -> None:
        key = skeleton(name)
        owner = self._owner_of(key) or self.plugins.owner_of(key)
        if owner is not None:
            raise DuplicateToolName(f"tool {name!r} cannot be registered: there is {owner}")

    def _owner_of(self, key: str) -> str | None:
        for name in (*self._own, *self._implemented):
            if skeleton(name) == key:
                return f"the client's own tool {name!r}"
        return None


def added(known: Tools, more: Iterable[AnyTool]) -> dict[str, Tool[Any, Any]]:
    """Known tools and those of one run; `DuplicateToolName` for one that is there already."""
    tools = dict(known)
    for tool in map(read_tool, more):
        if skeleton(tool.name) in map(skeleton, tools):
            raise DuplicateToolName(f"tool {tool.name!r} is registered already")
        tools[tool.name] = tool
    return tools


def picked(tools: Tools, only: Iterable[str] | None, without: Iterable[str]) -> dict[str, Tool[Any, Any]]:
    """The tools that are named by `only`, if it is given, and not by `without`."""
    wanted = None if only is None else set(only)
    left_out = set(without)
    return {name: tool for name, tool in tools.items() if (wanted is None or name in wanted) and name not in left_out}


def sent(tools: Tools) -> Raw:
    """Definitions as a server takes them."""
    return Raw(json.encode(list(_dumped(tools.values()))))


def sent_groups(groups: Iterable[ToolGroup], tools: Tools) -> Raw:
    """Groups as a server takes them, with those of their tools that are there; a group without any is left out."""
    said: list[dict[str, Any]] = []
    for group in groups:
        chosen = [tools[each.name] for each in group.tools if each.name in tools]
        if chosen:
            said.append({**dump_group(group), "tools": list(_dumped(chosen))})
    return Raw(json.encode(said))


def read_group(given: AnyGroup) -> tuple[ToolGroup, list[Tool[Any, Any]]]:
    """A group as a value, and its tools, with their functions if they have some."""
    if isinstance(given, Group):
        return given.definition, list(given.tools)
    return given, [read_tool(definition) for definition in given.tools]


def _dumped(tools: Iterable[Tool[Any, Any]]) -> Iterator[dict[str, Any]]:
    for tool in tools:
        said = tool.dump()
        for key, schema in (("parameters", tool.definition.parameters), ("output", tool.definition.output)):
            if schema is not None:
                held = any(word in bytes(schema) for word in (b'"$ref"', b'"discriminator"'))
                said[key] = flat(said[key], tool.name) if held else schema  # an author's own bytes
        yield said


def _unknown(name: str) -> Tool[Any, Any]:
    """A tool of which only the name is known here: the server has checked what it is called with."""
    definition: Definition = make_definition(name=name, description="")
    return Tool(definition, reads=RawCodec(b'{"type":"object"}'), writes=None)
