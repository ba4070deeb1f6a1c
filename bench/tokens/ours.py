"""Farhand: what the definitions cost that the model gets with a turn, when all are sent and when most are not.

A conversation has ten messages of the user, each of which needs one tool: with all tools shown two turns each, twenty
in all; else one more each, in which the model opens a group or searches. What it is told by that counts as well.

Counted is the JSON of the definitions as chat completions write them, compact, in the o200k_base encoding. What a
provider makes of it before its model reads it is not known; it costs each mode the same share.
"""

from typing import Any

from msgspec import json
from splintr import Tokenizer

from bench.tokens import tools
from farhand.core.definition import Definition
from farhand.core.group import ToolGroup, function_name
from farhand.core.opening import owners_scene
from farhand.core.scene import SEARCH, Scene, Showing
from farhand.core.shown import shown
from farhand.core.switches import switched

SIZES = (10, 100, 1000)
MODES = ("flat", "searched", "collapsed")
ENCODING = Tokenizer.from_pretrained("o200k_base")
assert ENCODING.encode("hello world") == [24912, 2375]


def staged(mode: str, groups: list[ToolGroup]) -> tuple[dict[str, Definition], Scene]:
    """The tools, and what of them is open when a conversation begins."""
    known = {tool.name: tool for group in groups for tool in group.tools}
    above = 0 if mode == "searched" else len(known)
    scene = None if mode == "flat" else owners_scene(groups, (), known.values(), Showing(search_above=above))
    return known, scene or Scene()


def sent(mode: str, groups: list[ToolGroup]) -> list[Definition]:
    """What the first turn of a conversation sends."""
    return list(shown(*staged(mode, groups)).tools)


def conversation(mode: str, groups: list[ToolGroup]) -> int:
    """Tokens of the definitions of all turns, and of what is told on the way to them."""
    known, first = staged(mode, groups)
    total = 0
    for at, group in enumerate(groups):
        needed = group.tools[at % len(group.tools)]
        scene = first
        if mode != "flat":
            total += count(list(shown(known, scene).tools))
            name, arguments = function_name(group.name), {}
            if mode == "searched":
                name, arguments = SEARCH, {"query": needed.description.partition(".")[0]}
            done = switched(scene, known, name, json.encode(arguments).decode())
            assert done is not None
            scene = done.scene
            total += 2 * len(ENCODING.encode(bytes(done.result).decode()))  # it is read in each turn that follows
        seen = shown(known, scene).tools
        assert needed in seen
        total += 2 * count(list(seen))
    return total


def written(definition: Definition) -> dict[str, Any]:
    """A definition as chat completions take it: what only Farhand knows of it stays here."""
    inner = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
    return {"type": "function", "function": inner}


def count(definitions: list[Definition]) -> int:
    return len(ENCODING.encode(json.encode([written(definition) for definition in definitions]).decode()))


async def tokens() -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        groups = tools.groups(size)
        assert sum(len(group.tools) for group in groups) == size
        for mode in MODES:
            definitions = sent(mode, groups)
            counted = {"definitions": len(definitions), "tokens": count(definitions)}
            rows.append({"tools": size, "mode": mode, **counted, "conversation": conversation(mode, groups)})
    return {"rows": rows}
