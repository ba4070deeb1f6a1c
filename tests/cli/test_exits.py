"""Errors become one line and one code."""

import pytest

from farhand.cli.exits import Exit, Said, said
from farhand.core.errors import (
    ConnectionLost,
    FarhandError,
    InvalidAnswer,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    StoreAway,
    StoreError,
    UnknownCall,
)
from farhand.core.problem import Problem


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotAuthenticated("nobody"), Exit.UNKNOWN),
        (NotAllowed("no"), Exit.NOT_ALLOWED),
        (ConnectionLost("gone"), Exit.UNREACHABLE),
        (StoreAway("gone"), Exit.UNREACHABLE),
        (StoreError("odd"), Exit.NO),
        (InvalidInput("odd"), Exit.USAGE),
        (UnknownCall("odd"), Exit.NO),
        (FarhandError("odd"), Exit.NO),
        (FileNotFoundError(2, "No such file", "x"), Exit.NO),
        (ZeroDivisionError(), Exit.NO),
        (KeyboardInterrupt(), Exit.INTERRUPTED),
    ],
)
def test_every_error_has_its_code(error: BaseException, code: Exit) -> None:
    assert said(error).exit == code


def test_a_line_is_one_line_with_what_to_do_behind_it() -> None:
    error = FarhandError("several\n  lines")
    error.add_note("Do this.")
    assert said(error).line() == "farhand: several lines (Do this.)"
    assert said(FileNotFoundError(2, "No such file", "x.txt")).line() == "farhand: x.txt: No such file"


def test_problems_go_along_for_programs() -> None:
    problem = Problem("/a", "is wrong", "type")
    assert said(InvalidAnswer("no", (problem,))) == Said(
        code="invalid_answer", detail="no", exit=Exit.NO, problems=(problem,)
    )
