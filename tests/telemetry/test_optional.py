"""OpenTelemetry may be missing: a server counts and logs without it, and whoever asks for spans is told what to do."""

import pytest

from tests.cli.test_optional import python


def test_a_server_without_it_counts_and_logs() -> None:
    program = """
from farhand import Agent, scripted
from farhand.asgi import create_app
from farhand.telemetry import Metrics, Observer, configure_logs
app = create_app(Agent(scripted(["ok"])), store="memory:")
print("farhand_build_info" in app.metrics.text(), "opentelemetry" in sys.modules)
"""
    ran = python(program, "opentelemetry")
    assert (ran.stdout.strip(), ran.stderr) == ("True False", "")


@pytest.mark.parametrize("name", ["farhand.telemetry import OpenTelemetry", "farhand.telemetry.otel_logs import x"])
def test_spans_and_records_without_it_say_what_to_install(name: str) -> None:
    ran = python(f"from {name}", "opentelemetry")
    assert ran.stderr.strip().endswith("pip install 'farhand[otel]'")


def test_there_is_nothing_else_in_the_package() -> None:
    ran = python("from farhand import telemetry\ntelemetry.Nothing")
    assert "has no attribute 'Nothing'" in ran.stderr
