"""Workers are killed and frozen while they run, answer and are answered: nothing accepted is lost, nothing runs twice.

The short form of `python -m proofs.soak`; it also has to find each of the faults of `proofs.soak_bugs`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from proofs.soak import Settings, soak
from tests.stores.postgres import PostgresServer

KILLS = 15


async def test_no_promise_is_broken_when_workers_on_one_file_are_killed(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    report = await soak(Settings(cycles=KILLS, store=f"sqlite:{tmp_path}/runs.db", folder=tmp_path))
    assert report.broken == []
    assert report.figures["answers accepted exactly once"] > 0
    record_property("soak, SQLite", report.short())


async def test_no_promise_is_broken_when_workers_on_one_server_are_killed(
    tmp_path: Path, postgres_server: PostgresServer, postgres_url: str, record_property: Callable[[str, object], None]
) -> None:
    before = len(postgres_server.log())
    report = await soak(Settings(cycles=KILLS, store=postgres_url, folder=tmp_path))
    report = report.with_server_log(postgres_server.log()[before:])
    assert report.broken == []
    assert report.figures["answers accepted exactly once"] > 0
    record_property("soak, PostgreSQL", report.short())


@pytest.mark.parametrize(
    ("bug", "freezes", "found"),
    [
        ("acknowledge-early", 0.0, "was accepted 2 times"),
        ("dispatch-again", 0.0, "once entered twice"),
        ("forget-epoch", 0.7, "once entered twice"),
    ],
)
async def test_a_planted_fault_is_found(tmp_path: Path, bug: str, freezes: float, found: str) -> None:
    for seed in range(5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        settings = Settings(
            cycles=8, store=f"sqlite:{folder}/runs.db", folder=folder, seed=seed, freezes=freezes, bug=bug
        )
        report = await soak(settings)
        if any(found in broken for broken in report.broken):
            return
    pytest.fail(f"{bug} was not found")
