"""The scene that a run begins with: the owner's groups, what the thread has of the client, and what it brings now."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

from msgspec import UNSET, Raw, Struct, UnsetType, structs

from farhand.core.admission import OUTSIDE, AdmissionLimits
from farhand.core.augmentation import size_problems
from farhand.core.definition import Definition, InvalidToolDefinitions, below, skeleton
from farhand.core.group import ToolGroup, register
from farhand.core.problem import Problem
from farhand.core.registration import clients_groups, injected, is_clients, reference_problems, tidy, too_much
from farhand.core.scene import (
    CLIENT,
    NO_STATE,
    OWN_NAMES,
    OWNER,
    ContextItem,
    Scene,
    Showing,
    expanded,
    placed,
    with_context,
    with_hidden,
)
from farhand.core.skill import Skill


class Bring(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a client brings along with a run, beside tools of its own that stand alone."""

    groups: tuple[ToolGroup, ...] = ()
    replace: bool = False
    """Whether these groups take the places of those of their names."""
    declared: tuple[ToolGroup, ...] = ()
    """Groups that may come in later, with a result."""
    expanded: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    context: tuple[ContextItem, ...] = ()
    state: Raw | UnsetType = UNSET
    reset: bool = False
    """Forget whatever the thread has of the client."""


class ClientState(Struct, frozen=True):
    """What a thread has of its client, from one run to the next."""

    scene: Scene
    tools: tuple[Definition, ...]
    """Of the client's groups."""


NOTHING = Bring()
_SIZES = {"/addContext": "/context", "/updateState": "/state"}


def client_state(scene: Scene | None, tools: Mapping[str, Definition]) -> ClientState | None:
    """What the next run of the thread begins with; None: there is nothing."""
    if scene is None:
        return None
    names = [name for group in scene.groups if group.source == CLIENT for name in group.tools]
    return ClientState(scene, tuple(tools[name] for name in names if name in tools))


def lasting(scene: Scene, showing: Showing) -> Scene:
    """What of it outlives its run: what the model has opened, only where the owner says so."""
    if showing.lasting == "thread":
        return scene
    return structs.replace(
        scene, opened={name: by for name, by in scene.opened.items() if by == CLIENT}, active={}, found=()
    )


def leaves_something(scene: Scene | None) -> bool:
    """Whether the next run of the thread begins otherwise than one without a past."""
    if scene is None:
        return False
    scene = lasting(scene, scene.showing)
    told = scene.context or scene.declared or scene.state != NO_STATE
    moved = scene.opened or scene.closed or scene.active or scene.hidden or scene.found
    return bool(told or moved) or any(group.source == CLIENT for group in scene.groups)


def owners_scene(
    groups: Iterable[ToolGroup], skills: Iterable[Skill], tools: Iterable[Definition], showing: Showing
) -> Scene | None:
    """What the owner has set up, before any client; None: everything is open. Raises InvalidToolDefinitions."""
    known = {tool.name: tool for tool in tools}
    own = register((), groups)
    placed_groups, placed_skills = placed(own, skills, OWNER, {*known, *OWN_NAMES}, Scene())
    lazy = tuple(tool.name for tool in known.values() if tool.lazy)
    if not (placed_groups or placed_skills or lazy or showing != Showing()):
        return None
    scene = Scene(groups=placed_groups, skills=placed_skills, lazy=lazy, showing=showing)
    problems = (*reference_problems(scene, known), *_taken(scene, known))
    if problems:
        raise InvalidToolDefinitions(problems, what="groups of the agent")
    return scene


def opening(
    own: Scene | None,
    tools: tuple[Definition, ...],
    before: ClientState | None = None,
    bring: Bring = NOTHING,
    limits: AdmissionLimits = OUTSIDE,
) -> tuple[Scene | None, tuple[Definition, ...]]:
    """The scene and the tools of a run. Raises InvalidToolDefinitions with everything that is wrong."""
    lazy = tuple([tool.name for tool in tools if tool.lazy])
    if own is None and before is None and bring == NOTHING and not lazy:
        return None, tools
    scene = structs.replace(own or Scene(), lazy=lazy)
    known = {tool.name: tool for tool in tools}
    problems = list(_taken(scene, known))
    if before is not None and not bring.reset:
        scene, known = _carried(scene, known, before)
    if bring.groups:
        with _at("/groups"):
            scene, known = injected(scene, known, bring.groups, replace=bring.replace)
    if bring.declared:
        with _at("/declared"):
            injected(scene, known, bring.declared, replace=True)  # only to see whether that could be
            scene = structs.replace(scene, declared=register(scene.declared, bring.declared, replace=True))
    problems += _problems(scene, known, bring)
    problems += too_much(scene, known, limits)
    scene = with_context(with_hidden(expanded(scene, bring.expanded, CLIENT), bring.hidden), bring.context)
    if bring.state is not UNSET:
        scene = structs.replace(scene, state=bring.state)
    problems += [Problem(_SIZES[each.path], each.message, each.rule) for each in size_problems(scene)]
    if problems:
        raise InvalidToolDefinitions(tuple(problems), what="client state")
    return (None if scene == Scene() else scene), tuple(known.values())


@contextmanager
def _at(base: str) -> Generator[None]:
    try:
        yield
    except InvalidToolDefinitions as error:
        raise below(error, base) from None


def _carried(scene: Scene, tools: dict[str, Definition], before: ClientState) -> tuple[Scene, dict[str, Definition]]:
    """With what the thread has. A group whose names the agent has taken for itself meanwhile is left behind."""
    old = lasting(before.scene, scene.showing)
    scene, tools = _back(scene, tools, clients_groups(old, {tool.name: tool for tool in before.tools}))
    scene = structs.replace(
        scene,
        opened=old.opened,
        closed=old.closed,
        active=old.active,
        hidden=old.hidden,
        found=old.found,
        context=old.context,
        state=old.state,
        declared=old.declared,
    )
    return tidy(scene, tools), tools


def _back(scene: Scene, tools: dict[str, Definition], groups: list[ToolGroup]) -> tuple[Scene, dict[str, Definition]]:
    """With all groups that can be there; if not all can, then the others without skills that would need them."""
    try:
        return injected(scene, tools, groups)
    except InvalidToolDefinitions:
        fitting: list[ToolGroup] = []
        for group in groups:
            try:
                injected(scene, tools, [*fitting, structs.replace(group, skills=())])
            except InvalidToolDefinitions:
                continue
            fitting.append(structs.replace(group, skills=()))
        names = {group.name for group in fitting}
        whole = [group for group in groups if group.name in names]
    try:
        return injected(scene, tools, whole)
    except InvalidToolDefinitions:
        return injected(scene, tools, fitting)


def _taken(scene: Scene, tools: Mapping[str, Definition]) -> Iterable[Problem]:
    """Tools with the name of something else that the model can call."""
    functions = {group.function for group in scene.groups} | {each.function for each in scene.skills}
    taken = {skeleton(name) for name in functions | OWN_NAMES}
    for name in tools:
        if skeleton(name) in taken:
            message = f"Tool {name!r} is named like what opens a group or a skill, or finds tools"
            yield Problem("", message, "duplicate")


def _problems(scene: Scene, tools: Mapping[str, Definition], bring: Bring) -> Iterable[Problem]:
    for at, name in enumerate(bring.expanded):
        if scene.group(name) is None:
            yield Problem(f"/expanded/{at}", f"There is no group {name!r}", "unknown")
    for at, name in enumerate(bring.hidden):
        if name not in tools:
            yield Problem(f"/hidden/{at}", f"There is no tool {name!r}", "unknown")
        elif not is_clients(tools, name):
            yield Problem(f"/hidden/{at}", f"Tool {name!r} is not the client's", "owner")
