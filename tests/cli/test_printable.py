"""Text of others cannot do anything to a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.cli.printable import printable, printable_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ünïcode 日本 👩‍👧 and\ttabs\nand lines", "plain text, ünïcode 日本 👩‍👧 and\ttabs\nand lines"),
        ("windows\r\nlines", "windows\nlines"),
        ("back\rward", "back\\x0dward"),
        ("\x1b]52;c;cm0gLXJm\x07", "\\x1b]52;c;cm0gLXJm\\x07"),
        ("\x9b31mred", "\\x9b31mred"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("half \ud83d", "half \\ud83d"),
    ],
)
def test_what_cannot_be_seen_is_spelt_out_and_the_rest_stays(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_nothing_is_left_that_moves_or_hides(text: str) -> None:
    assert all(
        letter.isprintable() or letter in "\n\t" or letter.isspace() for letter in printable(text) if ord(letter) < 0xA0
    )
    printable(text).encode()


def test_a_line_is_one_line_and_no_longer_than_it_may_be() -> None:
    assert printable_line("one\ntwo\tthree") == "one⏎two three"
    assert printable_line("a" * 100, 10) == "a" * 9 + "…"
    assert printable_line("a" * 10, 10) == "a" * 10
