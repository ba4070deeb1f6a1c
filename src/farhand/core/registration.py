"""Groups of a client come in and go, with the names that a model calls; all that refers to them stays true.

What a client may do is not decided here.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from farhand.core.admission import AdmissionLimits
from farhand.core.definition import Definition, InvalidToolDefinitions, skeleton
from farhand.core.group import ToolGroup, register, totals
from farhand.core.problem import Problem
from farhand.core.scene import CLIENT, OWN_NAMES, Group, Scene, collapsed, placed

_WHAT = "client tool groups"


def injected(
    scene: Scene, tools: Mapping[str, Definition], groups: Iterable[ToolGroup], *, replace: bool = False
) -> tuple[Scene, dict[str, Definition]]:
    """With more groups of the client. Raises InvalidToolDefinitions, and nothing has come in."""
    groups = tuple(groups)
    mine = clients_groups(scene, tools)
    own = {tool.name for group in mine for tool in group.tools}
    others = tuple(group for group in scene.groups if group.source != CLIENT)
    theirs = tuple(each for each in scene.skills if each.source != CLIENT)
    names = {skeleton(group.name) for group in groups}
    clash = [group.name for group in others if skeleton(group.name) in names]
    if clash:
        problems = [Problem("", f"There is a group {name!r} of the server already", "duplicate") for name in clash]
        raise InvalidToolDefinitions(tuple(problems), what=_WHAT)
    # A model calls these names too: a client's tool of such a name would be shown as one thing and be another.
    callable_names = {group.function for group in others} | {each.function for each in theirs} | OWN_NAMES
    reserved = [*(name for name in tools if name not in own), *callable_names]
    registered = register(mine, groups, reserved=reserved, replace=replace)
    replaced = {tool.name for group in mine if skeleton(group.name) in names for tool in group.tools}
    kept = {name: each for name, each in tools.items() if name not in replaced}
    for group in groups:
        kept.update((tool.name, tool) for tool in group.tools)
    mine_placed, skills = placed(registered, (), CLIENT, {*kept, *callable_names}, scene)
    after = tidy(structs.replace(scene, groups=(*others, *mine_placed), skills=(*theirs, *skills)), kept)
    _check(after, kept)
    return after, kept


def removed(scene: Scene, tools: Mapping[str, Definition], names: Iterable[str]) -> tuple[Scene, dict[str, Definition]]:
    """Without these groups, their tools and their skills. Raises InvalidToolDefinitions if a skill needs them."""
    names = frozenset(names)
    gone = {tool for group in scene.groups if group.name in names for tool in group.tools}
    kept = {name: each for name, each in tools.items() if name not in gone}
    scene = collapsed(scene, names)
    after = structs.replace(
        scene,
        groups=tuple(group for group in scene.groups if group.name not in names),
        skills=tuple(each for each in scene.skills if each.group not in names),
    )
    after = tidy(after, kept)
    _check(after, kept)
    return after, kept


def tidy(scene: Scene, tools: Mapping[str, Definition]) -> Scene:
    """Without a word about what is not there any more: a new tool of that name is another one."""
    there = tuple([_fitting(group, tools) for group in scene.groups])
    groups = {group.name for group in there}
    skills = {each.skill.name for each in scene.skills}
    return structs.replace(
        scene,
        groups=there,
        opened={name: by for name, by in scene.opened.items() if name in groups},
        closed=tuple([name for name in scene.closed if name in groups]),
        active={name: by for name, by in scene.active.items() if name in skills},
        hidden=tuple([name for name in scene.hidden if is_clients(tools, name)]),
        found=tuple([name for name in scene.found if name in tools]),
        lazy=tuple([name for name, tool in tools.items() if tool.lazy]),
    )


def _fitting(group: Group, tools: Mapping[str, Definition]) -> Group:
    """The group with the tools that are there and its own."""
    names = [name for name in group.tools if name in tools and (group.source != CLIENT or is_clients(tools, name))]
    return group if len(names) == len(group.tools) else structs.replace(group, tools=tuple(names))


def is_clients(tools: Mapping[str, Definition], name: str) -> bool:
    """Whether there is a tool of this name, and the client has brought it."""
    return name in tools and tools[name].source == CLIENT


def clients_groups(scene: Scene, tools: Mapping[str, Definition]) -> list[ToolGroup]:
    """The client's groups with their definitions, as they were registered."""
    mine = [group for group in scene.groups if group.source == CLIENT and any(name in tools for name in group.tools)]
    return [_whole(group, scene, tools) for group in mine]


def reference_problems(scene: Scene, tools: Mapping[str, Definition]) -> Iterator[Problem]:
    """What skills refer to and is not there, once all groups are."""
    names: set[str] = set()
    for each in scene.skills:
        skill = each.skill
        if skeleton(skill.name) in names:
            yield Problem("", f"There are two skills {skill.name!r}", "duplicate")
        names.add(skeleton(skill.name))
        for reference in skill.tools:
            group = scene.group(reference.group) if reference.group else None
            if reference.group and group is None:
                message = f"Skill {skill.name!r} references group {reference.group!r} which is not registered"
                yield Problem("", message, "reference")
            elif reference.tool not in (tools if group is None else group.tools):
                where = f" in group {reference.group!r}" if reference.group else ""
                message = f"Skill {skill.name!r} references tool {reference.tool!r} which does not exist{where}"
                yield Problem("", message, "reference")


def too_much(scene: Scene, tools: Mapping[str, Definition], limits: AdmissionLimits) -> Iterator[Problem]:
    """What one client may bring does not grow with the number of its requests."""
    groups = {group.name: group for group in (*scene.declared, *clients_groups(scene, tools))}
    return totals(list(groups.values()), limits)


def _check(scene: Scene, tools: Mapping[str, Definition]) -> None:
    problems = tuple(reference_problems(scene, tools))
    if problems:
        raise InvalidToolDefinitions(problems, what=_WHAT)


def _whole(group: Group, scene: Scene, tools: Mapping[str, Definition]) -> ToolGroup:
    return ToolGroup(
        name=group.name,
        tools=tuple([tools[name] for name in group.tools if name in tools]),
        description=group.description,
        expansion_note=group.note or None,
        instructions=group.instructions or None,
        collapsed=group.collapsed,
        skills=tuple([each.skill for each in scene.skills if each.group == group.name]),
    )
