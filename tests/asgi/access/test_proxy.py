"""Access by a header that a proxy sets."""

from typing import Any

import pytest

from farhand.asgi.access import Principal, ProxyHeader
from farhand.asgi.access.base import reasons
from farhand.core.errors import InvalidInput
from tests.asgi.access.house import connection

PROXY = ("10.1.2.3", 40000)


def way(**settings: Any) -> ProxyHeader:
    return ProxyHeader("X-Forwarded-User", **{"trusted": ["10.1.0.0/16", "2001:db8::/32"], **settings})


async def test_whoever_a_trusted_proxy_names_is_known() -> None:
    for client in (PROXY, ("2001:db8::5", 1), ("::ffff:10.1.9.9", 1)):
        assert await way()(connection({"X-Forwarded-User": "ann"}, client=client)) == Principal("ann")


async def test_the_settings_make_the_principal() -> None:
    known = await way(prefix="sso:", scopes=["chat"])(connection({"x-forwarded-user": "ann"}, client=PROXY))
    assert known == Principal("sso:ann", frozenset({"chat"}))


@pytest.mark.parametrize(
    "client",
    [("10.2.0.1", 1), ("127.0.0.1", 1), ("203.0.113.9", 1), ("::1", 1), ("2001:db9::1", 1), ("testclient", 1), None],
)
async def test_the_header_of_anybody_else_is_not_believed(client: tuple[str, int] | None) -> None:
    asked = connection({"X-Forwarded-User": "ann", "X-Forwarded-For": "10.1.2.3"}, client=client)
    assert await way()(asked) is None
    assert reasons(asked) == "x-forwarded-user from a peer that is not trusted"


async def test_without_the_header_nobody_is_known_and_nothing_is_wrong() -> None:
    asked = connection(client=PROXY)
    assert await way()(asked) is None
    assert reasons(asked) == "no credentials"


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Forwarded-User", "eve"), ("X-Forwarded-User", "ann")],
        [("X-Forwarded-User", "ann"), ("x-forwarded-user", "ann")],
        [("X-Forwarded-User", "ann"), ("X_Forwarded_User", "eve")],
        [("X_Forwarded-User", "eve"), ("X-Forwarded-User", "ann")],
        [("X_Forwarded_User", "ann")],
        [("X-Forwarded_User", "ann")],
    ],
)
async def test_a_header_beside_the_proxys_own_makes_nobody_known(headers: list[tuple[str, str]]) -> None:
    asked = connection(headers, client=PROXY)
    assert await way()(asked) is None
    assert "more than once, or with _" in reasons(asked)


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        " ann",
        "ann ",
        "eve, ann",
        "eve,ann",
        "a\tb",
        "a\nb",
        "a\x00b",
        "a\x7fb",
        "a\u202eb",
        "a\u00a0",
        "a" * 257,
    ],
)
async def test_a_name_that_is_none_makes_nobody_known(value: str) -> None:
    asked = connection({"X-Forwarded-User": value}, client=PROXY)
    assert await way()(asked) is None
    assert "without a name" in reasons(asked)


async def test_bytes_that_are_no_text_make_nobody_known() -> None:
    asked = connection(client=PROXY)
    asked.scope["headers"] = [(b"x-forwarded-user", b"ann\xff")]
    assert await way()(asked) is None


@pytest.mark.parametrize("name", ["José", "ann@example.com", "DOMAIN\\ann", "ann o'hara"])
async def test_names_are_taken_as_they_are(name: str) -> None:
    assert await way()(connection({"X-Forwarded-User": name}, client=PROXY)) == Principal(name)


async def test_a_socket_of_this_machine_is_trusted_only_if_it_is_named() -> None:
    asked = connection({"X-Forwarded-User": "ann"}, client=None)
    assert await way(trusted=["unix"])(asked) == Principal("ann")
    assert await way(trusted=["unix"])(connection({"X-Forwarded-User": "ann"}, client=PROXY)) is None
    assert await way()(connection({"X-Forwarded-User": "ann"}, client=None)) is None


@pytest.mark.parametrize(
    "trusted", [[], ["0.0.0.0/0"], ["::/0"], ["10.0.0.0/8", "0.0.0.0/0"], ["proxy"], ["10.0.0.1/8"], ""]
)
def test_a_setting_that_would_make_everybody_anybody_is_refused(trusted: Any) -> None:
    with pytest.raises(InvalidInput, match="trusted"):
        way(trusted=trusted)


def test_one_network_need_not_be_a_list() -> None:
    way(trusted="10.1.2.3")


@pytest.mark.parametrize("header", ["", "X_User", "X User", "X-User:", "x-üser"])
def test_a_header_that_proxies_do_not_agree_on_is_refused(header: str) -> None:
    with pytest.raises(InvalidInput, match="no header"):
        ProxyHeader(header, trusted=["10.0.0.0/8"])


def test_a_scope_that_there_is_not_is_refused_before_anybody_comes() -> None:
    with pytest.raises(InvalidInput, match="no scope"):
        way(scopes=["admin"])
