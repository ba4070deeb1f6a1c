"""What a plugin has to be before it is registered, in this order, each rule with its text."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from msgspec import json

from farhand.core.admission import OWNER
from farhand.core.definition import Definition, skeleton, validate_tool_definitions
from farhand.core.errors import UsageError
from farhand.places.values import RawCodec
from farhand.plugins.plugin import AnyTool, Executor, Plugin
from farhand.plugins.requirement import Requirement
from farhand.tool import Tool

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,63}")


def read_tool(given: AnyTool) -> Tool[Any, Any]:
    """A tool, its definition, or that as JSON objects, as a tool."""
    if isinstance(given, Tool):
        return given
    if isinstance(given, Definition):
        definition = given
    else:
        [definition] = validate_tool_definitions([given], OWNER)
    writes = None if definition.output is None else RawCodec(bytes(definition.output))
    return Tool(definition, reads=RawCodec(bytes(definition.parameters)), writes=writes)


def tools_of(plugin: Plugin) -> dict[str, Tool[Any, Any]]:
    """A plugin's tools with their functions, by name; `UsageError` says which rule it breaks."""
    label = f'Plugin "{plugin.name}"'
    if not plugin.name:
        raise UsageError("Plugin must have a name")
    if not plugin.version:
        raise UsageError(f"{label} must have a version")
    for given in plugin.tools:
        _check_tool(label, given)
    tools: dict[str, Tool[Any, Any]] = {}
    for tool in map(read_tool, plugin.tools):
        if skeleton(tool.name) in map(skeleton, tools):
            raise UsageError(f'{label}: Tool "{tool.name}" is defined twice')
        tools[tool.name] = tool
    for name, executor in plugin.executors.items():
        tools[name] = _with_executor(label, name, executor, tools.get(name))
    return tools


def check_requirements(plugin: Plugin, known: Sequence[Plugin]) -> None:
    """`UsageError` for what a plugin requires and is not there."""
    there = {each.name: each.version for each in known}
    for requirement in map(Requirement.parse, plugin.requires):
        version = there.get(requirement.name)
        if version is None:
            raise UsageError(f'Plugin "{plugin.name}" requires plugin "{requirement}", which is not registered')
        if not requirement.accepts(version):
            raise UsageError(f'Plugin "{plugin.name}" requires plugin "{requirement}"; version {version} is registered')


def check_conflicts(plugin: Plugin, names: Sequence[str], owner_of: Callable[[str], str | None]) -> None:
    """`UsageError` for the first tool whose name has an owner."""
    for name in names:
        owner = owner_of(skeleton(name))
        if owner is not None:
            raise UsageError(f'Plugin "{plugin.name}": Tool "{name}" conflicts with {owner}')


def _check_tool(label: str, given: AnyTool) -> None:
    name, description, parameters = _looks(given)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f'{label}: Invalid tool name "{name}". Must start with a letter and contain only alphanumeric characters '
            "and underscores (max 64 chars)."
        )
    if not isinstance(description, str) or not description.strip():
        raise UsageError(f'{label}: Tool "{name}" must have a description')
    if not isinstance(parameters, Mapping) or cast("Mapping[str, Any]", parameters).get("type") != "object":
        raise UsageError(f'{label}: Tool "{name}" parameters must be an object schema')


def _looks(given: AnyTool) -> tuple[object, object, object]:
    """Name, description and parameters, before anything is known of them."""
    if isinstance(given, Mapping):
        inner = given.get("function")
        fields = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else given
        return fields.get("name"), fields.get("description"), fields.get("parameters")
    definition = given.definition if isinstance(given, Tool) else given
    return definition.name, definition.description, json.decode(definition.parameters)


def _with_executor(label: str, name: str, executor: Executor, tool: Tool[Any, Any] | None) -> Tool[Any, Any]:
    if tool is None:
        raise UsageError(f'{label}: Executor "{name}" has no matching tool definition')
    if tool.function is not None:
        raise UsageError(f'{label}: Tool "{name}" has a function and an executor')
    if not callable(executor):
        raise UsageError(f'{label}: Executor "{name}" is not a function')
    return tool.client(executor)
