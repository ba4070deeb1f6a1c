"""Compiled schemas are found again by pin, and the memory of them is bounded."""

from msgspec import structs

from farhand.core import compiled
from farhand.core.compiled import output_of, parameters_of
from farhand.core.content_cache import ContentCache
from farhand.core.definition import Place
from farhand.core.schema import Schema
from tests.core.story import ADD, make_tool


def test_one_pin_is_compiled_once() -> None:
    tool = make_tool(schema=ADD, output={"type": "string"})
    assert parameters_of(tool) is parameters_of(make_tool(schema=ADD, output={"type": "string"}))
    assert output_of(tool).is_valid("x")
    assert parameters_of(tool).is_valid({"n": 1})


def test_another_schema_has_another_pin() -> None:
    assert parameters_of(make_tool(schema=ADD)) is not parameters_of(make_tool())


def test_a_definition_from_outside_stays_under_the_bound_on_matching() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^.{1,100}$"}}}
    long = {"a": "x" * 200_000}
    foreign = parameters_of(make_tool(schema=schema, place=Place.CLIENT))
    assert [problem.rule for problem in foreign.problems(long)] == ["work"]
    assert [problem.rule for problem in parameters_of(make_tool(schema=schema)).problems(long)] == ["pattern"]


def test_the_memory_is_bounded_by_bytes(monkeypatch) -> None:
    kept: ContentCache[Schema] = ContentCache(1 << 20)
    monkeypatch.setattr(compiled, "_parameters", kept)
    for number in range(40):
        schema = {"type": "object", "description": str(number), "properties": {"a": {"enum": ["x" * 3000]}}}
        assert parameters_of(make_tool(schema=schema)).is_valid({})
    assert 1 < len(kept) < 20
    assert kept.bytes <= 1 << 20


def test_a_definition_with_a_borrowed_pin_does_not_lend_its_schema_to_the_owner_of_the_pin() -> None:
    strict = make_tool("strict", schema=ADD)
    forged = structs.replace(make_tool("anything"), pin=strict.pin)
    assert parameters_of(forged).is_valid({"n": "x"})
    assert not parameters_of(strict).is_valid({"n": "x"})
