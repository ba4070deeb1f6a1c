"""Limits that cannot be kept are refused where they are written."""

from typing import Any

import pytest

from farhand.core.definition import Policy, SideEffect
from farhand.core.errors import UsageError
from farhand.core.limits import Limits


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_turns": 0},
        {"parallel": 0},
        {"max_calls": -1},
        {"server_timeout": float("inf")},
        {"client_timeout": float("nan")},
        {"grace": -1},
        {"gate": "bogus"},
        {"max_turns": "5"},
        {"calls_per_turn": True},
        {"grace": True},
        {"max_turns": 2.5},
        {"result_bytes": 1e6},
        {"absent_retries": 0.5},
        {"retry_delay": 1e300},
        {"server_timeout": 1e12},
    ],
)
def test_a_limit_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Limits(**wrong)


def test_no_limit_is_a_limit_where_that_makes_sense() -> None:
    assert Limits(max_calls=None, server_timeout=None, total_tokens=0).total_tokens == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout": 0},
        {"timeout": float("nan")},
        {"approval_timeout": -1},
        {"retries": -1},
        {"retries": 1},
        {"retries": -1, "effect": SideEffect.PURE},
    ],
)
def test_a_policy_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Policy(**wrong)
