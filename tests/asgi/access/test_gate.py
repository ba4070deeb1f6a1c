"""The one way in."""

import logging

import pytest

from farhand.asgi.access import Connection, FirstOf, Gate, Loopback, Principal, ProxyHeader, Tokens, because
from farhand.asgi.access.base import reasons
from farhand.asgi.access.principal import SCOPES
from farhand.core.errors import NotAllowed, NotAuthenticated
from tests.asgi.access.house import House, bearer, connection

ANN, BEN = "token-of-ann-0123456789", "token-of-ben-0123456789"


async def anyone(_: Connection) -> Principal | None:
    return Principal("anyone")


async def nobody(_: Connection) -> Principal | None:
    return None


async def strict(_: Connection) -> Principal | None:
    raise NotAuthenticated("the moon is full")


async def broken(_: Connection) -> Principal | None:
    raise ZeroDivisionError


async def test_whoever_is_known_and_may_is_let_in() -> None:
    assert await Gate(anyone).admit(connection(), "chat") == Principal("anyone")


@pytest.mark.parametrize("action", [*SCOPES, "admin", ""])
async def test_nobody_is_let_in_unknown(action: str) -> None:
    with pytest.raises(NotAuthenticated):
        await Gate(nobody).admit(connection(), action)


@pytest.mark.parametrize("action", ["operate", "admin", ""])
async def test_whoever_is_known_and_may_not_is_refused(action: str) -> None:
    with pytest.raises(NotAllowed):
        await Gate(anyone).admit(connection(), action)


async def test_what_is_public_asks_nobody() -> None:
    assert await Gate(broken).admit(connection(), "public") is None


async def test_a_way_that_fails_lets_nobody_in() -> None:
    with pytest.raises(ZeroDivisionError):
        await Gate(broken).admit(connection(), "chat")


async def test_the_first_way_that_knows_somebody_counts() -> None:
    ways = FirstOf(Tokens({ANN: "ann"}), Tokens({BEN: "ben", ANN: "not ann"}))
    assert await ways(bearer(ANN)) == Principal("ann")
    assert await ways(bearer(BEN)) == Principal("ben")
    assert await ways(bearer("token-of-eve-0123456789")) is None
    assert await FirstOf()(bearer(ANN)) is None


async def test_what_is_said_is_the_same_whatever_was_wrong() -> None:
    house = House(FirstOf(Tokens({ANN: "ann"}), Loopback(BEN), ProxyHeader("X-User", trusted=["10.0.0.0/8"]), strict))
    wrong = [
        [],
        [("Authorization", "Bearer token-of-eve-0123456789")],
        [("Authorization", "Bearer x")],
        [("Authorization", "Basic YW5uOmFubg==")],
        [("Authorization", f"Bearer {ANN}"), ("Authorization", f"Bearer {ANN}")],
        [("Authorization", f"Bearer {ANN}x")],
        [("X-User", "ann")],
        [("X_User", "ann")],
    ]
    answers = [await house.ask(headers=[("Host", "localhost"), *headers]) for headers in wrong]
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["WWW-Authenticate"] for answer in answers} == {"Bearer"}
    assert len({answer.content for answer in answers}) == 1
    assert len({tuple(answer.headers.items()) for answer in answers}) == 1
    assert house.changed == []


async def test_a_missing_scope_is_403_and_named() -> None:
    house = House(Tokens({ANN: Principal("ann", frozenset({"chat"}))}))
    asked = {"Host": "localhost", "Authorization": f"Bearer {ANN}"}
    assert (await house.ask(path="/chat", headers=asked)).status_code == 200
    refused = await house.ask(path="/approve", headers=asked)
    assert (refused.status_code, refused.json()["detail"]) == (403, "this needs the scope 'approve'")
    assert "WWW-Authenticate" not in refused.headers


async def test_the_log_has_the_reason_and_not_the_credential(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    gate = Gate(FirstOf(Tokens({ANN: "ann"}), strict))
    with pytest.raises(NotAuthenticated) as refused:
        await gate.admit(bearer("canary-7d1f0a5b3c9e8d2f"), "chat")
    assert "a token that was given to nobody" in caplog.text
    assert "canary" not in caplog.text + str(refused.value) + repr(refused.value.__context__)
    assert "moon" in caplog.text
    assert "moon" not in str(refused.value)


async def test_the_log_has_who_was_refused_what(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(NotAllowed):
        await Gate(anyone).admit(connection(), "operate")
    assert "refused 'operate' to 'anyone'" in caplog.text


async def test_a_socket_that_is_refused_again_and_again_keeps_one_reason() -> None:
    gate, asked = Gate(Tokens({ANN: "ann"})), bearer(BEN)
    for _ in range(3):
        with pytest.raises(NotAuthenticated):
            await gate.admit(asked, "chat")
        assert reasons(asked) == "a token that was given to nobody"


async def test_a_reason_of_a_way_of_ones_own_reaches_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def picky(asked: Connection) -> Principal | None:
        return because(asked, "it is Monday")

    caplog.set_level(logging.INFO)
    with pytest.raises(NotAuthenticated):
        await Gate(picky).admit(connection(), "chat")
    assert "refused 'chat' to somebody unknown: it is Monday" in caplog.text
