"""Runs that wait cost rows and no memory, and the first of them goes on within a second after a restart."""

from collections.abc import Callable
from pathlib import Path

from proofs.paused import measure


async def test_two_thousand_waiting_runs_cost_no_memory_and_outlive_their_process(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    figures = await measure(2_000, tmp_path)
    assert figures.missed == []
    record_property("paused runs", figures.short())
