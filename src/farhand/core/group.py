"""A group: tools that are opened and closed under one name. What it must have, and how groups come in from outside.

It does not know what is open, hidden or shown in a thread, and it makes no name unique: tables of names do.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, cast

from msgspec import Raw, Struct, json, to_builtins

from farhand.core.admission import OUTSIDE, AdmissionLimits, text_problem
from farhand.core.definition import (
    Definition,
    InvalidToolDefinitions,
    dump_definition,
    encoded,
    readable_text,
    safe_validate_tool_definitions,
    skeleton,
)
from farhand.core.errors import UsageError
from farhand.core.problem import Problem, json_type, pointer
from farhand.core.skill import Document, Reference, Skill, document_problems, skill_problems
from farhand.core.strict_json import BadJson, parse

_WHAT = "client tool groups"
_SKILL_TEXTS = ("name", "description", "note", "instructions")
_SKILL = frozenset({*_SKILL_TEXTS, "tools", "documents"})
_REFERENCE = frozenset({"tool", "group"})
_DOCUMENT = frozenset({"id", "description", "content", "url"})


class ToolGroup(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Tools under one name, which is free text."""

    name: str
    tools: tuple[Definition, ...]
    description: str = ""
    """When to open it; a group that starts collapsed must say so."""
    expansion_note: str | None = None
    """Told once, when the group is expanded."""
    instructions: str | None = None
    """Hold as long as it is expanded."""
    collapsed: bool = True
    """Whether it starts as one name that stands for all its tools."""
    skills: tuple[Skill, ...] = ()
    """Can be taken up while the group is open."""

    def __post_init__(self) -> None:
        problems = tuple(_rules(self.name, self.description, len(self.tools), collapsed=self.collapsed))
        if problems:
            raise UsageError("; ".join(problem.message for problem in problems))


def dump_group(group: ToolGroup) -> dict[str, Any]:
    """The group as JSON objects that `validate_tool_groups` takes."""
    said: dict[str, Any] = {"name": group.name, "tools": [dump_definition(tool) for tool in group.tools]}
    optional = {
        "description": group.description,
        "expansionNote": group.expansion_note,
        "instructions": group.instructions,
        "skills": to_builtins(group.skills),
    }
    said.update((key, value) for key, value in optional.items() if value)
    return said if group.collapsed else {**said, "collapsed": False}


def function_name(name: str) -> str:
    """The name under which a model can call what has a free name: `Complete Checkout` is `Complete_Checkout`."""
    words = "_".join(re.findall(r"[A-Za-z0-9]+", name))
    return (words if words[:1].isalpha() else f"group_{words}")[:64].rstrip("_")


def validate_tool_groups(value: object, limits: AdmissionLimits = OUTSIDE) -> tuple[ToolGroup, ...]:
    """Groups of a client, as JSON text or parsed; InvalidToolDefinitions holds every reason why one is refused."""
    try:
        document = encoded(value)
        given = parse(document, max_bytes=limits.definition_bytes * limits.tools, max_depth=limits.json_depth)
    except BadJson as error:
        raise _refusal([Problem("", f"is not JSON: {error.reason}", "json")]) from None
    except Exception:  # noqa: BLE001  an object that imitates a list or a text runs code of its own
        raise _refusal([Problem("", "is not a JSON value", "json")]) from None
    if not isinstance(given, list):
        raise _refusal([Problem("", f"Invalid input: expected array, received {json_type(given)}", "type")])
    problems: list[Problem] = []
    groups: list[ToolGroup] = []
    for at, raw in enumerate(json.decode(document, type=list[Raw])):
        reader = _Reader(f"/{at}", limits)
        group = reader.read(raw, cast("list[object]", given)[at])
        problems += reader.problems
        if group is not None and not reader.problems:
            groups.append(group)
    problems += totals(groups, limits)
    if problems:
        raise _refusal(problems)
    return register((), groups)


def register(
    known: Iterable[ToolGroup], given: Iterable[ToolGroup], *, reserved: Collection[str] = (), replace: bool = False
) -> tuple[ToolGroup, ...]:
    """All groups once the given ones are there too; or InvalidToolDefinitions, and nothing has come in.

    A name of a tool belongs to one owner: a group, or the server, whose names are `reserved`.
    """
    before = {skeleton(group.name): group for group in known}
    new: dict[str, ToolGroup] = {}
    given = tuple(given)
    problems: list[Problem] = []
    for at, group in enumerate(given):
        key = skeleton(group.name)
        there = new.get(key) or (None if replace else before.get(key))
        if there is not None:
            problems.append(Problem(f"/{at}/name", f"There is a group {there.name!r} already", "duplicate"))
        new.setdefault(key, group)
    owners = {skeleton(name): "the server" for name in reserved}
    for key, group in before.items():
        if key not in new:
            owners.update((skeleton(tool.name), f"group {group.name!r}") for tool in group.tools)
    for at, group in enumerate(given):
        problems += _clashes(f"/{at}", group, owners)
    if problems:
        raise _refusal(problems)
    return tuple({**before, **new}.values())


def _clashes(base: str, group: ToolGroup, owners: dict[str, str]) -> Iterator[Problem]:
    """The tools of a group whose names have an owner; the others belong to the group from now on."""
    for at, tool in enumerate(group.tools):
        key = skeleton(tool.name)
        if key in owners:
            message = f"Tool {tool.name!r} of group {group.name!r} is named like a tool of {owners[key]}"
            yield Problem(f"{base}/tools/{at}/name", message, "duplicate")
        else:
            owners[key] = f"group {group.name!r}"


def _refusal(problems: list[Problem]) -> InvalidToolDefinitions:
    return InvalidToolDefinitions(tuple(problems), what=_WHAT)


def _rules(name: str, description: str, tools: int, *, collapsed: bool) -> Iterator[Problem]:
    if not name.strip():
        yield Problem("/name", "Group name is required", "name")
    if not tools:
        yield Problem("/tools", "Group must contain at least one tool", "tools")
    if collapsed and not description.strip():
        message = f"Group {name!r} starts collapsed: it needs a description that tells the model when to expand it"
        yield Problem("/description", message, "description")


def totals(groups: list[ToolGroup], limits: AdmissionLimits) -> Iterator[Problem]:
    """What one client may bring does not grow with the number of its groups."""
    if sum(len(group.tools) for group in groups) > limits.tools:
        yield Problem("", f"Too big: all groups together have more than {limits.tools} tools", "tools")
    texts = 0
    for group in groups:
        own = (group.name, group.description, group.expansion_note or "", group.instructions or "")
        texts += sum(map(len, own)) + sum(map(readable_text, group.tools)) + sum(map(_words, group.skills))
    if texts > limits.client_text:
        message = f"Too big: all texts together have more than {limits.client_text} characters"
        yield Problem("", message, "client_text")


def _words(skill: Skill) -> int:
    """What is read of a skill; its documents have a limit of their own."""
    return len(skill.name) + len(skill.description) + len(skill.note or "") + len(skill.instructions or "")


class _Reader:
    """Reads one group from outside and collects what is wrong with it."""

    def __init__(self, base: str, limits: AdmissionLimits) -> None:
        self.base = base
        self.limits = limits
        self.problems: list[Problem] = []

    def read(self, raw: Raw, value: object) -> ToolGroup | None:
        """The group, if nothing is wrong."""
        if not isinstance(value, dict):
            self._refuse("", f"Invalid input: expected object, received {json_type(value)}", "type")
            return None
        fields: dict[str, Any] = {"tools": ()}
        slices = json.decode(raw, type=dict[str, Raw])
        for key, item in cast("dict[str, object]", value).items():
            field = "expansion_note" if key == "expansionNote" else key
            if key == "tools":
                fields["tools"] = self._tools(slices["tools"])
            elif key == "skills":
                fields["skills"] = tuple(self._skills(item))
            elif key == "collapsed":
                fields["collapsed"] = self._flag(item)
            elif field in ("name", "description", "expansion_note", "instructions"):
                fields[field] = self._text(f"/{key}", item)
            else:
                self._refuse(pointer((key,)), f'Unrecognized key: "{key[:64]}"', "keyword")
        fields = {key: item for key, item in fields.items() if item is not None}
        told = {problem.path for problem in self.problems}
        for problem in _rules(
            fields.get("name", ""),
            fields.get("description", ""),
            len(fields.get("tools", "?")),
            collapsed=fields.get("collapsed", True),
        ):
            if self.base + problem.path not in told:
                self._refuse(problem.path, problem.message, problem.rule)
        return None if self.problems else ToolGroup(**fields)

    def _tools(self, raw: Raw) -> tuple[Definition, ...] | None:
        """The group's tools; None when they are refused, for a reason of their own."""
        check = safe_validate_tool_definitions(bytes(raw), self.limits)
        for problem in check.errors:
            self._refuse(f"/tools{problem.path}", problem.message, problem.rule)
        return check.data

    def _skills(self, value: object) -> Iterator[Skill]:
        for base, given in self._objects("/skills", value, _SKILL):
            texts = {key: self._text(f"{base}/{key}", given.get(key)) for key in _SKILL_TEXTS}
            references = tuple(self._references(f"{base}/tools", given.get("tools", [])))
            documents = tuple(self._documents(f"{base}/documents", given.get("documents", [])))
            if self._fine(base, skill_problems(texts["name"] or "", texts["description"] or "")):
                yield Skill(**texts, tools=references, documents=documents)  # pyright: ignore[reportArgumentType]

    def _references(self, base: str, value: object) -> Iterator[Reference]:
        named = [cast("object", {"tool": each} if isinstance(each, str) else each) for each in _items(value)]
        for at, given in self._objects(base, named if isinstance(value, list) else value, _REFERENCE):
            tool, group = (self._text(f"{at}/{key}", given.get(key)) or "" for key in ("tool", "group"))
            if self._fine(at, [] if tool else [Problem("/tool", "Tool name is required", "name")]):
                yield Reference(tool, group)

    def _documents(self, base: str, value: object) -> Iterator[Document]:
        for at, given in self._objects(base, value, _DOCUMENT):
            texts = {key: self._text(f"{at}/{key}", given.get(key)) for key in ("id", "description", "url")}
            content = given.get("content")
            if content is not None and not isinstance(content, str):
                self._refuse(f"{at}/content", f"Invalid input: expected string, received {json_type(content)}", "type")
            elif self._fine(at, document_problems(texts["id"] or "", content, texts["url"])):
                description = texts["description"] or ""
                yield Document(id=texts["id"] or "", description=description, content=content, url=texts["url"])

    def _objects(self, base: str, value: object, known: frozenset[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The objects of a list, each with its path, as far as they have nothing but known keys."""
        items = _items(value)
        if not isinstance(value, list):
            self._refuse(base, f"Invalid input: expected array, received {json_type(value)}", "type")
        for at, item in enumerate(items):
            if not isinstance(item, dict):
                self._refuse(f"{base}/{at}", f"Invalid input: expected object, received {json_type(item)}", "type")
                continue
            given = cast("dict[str, Any]", item)
            unknown = [key for key in given if key not in known]
            for key in unknown:
                self._refuse(f"{base}/{at}{pointer((key,))}", f'Unrecognized key: "{key[:64]}"', "keyword")
            if not unknown:
                yield f"{base}/{at}", given

    def _fine(self, base: str, problems: Iterable[Problem]) -> bool:
        before = len(self.problems)
        for problem in problems:
            self._refuse(base + problem.path, problem.message, problem.rule)
        return len(self.problems) == before

    def _flag(self, value: object) -> bool | None:
        if isinstance(value, bool):
            return value
        self._refuse("/collapsed", f"Invalid input: expected boolean, received {json_type(value)}", "type")
        return None

    def _text(self, path: str, value: object) -> str | None:
        """A text; null is none. Those without a limit of their own count to the limit of all texts."""
        if not isinstance(value, str):
            if value is not None:
                self._refuse(path, f"Invalid input: expected string, received {json_type(value)}", "type")
            return None
        key = path.rpartition("/")[2]
        short = self.limits.name if key in ("name", "id", "tool", "group") else self.limits.client_text
        most = self.limits.description if key == "description" else short
        reason = text_problem(value) if self.limits.plain_text else None
        if len(value) > most:
            self._refuse(path, f"Too big: expected string to have <={most} characters", key)
        elif reason:
            self._refuse(path, reason, "text")
        return value

    def _refuse(self, path: str, message: str, rule: str) -> None:
        self.problems.append(Problem(self.base + path, message, rule))


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
