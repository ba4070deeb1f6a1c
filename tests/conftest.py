"""What the whole suite shares: figures that a test reports are printed at the end, also when tests run in parallel."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print every property that a test recorded, once."""
    reports = [
        report for kind in terminalreporter.stats.values() for report in kind if hasattr(report, "user_properties")
    ]
    for name, value in sorted({pair for report in reports for pair in report.user_properties}):
        terminalreporter.write_line(f"{name}: {value}")
