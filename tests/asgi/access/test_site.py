"""Under which names a server is reached, and which pages may talk to it."""

from typing import Any

import pytest

from farhand.asgi.access.site import Site
from farhand.core.errors import InvalidInput, NotAllowed, NotJson

OWN = {"host": "localhost:8000"}
BROWSER = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
JSON = {"content-type": "application/json"}


def asked(*headers: tuple[str, str], method: str = "GET", scheme: str = "http", **more: str) -> dict[str, Any]:
    pairs = [*headers, *((name.replace("_", "-"), value) for name, value in more.items())]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    kind = {"ws": "websocket", "wss": "websocket"}.get(scheme, "http")
    return {"type": kind, "method": method, "scheme": scheme, "headers": raw}


# Host


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "LOCALHOST:1", "127.0.0.1:8000", "[::1]", "[::1]:8000"]
)
def test_a_server_of_this_machine_is_called_by_its_names_on_every_port(host: str) -> None:
    Site().judge(asked(host=host))


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.test",
            "evil.test:8000",
            "localhost.evil.test",
            "evil.localhost",
            "xlocalhost",
            "localhost.",
            "127.0.0.2",
        ),
        *("127.0.0.1.evil.test", "127.1", "0.0.0.0", "[::]", "::1", "2130706433", "", " ", "localhost:", "localhost:x"),
        *("localhost:8000:9000", "user@localhost", "localhost@evil.test", "localhost/evil.test", "localhost,evil.test"),
        *("localhost evil.test", "evil.test#localhost", "evil.test\\localhost", "http://localhost", "*", "ⓛocalhost"),
    ],
)
def test_a_name_that_is_not_listed_is_refused(host: str) -> None:
    with pytest.raises(NotAllowed, match="Host"):
        Site().judge(asked(("host", host.encode().decode("latin-1"))))


def test_a_request_without_a_host_or_with_two_is_refused() -> None:
    for headers in ([], [("host", "localhost"), ("host", "localhost")], [("Host", "localhost"), ("host", "evil.test")]):
        with pytest.raises(NotAllowed):
            Site().judge(asked(*headers))


def test_listed_names_are_the_only_ones() -> None:
    site = Site(["agents.example.com", "[2001:db8::1]:8443"])
    for host in ("agents.example.com", "Agents.Example.com:443", "[2001:db8::1]:8443"):
        site.judge(asked(host=host))
    for host in ("localhost", "example.com", "x.agents.example.com", "[2001:db8::1]", "[2001:db8::1]:1"):
        with pytest.raises(NotAllowed):
            site.judge(asked(host=host))


def test_a_star_is_any_name_and_still_not_none() -> None:
    Site(["*"]).judge(asked(host="whatever.example.com"))
    for headers in ([], [("host", "a b")], [("host", "a"), ("host", "a")]):
        with pytest.raises(NotAllowed):
            Site(["*"]).judge(asked(*headers))


# Origin


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_pages_of_the_server_itself_may_talk_to_it(method: str) -> None:
    Site().judge(asked(origin="http://localhost:8000", method=method, **OWN))
    Site().judge(asked(origin="http://localhost:8000", method=method, sec_fetch_site="same-origin", **OWN))


def test_a_page_that_a_proxy_has_served_over_tls_is_one_of_the_server_itself() -> None:
    Site(["a.example"]).judge(asked(host="a.example", origin="https://a.example", method="POST"))
    with pytest.raises(NotAllowed):
        Site(["a.example"]).judge(asked(host="a.example", origin="http://a.example", method="POST", scheme="https"))


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "http://evil.test",
            "http://localhost",
            "http://localhost:8001",
            "https://localhost:80000",
            "ftp://localhost:8000",
        ),
        *(
            "null",
            "",
            "http://localhost:8000.evil.test",
            "http://localhost:8000 http://evil.test",
            "*",
            "localhost:8000",
        ),
        *("http://localhost:8000/", "http://127.0.0.1:8000", "http://evil.test/http://localhost:8000", "file://"),
        "chrome-extension://abcdefghijklmnop",
    ],
)
def test_pages_of_other_origins_may_not(origin: str) -> None:
    # An empty Origin counts as none, and then the request shows that a browser has sent it.
    with pytest.raises(NotAllowed):
        Site().judge(asked(origin=origin, method="POST", **OWN, **BROWSER))
    if origin:
        with pytest.raises(NotAllowed):
            Site().judge(asked(origin=origin, **OWN))


@pytest.mark.parametrize("site", ["same-origin", "same-site", "cross-site", ""])
def test_pages_of_listed_origins_may(site: str) -> None:
    listed = Site(origins=["https://app.example.com", "http://localhost:5173"])
    for origin in ("https://app.example.com", "http://localhost:5173"):
        listed.judge(asked(origin=origin, sec_fetch_site=site, method="POST", **OWN))
    for origin in ("https://app.example.com:8443", "http://app.example.com", "http://localhost:5174"):
        with pytest.raises(NotAllowed):
            listed.judge(asked(origin=origin, sec_fetch_site=site, method="POST", **OWN))


def test_a_page_that_claims_to_be_our_own_and_is_said_to_be_another_may_not() -> None:
    with pytest.raises(NotAllowed):
        Site().judge(asked(origin="http://localhost:8000", sec_fetch_site="cross-site", **OWN))


def test_two_origins_are_none() -> None:
    with pytest.raises(NotAllowed, match="more than one Origin"):
        Site().judge(asked(("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")))


def test_a_socket_is_judged_as_a_request_is() -> None:
    Site().judge(asked(origin="http://localhost:8000", scheme="ws", **OWN))
    Site(["a.example"]).judge(asked(host="a.example", origin="https://a.example", scheme="wss"))
    for origin in ("http://evil.test", "ws://localhost:8000", "null"):
        with pytest.raises(NotAllowed):
            Site().judge(asked(origin=origin, scheme="ws", **OWN))


# Without an Origin


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_program_needs_no_origin(method: str) -> None:
    Site().judge(asked(method=method, **OWN))


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "unheard-of"])
@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket"])
def test_a_browser_that_does_not_say_for_which_page_it_asks_is_refused(method: str, site: str, mode: str) -> None:
    with pytest.raises(NotAllowed, match="Origin header is missing"):
        Site().judge(asked(method=method, sec_fetch_site=site, sec_fetch_mode=mode, **OWN))


@pytest.mark.parametrize("name", ["sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"])
def test_one_sign_of_a_browser_is_enough(name: str) -> None:
    with pytest.raises(NotAllowed):
        Site().judge(asked(("host", "localhost"), (name, "cors"), method="POST"))


def test_a_browser_may_load_what_our_own_pages_need_without_saying_more() -> None:
    Site().judge(asked(sec_fetch_site="same-origin", sec_fetch_mode="no-cors", sec_fetch_dest="script", **OWN))
    Site().judge(asked(sec_fetch_site="none", sec_fetch_mode="navigate", sec_fetch_dest="document", **OWN))


def test_a_link_may_be_followed_and_a_form_may_not_be_sent() -> None:
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    Site().judge(asked(sec_fetch_dest="document", **OWN, **link))
    for method, destination in (("POST", "document"), ("GET", "iframe"), ("GET", "")):
        with pytest.raises(NotAllowed):
            Site().judge(asked(method=method, sec_fetch_dest=destination, **OWN, **link))


# Bodies


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/a2a+json",
    ],
)
def test_a_body_is_json(kind: str) -> None:
    Site().judge(asked(method="POST", content_type=kind, content_length="2", **OWN))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "QUERY"])
@pytest.mark.parametrize(
    "kind",
    [
        *(
            "",
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/json",
            "json",
        ),
        *("text/plain; application/json", "application/json, text/plain", "text/plain;charset=application/json"),
        *(
            "application/json; charset=utf-16",
            "application/jsonx",
            "xapplication/json",
            "application/json\x0btext/plain",
        ),
    ],
)
def test_a_body_of_another_kind_is_refused(method: str, kind: str) -> None:
    with pytest.raises(NotJson):
        Site().judge(asked(method=method, content_type=kind, content_length="2", **OWN))


def test_a_body_of_unknown_length_has_a_kind_too() -> None:
    with pytest.raises(NotJson):
        Site().judge(asked(method="POST", transfer_encoding="chunked", **OWN))
    Site().judge(asked(method="POST", transfer_encoding="chunked", content_type="application/json", **OWN))


def test_without_a_body_no_kind_is_needed() -> None:
    Site().judge(asked(method="POST", **OWN))
    Site().judge(asked(method="POST", content_length="0", **OWN))
    with pytest.raises(NotJson):
        Site().judge(asked(method="POST", content_length="0", content_type="text/plain", **OWN))


def test_two_kinds_are_none() -> None:
    with pytest.raises(NotAllowed):
        Site().judge(
            asked(
                ("host", "localhost"),
                ("content-type", "application/json"),
                ("content-type", "text/plain"),
                method="POST",
            )
        )


# Settings


@pytest.mark.parametrize("host", ["http://a.example", "a.example/", "*.example.com", "", "a b", "a.example:port"])
def test_a_setting_that_is_no_name_is_named(host: str) -> None:
    with pytest.raises(InvalidInput, match="no name of a server"):
        Site([host])


@pytest.mark.parametrize("origin", ["*", "null", "a.example", "https://a.example/", "https://*.example.com", ""])
def test_a_setting_that_is_no_origin_is_named(origin: str) -> None:
    with pytest.raises(InvalidInput, match="no origin"):
        Site(origins=[origin])


def test_one_string_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(InvalidInput, match="takes several"):
        Site("localhost")
    with pytest.raises(InvalidInput, match="takes several"):
        Site(origins="https://a.example")
