"""Farhand: what the definitions cost that the model gets with a turn, when all are sent and when most are not.

Counted is the JSON of the definitions as chat completions write them, compact, in the o200k_base encoding. What a
provider makes of it before its model reads it is not known; it costs each mode the same share.
"""

from typing import Any

from msgspec import json
from splintr import Tokenizer

from bench.tokens import tools
from farhand.core.definition import Definition
from farhand.core.group import ToolGroup

SIZES = (10, 100, 1000)
MODES = ("flat", "searched", "collapsed")
ENCODING = Tokenizer.from_pretrained("o200k_base")
assert ENCODING.encode("hello world") == [24912, 2375]


def sent(mode: str, groups: list[ToolGroup]) -> list[Definition] | None:
    """What the first turn of a conversation sends; None if there is no such way yet."""
    return [tool for group in groups for tool in group.tools] if mode == "flat" else None


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
            row = {"tools": size, "mode": mode}
            if definitions is not None:
                row |= {"definitions": len(definitions), "tokens": count(definitions)}
            rows.append(row)
    return {"rows": rows}
