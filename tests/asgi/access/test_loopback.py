"""Access for this machine, by one token: what a strange page can make a browser send changes nothing."""

from itertools import product
from typing import Any

import pytest

from farhand.asgi.access import Loopback, Principal
from farhand.asgi.access.base import reasons
from farhand.asgi.access.principal import EVERYTHING
from farhand.core.errors import InvalidInput
from tests.asgi.access.house import House, connection

TOKEN = "token-of-here-0123456789"
APP = "http://localhost:5173"

HOSTS = {
    "own name": {"Host": "localhost:8000"},
    "own address": {"Host": "127.0.0.1:8000"},
    "rebound name": {"Host": "evil.test:8000"},
    "none": {},
}
FETCH = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
ORIGINS = {
    "a program": {},
    "listed page": {"Origin": APP, "Sec-Fetch-Site": "same-site", **FETCH},
    "strange page": {"Origin": "http://evil.test:8000", "Sec-Fetch-Site": "cross-site", **FETCH},
    "sandboxed page": {"Origin": "null", "Sec-Fetch-Site": "cross-site", **FETCH},
    "page that does not say": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
}
TOKENS = {
    "right": {"Authorization": f"Bearer {TOKEN}"},
    "wrong": {"Authorization": f"Bearer {TOKEN[:-1]}x"},
    "none": {},
}
KINDS = {
    "json": {"Content-Type": "application/json"},
    "form": {"Content-Type": "application/x-www-form-urlencoded"},
    "text": {"Content-Type": "text/plain;charset=UTF-8"},
    "none": {},
}
GOOD = {"own name", "own address"}, {"a program", "listed page"}, {"right"}, {"json"}


@pytest.mark.parametrize("checked", [True, False], ids=["with the check of origins", "by the token's own check"])
async def test_of_all_that_can_be_sent_only_what_is_right_in_every_way_changes_anything(
    checked: bool, record_property: Any
) -> None:
    cells = list(product(HOSTS, ORIGINS, TOKENS, KINDS))
    for cell in cells:
        house = House(Loopback(TOKEN, origins=[APP]), origins=[APP])
        headers: dict[str, str] = {}
        for table, name in zip((HOSTS, ORIGINS, TOKENS, KINDS), cell, strict=True):
            headers |= table[name]
        answer = await house.ask("POST", headers=headers, content=b"{}", checked=checked)
        right = all(name in good for name, good in zip(cell, GOOD, strict=True))
        assert (house.changed == ["local"]) == right, cell
        assert answer.status_code in ({200} if right else {401, 403, 415}), cell
    assert len(cells) == 240
    record_property("cells of Host x Origin x token x content type, none open that should not be", len(cells))


@pytest.mark.parametrize("path", [f"/chat?token={TOKEN}", f"/chat?access_token={TOKEN}", f"/chat#{TOKEN}"])
async def test_the_token_in_the_url_is_no_token(path: str) -> None:
    house = House(Loopback(TOKEN))
    assert (await house.ask(path=path, headers={"Host": "localhost"})).status_code == 401
    assert (await house.ask(path=path, headers={"Host": "localhost", "Cookie": f"token={TOKEN}"})).status_code == 401


@pytest.mark.parametrize(
    ("client", "known"),
    [
        (("127.0.0.1", 1), True),
        (("127.8.9.10", 1), True),
        (("::1", 1), True),
        (("::ffff:127.0.0.1", 1), True),
        (("10.0.0.5", 1), False),
        (("203.0.113.7", 1), False),
        (("::ffff:10.0.0.5", 1), False),
        (("0.0.0.0", 1), False),
        (("testclient", 1), False),
        (None, False),
    ],
)
async def test_only_this_machine_is_known(client: tuple[str, int] | None, known: bool) -> None:
    headers = {"Host": "localhost", "Authorization": f"Bearer {TOKEN}", "X-Forwarded-For": "127.0.0.1"}
    asked = connection(headers, client=client)
    assert (await Loopback(TOKEN)(asked) is not None) == known
    assert known or reasons(asked) == "not from this machine"


async def test_whoever_has_the_token_may_do_everything_under_the_name_that_was_chosen() -> None:
    asked = connection({"Host": "localhost", "Authorization": f"Bearer {TOKEN}"})
    assert await Loopback(TOKEN)(asked) == Principal("local", EVERYTHING)
    assert await Loopback(TOKEN, principal="ann")(asked) == Principal("ann", EVERYTHING)


async def test_a_socket_of_a_page_shows_its_token_as_a_subprotocol() -> None:
    asked = connection(
        {"Host": "localhost", "Origin": "http://localhost"},
        kind="websocket",
        subprotocols=["farhand.v1", f"farhand.bearer.{TOKEN}"],
    )
    assert await Loopback(TOKEN)(asked) == Principal("local", EVERYTHING)


async def test_a_socket_of_a_strange_page_is_not_known_whatever_it_shows() -> None:
    asked = connection(
        {"Host": "localhost", "Origin": "http://evil.test"}, kind="websocket", subprotocols=[f"farhand.bearer.{TOKEN}"]
    )
    assert await Loopback(TOKEN)(asked) is None


def test_the_token_is_random_unless_it_is_given() -> None:
    made = {Loopback().token for _ in range(100)}
    assert len(made) == 100
    assert min(map(len, made)) == 43
    assert Loopback(TOKEN).token == TOKEN


@pytest.mark.parametrize("token", ["", "short", "a" * 19, "with spaces in between", "with=sign-0123456789", "ä" * 30])
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(InvalidInput, match="token_urlsafe") as refused:
        Loopback(token)
    assert not token or token not in str(refused.value)


def test_the_token_is_not_shown_by_accident() -> None:
    assert TOKEN not in repr(Loopback(TOKEN))


async def test_names_and_pages_can_be_added() -> None:
    loopback = Loopback(TOKEN, hosts=["agents.test"], origins=["https://app.example.com"])
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert await loopback(connection({"Host": "agents.test", **token})) is not None
    assert await loopback(connection({"Host": "localhost", **token})) is None
    assert await loopback(connection({"Host": "agents.test", "Origin": "https://app.example.com", **token})) is not None
    assert await loopback(connection({"Host": "agents.test", "Origin": "https://app.example", **token})) is None
