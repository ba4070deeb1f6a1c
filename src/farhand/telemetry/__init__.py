"""Looking on: metrics, traces and logs of a server. Observers of `farhand.runner.observer`; none has a say in anything.

`OpenTelemetry` needs `pip install 'farhand[otel]'`.
"""

from typing import TYPE_CHECKING, Any

from farhand.runner.observer import Observer
from farhand.telemetry.logs import configure_logs
from farhand.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from farhand.telemetry.otel import OpenTelemetry

__all__ = ["Metrics", "Observer", "OpenTelemetry", "configure_logs"]


def __getattr__(name: str) -> Any:
    if name != "OpenTelemetry":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from farhand.telemetry.otel import OpenTelemetry

    return OpenTelemetry
