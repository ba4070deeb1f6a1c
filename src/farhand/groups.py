"""Groups of tools, skills, and what else decides which tools a model is shown. For agents and for clients alike."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

from msgspec import UNSET, Raw, Struct, json, structs

from farhand.core.admission import OUTSIDE, AdmissionLimits
from farhand.core.augmentation import Augmentation, AugmentationRefused, read_context
from farhand.core.definition import Definition, InvalidToolDefinitions, below, make_definition
from farhand.core.group import ToolGroup, dump_group, validate_tool_groups
from farhand.core.opening import NOTHING, Bring, ClientState
from farhand.core.scene import CAREFUL, CLIENT, TRUSTING, ContextItem, Showing
from farhand.core.skill import Document, Reference, Skill
from farhand.places.running import Augmented
from farhand.places.values import dump
from farhand.tool import Tool

__all__ = [
    "CAREFUL",
    "TRUSTING",
    "Augmentation",
    "AugmentationRefused",
    "Augmented",
    "ClientState",
    "ContextItem",
    "Document",
    "Group",
    "Reference",
    "Scenery",
    "Showing",
    "Skill",
    "ToolGroup",
]


class Group(Struct, frozen=True, kw_only=True):
    """Tools under one name: what a model opens when it needs them."""

    name: str
    """Free text."""
    tools: Sequence[Tool[Any, Any]]
    description: str = ""
    """When to open it; a group that starts collapsed must say so."""
    expansion_note: str | None = None
    """Told once, when the group is expanded: tips."""
    instructions: str | None = None
    """Hold as long as it is expanded: rules, and how to work with it."""
    collapsed: bool = True
    skills: Sequence[Skill] = ()

    @property
    def definition(self) -> ToolGroup:
        """The group without functions."""
        return ToolGroup(
            name=self.name,
            tools=tuple(tool.definition for tool in self.tools),
            description=self.description,
            expansion_note=self.expansion_note,
            instructions=self.instructions,
            collapsed=self.collapsed,
            skills=tuple(self.skills),
        )


AnyGroups = Iterable[Group | ToolGroup | Mapping[str, Any]] | bytes | str


class Scenery(TypedDict, total=False):
    """What a client brings along with a run, besides the message and tools that stand alone."""

    groups: AnyGroups
    """Its groups; they stay with the thread."""
    replace: bool
    """Whether they take the places of those of their names."""
    declared: AnyGroups
    """Groups that may come in later, with a result."""
    expanded: Iterable[str]
    """Names of groups to begin with open."""
    hidden: Iterable[str]
    """Its tools that the model is not shown now."""
    context: Iterable[ContextItem | Mapping[str, Any]]
    """What the model should know of where the user is."""
    state: Any
    """The client's own, kept with the thread."""
    reset_client_state: bool
    """Forget what the thread has of the client."""


def bring(scenery: Scenery, limits: AdmissionLimits = OUTSIDE) -> tuple[Bring, tuple[Tool[Any, Any], ...]]:
    """The same as a value, checked, and the program's own tools in it. Raises `InvalidToolDefinitions`."""
    if not scenery:
        return NOTHING, ()
    groups, tools = _groups(scenery.get("groups", ()), limits, "/groups")
    declared, more = _groups(scenery.get("declared", ()), limits, "/declared")
    context = read_context(_plain(scenery.get("context", ())), "/context", limits)
    state = Raw(dump(scenery["state"])) if "state" in scenery else UNSET
    return Bring(
        groups,
        scenery.get("replace", False),
        declared,
        tuple(scenery.get("expanded", ())),
        tuple(scenery.get("hidden", ())),
        context,
        state,
        scenery.get("reset_client_state", False),
    ), (*tools, *more)


def _groups(
    given: AnyGroups, limits: AdmissionLimits, base: str
) -> tuple[tuple[ToolGroup, ...], tuple[Tool[Any, Any], ...]]:
    """Groups as they are, or as they come from outside."""
    try:
        return _read(given, limits)
    except InvalidToolDefinitions as error:
        raise below(error, base) from None


def _read(given: AnyGroups, limits: AdmissionLimits) -> tuple[tuple[ToolGroup, ...], tuple[Tool[Any, Any], ...]]:
    if isinstance(given, bytes | str):
        return validate_tool_groups(given, limits), ()
    own: list[ToolGroup] = []
    tools: list[Tool[Any, Any]] = []
    foreign: list[Mapping[str, Any]] = []
    for group in given:
        if isinstance(group, Group):
            group = structs.replace(group, tools=[tool.of_client() for tool in group.tools])
            own.append(group.definition)
            tools += group.tools
        elif isinstance(group, ToolGroup):
            own.append(structs.replace(group, tools=tuple(map(_of_client, group.tools))))
        else:
            foreign.append(group)
    return (*own, *(validate_tool_groups(foreign, limits) if foreign else ())), tuple(tools)


def _of_client(definition: Definition) -> Definition:
    if definition.source == CLIENT:
        return definition
    return make_definition(structs.asdict(definition) | {"source": CLIENT})


def dump_groups(groups: AnyGroups) -> Raw:
    """Groups as they are sent."""
    if isinstance(groups, bytes | str):
        return Raw(groups.encode() if isinstance(groups, str) else groups)
    return Raw(dump([_said(group) for group in groups]))


def dump_augmentation(augmentation: object) -> bytes:
    """A wish as it is sent. It is held against everything that counts only by whoever has the run."""
    if isinstance(augmentation, Augmentation):
        fields = {name: getattr(augmentation, name) for name in augmentation.__struct_fields__}
        fields["inject"] = (*fields.pop("declared"), *augmentation.inject)
        augmentation = {name: value for name, value in fields.items() if value is not UNSET and value != ()}
    if isinstance(augmentation, Mapping):
        given = cast("Mapping[str, Any]", augmentation)
        if isinstance(groups := given.get("inject"), list | tuple):
            said = [_said(group) for group in cast("Sequence[Any]", groups)]
            return dump({**given, "inject": said})
    return dump(augmentation)


def _said(group: Any) -> Any:
    if isinstance(group, Group):
        group = group.definition
    return dump_group(group) if isinstance(group, ToolGroup) else group


def _plain(items: object) -> object:
    """The items as JSON would have them; what is no list is refused by whoever reads it."""
    if isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping):
        items = list(cast("Iterable[object]", items))
    return cast("object", json.decode(dump(items)))
