"""Requests to a server as `protocols.native` has them, and its answers as values or as the exceptions it raised."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx2
from msgspec import json, to_builtins

from farhand.client.credentials import Credentials
from farhand.client.patience import USUAL, OnRetry, Patience, insist
from farhand.core.errors import ConnectionLost, FarhandError, ServerFailed, UsageError
from farhand.protocols.endpoints import BY_NAME, Endpoint
from farhand.protocols.native import MAX_ID, PREFIX
from farhand.protocols.problems import exception, read_problem
from farhand.protocols.sse import EventTooLarge, Reader, ServerEvent

CONNECT = 5.0
ANSWER = 30.0
"""Seconds for a connection, and for a whole answer to begin."""
SILENCE = 45.0
"""Seconds without a sign of life after which a stream is taken for broken; a server gives one every 15."""
IDLE = 4.0
"""Seconds for which an unused connection is kept; servers close theirs after 5."""

OK = 200
_GATEWAY = frozenset({502, 503, 504})
_PLAIN = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def _unheard(_attempt: int, _delay: float, _error: Exception) -> None:
    """Nobody listens."""


class Wire:
    """One server: its address, a pool of connections, and the credentials that go with every request."""

    def __init__(
        self,
        url: str,
        credentials: Credentials,
        *,
        patience: Patience = USUAL,
        on_retry: OnRetry = _unheard,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        self.url = base_of(url)
        self.patience = patience
        self.on_retry = on_retry
        self._credentials = credentials
        self._own = http is None
        self._http = http or _pool(self.url)

    async def ask(
        self,
        name: str,
        ids: Mapping[str, str] | None = None,
        *,
        body: Any = None,
        query: Any = None,
        patience: Patience | None = None,
    ) -> Any:
        """Make a request, again and again while the server cannot be reached. Every one of them may be made twice."""
        return await insist(
            patience or self.patience, self.on_retry, lambda: self.ask_once(name, ids, body=body, query=query)
        )

    async def ask_once(
        self, name: str, ids: Mapping[str, str] | None = None, *, body: Any = None, query: Any = None
    ) -> Any:
        """Make a request and read the whole answer."""
        endpoint = BY_NAME[name]
        request = await self._request(endpoint, ids or {}, body, query, {})
        try:
            response = await self._http.send(request)
        except httpx2.HTTPError as error:
            raise fault(error) from error
        if response.status_code != endpoint.status:
            raise refusal(response.status_code, response.content)
        if endpoint.reply is None:
            return None
        try:
            return _decoder(endpoint.reply).decode(response.content)
        except (ValueError, RecursionError) as error:
            raise ServerFailed(f"the answer to {name} cannot be read: {error}") from None

    @asynccontextmanager
    async def stream(
        self, name: str, ids: Mapping[str, str], *, body: Any = None, query: Any = None, last: str = ""
    ) -> AsyncGenerator["Streaming"]:
        """Make a request that is answered by a stream. `last` is the position to go on from."""
        headers = {"accept": "text/event-stream", **({"last-event-id": last} if last else {})}
        request = await self._request(BY_NAME[name], ids, body, query, headers)
        request.extensions["timeout"] = httpx2.Timeout(SILENCE, connect=CONNECT, pool=None).as_dict()
        try:
            response = await self._http.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise fault(error) from error
        try:
            if response.status_code != OK:
                raise refusal(response.status_code, await response.aread())
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise ServerFailed(f"the server answered {name} with something that is no event stream")
            yield Streaming(response)
        except httpx2.HTTPError as error:
            raise fault(error) from error
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close the connections."""
        if self._own:
            await self._http.aclose()

    async def _request(
        self, endpoint: Endpoint, ids: Mapping[str, str], body: Any, query: Any, headers: dict[str, str]
    ) -> httpx2.Request:
        if self._http.is_closed:
            raise UsageError("this client is closed")
        path = endpoint.path.format_map({name: quote(checked_id(value), safe="") for name, value in ids.items()})
        headers |= await self._credentials.headers()
        content = None
        if endpoint.body is not None:
            headers["content-type"] = "application/json"
            content = json.encode(body)
        params = None if query is None else {key: str(value) for key, value in to_builtins(query).items()}
        return self._http.build_request(
            endpoint.method, f"{self.url}{path}", headers=headers, content=content, params=params
        )


class Streaming:
    """A stream that a server has begun: lists of events, as they come."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.run_id: str = response.headers.get("farhand-run", "")

    async def events(self) -> AsyncGenerator[list[ServerEvent]]:
        """What comes together."""
        reader = Reader()
        try:
            async for chunk in self._response.aiter_bytes():
                events = reader.feed(chunk)
                if events:
                    yield events
        except EventTooLarge as error:
            raise ServerFailed(f"the server sent {error}") from None
        except httpx2.HTTPError as error:
            raise fault(error) from error


def base_of(url: str) -> str:
    """The address of the protocol at a server. A secret in it would end up in logs, so there must be none."""
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise UsageError(f"the URL of the server cannot be read: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError("the URL of a server begins with http:// or https:// and has a host")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise UsageError("the URL of a server has no user, no query and no fragment; say who you are with token=…")
    text = str(parsed).rstrip("/")
    return text if text.endswith(PREFIX) else text + PREFIX


def checked_id(text: str) -> str:
    """A name that a client chose for something of its own, or an id that it was given."""
    if not 0 < len(text) <= MAX_ID or not _PLAIN.fullmatch(text) or text in (".", ".."):
        raise UsageError(f"an id has 1 to {MAX_ID} characters, none of them a control character")
    return text


def fault(error: httpx2.HTTPError) -> FarhandError:
    """What it means that there is no answer."""
    if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):  # its text may hold a token
        return UsageError(f"the request cannot be sent: {type(error).__name__}")
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, httpx2.TransportError):
        return ConnectionLost(text)
    return ServerFailed(text)


def refusal(status: int, body: bytes) -> FarhandError:
    """The exception that an answer was made of that is no success."""
    if 300 <= status < 400:
        return ServerFailed(f"the server answered {status}, a redirection; give the address that it leads to")
    problem = read_problem(body, status)
    if status in _GATEWAY and problem.type == "about:blank":
        return ConnectionLost(f"whatever stands before the server answered {status}")
    return exception(problem)


def _pool(url: str) -> httpx2.AsyncClient:
    here = httpx2.URL(url).host in ("127.0.0.1", "::1", "localhost")
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(ANSWER, connect=CONNECT, pool=None),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=IDLE),
        verify=url.startswith("https:"),  # reading the certificates takes longer than a whole run on this machine
        trust_env=not here,
    )


@cache
def _decoder(kind: type) -> json.Decoder[Any]:
    return json.Decoder(kind)
