"""What the model and the log are told of a tool that raised."""

import re

import pytest

from farhand import ToolError
from farhand.places.faults import hidden, said, shown, trail, where


def test_what_an_author_says_is_told_word_for_word() -> None:
    failure = said(ToolError("no window", code="no_window", path="/x", retryable=False, details={"open": 0}))
    assert (failure.code, failure.message, failure.path, failure.retryable, failure.details) == (
        "no_window",
        "no window",
        "/x",
        False,
        {"open": 0},
    )


def test_details_that_are_no_json_and_half_a_character_do_no_harm() -> None:
    failure = said(ToolError("\ud800", details=object()))
    assert (failure.message, failure.details) == ("?", None)


def test_any_other_exception_is_a_number_unless_its_text_is_asked_for() -> None:
    assert hidden("open", "12ab").message == "Tool 'open' failed (error 12ab)."
    assert shown(ValueError("the password is x")).message == "the password is x"


def test_the_log_has_the_place_and_the_text_only_if_asked_for() -> None:
    with pytest.raises(ValueError, match="secret") as raised:
        raise ValueError("secret")
    assert where(raised.value).startswith("ValueError in test_the_log_has")
    assert "secret" not in where(raised.value)
    assert where(raised.value, text=True).endswith(": secret")
    assert where(KeyError()) == "KeyError"


def test_the_whole_way_of_an_exception_is_told_with_its_causes_and_without_their_texts() -> None:
    def inner() -> None:
        raise KeyError("secret")

    def outer() -> None:
        try:
            inner()
        except KeyError:
            raise ValueError("secret")  # noqa: B904

    with pytest.raises(ValueError, match="secret") as raised:
        outer()
    told = trail(raised.value)
    assert "secret" not in told
    assert re.fullmatch(r"ValueError < \S+outer:\d+ < \S+:\d+; from KeyError < \S+inner:\d+ < \S+outer:\d+", told)


def test_exceptions_that_caused_each_other_without_end_are_not_followed_without_end() -> None:
    one, other = KeyError(), ValueError()
    one.__cause__, other.__cause__ = other, one
    assert trail(one).count("KeyError") == 5
