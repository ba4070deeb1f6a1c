"""A pattern is weighed by what it compiles to, and a text by the patterns that may see it."""

import pytest

from farhand.core.patterns import LARGEST, Matching, weigh


@pytest.mark.parametrize(
    ("pattern", "weight"),
    [("^[a-z]+$", 1024), ("^[a-z0-9-]{1,63}$", 16_384), ("^.{1,100}$", 131_072), (r"\p{L}{9}", 524_288)],
)
def test_a_weight_is_a_power_of_two(pattern, weight):
    assert weigh(pattern) == weight
    assert weigh(pattern, weight) == weight
    assert weigh(pattern, weight - 1) is None


@pytest.mark.parametrize("pattern", ["(", "(?=a)b", r"(a)\1", "(a{1000}){1000}"])
def test_what_the_engine_does_not_take_has_no_weight(pattern):
    assert weigh(pattern, 4 * LARGEST) is None


def test_a_schema_weighs_what_all_its_patterns_weigh():
    schema = {"pattern": "a", "items": [{"patternProperties": {"a": {"pattern": "b"}}}], "default": {"pattern": "c"}}
    assert Matching(schema).weight == 3 * 1024
    assert Matching(True).weight == Matching({"properties": 3}).weight == 0


def test_a_text_costs_only_the_patterns_that_may_see_it():
    matching = Matching({"properties": {"a": {"items": {"pattern": "a"}}, "b": {"type": "string"}}})
    assert matching.work({"b": "x" * 100}) == 0
    assert matching.work({"a": ["x" * 100, ("\u00e9", 1)], "b": "x"}) == 102 * 1024
    assert matching.work(["x" * 100]) == 100 * 1024
    anywhere = Matching({"properties": {"a": {"pattern": "a"}}, "additionalProperties": {"pattern": "b"}})
    assert anywhere.work({"a": "xyz", "key": {"in": "x"}}) == 3 * 1024 + 10 * 1024
