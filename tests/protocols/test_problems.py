"""Errors on the wire: each exception has one row, and comes back as the exception that it was."""

import pytest
from msgspec import json

from farhand.core.augmentation import AugmentationRefused
from farhand.core.call import Outcome
from farhand.core.definition import InvalidToolDefinitions
from farhand.core.errors import CallGone, FarhandError, InvalidAnswer, ServerFailed, StoreAway, TooMuch, UnknownCall
from farhand.core.problem import Problem
from farhand.protocols.problems import KINDS, ProblemDetails, details, exception, kind_of, read_problem

PROBLEM = Problem("/a/0", "is wrong", "type")


def there_and_back(error: FarhandError) -> FarhandError:
    said = details(error)
    return exception(read_problem(json.encode(said), said.status))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_comes_back_as_the_exception_it_was(kind: type[FarhandError]) -> None:
    made = {
        InvalidToolDefinitions: lambda: kind((PROBLEM,)),
        AugmentationRefused: lambda: kind((PROBLEM,)),
        TooMuch: lambda: TooMuch("x", retry_after=2),
    }
    error = made.get(kind, lambda: kind("what happened"))()
    back = there_and_back(error)
    assert type(back) is kind
    assert str(back) == str(error)
    assert back.__notes__ == [kind_of(kind).fix]


def test_no_two_errors_share_a_code() -> None:
    assert len({kind.code for kind in KINDS}) == len(KINDS)


def test_every_problem_keeps_its_path() -> None:
    back = there_and_back(InvalidAnswer("no", (PROBLEM,)))
    assert isinstance(back, InvalidAnswer)
    assert back.problems == (PROBLEM,)


def test_a_call_that_is_gone_says_how_it_ended() -> None:
    back = there_and_back(CallGone("too late", Outcome.TIMED_OUT))
    assert isinstance(back, CallGone)
    assert back.outcome is Outcome.TIMED_OUT


def test_whoever_may_try_again_is_told_when() -> None:
    assert details(TooMuch("slowly", retry_after=7.5)).retry_after == 7.5
    assert details(StoreAway("away")).retry_after


def test_a_class_without_a_row_is_told_like_the_one_above_it() -> None:
    class Special(UnknownCall):
        """One of somebody's own."""

    assert details(Special("x")).status == 404


def test_an_error_of_a_newer_server_is_one_that_something_failed() -> None:
    back = exception(ProblemDetails(type="t", title="Strange", status=418, code="teapot", detail="short and stout"))
    assert type(back) is ServerFailed
    assert str(back) == "short and stout"


@pytest.mark.parametrize(("status", "code"), [(401, "not_authenticated"), (413, "too_large"), (502, "server_failed")])
def test_what_stands_before_the_server_is_understood_by_its_status(status: int, code: str) -> None:
    assert read_problem(b"<html>oops</html>", status).code == code
