"""The client itself. Every connection goes through `_Network`, so no spelling of a URL gets around the check."""

import asyncio
import re
import socket
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from ipaddress import ip_address
from typing import Any, TypeAlias, cast

import httpcore2
import httpx2
from msgspec import Struct

from farhand.core.errors import OutboundFailed, OutboundRefused
from farhand.outbound.address import Address, Peers

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name."""

LONGEST = 253
"""Characters of a host, RFC 1035."""
REDIRECTS = {301, 302, 303, 307, 308}
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+", re.IGNORECASE)
_BROKEN = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
    httpcore2.ConnectionNotAvailable,
)


class Reach(Struct, frozen=True, kw_only=True):
    """How far an outbound client goes."""

    peers: tuple[str, ...] = ()
    """Private peers that are allowed: `host:port`, or a network such as `10.1.0.0/16`."""
    http: bool = False
    """Whether `http://` is allowed besides `https://`."""
    bytes: int | None = 1_048_576
    """Of one answer, headers not counted; None for no limit."""
    seconds: float = 10.0
    """For one request and its whole answer; in a `client()`, for each read."""


class Answer(Struct, frozen=True):
    """What a peer said."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Ask the operating system."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


class Outbound:
    """Asks peers over HTTP: no private addresses, no redirects, no proxies or passwords of the environment."""

    def __init__(
        self,
        reach: Reach | None = None,
        *,
        resolve: Resolve = system_resolver,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.reach = reach or Reach()
        self._network = _Network(Peers(self.reach.peers), resolve)
        self._transport = _Transport(self.reach, self._network, tls)

    async def check(self, url: str) -> None:
        """Refuse a URL that could not be asked; for when it is registered. It is checked again whenever it is asked."""
        parsed = _parsed(url)
        _check_url(parsed, self.reach)
        async with _bounded(parsed, self.reach.seconds):
            await self._network.addresses(_host(parsed), _port(parsed))

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Answer:
        """Ask, and read the whole answer."""
        # Not by way of an AsyncClient, which would write the URL, perhaps with a secret in it, to the log.
        request = httpx2.Request(method, _parsed(url), headers=headers, content=body)
        request.extensions["timeout"] = httpx2.Timeout(self.reach.seconds).as_dict()
        async with _bounded(request.url, self.reach.seconds):
            response = await self._transport.handle_async_request(request)
            try:
                content = await response.aread()
            finally:
                await response.aclose()
        return Answer(response.status_code, response.headers, content)

    def client(self, headers: Mapping[str, str] | None = None) -> httpx2.AsyncClient:
        """A client for libraries that want one; it goes as far as this does. Close it yourself."""
        transport = _Transport(self.reach, self._network, self._transport.tls)
        return httpx2.AsyncClient(headers=headers, timeout=self.reach.seconds, transport=transport, trust_env=False)

    async def close(self) -> None:
        """Close the connections that are kept."""
        await self._transport.aclose()


@asynccontextmanager
async def _bounded(url: httpx2.URL, seconds: float) -> AsyncGenerator[None]:
    """No longer than this, all in all."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise OutboundFailed(f"{_shown(url)} did not answer within {seconds:g} s") from None


class _Network(httpcore2.AsyncNetworkBackend):
    """Connects to nothing but addresses that were looked at."""

    def __init__(self, peers: Peers, resolve: Resolve) -> None:
        self._peers = peers
        self._resolve = resolve
        self._inner = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def addresses(self, host: str, port: int) -> list[Address]:
        """All addresses of a name, if every single one may be connected to."""
        try:
            found = [ip_address(each) for each in await self._resolve(host, port)]
        except (OSError, ValueError):  # ValueError is a name that no resolver takes, UnicodeError included
            found = []
        if not found:
            raise OutboundFailed(f"{host!r} has no address")
        if not all(self._peers.allow(host, address, port) for address in found):
            raise OutboundRefused(
                f"{host!r} has an address that is not public; if port {port} there is meant, add it to `peers`"
            )
        return found

    async def connect_tcp(self, host: str, port: int, *settings: Any, **named: Any) -> httpcore2.AsyncNetworkStream:
        """Resolve once, look at every address, connect to one that was looked at."""
        *others, last = await self.addresses(host, port)
        for address in others:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await self._inner.connect_tcp(str(address), port, *settings, **named)
        return await self._inner.connect_tcp(str(last), port, *settings, **named)

    async def connect_unix_socket(self, path: str, *settings: Any, **named: Any) -> httpcore2.AsyncNetworkStream:
        """Never: a socket of this machine is not outside."""
        raise OutboundRefused("sockets of this machine are not asked")

    async def sleep(self, seconds: float) -> None:
        """Wait between two attempts; there is never a second one."""
        await self._inner.sleep(seconds)


class _Transport(httpx2.AsyncBaseTransport):
    """One request and its answer, both within bounds."""

    def __init__(self, reach: Reach, network: _Network, tls: ssl.SSLContext | None) -> None:
        self.tls = tls or httpx2.create_ssl_context()
        self._reach = reach
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=self.tls, network_backend=network)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; the answer's body is read by whoever asked."""
        url = request.url
        _check_url(url, self._reach)
        request.headers["Accept-Encoding"] = "identity"  # what is packed could be any size once it is unpacked
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _broken(url):
            got = await self._pool.handle_async_request(sent)
        response = httpx2.Response(got.status, headers=got.headers, stream=_Body(got, url, self._reach.bytes))
        if problem := _problem(response):
            await response.aclose()
            raise OutboundFailed(f"{_shown(url)} {problem}")
        return response

    async def aclose(self) -> None:
        """Close the connections that are kept."""
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    """A body that ends where its limit is."""

    def __init__(self, response: httpcore2.Response, url: httpx2.URL, limit: int | None) -> None:
        self._response = response
        self._url = url
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        assert isinstance(self._response.stream, AsyncIterable)
        with _broken(self._url):
            async for part in self._response.stream:
                size += len(part)
                if self._limit is not None and size > self._limit:
                    raise OutboundFailed(f"{_shown(self._url)} answered with more than {self._limit} bytes")
                yield part

    async def aclose(self) -> None:
        """Give the connection back, or close it if the body was not read to its end."""
        await self._response.aclose()


def _parsed(url: str) -> httpx2.URL:
    try:
        return httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        raise OutboundRefused("this is no URL") from None


def _check_url(url: httpx2.URL, reach: Reach) -> None:
    if url.scheme != "https" and not (url.scheme == "http" and reach.http):
        raise OutboundRefused(f"only https is asked, not {url.scheme[:20]!r}; `http=True` allows http")
    if not _host(url) or url.userinfo:
        raise OutboundRefused("a URL to be asked names a host, and neither user nor password")
    if len(_host(url)) > LONGEST or not _HOST.fullmatch(_host(url)):
        raise OutboundRefused(f"a host has at most {LONGEST} letters, digits, dots and hyphens, or is an IPv6 address")
    if not 0 < _port(url) < 65536:
        raise OutboundRefused(f"{url.port} is no port")


def _host(url: httpx2.URL) -> str:
    """The host as it is resolved, in ASCII."""
    return url.raw_host.decode("ascii")


def _port(url: httpx2.URL) -> int:
    return (443 if url.scheme == "https" else 80) if url.port is None else url.port


def _problem(response: httpx2.Response) -> str:
    """Why an answer is not taken, or nothing. What the peer wrote is not repeated: it may be for nobody's eyes."""
    if response.status_code in REDIRECTS:
        return "answered with a redirect, which is not followed; use the address that it leads to"
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        return "answered with a packed body, which was not asked for"
    return ""


@contextmanager
def _broken(url: httpx2.URL) -> Generator[None]:
    """Failures of the connection in our own words, which hold nothing that the peer said."""
    try:
        yield
    except httpcore2.TimeoutException:
        raise OutboundFailed(f"{_shown(url)} did not answer in time") from None
    except httpcore2.ConnectError:
        raise OutboundFailed(f"{_shown(url)} cannot be reached, or its certificate is not trusted") from None
    except _BROKEN:
        raise OutboundFailed(f"{_shown(url)} broke the connection") from None


def _shown(url: httpx2.URL) -> str:
    """A URL without what may be secret in it."""
    return f"{url.scheme}://{_host(url)}:{_port(url)}"
