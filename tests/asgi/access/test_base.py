"""The contract of access: reasons are kept for the log."""

from farhand.asgi.access.base import because, reasons
from tests.asgi.access.house import connection


def test_all_reasons_of_a_connection_are_kept_in_their_order() -> None:
    asked = connection()
    because(asked, "no token of mine")
    because(asked, "expired")
    assert reasons(asked) == "no token of mine; expired"


def test_reasons_are_those_of_one_connection() -> None:
    because(connection(), "expired")
    assert reasons(connection()) == "no credentials"
