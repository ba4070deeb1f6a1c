"""The machine at the other end."""

from ipaddress import ip_address

import pytest

from farhand.asgi.access.peer import peer_of
from tests.asgi.access.house import connection


@pytest.mark.parametrize(
    ("client", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8::1", "2001:db8::1"),
    ],
)
def test_the_peer_is_the_address_of_the_connection(client: str, address: str) -> None:
    assert peer_of(connection(client=(client, 1))) == ip_address(address)


@pytest.mark.parametrize("client", [None, ("testclient", 1), ("", 0)])
def test_what_is_no_address_is_none(client: tuple[str, int] | None) -> None:
    assert peer_of(connection(client=client)) is None


def test_headers_have_no_say() -> None:
    headers = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-IP": "127.0.0.1"}
    assert peer_of(connection(headers, client=("203.0.113.7", 1))) == ip_address("203.0.113.7")
