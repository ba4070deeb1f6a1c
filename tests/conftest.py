"""What the whole suite shares: figures that a test reports are printed at the end, also when tests run in parallel.

Tests that need a PostgreSQL server bear the mark `postgres`, so that the inner loop can do without one.
"""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses a database of the server, itself or by the name of a parameter, is marked."""
    for item in items:
        chosen = (
            item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
        )
        if "postgres" in chosen or "postgres_server" in getattr(item, "fixturenames", ()):
            item.add_marker("postgres")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print every property that a test recorded, once."""
    reports = [
        report for kind in terminalreporter.stats.values() for report in kind if hasattr(report, "user_properties")
    ]
    for name, value in sorted({pair for report in reports for pair in report.user_properties}):
        terminalreporter.write_line(f"{name}: {value}")
