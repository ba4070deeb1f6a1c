"""The calls that nobody runs: the model opens a group, takes a skill up, looks for tools, reads a document.

They are calls like all others, with one outcome each; it is there at once.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from msgspec import Raw, Struct, json

from farhand.core.definition import Definition
from farhand.core.failure import Failure
from farhand.core.scene import (
    DISCOVERY,
    MODEL,
    OWNER,
    READ,
    SEARCH,
    Group,
    Placed,
    Scene,
    activated,
    expanded,
    with_found,
)
from farhand.core.search import Entry, ToolIndex
from farhand.core.shown import is_shown, open_groups
from farhand.core.skill import Skill
from farhand.core.strict_json import BadJson, parse

MISSING = 16
"""Names that are not there: so many are answered one by one."""


class Switched(Struct, frozen=True, gc=False):
    """What became of such a call."""

    scene: Scene
    result: Raw = Raw(b"null")
    failure: Failure | None = None
    source: str = OWNER
    """Whose words the result has."""


def tool_meant(scene: Scene, tools: Mapping[str, Definition], name: str) -> str:
    """The tool of that name; a model may also write `Group.Tool`, with the group's own name or its function's."""
    if name not in tools and "." in name:
        written, _, tool = name.rpartition(".")
        if any(written in (group.name, group.function) and tool in group.tools for group in scene.groups):
            return tool
    return name


def switched(scene: Scene, tools: Mapping[str, Definition], name: str, arguments: str) -> Switched | None:
    """What a call of this name does to what is shown; None if it is a tool, or nothing."""
    for group in scene.groups:
        if group.function == name:
            return _expand(scene, group, tools)
    for placed in scene.skills:
        if placed.function == name:
            return _activate(scene, placed, tools)
    answer = _ANSWERS.get(name)
    return None if answer is None else answer(scene, tools, arguments)


def uncovered(scene: Scene, name: str) -> tuple[Scene, Failure | None]:
    """Before a tool is called that the model may not have been shown: its group opens, or the call is not made."""
    if name in scene.hidden:
        return scene, Failure("tool_hidden", f"Tool {name} is not available now.")
    if is_shown(scene, name):
        return scene, None
    group = scene.group_of(name)
    if group is None or name in scene.lazy:
        message = f"Tool '{name}' must be discovered first. Call {DISCOVERY} with toolNames: ['{name}'] to discover it."
        return scene, Failure("tool_undiscovered", message)
    return expanded(scene, [group.name], MODEL), None


def expansion_text(group: Group, names: list[str]) -> str:
    """What the model is told when a group opens."""
    text = f"{group.name} expanded. Available functions: {', '.join(names)}"
    return f"{text}\n\n{group.note}" if group.note else text


def activation_text(skill: Skill, names: list[str]) -> str:
    """What the model is told when it takes a skill up."""
    text = f"{skill.name} skill activated."
    if names:
        text += f" Available functions: {', '.join(names)}"
    documents = "\n".join(f"- {each.id}: {each.description}".rstrip(": ") for each in skill.documents)
    parts = [text, skill.note or "", f"Documents, for {READ}:\n{documents}" if documents else ""]
    return "\n\n".join(part for part in parts if part)


def _expand(scene: Scene, group: Group, tools: Mapping[str, Definition]) -> Switched:
    names = _there(scene, tools, group.tools)
    after = scene if group.name in open_groups(scene) else expanded(scene, [group.name], MODEL)
    return Switched(after, _said(expansion_text(group, names)), source=group.source)


def _activate(scene: Scene, placed: Placed, tools: Mapping[str, Definition]) -> Switched:
    after = scene
    if placed.group and placed.group not in open_groups(scene):
        after = expanded(after, [placed.group], MODEL)
    if placed.skill.name not in scene.active:
        after = activated(after, placed.skill.name, MODEL)
    names = _there(scene, tools, dict.fromkeys(reference.tool for reference in placed.skill.tools))
    return Switched(after, _said(activation_text(placed.skill, names)), source=placed.source)


def _there(scene: Scene, tools: Mapping[str, Definition], names: Iterable[str]) -> list[str]:
    return [name for name in names if name in tools and name not in scene.hidden]


def _discover(scene: Scene, tools: Mapping[str, Definition], arguments: str) -> Switched:
    names = _field(arguments, "toolNames", list)
    if names is None or not all(isinstance(name, str) for name in names):
        return Switched(scene, failure=Failure("invalid_arguments", "toolNames must be a list of names."))
    lazy = dict.fromkeys(_there(scene, tools, scene.lazy))
    wanted = dict.fromkeys(names)
    there = [name for name in wanted if name in lazy]
    missing = [name for name in wanted if name not in lazy]
    told: dict[str, Any] = {"tools": [_described(tools[name]) for name in there]}
    if missing:
        left = [name for name in lazy if name not in scene.found and name not in wanted]
        told["errors"] = [f"Unknown tool: '{name[:64]}'. Available tools: {left}" for name in missing[:MISSING]]
    return Switched(with_found(scene, there), Raw(json.encode(told)))


def _search(scene: Scene, tools: Mapping[str, Definition], arguments: str) -> Switched:
    query = _field(arguments, "query", str)
    if not query or not query.strip():
        return Switched(scene, failure=Failure("invalid_arguments", "query must say what the tool should do."))
    names = [name for name in tools if name not in scene.hidden and not is_shown(scene, name)]
    wanted = frozenset(names)
    hits = _index(scene, tools).search(query, limit=len(tools))
    found = [hit.name for hit in hits if hit.name in wanted][: scene.showing.found_at_once]
    told = [{"name": name, "description": tools[name].description} for name in found]
    return Switched(with_found(scene, found), Raw(json.encode({"tools": told})))


def _read(scene: Scene, _: Mapping[str, Definition], arguments: str) -> Switched:
    skill, wanted = _field(arguments, "skill", str), _field(arguments, "document", str)
    placed = scene.skill(skill or "")
    if placed is None or placed.skill.name not in scene.active:
        return Switched(scene, failure=Failure("unknown_skill", "There is no active skill of that name."))
    for document in placed.skill.documents:
        if document.id == wanted:
            text = document.content if document.content is not None else f"The document is at {document.url}"
            return Switched(scene, _said(text), source=placed.source)
    names = ", ".join(each.id for each in placed.skill.documents)
    return Switched(scene, failure=Failure("unknown_document", f"The skill has no such document; it has: {names}"))


def _index(scene: Scene, tools: Mapping[str, Definition]) -> ToolIndex:
    """Over all tools. What is known of each is kept by the index itself; the last one is often asked again."""
    global _newest
    known, groups, index = _newest
    if known is not tools or groups != scene.groups:
        extra = {name: (group.name, group.description) for group in scene.groups for name in group.tools}
        index = ToolIndex([Entry.of(each, *extra.get(name, ())) for name, each in tools.items()])
        _newest = tools, scene.groups, index
    return index


_newest: tuple[Mapping[str, Definition], tuple[Group, ...], ToolIndex] = ({}, (), ToolIndex(()))


def _described(definition: Definition) -> dict[str, Any]:
    schema = json.decode(definition.parameters)
    return {"name": definition.name, "description": definition.description, "inputSchema": schema}


def _field(arguments: str, name: str, kind: type) -> Any:
    try:
        given = parse(arguments, max_bytes=4 * len(arguments))
    except BadJson:
        return None
    value = cast("dict[str, Any]", given).get(name) if isinstance(given, dict) else None
    return value if isinstance(value, kind) else None


def _said(text: str) -> Raw:
    return Raw(json.encode(text))


_ANSWERS: Mapping[str, Callable[[Scene, Mapping[str, Definition], str], Switched]] = {
    DISCOVERY: _discover,
    SEARCH: _search,
    READ: _read,
}
