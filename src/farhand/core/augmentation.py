"""What a client asks to be changed beside its result: read, held against what the owner allows, and applied.

All of it or nothing. The result itself counts either way: it is a fact, and this is a wish.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import UNSET, Raw, Struct, UnsetType, json, structs

from farhand.core.admission import OUTSIDE, AdmissionLimits, text_problem
from farhand.core.definition import Definition, InvalidToolDefinitions
from farhand.core.group import ToolGroup, validate_tool_groups
from farhand.core.merge_patch import merge_patch
from farhand.core.problem import Problem, first_of, json_type, pointer
from farhand.core.registration import injected, is_clients, removed, too_much
from farhand.core.scene import (
    CLIENT,
    Allowed,
    ContextItem,
    Scene,
    collapsed,
    expanded,
    with_context,
    with_hidden,
)
from farhand.core.strict_json import BadJson, parse

CONTEXT_ITEMS = 64
STATE_BYTES = 65_536
"""Of a client's state, and of all context items together."""
NAMES = 256
"""In one list of a wish."""
NAME = 256
"""Characters of one of them."""


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
        super().__init__(first_of(problems), what="augmentation")


_NAMES: Mapping[str, Allowed] = {
    "remove": "remove",
    "expand": "expand",
    "collapse": "expand",
    "hide": "hide",
    "show": "hide",
    "remove_context": "context",
}
_PATHS = {
    "declared": "inject",
    "add_context": "addContext",
    "remove_context": "removeContext",
    "update_state": "updateState",
    "patch_state": "patchState",
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
    fields = _Reader(limits).wish(json.decode(raw, type=dict[str, Raw]), cast("dict[str, object]", given))
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
        problems = list(too_much(scene, all_tools, OUTSIDE)) if wish.inject else []
    if wish.remove and not problems:
        scene, all_tools = _without(scene, all_tools, wish.remove)
    problems += _unknown(scene, all_tools, wish)
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
            yield Problem(
                f"/{_PATHS.get(field, field)}",
                "The owner of this agent does not allow this to come with a result",
                "policy",
            )


def _foreign(scene: Scene, tools: Mapping[str, Definition], wish: Augmentation) -> Iterator[Problem]:
    """What is somebody else's: a client changes its own."""
    for field in ("remove", "expand", "collapse"):
        for at, name in enumerate(getattr(wish, field)):
            group = scene.group(name)
            if group is not None and group.source != CLIENT:
                yield Problem(f"/{field}/{at}", f"Group {name!r} is not the client's", "owner")
    for field in ("hide", "show"):
        for at, name in enumerate(getattr(wish, field)):
            if name in tools and not is_clients(tools, name):
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


def _without(scene: Scene, tools: dict[str, Definition], names: Iterable[str]) -> tuple[Scene, dict[str, Definition]]:
    problems = [
        Problem(f"/remove/{at}", f"There is no group {name!r}", "unknown")
        for at, name in enumerate(names)
        if scene.group(name) is None
    ]
    if problems:
        raise AugmentationRefused(problems)
    return removed(scene, tools, names)


class _Reader:
    """Reads the parts of a wish and collects what is wrong with them."""

    def __init__(self, limits: AdmissionLimits) -> None:
        self.limits = limits
        self.problems: list[Problem] = []

    def refuse(self, path: str, message: str, rule: str) -> None:
        self.problems.append(Problem(path, message, rule))

    def wish(self, slices: Mapping[str, Raw], given: Mapping[str, object]) -> dict[str, Any]:
        """All its parts, or AugmentationRefused."""
        fields: dict[str, Any] = {}
        for key, value in given.items():
            name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
            if name not in _KNOWN:
                self.refuse(pointer((key,)), f'Unrecognized key: "{key[:64]}"', "keyword")
            elif name in fields:
                self.refuse(pointer((key,)), "Is there in another spelling already", "duplicate")
            elif value is not None or name == "update_state":
                fields[name] = self._part(name, pointer((key,)), slices[key], value)
        if self.problems:
            raise AugmentationRefused(self.problems)
        if "inject" in fields:
            fields["declared"], fields["inject"] = fields["inject"]
        return fields

    def _part(self, name: str, path: str, raw: Raw, value: object) -> object:
        if name == "inject":
            return self.groups(path, raw, value)
        if name == "add_context":
            return self.context(path, value)
        return self.names(path, value) if name in _NAMES else raw

    def groups(self, path: str, raw: Raw, value: object) -> tuple[tuple[str, ...], tuple[ToolGroup, ...]]:
        """Names of declared groups, and groups nobody has seen before."""
        if not isinstance(value, list):
            self.refuse(path, f"Invalid input: expected array, received {json_type(value)}", "type")
            return (), ()
        items = cast("list[object]", value)
        slices = json.decode(raw, type=list[Raw])
        names = tuple(item for item in items if isinstance(item, str))
        self._refuse_many(path, names)
        given = [slices[at] for at, item in enumerate(items) if not isinstance(item, str)]
        try:
            return names, validate_tool_groups(json.encode(given), self.limits) if given else ()
        except InvalidToolDefinitions as error:
            self.problems += [Problem(path + each.path, each.message, each.rule) for each in error.problems]
            return names, ()

    def names(self, path: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
            self.refuse(path, "Invalid input: expected array of strings", "type")
            return ()
        names = tuple(cast("list[str]", value))
        self._refuse_many(path, names)
        return names

    def _refuse_many(self, path: str, names: tuple[str, ...]) -> None:
        """What is refused is written down, with these names in it."""
        if len(names) > NAMES:
            self.refuse(path, f"Too many: {NAMES} names at most", "names")
        if any(len(name) > NAME for name in names):
            self.refuse(path, f"Too big: a name has {NAME} characters at most", "names")

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
        for key in [key for key in given if key not in ("description", "value", "key")]:
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
