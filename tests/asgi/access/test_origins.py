"""Host and Origin before an application, and what pages of listed origins may read."""

from typing import Any

import pytest

from farhand.asgi.access import Tokens
from farhand.asgi.access.origins import Origins
from farhand.asgi.access.principal import Principal
from tests.asgi.access.house import House

TOKEN = "token-of-ann-0123456789"
APP = "https://app.example.com"
OWN = {"Host": "localhost:8000", "Authorization": f"Bearer {TOKEN}"}
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}


def house(**settings: Any) -> House:
    return House(Tokens({TOKEN: Principal("ann")}), origins=[APP], **settings)


def cors(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith("access-control")}


async def test_a_strange_name_never_reaches_the_application() -> None:
    asked = house()
    answer = await asked.ask(headers={**OWN, "Host": "evil.test:8000"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (403, "application/problem+json")
    assert answer.json()["code"] == "not_allowed"
    assert asked.changed == []


async def test_a_strange_page_never_reaches_the_application_and_reads_nothing() -> None:
    asked = house()
    answer = await asked.ask(headers={**OWN, "Origin": "http://evil.test"})
    assert answer.status_code == 403
    assert cors(answer.headers) == {}
    assert asked.changed == []


async def test_a_body_of_a_kind_that_forms_send_is_415() -> None:
    asked = house()
    answer = await asked.ask("POST", headers={**OWN, "Content-Type": "text/plain"}, content=b"{}")
    assert (answer.status_code, answer.json()["code"]) == (415, "not_json")
    assert asked.changed == []


async def test_a_listed_page_may_read_and_is_told_so() -> None:
    answer = await house().ask(headers={**OWN, "Origin": APP})
    assert answer.status_code == 200
    assert cors(answer.headers) == {
        "access-control-allow-origin": APP,
        "access-control-expose-headers": "farhand-request, farhand-run, farhand-thread, retry-after, www-authenticate",
    }


async def test_what_is_answered_depends_on_the_origin_and_caches_are_told() -> None:
    for headers in (OWN, {**OWN, "Origin": APP}, {**OWN, "Origin": "http://evil.test"}):
        answer = await house().ask(headers=headers)
        assert "Origin" in answer.headers.get_list("Vary")
    assert (await house().ask(headers=OWN)).headers.get_list("Vary") == ["Accept", "Origin"]


async def test_a_listed_page_may_read_why_it_was_refused() -> None:
    unknown = await house().ask(headers={"Host": "localhost", "Origin": APP})
    assert (unknown.status_code, unknown.headers["Access-Control-Allow-Origin"]) == (401, APP)
    kind = await house().ask("POST", headers={**OWN, "Origin": APP, "Content-Type": "text/plain"}, content=b"{}")
    assert (kind.status_code, kind.headers["Access-Control-Allow-Origin"]) == (415, APP)


async def test_a_page_of_our_own_needs_to_be_told_nothing() -> None:
    answer = await house().ask(headers={**OWN, "Origin": "http://localhost:8000"})
    assert (answer.status_code, cors(answer.headers)) == (200, {})


async def test_a_browser_that_asks_first_is_answered_before_the_application() -> None:
    asked = house()
    answer = await asked.ask("OPTIONS", headers={"Host": "localhost", "Origin": APP, **PREFLIGHT})
    assert (answer.status_code, answer.content) == (204, b"")
    found = cors(answer.headers)
    assert found["access-control-allow-origin"] == APP
    assert "POST" in found["access-control-allow-methods"]
    assert {"authorization", "content-type", "last-event-id"} <= set(found["access-control-allow-headers"].split(", "))
    assert found["access-control-max-age"] == "600"
    assert "access-control-allow-private-network" not in found
    assert asked.changed == []


@pytest.mark.parametrize("origin", ["http://evil.test", "null", f"{APP}.evil.test", APP.upper()])
async def test_a_browser_that_asks_for_another_page_is_told_nothing(origin: str) -> None:
    answer = await house().ask("OPTIONS", headers={"Host": "localhost", "Origin": origin, **PREFLIGHT})
    assert (answer.status_code, cors(answer.headers)) == (403, {})


async def test_a_listed_page_of_the_internet_may_ask_a_private_network() -> None:
    headers = {"Host": "localhost", "Origin": APP, **PREFLIGHT, "Access-Control-Request-Private-Network": "true"}
    answer = await house().ask("OPTIONS", headers=headers)
    assert answer.headers["Access-Control-Allow-Private-Network"] == "true"


@pytest.mark.parametrize("origin", [{}, {"Origin": "http://localhost:8000"}, {"Origin": APP}])
async def test_other_options_are_the_applications_own(origin: dict[str, str]) -> None:
    asked = house()
    answer = await asked.ask("OPTIONS", headers={**OWN, **origin})
    assert (answer.status_code, asked.changed) == (200, ["ann"])


async def test_nothing_is_ever_open_to_every_page() -> None:
    for origin in (APP, "http://evil.test", "http://localhost:8000"):
        for method in ("GET", "OPTIONS"):
            for settings in ({}, {"credentials": True}):
                answer = await house(**settings).ask(method, headers={**OWN, **PREFLIGHT, "Origin": origin})
                assert "*" not in str(cors(answer.headers))


async def test_cookies_are_for_listed_pages_of_a_server_that_wants_them() -> None:
    wanted = await house(credentials=True).ask(headers={**OWN, "Origin": APP})
    assert wanted.headers["Access-Control-Allow-Credentials"] == "true"
    for other in (
        await house().ask(headers={**OWN, "Origin": APP}),
        await house(credentials=True).ask(headers={**OWN, "Origin": "http://evil.test"}),
    ):
        assert "Access-Control-Allow-Credentials" not in other.headers


async def test_a_header_that_pages_need_is_shown_to_them() -> None:
    answer = await house(exposed=["x-run"]).ask(headers={**OWN, "Origin": APP})
    assert answer.headers["Access-Control-Expose-Headers"] == "x-run"


async def test_without_listed_origins_answers_are_left_as_they_are() -> None:
    answer = await House(Tokens({TOKEN: "ann"})).ask(headers=OWN)
    assert answer.headers.get_list("Vary") == ["Accept"]


async def opened(headers: dict[str, str]) -> list[dict[str, Any]]:
    """What is sent to a client that opens a socket."""
    sent: list[dict[str, Any]] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "websocket", "scheme": "ws", "path": "/", "headers": raw}
    await Origins(app, origins=[APP])(scope, receive, send)
    return sent


async def test_a_socket_is_opened_for_programs_our_own_pages_and_listed_ones() -> None:
    for origin in ({}, {"Origin": "http://localhost"}, {"Origin": APP}):
        assert await opened({"Host": "localhost", **origin}) == [{"type": "websocket.accept"}]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost", "Origin": "http://evil.test"},
        {"Host": "localhost", "Origin": "null"},
        {"Host": "evil.test", "Origin": "http://evil.test"},
        {"Host": "evil.test"},
        {"Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "websocket"},
    ],
)
async def test_a_socket_of_a_strange_page_is_closed_before_it_is_open(headers: dict[str, str]) -> None:
    assert await opened(headers) == [{"type": "websocket.close", "code": 1008, "reason": ""}]


async def test_a_lifespan_is_none_of_its_business() -> None:
    seen: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["type"])

    await Origins(app)({"type": "lifespan"}, app, app)
    assert seen == ["lifespan"]
