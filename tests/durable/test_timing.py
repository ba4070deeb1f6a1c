"""How often a runner looks: settings that cannot work are refused at once."""

from typing import Any

import pytest

from farhand.core.errors import UsageError
from farhand.durable import Timing


@pytest.mark.parametrize("name", ["lease", "beat", "tick", "check"])
@pytest.mark.parametrize("value", [0, -1.0])
def test_a_time_that_never_passes_is_refused(name: str, value: float) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(UsageError, match=rf"Timing\.{name}"):
        Timing(**given)


def test_a_runner_may_leave_at_once() -> None:
    assert Timing(drain=0).drain == 0


def test_there_are_three_beats_in_a_lease_at_least() -> None:
    assert Timing(lease=3.0, beat=1.0).beat == 1.0
    with pytest.raises(UsageError, match="a third of the lease"):
        Timing(lease=3.0, beat=1.1)


@pytest.mark.parametrize("given", [{"batch": 0}, {"room": 0}])
def test_no_room_for_any_run_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="1 at least"):
        Timing(**given)  # type: ignore[arg-type]
