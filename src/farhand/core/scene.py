"""What of the tools is open and what else a client has told of itself: its groups, context and state.

A value; it lives in a run and goes from run to run of a thread. The definitions are the run's: here are names only.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Raw, Struct, structs

from farhand.core.errors import UsageError
from farhand.core.group import ToolGroup, function_name
from farhand.core.skill import Skill

MODEL, CLIENT, START = "model", "client", "start"
"""By whom something was opened."""
OWNER = "owner"
"""Whose groups and skills are those that no client has brought."""
NO_STATE = Raw(b"null")
DISCOVERY = "__lazy__tool__discovery__"
SEARCH = "search_tools"
READ = "read_skill_document"
OWN_NAMES = frozenset((DISCOVERY, SEARCH, READ))
"""What a model calls to see more; no tool can have these names while there is something to be seen."""

Allowed = Literal["expand", "hide", "context", "state", "declared", "inject", "remove"]
CAREFUL: frozenset[Allowed] = frozenset[Allowed](("expand", "hide", "context", "state", "declared"))
"""What any client may: open, close, hide and show what is its own, tell context and keep state, bring in what it had
declared."""
TRUSTING: frozenset[Allowed] = CAREFUL | frozenset[Allowed](("inject", "remove"))
"""The same, and bring groups in that nobody has seen before, or take its own away."""


class Showing(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """How the tools of an agent are shown to its model, and what clients may change. The owner's settings."""

    collapse_client_tools: bool = True
    """False: the groups of clients begin open, whatever they say."""
    client_tools_instructions: str = ""
    """The owner's words about tools of clients, for the model; told while there are any in groups."""
    lasting: Literal["run", "thread"] = "run"
    """How long what the model has opened stays open. What a client opens stays until it closes it."""
    search_above: int = 40
    """With more tools than this out of sight the model can search them."""
    found_at_once: int = 8
    """Tools that one search finds."""
    lazy_detail: Literal["none", "first-sentence", "full"] = "none"
    """What the model is told of lazy tools before it asks."""
    changes: frozenset[Allowed] = CAREFUL
    """What may come with a client's result."""

    def __post_init__(self) -> None:
        if self.search_above < 0 or not 0 < self.found_at_once <= 64:
            raise UsageError("search_above is 0 at least, found_at_once 1 to 64")
        if self.changes - TRUSTING:
            raise UsageError(f"unknown in changes: {', '.join(sorted(self.changes - TRUSTING))}")


class ContextItem(Struct, frozen=True, gc=False, omit_defaults=True):
    """Something that a client tells the model about where the user is. Data, never an instruction."""

    description: str
    value: Any
    key: str = ""
    """Under which it is replaced and removed; its description, unless given."""

    @property
    def name(self) -> str:
        """Under which it stands."""
        return self.key or self.description


class Group(Struct, frozen=True, gc=False, omit_defaults=True):
    """A group that is there, with the names of its tools."""

    name: str
    function: str
    """The model's name for it while it is collapsed."""
    tools: tuple[str, ...]
    source: str = CLIENT
    description: str = ""
    note: str = ""
    instructions: str = ""
    collapsed: bool = True


class Placed(Struct, frozen=True, gc=False):
    """A skill that is there."""

    skill: Skill
    function: str
    group: str = ""
    """Only while this one is open can the skill be taken up."""
    source: str = CLIENT


class Scene(Struct, frozen=True, gc=False, omit_defaults=True):
    """All of it at one moment."""

    groups: tuple[Group, ...] = ()
    skills: tuple[Placed, ...] = ()
    opened: dict[str, str] = {}
    """The groups that are open, with by whom."""
    closed: tuple[str, ...] = ()
    """The groups that start open and were closed by the client."""
    active: dict[str, str] = {}
    """The skills that are active, with by whom."""
    hidden: tuple[str, ...] = ()
    """Tools that the client has hidden."""
    found: tuple[str, ...] = ()
    """Lazy and searched tools that the model has asked for."""
    lazy: tuple[str, ...] = ()
    """Tools that are shown only to a model that asks for them."""
    context: tuple[ContextItem, ...] = ()
    state: Raw = NO_STATE
    """The client's own; nothing here reads it."""
    declared: tuple[ToolGroup, ...] = ()
    """Groups that the client may bring in later."""
    showing: Showing = Showing()

    def group(self, name: str) -> Group | None:
        """The group of that name."""
        return next((group for group in self.groups if group.name == name), None)

    def group_of(self, tool: str) -> Group | None:
        """The group that a tool belongs to."""
        return next((group for group in self.groups if tool in group.tools), None)

    def skill(self, name: str) -> Placed | None:
        """The skill of that name."""
        return next((placed for placed in self.skills if placed.skill.name == name), None)


def expanded(scene: Scene, names: Iterable[str], by: str) -> Scene:
    """With these groups open. What a client has closed and the model opens is closed again when that ends."""
    names = tuple(names)
    opened = {**scene.opened, **dict.fromkeys(names, by)}
    closed = tuple(name for name in scene.closed if name not in names) if by == CLIENT else scene.closed
    return structs.replace(scene, opened=opened, closed=closed)


def collapsed(scene: Scene, names: Iterable[str]) -> Scene:
    """With these groups closed; their instructions end, and so do their skills."""
    names = frozenset(names)
    starts_open = [group.name for group in scene.groups if group.name in names and _starts_open(scene, group)]
    theirs = {placed.skill.name for placed in scene.skills if placed.group in names}
    tools = {tool for group in scene.groups if group.name in names for tool in group.tools}
    return structs.replace(
        scene,
        opened={name: by for name, by in scene.opened.items() if name not in names},
        closed=tuple(dict.fromkeys((*scene.closed, *starts_open))),
        active={name: by for name, by in scene.active.items() if name not in theirs},
        found=tuple(name for name in scene.found if name not in tools),
    )


def activated(scene: Scene, name: str, by: str) -> Scene:
    """With this skill active."""
    return structs.replace(scene, active={**scene.active, name: by})


def with_found(scene: Scene, names: Iterable[str]) -> Scene:
    """With these tools shown, each for itself."""
    return structs.replace(scene, found=tuple(dict.fromkeys((*scene.found, *names))))


def with_hidden(scene: Scene, hide: Iterable[str], show: Iterable[str] = ()) -> Scene:
    """With these tools hidden, and those shown again."""
    show = frozenset(show)
    names = dict.fromkeys((*scene.hidden, *hide))
    return structs.replace(scene, hidden=tuple(name for name in names if name not in show))


def with_context(scene: Scene, items: Iterable[ContextItem], remove: Iterable[str] = ()) -> Scene:
    """With these items, each in the place of the one of its name, and without some."""
    named = {item.name: item for item in scene.context}
    for item in items:
        named[item.name] = item
    for name in remove:
        named.pop(name, None)
    return structs.replace(scene, context=tuple(named.values()))


def placed(
    groups: Iterable[ToolGroup], skills: Iterable[Skill], source: str, taken: set[str], known: Scene
) -> tuple[tuple[Group, ...], tuple[Placed, ...]]:
    """Groups and skills with names that a model can call, which are then taken. Who has a name already keeps it."""
    before = {group.name: group.function for group in known.groups}
    before_skills = {each.skill.name: each.function for each in known.skills}
    found: list[Group] = []
    all_skills = [(skill, "") for skill in skills]
    for group in groups:
        found.append(
            Group(
                group.name,
                _free(before.get(group.name) or function_name(group.name), "group", taken),
                tuple([tool.name for tool in group.tools]),
                source,
                group.description,
                group.expansion_note or "",
                group.instructions or "",
                group.collapsed,
            )
        )
        all_skills += [(skill, group.name) for skill in group.skills]
    return tuple(found), tuple(
        [
            Placed(skill, _free(before_skills.get(skill.name) or function_name(skill.name), "skill", taken), at, source)
            for skill, at in all_skills
        ]
    )


def _free(name: str, kind: str, taken: set[str]) -> str:
    """The name, or one like it that nothing else has."""
    tried, count = name, 1
    while tried in taken:
        tried = f"{name[:50]}_{kind}" if count == 1 else f"{name[:50]}_{kind}_{count}"
        count += 1
    taken.add(tried)
    return tried


def opened_at_start(scene: Scene) -> Mapping[str, str]:
    """The groups that are open although nobody has opened them."""
    return {
        group.name: START for group in scene.groups if group.name not in scene.closed and _starts_open(scene, group)
    }


def _starts_open(scene: Scene, group: Group) -> bool:
    return not group.collapsed or (group.source == CLIENT and not scene.showing.collapse_client_tools)
