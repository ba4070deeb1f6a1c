"""A process that dies at any point of a run loses nothing and repeats nothing, on every store."""

import logging
from collections.abc import Callable

import pytest

from proofs import bugs
from proofs.crash_points import EFFECTS, die_everywhere
from tests.stores.postgres import PostgresServer

LEAST = 45
"""So many points a run has at least; fewer would mean that the proof does not see them."""


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The last words of those who die are of no interest."""
    caplog.set_level(logging.CRITICAL, "farhand")


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_every_crash_point_is_survived(
    store: str, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    server: PostgresServer | None = request.getfixturevalue("postgres_server") if store == "postgres" else None
    survived = die_everywhere(store if server is None else server.url())
    assert [crashed for found in survived.values() for crashed in found.broken] == []
    assert min(found.points for found in survived.values()) >= LEAST
    assert set(survived) == set(EFFECTS)
    told = ", ".join(f"{effect} {found.short()}" for effect, found in survived.items())
    record_property(f"crash points, {store}", told)


@pytest.mark.parametrize("bug", bugs.IN_A_CRASH)
def test_a_planted_bug_is_not_survived(bug: str) -> None:
    with bugs.BUGS[bug].plant():
        survived = die_everywhere("memory")
    assert any(found.broken for found in survived.values())
