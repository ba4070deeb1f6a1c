"""Stories from seeds in which everything goes wrong keep every promise, and give each planted bug away."""

import logging
from collections.abc import Callable

import pytest

from proofs import bugs
from proofs.world import search, tell

STORIES = 200


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """What is logged where everything goes wrong fills a book."""
    caplog.set_level(logging.CRITICAL, "farhand")


def test_no_story_breaks_a_promise(record_property: Callable[[str, object], None]) -> None:
    told, broken = search(range(STORIES))
    assert broken is None
    record_property("simulated world", f"{told} stories without a problem")


def test_a_story_is_the_same_whenever_it_is_told() -> None:
    assert tell(11) == tell(11)


@pytest.mark.parametrize("bug", bugs.BUGS)
def test_a_planted_bug_is_found(bug: str, record_property: Callable[[str, object], None]) -> None:
    found = bugs.find(bug)
    assert found is not None, f"not within {bugs.BUDGET} stories"
    record_property(bug, f"found in story {found[0]}: {found[1][:120]}")
