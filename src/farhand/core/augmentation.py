"""What a client asks to be changed beside its result: read, held against what the owner allows, and applied.

All of it or nothing. The result itself counts either way: it is a fact, and this is a wish.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import UNSET, Raw, Struct, UnsetType, json, structs

from farhand.core.admission import OUTSIDE, AdmissionLimits, text_problem
from farhand.core.definition import Definition, InvalidToolDefinitions, skeleton
from farhand.core.group import ToolGroup, register, validate_tool_groups
from farhand.core.merge_patch import merge_patch
from farhand.core.problem import Problem, json_type, pointer
from farhand.core.scene import (
    CLIENT,
    Allowed,
    ContextItem,
    Group,
    Scene,
    collapsed,
    expanded,
    placed,
    with_context,
    with_hidden,
)
from farhand.core.strict_json import BadJson, parse

CONTEXT_ITEMS = 64
STATE_BYTES = 65_536
"""Of a client's state, and of all context items together."""


class Augmentation(Struct, frozen=True, gc=False, omit_defaults=True):
    """One wish. It is applied in the order of these fields."""

    inject: tuple[ToolGroup, ...] = ()
    remove: tuple[str, ...] = ()
    expand: tuple[str, ...] = ()
    collapse: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    add_context: tuple[ContextItem, ...] = ()
    remove_context: tuple[str, ...] = ()
    update_state: Raw | UnsetType = UNSET
    patch_state: Raw | UnsetType = UNSET
    declared: tuple[str, ...] = ()
    """The groups to be brought in that were declared; they come first."""


class AugmentationRefused(InvalidToolDefinitions):
    """Nothing of it was applied; `problems` says why."""

    code = "augmentation_refused"

    def __init__(self, problems: Iterable[Problem]) -> None:
        super().__init__(tuple(problems), what="augmentation")


_NAMES: Mapping[str, Allowed] = {
    "remove": "remove",
    "expand": "expand",
    "collapse": "expand",
    "hide": "hide",
    "show": "hide",
    "remove_context": "context",
}
_KNOWN = {"inject", *_NAMES, "add_context", "update_state", "patch_state"}


def read_augmentation(raw: bytes | str, limits: AdmissionLimits = OUTSIDE) -> Augmentation:
    """A wish as it came from outside, or AugmentationRefused. Keys may be written in camel case too."""
    try:
        given = parse(raw, max_bytes=limits.definition_bytes * limits.tools, max_depth=limits.json_depth)
    except BadJson as error:
        raise AugmentationRefused([Problem("", f"is not JSON: {error.reason}", "json")]) from None
    if not isinstance(given, dict):
        raise AugmentationRefused([Problem("", f"Invalid input: expected object, received {json_type(given)}", "type")])
    reader = _Reader(limits)
    fields: dict[str, Any] = {}
    slices = json.decode(raw, type=dict[str, Raw])
    for key, value in cast("dict[str, object]", given).items():
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
        path = pointer((key,))
        if name not in _KNOWN:
            reader.refuse(path, f'Unrecognized key: "{key[:64]}"', "keyword")
        elif value is None and name != "update_state":
            continue
        elif name == "inject":
            fields["declared"], fields["inject"] = reader.groups(path, slices[key], value)
        elif name == "add_context":
            fields[name] = reader.context(path, value)
        elif name in _NAMES:
            fields[name] = reader.names(path, value)
        else:
            fields[name] = slices[key]
    if reader.problems:
        raise AugmentationRefused(reader.problems)
    return Augmentation(**fields)


def read_context(value: object, base: str = "", limits: AdmissionLimits = OUTSIDE) -> tuple[ContextItem, ...]:
    """Context items as they came from outside, or AugmentationRefused."""
    reader = _Reader(limits)
    items = reader.context(base, value)
    if reader.problems:
        raise AugmentationRefused(reader.problems)
    return items


def augmented(scene: Scene, tools: Mapping[str, Definition], wish: Augmentation) -> tuple[Scene, dict[str, Definition]]:
    """The scene after it, and the tools; or AugmentationRefused, and nothing has changed."""
    problems = [*_forbidden(scene, wish), *_foreign(scene, tools, wish)]
    if problems:
        raise AugmentationRefused(problems)
    all_tools = dict(tools)
    declared = [group for group in scene.declared if group.name in wish.declared]
    if declared or wish.inject:
        scene, all_tools = injected(scene, all_tools, (*declared, *wish.inject))
    if wish.remove:
        scene, all_tools = _removed(scene, all_tools, wish.remove)
    problems = list(_unknown(scene, all_tools, wish))
    if problems:
        raise AugmentationRefused(problems)
    scene = collapsed(expanded(scene, wish.expand, CLIENT), wish.collapse)
    scene = with_context(with_hidden(scene, wish.hide, wish.show), wish.add_context, wish.remove_context)
    state = scene.state
    if wish.update_state is not UNSET:
        state = wish.update_state
    if wish.patch_state is not UNSET:
        state = Raw(json.encode(merge_patch(json.decode(state), json.decode(wish.patch_state))))
    if state != scene.state:
        scene = structs.replace(scene, state=state)
    problems = list(size_problems(scene))
    if problems:
        raise AugmentationRefused(problems)
    return scene, all_tools


def injected(
    scene: Scene, tools: dict[str, Definition], groups: Iterable[ToolGroup], *, replace: bool = False
) -> tuple[Scene, dict[str, Definition]]:
    """With more groups of the client. Raises InvalidToolDefinitions, and nothing has come in."""
    groups = tuple(groups)
    mine = [whole(group, scene, tools) for group in scene.groups if group.source == CLIENT]
    own = {name for group in mine for name in (tool.name for tool in group.tools)}
    registered = register(mine, groups, reserved=[name for name in tools if name not in own], replace=replace)
    names = {group.name for group in groups}
    gone = {tool for group in scene.groups if group.name in names for tool in group.tools}
    kept = {name: each for name, each in tools.items() if name not in gone}
    for group in groups:
        kept.update((tool.name, tool) for tool in group.tools)
    others = tuple(group for group in scene.groups if group.source != CLIENT)
    clash = [group.name for group in others if skeleton(group.name) in {skeleton(name) for name in names}]
    if clash:
        problems = [Problem("", f"There is a group {name!r} of the server already", "duplicate") for name in clash]
        raise InvalidToolDefinitions(tuple(problems), what="client tool groups")
    theirs = tuple(each for each in scene.skills if each.source != CLIENT)
    taken = {*kept, *(group.function for group in others), *(each.function for each in theirs)}
    mine_placed, skills = placed(registered, (), CLIENT, taken, scene)
    after = structs.replace(scene, groups=(*others, *mine_placed), skills=(*theirs, *skills))
    problems = tuple(reference_problems(after, kept))
    if problems:
        raise InvalidToolDefinitions(problems, what="client tool groups")
    return after, kept


def reference_problems(scene: Scene, tools: Mapping[str, Definition]) -> Iterator[Problem]:
    """What skills refer to and is not there, once all groups are."""
    names: set[str] = set()
    for each in scene.skills:
        skill = each.skill
        if skill.name in names:
            yield Problem("", f"There are two skills {skill.name!r}", "duplicate")
        names.add(skill.name)
        for reference in skill.tools:
            group = scene.group(reference.group) if reference.group else None
            if reference.group and group is None:
                message = f"Skill {skill.name!r} references group {reference.group!r} which is not registered"
                yield Problem("", message, "reference")
            elif reference.tool not in (tools if group is None else group.tools):
                where = f" in group {reference.group!r}" if reference.group else ""
                message = f"Skill {skill.name!r} references tool {reference.tool!r} which does not exist{where}"
                yield Problem("", message, "reference")


def size_problems(scene: Scene) -> Iterator[Problem]:
    """What is too much to be told with every turn, or kept with every step."""
    if len(scene.context) > CONTEXT_ITEMS:
        yield Problem("/addContext", f"Too many: {CONTEXT_ITEMS} context items at most", "context")
    if len(json.encode(scene.context)) > STATE_BYTES:
        yield Problem("/addContext", f"Too big: all context has {STATE_BYTES} bytes at most", "context")
    if len(bytes(scene.state)) > STATE_BYTES:
        yield Problem("/updateState", f"Too big: the state has {STATE_BYTES} bytes at most", "state")


def _forbidden(scene: Scene, wish: Augmentation) -> Iterator[Problem]:
    allowed = scene.showing.changes
    wanted: dict[str, Allowed] = {**_NAMES, "add_context": "context", "update_state": "state", "patch_state": "state"}
    wanted |= {"inject": "inject", "declared": "declared"}
    for field, needed in wanted.items():
        given = getattr(wish, field)
        if given is not UNSET and given != () and needed not in allowed:
            yield Problem(f"/{field}", "The owner of this agent does not allow this to come with a result", "policy")


def _foreign(scene: Scene, tools: Mapping[str, Definition], wish: Augmentation) -> Iterator[Problem]:
    """What is somebody else's: a client changes its own."""
    for field in ("remove", "expand", "collapse"):
        for at, name in enumerate(getattr(wish, field)):
            group = scene.group(name)
            if group is not None and group.source != CLIENT:
                yield Problem(f"/{field}/{at}", f"Group {name!r} is not the client's", "owner")
    for field in ("hide", "show"):
        for at, name in enumerate(getattr(wish, field)):
            if name in tools and tools[name].source != CLIENT:
                yield Problem(f"/{field}/{at}", f"Tool {name!r} is not the client's", "owner")
    known = {group.name for group in scene.declared}
    for name in wish.declared:
        if name not in known:
            yield Problem("/inject", f"No group {name!r} was declared", "unknown")


def _unknown(scene: Scene, tools: Mapping[str, Definition], wish: Augmentation) -> Iterator[Problem]:
    for field in ("expand", "collapse"):
        for at, name in enumerate(getattr(wish, field)):
            if scene.group(name) is None:
                yield Problem(f"/{field}/{at}", f"There is no group {name!r}", "unknown")
    for field in ("hide", "show"):
        for at, name in enumerate(getattr(wish, field)):
            if name not in tools:
                yield Problem(f"/{field}/{at}", f"There is no tool {name!r}", "unknown")


def _removed(scene: Scene, tools: dict[str, Definition], names: Iterable[str]) -> tuple[Scene, dict[str, Definition]]:
    problems = [
        Problem(f"/remove/{at}", f"There is no group {name!r}", "unknown")
        for at, name in enumerate(names)
        if scene.group(name) is None
    ]
    if problems:
        raise AugmentationRefused(problems)
    scene = collapsed(scene, names)
    gone = {tool for group in scene.groups if group.name in names for tool in group.tools}
    after = structs.replace(
        scene,
        groups=tuple(group for group in scene.groups if group.name not in names),
        skills=tuple(each for each in scene.skills if each.group not in names),
        closed=tuple(name for name in scene.closed if name not in names),
        hidden=tuple(name for name in scene.hidden if name not in gone),
    )
    problems = list(reference_problems(after, {name: each for name, each in tools.items() if name not in gone}))
    if problems:
        raise AugmentationRefused(problems)
    return after, {name: each for name, each in tools.items() if name not in gone}


def whole(group: Group, scene: Scene, tools: Mapping[str, Definition]) -> ToolGroup:
    """A group with its definitions, as it was registered."""
    return ToolGroup(
        name=group.name,
        tools=tuple(tools[name] for name in group.tools if name in tools),
        description=group.description,
        expansion_note=group.note or None,
        instructions=group.instructions or None,
        collapsed=group.collapsed,
        skills=tuple(each.skill for each in scene.skills if each.group == group.name),
    )


class _Reader:
    """Reads the parts of a wish and collects what is wrong with them."""

    def __init__(self, limits: AdmissionLimits) -> None:
        self.limits = limits
        self.problems: list[Problem] = []

    def refuse(self, path: str, message: str, rule: str) -> None:
        self.problems.append(Problem(path, message, rule))

    def groups(self, path: str, raw: Raw, value: object) -> tuple[tuple[str, ...], tuple[ToolGroup, ...]]:
        """Names of declared groups, and groups nobody has seen before."""
        if not isinstance(value, list):
            self.refuse(path, f"Invalid input: expected array, received {json_type(value)}", "type")
            return (), ()
        items = cast("list[object]", value)
        slices = json.decode(raw, type=list[Raw])
        names = tuple(item for item in items if isinstance(item, str))
        whole = [slices[at] for at, item in enumerate(items) if not isinstance(item, str)]
        try:
            return names, validate_tool_groups(json.encode(whole), self.limits) if whole else ()
        except InvalidToolDefinitions as error:
            self.problems += [Problem(path + each.path, each.message, each.rule) for each in error.problems]
            return names, ()

    def names(self, path: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
            self.refuse(path, "Invalid input: expected array of strings", "type")
            return ()
        return tuple(cast("list[str]", value))

    def context(self, path: str, value: object) -> tuple[ContextItem, ...]:
        if not isinstance(value, list):
            self.refuse(path, f"Invalid input: expected array, received {json_type(value)}", "type")
            return ()
        items = [self._item(f"{path}/{at}", item) for at, item in enumerate(cast("list[object]", value))]
        return tuple(item for item in items if item is not None)

    def _item(self, path: str, value: object) -> ContextItem | None:
        if not isinstance(value, dict):
            self.refuse(path, f"Invalid input: expected object, received {json_type(value)}", "type")
            return None
        given = cast("dict[str, object]", value)
        before = len(self.problems)
        for key in given.keys() - {"description", "value", "key"}:
            self.refuse(path + pointer((key,)), f'Unrecognized key: "{key[:64]}"', "keyword")
        description, key = given.get("description"), given.get("key") or ""
        for name, text in (("description", description), ("key", key)):
            if not isinstance(text, str) or (name == "description" and not text.strip()):
                self.refuse(f"{path}/{name}", f"Context needs a {name} that is a text", "type")
            elif len(text) > self.limits.description:
                self.refuse(
                    f"{path}/{name}", f"Too big: expected string to have <={self.limits.description} characters", name
                )
            elif reason := text_problem(text):
                self.refuse(f"{path}/{name}", reason, "text")
        if len(self.problems) > before:
            return None
        return ContextItem(cast("str", description), given.get("value"), cast("str", key))
