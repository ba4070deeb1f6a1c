"""Workers are killed and frozen while they run, answer and are answered: nothing accepted is lost, nothing runs twice.

The short forms of `python -m proofs.soak` and `python -m proofs.soak_planted`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from proofs.soak import Settings, soak
from proofs.soak_bugs import BUGS
from proofs.soak_planted import PLANTED, find
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


@pytest.mark.parametrize("bug", PLANTED)
async def test_a_planted_fault_is_found(tmp_path: Path, bug: str) -> None:
    assert await find(bug, tmp_path)


def test_every_fault_that_can_be_planted_has_to_be_found() -> None:
    assert set(PLANTED) == set(BUGS)
