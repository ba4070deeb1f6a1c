"""A schema as a graph: where its subschemas lie, where its references lead, and what following them can cost.

It judges references, cycles and cost of documents that may have them; words, sizes and texts belong to `admission`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, cast
from urllib.parse import unquote, urldefrag, urljoin

from farhand.core.problem import Problem, pointer

Token = str | int
Json = Mapping[str, object]


class Step(Enum):
    """How a subschema hangs below its parent."""

    ROOT = auto()
    IN_PLACE = auto()
    """Applies to the same value as its parent."""
    CHILD = auto()
    """Applies to a part of the value."""
    ADDITIONAL = auto()
    """A child where `true`, `false` and `{}` are ordinary."""
    KEPT = auto()
    """Applies only if something refers to it."""


_ONE = {
    "not": Step.IN_PLACE,
    "if": Step.IN_PLACE,
    "then": Step.IN_PLACE,
    "else": Step.IN_PLACE,
    "items": Step.CHILD,
    "contains": Step.CHILD,
    "propertyNames": Step.CHILD,
    "additionalItems": Step.CHILD,
    "unevaluatedItems": Step.CHILD,
    "unevaluatedProperties": Step.CHILD,
    "additionalProperties": Step.ADDITIONAL,
    "contentSchema": Step.KEPT,
}
_LIST = {
    "allOf": Step.IN_PLACE,
    "anyOf": Step.IN_PLACE,
    "oneOf": Step.IN_PLACE,
    "items": Step.CHILD,  # draft 7
    "prefixItems": Step.CHILD,
}
_MAP = {
    "dependentSchemas": Step.IN_PLACE,
    "dependencies": Step.IN_PLACE,  # draft 7
    "properties": Step.CHILD,
    "patternProperties": Step.CHILD,
    "$defs": Step.KEPT,
    "definitions": Step.KEPT,
}
_ARRAY_WORDS = frozenset({"items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"})


def subschemas(schema: Json) -> Iterator[tuple[tuple[Token, ...], object, Step]]:
    """Everything that stands where a subschema should stand, in document order, with its way there."""
    for word, value in schema.items():
        if isinstance(value, list):
            if word in _LIST:
                for at, item in enumerate(cast("list[object]", value)):
                    yield (word, at), item, _LIST[word]
        elif word in _ONE:
            yield (word,), value, _ONE[word]
        elif word in _MAP and isinstance(value, dict):
            for key, item in cast("dict[str, object]", value).items():
                if not (word == "dependencies" and isinstance(item, list)):
                    yield (word, key), item, _MAP[word]


def graph_problems(schema: object, *, cost: int, chain: int) -> tuple[Problem, ...]:
    """References that leave the document or circle in place, and what would take exponential work."""
    if not isinstance(schema, dict):
        return ()
    document = Document(cast("Json", schema))
    if document.problems:
        return tuple(document.problems)
    return tuple(_Costs(document, cost, chain).problems())


def is_recursive(schema: object) -> bool:
    """Whether validation may go as deep as the value goes."""
    if not isinstance(schema, dict):
        return False
    document = Document(cast("Json", schema))
    return any(len(part) > 1 or part[0] in document.targets(part[0]) for part in _components(document))


class Edge(NamedTuple):
    target: int
    in_place: bool
    word: str
    label: Token


class Document:
    """The nodes of one schema document and the edges between them, references resolved."""

    def __init__(self, root: Json) -> None:
        self.problems: list[Problem] = []
        self.nodes: list[Json] = []
        self.paths: list[str] = []
        self.edges: list[list[Edge]] = []
        self._index: dict[int, int] = {}
        self._bases: list[str] = []
        self._resources: dict[str, int] = {}
        self._anchors: dict[tuple[str, str], int] = {}
        self._dynamic: dict[str, list[int]] = {}
        self._draft_7 = "draft-07" in str(root.get("$schema", ""))
        self._resources[""] = 0
        self._discover(root, "", "")
        at = 0
        while at < len(self.nodes):  # references into unknown keywords add nodes on the way
            self.edges.append(list(self._edges_of(at)))
            at += 1

    def targets(self, node: int) -> list[int]:
        return [edge.target for edge in self.edges[node]]

    def _discover(self, schema: Json, base: str, path: str) -> None:
        rest = [(schema, base, path)]
        while rest:
            node, base, path = rest.pop()
            if id(node) in self._index:
                continue
            number = self._index[id(node)] = len(self.nodes)
            base = self._name(node, base, number)
            self.nodes.append(node)
            self.paths.append(path)
            self._bases.append(base)
            rest.extend(
                (cast("Json", item), base, path + pointer(tokens))
                for tokens, item, _ in subschemas(node)
                if isinstance(item, dict)
            )

    def _name(self, node: Json, base: str, number: int) -> str:
        """Note the names that this node gives itself; returns the base for what is inside it."""
        own = node.get("$id")
        if isinstance(own, str) and not (self._draft_7 and "$ref" in node):
            uri, fragment = urldefrag(_join(base, own))
            if fragment:  # draft 7 writes an anchor so
                self._anchors[base, fragment] = number
            else:
                base = uri
                self._resources[base] = number
        for word in ("$anchor", "$dynamicAnchor"):
            name = node.get(word)
            if isinstance(name, str):
                self._anchors[base, name] = number
                if word == "$dynamicAnchor":
                    self._dynamic.setdefault(name, []).append(number)
        return base

    def _edges_of(self, number: int) -> Iterator[Edge]:
        node = self.nodes[number]
        for word in ("$ref", "$dynamicRef"):
            reference = node.get(word)
            if isinstance(reference, str):
                for target in self._resolve(number, word, reference):
                    yield Edge(target, True, word, "")
        if self._draft_7 and "$ref" in node:
            return  # draft 7 ignores what stands beside a reference
        for tokens, item, step in subschemas(node):
            if step is not Step.KEPT and isinstance(item, dict):
                yield Edge(self._index[id(cast("Json", item))], step is Step.IN_PLACE, str(tokens[0]), tokens[-1])

    def _resolve(self, number: int, word: str, reference: str) -> list[int]:
        uri, fragment = urldefrag(_join(self._bases[number], reference))
        fragment = unquote(fragment)
        root = self._resources.get(uri)
        path = f"{self.paths[number]}/{word}"
        if root is None:
            self.problems.append(Problem(path, "leads out of the document, which is not allowed", word))
            return []
        if fragment and not fragment.startswith("/"):
            found = self._anchors.get((uri, fragment))
            if word == "$dynamicRef" and found in self._dynamic.get(fragment, ()):
                return self._dynamic[fragment]  # whichever of them is outermost when it runs
        else:
            found = self._point(root, fragment)
        if found is None:
            self.problems.append(Problem(path, "leads to nothing in the document", word))
            return []
        return [] if found < 0 else [found]

    def _point(self, root: int, fragment: str) -> int | None:
        """The node at a JSON Pointer; -1 for `true` and `false`, None for nothing."""
        place: object = self.nodes[root]
        base, path = self._bases[root], self.paths[root]
        for raw in fragment.split("/")[1:]:
            token = raw.replace("~1", "/").replace("~0", "~")
            place = _member(place, token)
            path += pointer((token,))
            known = self._index.get(id(place))
            base = base if known is None else self._bases[known]
        if isinstance(place, bool):
            return -1
        if not isinstance(place, dict):
            return None
        node = cast("dict[str, object]", place)
        self._discover(node, base, path)
        return self._index[id(node)]


def _member(place: object, token: str) -> object:
    if isinstance(place, dict):
        return cast("dict[str, object]", place).get(token)
    entries = cast("list[object]", place if isinstance(place, list) else [])
    return entries[int(token)] if re.fullmatch("[0-9]{1,9}", token) and int(token) < len(entries) else None


def _join(base: str, reference: str) -> str:
    # urljoin does not know how to add a fragment to urn: and other schemes without a path.
    return urldefrag(base)[0] + reference if reference.startswith("#") else urljoin(base, reference)


class _Costs:
    """What a validator may have to do for one value: fan-out, cycles and expansion through references, bounded."""

    def __init__(self, document: Document, cost: int, chain: int) -> None:
        self.document, self.cost, self.chain = document, cost, chain
        self.part: dict[int, int] = {}
        self.parts = _components(document)
        for number, part in enumerate(self.parts):
            self.part.update(dict.fromkeys(part, number))

    def problems(self) -> Iterator[Problem]:
        try:
            order = self._order()
        except CycleError as error:
            at = min(cast("list[int]", error.args[1]))
            yield Problem(self.document.paths[at], "refers to itself for one and the same value", "cycle")
            return
        yield from self._sizes(order)
        yield from self._doublings(order)

    def _order(self) -> list[int]:
        """Every node after all it leads to, left out the steps by which a recursion goes one level down."""
        graph = TopologicalSorter[int]()
        for node, edges in enumerate(self.document.edges):
            graph.add(node, *(edge.target for edge in edges if not self._goes_round(node, edge)))
        return list(graph.static_order())

    def _goes_round(self, node: int, edge: Edge) -> bool:
        return not edge.in_place and self.part[node] == self.part[edge.target]

    def _sizes(self, order: list[int]) -> Iterator[Problem]:
        size: dict[int, int] = {}
        chain: dict[int, int] = {}
        for node in order:
            edges = [edge for edge in self.document.edges[node] if not self._goes_round(node, edge)]
            size[node] = 1 + sum(size[edge.target] for edge in edges)
            chain[node] = 1 + max((chain[edge.target] for edge in edges if edge.in_place), default=0)
            if size[node] > self.cost:
                message = f"becomes more than {self.cost} subschemas when its references are written out"
                yield Problem(self.document.paths[node], message, "cost")
                return
            if chain[node] > self.chain:
                message = f"has more than {self.chain} subschemas one inside the other"
                yield Problem(self.document.paths[node], message, "chain")
                return

    def _doublings(self, order: list[int]) -> Iterator[Problem]:
        """Two ways from one value to one recursive part double the work with every level of the value."""
        heads = {edge.target for node in order for edge in self.document.edges[node] if self._goes_round(node, edge)}
        for head in sorted(heads):
            if self._doubles(head):
                message = "is reached in two ways for one value, and recursive: the work would double with every level"
                yield Problem(self.document.paths[head], message, "recursion")
                return

    def _doubles(self, head: int) -> bool:
        """Whether two of the steps down from one value may lead from the same part of it into this recursion."""
        down = [
            (at, edge)
            for at, node in enumerate(self._in_place(head))
            for edge in self.document.edges[node]
            if not edge.in_place and edge.word != "propertyNames" and self.part[edge.target] == self.part[head]
        ]
        arrays = [(at, edge) for at, edge in down if edge.word in _ARRAY_WORDS]
        objects = [(at, edge) for at, edge in down if edge.word not in _ARRAY_WORDS]
        return _overlap(arrays) or _overlap(objects)

    def _in_place(self, head: int) -> list[int]:
        """All that applies to the value at `head`, once for every way it is reached; `_sizes` has bounded it."""
        reached = [head]
        for node in reached:
            reached.extend(edge.target for edge in self.document.edges[node] if edge.in_place)
        return reached


def _overlap(down: list[tuple[int, Edge]]) -> bool:
    named = [(at, edge.label) for at, edge in down if _is_named(edge)]
    wild = [(at, edge.word) for at, edge in down if not _is_named(edge)]
    if len({label for _, label in named}) < len(named):
        return True
    by_schema = Counter(at for at, _ in named)
    for at, word in wild:
        beside = by_schema[at]
        # Within one schema object `additionalProperties` and `items` take only what the named ones leave.
        if len(named) > beside or (beside and word in ("patternProperties", "contains")):
            return True
    words = Counter(word for _, word in wild)
    one_schema = len({at for at, _ in wild}) < 2
    return not one_schema or words["patternProperties"] > 1 or (words["contains"] > 0 and len(wild) > 1)


def _is_named(edge: Edge) -> bool:
    return edge.word in ("properties", "prefixItems") or isinstance(edge.label, int)


def _components(document: Document) -> list[list[int]]:
    """Strongly connected parts (Tarjan), without recursion."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    parts: list[list[int]] = []
    for start in range(len(document.nodes)):
        if start in index:
            continue
        work = [(start, iter(document.targets(start)))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(document.targets(target))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    parts.append(stack[cut:])
                    on_stack.difference_update(stack[cut:])
                    del stack[cut:]
    return parts
