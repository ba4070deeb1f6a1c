"""Log records for OpenTelemetry: message, level and ids, in the trace they belong to. Needs `farhand[otel]`."""

import logging
from typing import Final

from farhand.core.errors import UsageError
from farhand.places.faults import where
from farhand.telemetry.logs import fields_of

try:
    from opentelemetry._logs import LoggerProvider, SeverityNumber, get_logger
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("opentelemetry"):
        raise
    raise UsageError("logs for OpenTelemetry need it: pip install 'farhand[otel]'") from error

_SEVERITIES: Final = (
    (logging.CRITICAL, SeverityNumber.FATAL),
    (logging.ERROR, SeverityNumber.ERROR),
    (logging.WARNING, SeverityNumber.WARN),
    (logging.INFO, SeverityNumber.INFO),
    (logging.DEBUG, SeverityNumber.DEBUG),
)


class OpenTelemetryLogs(logging.Handler):
    """Add it to a logger: `logging.getLogger("farhand").addHandler(OpenTelemetryLogs())`."""

    def __init__(self, logger_provider: LoggerProvider | None = None, *, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._provider = logger_provider

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record on."""
        try:
            attributes = {f"farhand.{name}": str(value) for name, value in fields_of(record).items()}
            if record.exc_info and record.exc_info[1] is not None:
                attributes["exception.type"] = type(record.exc_info[1]).__name__
                attributes["farhand.exception"] = where(record.exc_info[1])
            get_logger(record.name, logger_provider=self._provider).emit(
                timestamp=int(record.created * 1e9),
                severity_number=next((s for level, s in _SEVERITIES if record.levelno >= level), SeverityNumber.TRACE),
                severity_text=record.levelname,
                body=record.getMessage(),
                attributes=attributes,
            )
        except Exception:  # noqa: BLE001  as every handler: a log never stops the work
            self.handleError(record)
