"""The text format, judged by the parser of Prometheus's own client."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from farhand.telemetry.meters import MOST, Constant, Counter, Gauge, Histogram, Meter, Reading, text_of

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(*meters: Meter) -> Samples:
    """What Prometheus reads."""
    found: Samples = {}
    for family in text_string_to_metric_families(text_of(meters)):
        for sample in family.samples:
            found[sample.name, frozenset(sample.labels.items())] = sample.value
    return found


def labels(**given: str) -> frozenset[tuple[str, str]]:
    return frozenset(given.items())


def test_a_counter_has_one_number_for_each_of_its_labels() -> None:
    meter = Counter("things_total", "Things.", "kind", "size")
    meter.add("a", "1")
    meter.add("a", "1", by=2)
    meter.add("b", "1")
    assert read(meter) == {
        ("things_total", labels(kind="a", size="1")): 3,
        ("things_total", labels(kind="b", size="1")): 1,
    }


def test_a_counter_without_labels_begins_at_zero() -> None:
    assert read(Counter("things_total", "Things.")) == {("things_total", frozenset()): 0}


def test_a_gauge_is_read_when_it_is_shown_and_may_be_unknown() -> None:
    numbers: Iterable[float | None] = iter([2.5, None])
    meter = Gauge("things", "Things.", lambda: next(numbers))  # type: ignore[call-overload]
    assert read(meter) == {("things", frozenset()): 2.5}
    assert read(meter) == {}


def test_a_number_that_somebody_else_counts_is_a_counter() -> None:
    text = text_of([Reading("things_total", "Things.", lambda: 4)])
    assert "# TYPE things_total counter" in text
    assert text.endswith("things_total 4\n")


def test_a_constant_says_what_it_says_in_its_labels() -> None:
    assert read(Constant("build_info", "What.", version="1.2")) == {("build_info", labels(version="1.2")): 1}


def test_a_histogram_counts_what_is_at_most_so_large() -> None:
    meter = Histogram("wait_seconds", "Waiting.", "who", buckets=(1, 2))
    for number in (0.5, 1, 1.5, 9):
        meter.add(number, "ann")
    found = read(meter)
    assert [found["wait_seconds_bucket", labels(who="ann", le=le)] for le in ("1", "2", "+Inf")] == [2, 3, 4]
    assert found["wait_seconds_count", labels(who="ann")] == 4
    assert found["wait_seconds_sum", labels(who="ann")] == 12


def test_a_histogram_without_labels_begins_at_zero() -> None:
    assert read(Histogram("wait_seconds", "Waiting."))["wait_seconds_count", frozenset()] == 0


@pytest.mark.parametrize("meter", [Counter("things_total", "Things.", "name"), Histogram("things", "Things.", "name")])
def test_names_that_never_end_do_not_fill_the_memory(meter: Counter | Histogram) -> None:
    for number in range(MOST + 500):
        meter.add(f"name {number}") if isinstance(meter, Counter) else meter.add(1, f"name {number}")
    found = read(meter)
    assert len({dict(where).get("name") for _, where in found}) == MOST + 1
    assert max(value for (name, where), value in found.items() if dict(where)["name"] == "other") == 500


@given(st.lists(st.tuples(st.text(), st.text(), st.floats(0, 1e9)), max_size=20))
def test_whatever_a_label_says_it_is_read_as_it_was_meant(entries: list[tuple[str, str, float]]) -> None:
    meter = Counter("things_total", "Says \\ and\nmore.", "one", "two")
    wanted: Samples = {}
    for one, two, number in entries:
        meter.add(one, two, by=number)
        key = "things_total", labels(one=one, two=two)
        wanted[key] = wanted.get(key, 0) + number
    assert read(meter) == wanted
