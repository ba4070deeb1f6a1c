"""Under which names a server is reached, and which pages may talk to it. Decides; `origins` and `loopback` ask it.

A page that somebody looks at can make their browser send requests to any server, this one too: through a name that it
has pointed here (DNS rebinding), or across origins (CSRF). The Host header gives away the first, Origin and the
Sec-Fetch headers the second. What is sent without asking the server first cannot be JSON.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from farhand.core.errors import InvalidInput, NotAllowed, NotJson

HERE: Final = ("localhost", "127.0.0.1", "[::1]")
ANY: Final = "*"
"""As a host: any name. Only for a server that something stands before which knows the names."""

_NAME = r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?)(:(?P<port>\d{1,5}))?"
_HOST = re.compile(_NAME)
_ORIGIN = re.compile(rf"(?P<scheme>[a-z][a-z0-9+.-]*)://{_NAME}")
_JSON = re.compile(r"application/([\w.-]+\+)?json\s*(;\s*charset\s*=\s*\"?utf-8\"?\s*)?", re.ASCII | re.IGNORECASE)
_SAFE = {"GET", "HEAD", "OPTIONS"}
_FETCH = ("sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")
_SCHEMES = {"ws": "http", "wss": "https"}


class Site:
    """Names of this server, those of this machine if none are given, and origins of pages besides its own.

    A name without a port stands for every port.
    """

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self.hosts = frozenset(host.lower() for host in _several(hosts, "hosts")) or frozenset(HERE)
        self.origins = frozenset(origin.lower() for origin in _several(origins, "origins"))
        for host in self.hosts - {ANY}:
            if not _HOST.fullmatch(host):
                raise InvalidInput(
                    f"{host!r} is no name of a server: write it as in agents.example.com or localhost:8000"
                )
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise InvalidInput(
                    f"{origin!r} is no origin: write it as in https://app.example.com, and each one by itself"
                )

    def judge(self, scope: Mapping[str, Any]) -> None:
        """Raise for a request that is not meant for this server, or that a strange page may have sent."""
        headers = _headers(scope)
        host = self._host(headers)
        # What comes from a proxy as http may have come to it as https.
        page = self._page(headers, {f"{_SCHEMES.get(scope['scheme'], scope['scheme'])}://{host}", f"https://{host}"})
        method = scope.get("method", "GET")  # a WebSocket is opened by GET
        if not page:
            _expect_no_page(headers, method)
        if method not in _SAFE:
            _expect_json(headers)

    def lists(self, origin: str) -> bool:
        """Whether pages of this origin may read what is answered."""
        return origin in self.origins

    def _host(self, headers: Mapping[str, list[str]]) -> str:
        """The name that this server was called by."""
        host = _one(headers, "host").lower()
        found = _HOST.fullmatch(host)
        if found is None or not ({host, found["name"], ANY} & self.hosts):
            raise NotAllowed("this server is not called by the name in the Host header; it is to be in `hosts`")
        return host

    def _page(self, headers: Mapping[str, list[str]], own: set[str]) -> bool:
        """Whether a page has sent this, and says that it is one of those that may."""
        origin = _one(headers, "origin")
        if not origin:
            return False
        if origin in self.origins:
            return True
        if origin not in own or _one(headers, "sec-fetch-site") not in {"", "same-origin"}:
            raise NotAllowed("pages of this origin may not talk to this server; it is to be in `origins`")
        return True


def _expect_no_page(headers: Mapping[str, list[str]], method: str) -> None:
    """Without an Origin it is a program, or a browser that asks for something that changes nothing."""
    site, mode, destination = (_one(headers, name) for name in _FETCH)
    if not (site or mode or destination):
        return
    opened = mode == "navigate" and destination == "document"  # a person followed a link; no page can read the answer
    if method not in _SAFE or not (opened or site in {"same-origin", "none"}):
        raise NotAllowed("a page has sent this, and does not say which: the Origin header is missing")


def _expect_json(headers: Mapping[str, list[str]]) -> None:
    kind = _one(headers, "content-type")
    empty = _one(headers, "content-length") in {"", "0"} and "transfer-encoding" not in headers
    if not (_JSON.fullmatch(kind) or (empty and not kind)):
        raise NotJson("send a body as `Content-Type: application/json`")


def _headers(scope: Mapping[str, Any]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    raw: Sequence[tuple[bytes, bytes]] = scope["headers"]
    for name, value in raw:
        found[name.decode("latin-1").lower()].append(value.decode("latin-1").strip())
    return found


def _one(headers: Mapping[str, list[str]], name: str) -> str:
    """The value of a header that may be there once."""
    values = headers.get(name, [])
    if len(values) > 1:
        raise NotAllowed(f"more than one {name.title()} header")
    return values[0] if values else ""


def _several(names: Iterable[str], setting: str) -> Iterable[str]:
    if isinstance(names, str):
        raise InvalidInput(f"`{setting}` takes several: [{names!r}]")
    return names
