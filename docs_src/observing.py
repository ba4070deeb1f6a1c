"""The generated parts of the page about looking on: numbers, attributes of spans, fields of the log."""

from collections.abc import Iterator, Mapping
from itertools import chain

from farhand import Agent, scripted
from farhand.asgi.board import Board
from farhand.asgi.streams import Encoder, Streams
from farhand.durable import Runner
from farhand.telemetry import access_log, logs, subject
from farhand.telemetry.attributes import MEANINGS
from farhand.telemetry.metrics import Metrics


def metrics() -> str:
    """Every number that `GET /v1/metrics` shows."""
    found = Metrics("1")
    Board(Runner(Agent(scripted([])), store="memory:"), found, Streams(), Encoder())
    rows = (
        (f"`{meter.name}`", meter.kind, ", ".join(f"`{label}`" for label in meter.labels), meter.says)
        for meter in sorted(found.meters, key=lambda meter: (meter.name.startswith("process"), meter.name))
    )
    return _table(("name", "type", "labels", "what is counted"), rows)


def attributes() -> str:
    """Every attribute of a span."""
    return _table(("attribute", "meaning"), ((f"`{name.value}`", text) for name, text in MEANINGS.items()))


def log_fields() -> str:
    """Every field of a line of the log."""

    def rows(when: str, fields: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        for name, text in fields.items():
            yield f"`{name}`", when, text

    more = {"error": "The number of a fault of ours, which the caller was told."}
    return _table(
        ("field", "on", "meaning"),
        chain(
            rows("every line", {name: text for name, text in logs.RECORD_FIELDS.items() if name != "exception"}),
            rows("lines about an exception", {"exception": logs.RECORD_FIELDS["exception"]}),
            rows("lines written meanwhile", subject.FIELDS),
            rows("`farhand.requests`", access_log.FIELDS),
            rows("`farhand.asgi`", more),
        ),
    )


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
