"""The cases: what is measured, how often, and the bar that Farhand has to reach."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One timed case; a worker runs it and answers in microseconds a unit."""

    name: str
    title: str
    repeats: int
    quick: int
    warmups: int = 30
    per: int = 1
    bar: float | None = None  # fastest peer ÷ ours, at least

    def count(self, quick: bool) -> int:
        return self.quick if quick else self.repeats


TIMED = (
    Case("turn", "a turn with one server tool, µs a run", 600, 100, bar=4.5),
    Case("pause", "client tool: pause, JSON and back, resume, µs a round trip", 600, 100, bar=4.8),
    Case("stream", "2,000 text deltas in process, µs a delta", 9, 3, warmups=1, per=2000),
)
DEFINITIONS = Case("definitions", "20 medium tool definitions sent again as JSON, µs a list", 600, 100)
DEFINITIONS_BAR = 2.0  # cached ÷ parsing, at most
IMPORT_ROUNDS, IMPORT_ROUNDS_QUICK = 12, 4
IMPORT_MS_BAR, IMPORT_DISTRIBUTIONS_BAR = 150.0, 8
DUPLICATES_EXPECTED = {"model_calls": 2, "effects": 1}

TRIP_SECONDS, TRIP_SECONDS_QUICK = 3.0, 1.0
MANY_CLIENTS = 50
CLIENTS = (1, MANY_CLIENTS)
DISK_MS = 0.2
TRIP_MS_BAR, RATE_BAR, POSTGRES_BAR = 2.0, 1500, 2.0  # at DISK_MS; round trips a second; SQLite ÷ PostgreSQL, at most
REPLICAS, REPLICAS_QUICK = 200, 50
REPLICAS_MS_BAR = 5.0
PAUSED = 10_000
GROWTH_MB_BAR, FIRST_REPLY_S_BAR = 10.0, 1.0

DURABLE = ("trips", "replicas", "paused")
NAMES = ("turn", "pause", "stream", "duplicates", "definitions", "import", *DURABLE)
GROUPS = {"durable": DURABLE}
