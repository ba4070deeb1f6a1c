"""Log records as the SDK of OpenTelemetry collects them: in their trace, with their ids, without payloads."""

import logging
from collections.abc import Generator

import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider

from farhand.telemetry.otel_logs import OpenTelemetryLogs


@pytest.fixture
def collected() -> Generator[InMemoryLogRecordExporter]:
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    handler = OpenTelemetryLogs(provider)
    logger = logging.getLogger("farhand.test")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield exporter
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def one(collected: InMemoryLogRecordExporter) -> ReadableLogRecord:
    [found] = collected.get_finished_logs()
    return found


def test_a_record_is_in_the_trace_in_which_it_was_written(collected: InMemoryLogRecordExporter) -> None:
    with TracerProvider().get_tracer("mine").start_as_current_span("work") as span:
        logging.getLogger("farhand.test").warning("it is %d", 3, extra={"farhand": {"error": "e1"}})
    record = one(collected).log_record
    assert (record.body, record.severity_number, record.severity_text) == ("it is 3", SeverityNumber.WARN, "WARNING")
    assert record.trace_id == span.get_span_context().trace_id
    assert dict(record.attributes or {}) == {"farhand.error": "e1"}


def test_an_exception_is_told_by_its_type_and_place(collected: InMemoryLogRecordExporter) -> None:
    try:
        raise KeyError("canary")
    except KeyError:
        logging.getLogger("farhand.test").exception("it failed")
    found = one(collected)
    assert dict(found.log_record.attributes or {})["exception.type"] == "KeyError"
    assert "canary" not in found.to_json()


def test_each_level_has_its_number(collected: InMemoryLogRecordExporter) -> None:
    logger = logging.getLogger("farhand.test")
    for level in (logging.DEBUG, logging.INFO, logging.ERROR, logging.CRITICAL):
        logger.log(level, "x")
    numbers = [found.log_record.severity_number for found in collected.get_finished_logs()]
    assert numbers == [SeverityNumber.DEBUG, SeverityNumber.INFO, SeverityNumber.ERROR, SeverityNumber.FATAL]


def test_a_record_that_cannot_be_written_stops_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    OpenTelemetryLogs(LoggerProvider(shutdown_on_exit=False)).handle(
        logging.LogRecord("farhand.test", logging.WARNING, "file", 1, "%d", ("no number",), None)
    )
    assert "TypeError" in capsys.readouterr().err
