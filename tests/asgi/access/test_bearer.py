"""The bearer token of a connection."""

import pytest

from farhand.asgi.access.base import Connection, reasons
from farhand.asgi.access.bearer import LONGEST, bearer_of
from tests.asgi.access.house import connection


def of(*values: str, **scope: object) -> Connection:
    return connection([("Authorization", value) for value in values], **scope)


@pytest.mark.parametrize("value", ["Bearer abc.DEF-_~+/==", "bearer abc.DEF-_~+/==", "BEARER   abc.DEF-_~+/== "])
def test_the_token_is_read_from_its_header(value: str) -> None:
    assert bearer_of(of(value)) == "abc.DEF-_~+/=="


def test_no_header_is_no_token_and_no_reason_to_complain() -> None:
    asked = connection()
    assert bearer_of(asked) is None
    assert reasons(asked) == "no credentials"


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", "Bearer ", "Basic YTpi", "abc", "Bearer a b", "Bearer a,b", "Bearer ä", "Bearer =", "xBearer a"],
)
def test_what_is_no_bearer_token_is_none(value: str) -> None:
    asked = of(value)
    assert bearer_of(asked) is None
    assert reasons(asked) == "credentials that are no bearer token"


def test_of_two_tokens_none_counts() -> None:
    asked = of("Bearer first", "Bearer second")
    assert bearer_of(asked) is None
    assert reasons(asked) == "more than one credential"


def test_a_token_has_a_length_that_can_be_looked_at() -> None:
    assert bearer_of(of(f"Bearer {'a' * LONGEST}")) == "a" * LONGEST
    assert bearer_of(of(f"Bearer {'a' * (LONGEST + 1)}")) is None


@pytest.mark.parametrize("query", [b"token=abc", b"access_token=abc", b"bearer=abc"])
def test_a_token_in_the_url_is_not_read(query: bytes) -> None:
    assert bearer_of(connection(query_string=query)) is None


def test_a_page_may_offer_its_token_as_a_subprotocol() -> None:
    assert bearer_of(connection(kind="websocket", subprotocols=["farhand.v1", "farhand.bearer.abc.d-_"])) == "abc.d-_"


def test_a_subprotocol_and_a_header_are_two_tokens() -> None:
    assert bearer_of(of("Bearer abc", kind="websocket", subprotocols=["farhand.bearer.abc"])) is None
