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
TOKENS_OF, TOKENS_BAR = 1000, 0.02  # tools; collapsed ÷ flat, at most

TRIP_SECONDS, TRIP_SECONDS_QUICK = 3.0, 1.0
MANY_CLIENTS = 50
CLIENTS = (1, MANY_CLIENTS)
DISK_MS = 0.2
TRIP_MS_BAR, RATE_BAR, POSTGRES_BAR = 2.0, 1500, 2.0  # at DISK_MS; round trips a second; SQLite ÷ PostgreSQL, at most
REPLICAS, REPLICAS_QUICK = 200, 50
REPLICAS_MS_BAR = 5.0
PAUSED = 10_000
GROWTH_MB_BAR, FIRST_REPLY_S_BAR = 10.0, 1.0

AT_ONCE = (1, 10, 50)
HTTP_MS_BAR, HTTP_PEER_BAR = 4.0, 2.0  # at 1; best peer that keeps its state ÷ ours, at least
BURSTS, BURSTS_QUICK = {1: 100_000, 200: 1_000}, {1: 20_000, 200: 200}  # updates a stream, by streams at once
BURST_BARS = {1: 60_000, 200: 40_000}
PACED, PACED_QUICK = (200, 500), (200, 100)  # streams, and updates of each
IDLE, IDLE_QUICK, IDLE_KB_BAR = 5_000, 1_000, 30.0
HOSTILE = ("silent", "flood", "bombs", "unread", "slow", "all")
HOSTILE_SECONDS, HOSTILE_SECONDS_QUICK = 15.0, 5.0
HOSTILE_PATIENCE = 5.0  # seconds, of the server
HOSTILE_BAR, HOSTILE_MB_BAR = 2.0, 10.0  # p99 beside ÷ alone, at most; growth while they are at it
GOOD_CLIENTS, GOOD_PACE = 10, 0.2  # clients, and seconds between two round trips of each

DURABLE = ("trips", "replicas", "paused")
SERVED = ("http", "streams", "idle", "hostile")
NAMES = ("turn", "pause", "stream", "duplicates", "definitions", "import", "tokens", *DURABLE, *SERVED)
GROUPS = {"durable": DURABLE, "served": SERVED}
