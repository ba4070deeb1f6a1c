"""Where a schema says that a value is secret, and the same value with a mask in those places.

A subschema is marked by `"secret": true`, or by `"format": "password"`. Whatever may apply to a value counts, whether
it does or not: a mark in one branch of an `anyOf` masks the value in all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from msgspec import json

from farhand.core.schema_graph import Document

MASK: Final = "[secret]"
"""What stands in the place of a secret."""

_Nodes = frozenset[int]


def is_marked(node: Mapping[str, object]) -> bool:
    """Whether this subschema says that its value is secret."""
    return node.get("secret") is True or node.get("format") == "password"


def marks_of(schema: object, raw: bytes) -> "Marks | None":
    """The marks of a schema that may come in; None if it has none."""
    if not (b"secret" in raw or b"password" in raw or b"\\u" in raw) or not isinstance(schema, dict):
        return None
    marks = Marks(Document(cast("Mapping[str, object]", schema)))
    return marks if marks.top is not None else None


class Missing(Exception):
    """A mask was sent back where no secret stood; `path` says where."""

    def __init__(self, path: tuple[str | int, ...]) -> None:
        super().__init__("there is no secret behind this mask")
        self.path = path


class _Spot:
    """All that may apply to one value, and what of it applies to the parts of that value. Found out as it is needed."""

    __slots__ = ("entries", "marked", "members", "nodes", "other", "rest")

    def __init__(self, nodes: _Nodes, *, marked: bool) -> None:
        self.nodes = nodes
        self.marked = marked
        self.members: dict[str, _Spot | None] | None = None
        self.other: _Spot | None = None
        """Of members that no subschema names."""
        self.entries: Sequence[_Spot | None] = ()
        self.rest: _Spot | None = None
        """Of the entries after those."""


class Marks:
    """The marks of one schema. Values of any size are masked in one look at each of their parts."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._reaching = _reaching(document)
        self._spots: dict[_Nodes, _Spot] = {}
        self.top = self._spot([0])

    def masked(self, value: object) -> object:
        """The value with masks."""
        return self._masked(self.top, value)

    def restored(self, value: object, before: object) -> object:
        """A value that somebody made of a masked one, with the secrets of `before` in place of the masks that are left.

        Raises `Missing` for a mask that is not where it was. An entry of a list is the same only if all of it is.
        """
        return self._restored(self.top, value, before, True, ())

    def _masked(self, spot: _Spot | None, value: object) -> object:
        if spot is None:
            return value
        if spot.marked:
            return MASK
        if isinstance(value, dict):
            self._look_into(spot)
            members = cast("dict[str, object]", value)
            return {name: self._masked(_member(spot, name), item) for name, item in members.items()}
        if isinstance(value, list):
            self._look_into(spot)
            entries = cast("list[object]", value)
            return [self._masked(_entry(spot, at), item) for at, item in enumerate(entries)]
        return value

    def _restored(
        self, spot: _Spot | None, value: object, before: object, there: bool, path: tuple[str | int, ...]
    ) -> object:
        if spot is None:
            return value
        if spot.marked:
            if value != MASK:
                return value
            if not there:
                raise Missing(path)
            return before
        if isinstance(value, dict):
            self._look_into(spot)
            known = cast("dict[str, object]", before) if isinstance(before, dict) else {}
            return {
                name: self._restored(_member(spot, name), item, known.get(name), name in known, (*path, name))
                for name, item in cast("dict[str, object]", value).items()
            }
        if isinstance(value, list):
            self._look_into(spot)
            found = cast("list[object]", before) if isinstance(before, list) else []
            return [
                found[at]
                if at < len(found) and _same(self._masked(_entry(spot, at), found[at]), item)
                else self._restored(_entry(spot, at), item, None, False, (*path, at))
                for at, item in enumerate(cast("list[object]", value))
            ]
        return value

    def _spot(self, nodes: Iterable[int]) -> _Spot | None:
        """The spot where all these apply; None if nothing at it or below it is marked."""
        applying = dict.fromkeys(nodes)
        rest = list(applying)
        for node in rest:  # what applies in place is added on the way
            for edge in self._document.edges[node]:
                if edge.in_place and edge.target not in applying:
                    applying[edge.target] = None
                    rest.append(edge.target)
        kept = frozenset(node for node in rest if node in self._reaching)
        if not kept:
            return None
        if kept not in self._spots:
            self._spots[kept] = _Spot(kept, marked=any(map(self._is_secret, kept)))
        return self._spots[kept]

    def _is_secret(self, node: int) -> bool:
        """Whether the whole value is, also where only the names of its members are."""
        names = [edge.target for edge in self._document.edges[node] if edge.word == "propertyNames"]
        return is_marked(self._document.nodes[node]) or not self._reaching.isdisjoint(names)

    def _look_into(self, spot: _Spot) -> None:
        """Find the spots one level down."""
        if spot.members is not None:
            return
        parts = [_Parts(self._document, node) for node in spot.nodes]
        spot.other = self._spot(target for part in parts for target in part.members("", named=False))
        spot.members = {
            name: self._spot(target for part in parts for target in part.members(name, named=True))
            for name in {name for part in parts for name in part.names}
        }
        longest = max([part.length for part in parts])
        entries = [[target for part in parts for target in part.entries(at)] for at in range(longest + 1)]
        *spot.entries, spot.rest = map(self._spot, entries)


class _Parts:
    """What one subschema says of the parts of a value."""

    def __init__(self, document: Document, node: int) -> None:
        schema = document.nodes[node]
        self.names = frozenset(cast("Mapping[str, object]", schema.get("properties") or {}))
        placed = schema.get("prefixItems", schema.get("items"))
        self.length = len(cast("list[object]", placed)) if isinstance(placed, list) else 0
        self._edges = [edge for edge in document.edges[node] if not edge.in_place]

    def members(self, name: str, *, named: bool) -> Iterator[int]:
        """What applies to a member of this name, or to one that is named nowhere. Any pattern may fit any name."""
        for edge in self._edges:
            if edge.word == "properties":
                if named and edge.label == name:
                    yield edge.target
            elif edge.word == "patternProperties" or (edge.word in _OTHERS and not (named and name in self.names)):
                yield edge.target

    def entries(self, at: int) -> Iterator[int]:
        """What applies to an entry of a list."""
        for edge in self._edges:
            if isinstance(edge.label, int):
                if edge.label == at:
                    yield edge.target
            elif edge.word == "contains" or (edge.word in _REST and at >= self.length):
                yield edge.target


_OTHERS = frozenset({"additionalProperties", "unevaluatedProperties"})
_REST = frozenset({"items", "additionalItems", "unevaluatedItems"})


def _same(one: object, other: object) -> bool:
    return json.encode(one, order="sorted") == json.encode(other, order="sorted")


def _member(spot: _Spot, name: str) -> _Spot | None:
    assert spot.members is not None
    return spot.members.get(name, spot.other)


def _entry(spot: _Spot, at: int) -> _Spot | None:
    return spot.entries[at] if at < len(spot.entries) else spot.rest


def _reaching(document: Document) -> frozenset[int]:
    """The subschemas that are marked, or have a mark somewhere below."""
    above: dict[int, list[int]] = {}
    for node, edges in enumerate(document.edges):
        for edge in edges:
            above.setdefault(edge.target, []).append(node)
    found = [node for node, schema in enumerate(document.nodes) if is_marked(schema)]
    known = set(found)
    for node in found:
        for source in above.get(node, ()):
            if source not in known:
                known.add(source)
                found.append(source)
    return frozenset(known)
