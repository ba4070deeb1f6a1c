"""Numbers that go up, go up and down, or are spread over buckets, and the text format of Prometheus that shows them.

Everything is counted in one thread, that of the event loop. A meter has an end: what comes after so many different
labels is counted under `other`, so that no program's names can fill the memory.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MOST: Final = 1000
"""Different labels of one meter."""
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

Labels: TypeAlias = tuple[str, ...]


class Meter:
    """One name with its samples."""

    kind = "untyped"

    def __init__(self, name: str, says: str, *labels: str) -> None:
        self.name = name
        self.says = says
        self.labels = labels

    def samples(self) -> Iterator[str]:
        """A line for each."""
        yield from ()

    def sample(self, values: Labels, number: float, *, suffix: str = "", more: str = "") -> str:
        """One line."""
        said = [f'{label}="{_escaped(value)}"' for label, value in zip(self.labels, values, strict=True)]
        said += [more] if more else []
        return (
            f"{self.name}{suffix}{{{','.join(said)}}} {_number(number)}"
            if said
            else (f"{self.name}{suffix} {_number(number)}")
        )


class Counter(Meter):
    """Only goes up."""

    kind = "counter"

    def __init__(self, name: str, says: str, *labels: str) -> None:
        super().__init__(name, says, *labels)
        self.values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, *values: str, by: float = 1) -> None:
        """It happened."""
        known = self.values.get(values)
        if known is None:
            values = values if len(self.values) < MOST else ("other",) * len(values)
            known = self.values.get(values, 0)
        self.values[values] = known + by

    def samples(self) -> Iterator[str]:
        """A line for each label."""
        for values, number in self.values.items():
            yield self.sample(values, number)


class Gauge(Meter):
    """Is read when somebody asks."""

    kind = "gauge"

    def __init__(self, name: str, says: str, read: Callable[[], float | None]) -> None:
        super().__init__(name, says)
        self._read = read

    def samples(self) -> Iterator[str]:
        """One line; none if it cannot be known here."""
        number = self._read()
        if number is not None:
            yield self.sample((), number)


class Reading(Gauge):
    """A number that somebody else counts and that only goes up."""

    kind = "counter"


class Constant(Meter):
    """Always 1; what it says is in its labels."""

    kind = "gauge"

    def __init__(self, name: str, says: str, **labels: str) -> None:
        super().__init__(name, says, *labels)
        self._values = tuple(labels.values())

    def samples(self) -> Iterator[str]:
        """One line."""
        yield self.sample(self._values, 1)


class Histogram(Meter):
    """How many were at most so large."""

    kind = "histogram"

    def __init__(self, name: str, says: str, *labels: str, buckets: Sequence[float] = SECONDS) -> None:
        super().__init__(name, says, *labels)
        self._buckets = tuple(buckets)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self._row(())

    def add(self, number: float, *values: str) -> None:
        """One more."""
        counts = self._counts.get(values)
        if counts is None:
            values = values if len(self._counts) < MOST else ("other",) * len(values)
            counts = self._row(values)
        counts[bisect_left(self._buckets, number)] += 1
        self._sums[values] += number

    def _row(self, values: Labels) -> list[int]:
        self._sums.setdefault(values, 0.0)
        return self._counts.setdefault(values, [0] * (len(self._buckets) + 1))

    def samples(self) -> Iterator[str]:
        """For each label its buckets, how many there are, and their sum."""
        for values, counts in self._counts.items():
            total = 0
            for bound, count in zip((*self._buckets, float("inf")), counts, strict=True):
                total += count
                yield self.sample(values, total, suffix="_bucket", more=f'le="{_number(bound)}"')
            yield self.sample(values, total, suffix="_count")
            yield self.sample(values, self._sums[values], suffix="_sum")


def text_of(meters: Iterable[Meter]) -> str:
    """All of them, as Prometheus reads them."""
    lines: list[str] = []
    for meter in meters:
        if samples := list(meter.samples()):
            says = meter.says.replace("\\", "\\\\").replace("\n", "\\n")
            lines += [f"# HELP {meter.name} {says}", f"# TYPE {meter.name} {meter.kind}", *samples]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
