"""The guarded client: what it does not ask, and what it does not take."""

import asyncio
import logging
import ssl
import tempfile
from collections.abc import Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from farhand.core.errors import OutboundError, OutboundFailed, OutboundRefused
from farhand.outbound import Outbound, Reach
from tests.outbound.peer import Peer, answer, listening
from tests.outbound.spellings import LOOPBACK, NAMED, PRIVATE, REFUSED_AS_THEY_ARE


def reach(peer: Peer, **settings: Any) -> Reach:
    """As far as this peer on this machine."""
    return Reach(**{"http": True, "peers": (f"127.0.0.1:{peer.port}",), **settings})


async def everywhere_here(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


async def everywhere_public(_host: str, _port: int) -> Sequence[str]:
    return ["93.184.216.34"]


async def ask(outbound: Outbound, url: str, **settings: Any) -> Any:
    try:
        return await outbound.request("GET", url, **settings)
    finally:
        await outbound.close()


@asynccontextmanager
async def trap() -> Any:
    """A peer that must not be reached, by any address that Linux leads here."""
    async with listening(hosts=("0.0.0.0",)) as first:
        try:
            async with listening(hosts=("::1",), port=first.port) as second:
                yield first, second
        except OSError:  # without IPv6
            yield first, first


# Where it does not go


async def test_no_spelling_of_a_private_address_is_connected_to(record_property: Any) -> None:
    async with trap() as traps:
        port = str(traps[0].port)
        count = 0
        for spellings, outbound in (
            (LOOPBACK + PRIVATE + REFUSED_AS_THEY_ARE, Outbound(Reach(http=True))),
            (NAMED, Outbound(Reach(http=True), resolve=everywhere_here)),
        ):
            async with outbound.client() as client:
                for spelling in spellings:
                    url = spelling.replace("{port}", port)
                    count += 1
                    with pytest.raises(OutboundError):
                        await outbound.check(url)
                    with pytest.raises(OutboundError):
                        await outbound.request("GET", url)
                    with pytest.raises((OutboundError, httpx2.HTTPError, httpx2.InvalidURL)):
                        await client.get(url)
            await outbound.close()
        assert sum(each.connections for each in traps) == 0
        assert count >= 120
        record_property("spellings of private addresses, none connected to", count)


async def test_the_same_spellings_reach_the_trap_once_every_address_is_allowed() -> None:
    async with trap() as traps:
        outbound = Outbound(Reach(http=True, peers=("0.0.0.0/0", "::/0")))
        async with outbound.client() as client:
            for spelling in LOOPBACK:
                try:
                    await client.get(spelling.replace("{port}", str(traps[0].port)))
                except (OutboundError, httpx2.HTTPError, httpx2.InvalidURL):
                    continue
        assert sum(len(each.requests) for each in {id(each): each for each in traps}.values()) > 30


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com:8443/a?b#c",
        "HTTPS://EXAMPLE.com./",
        "https://a_b.example.com/",
        "https://93.184.216.34/",
        "https://[2606:4700:4700::1111]/",
        "https://b\u00fccher.example/",
    ],
)
async def test_an_ordinary_url_may_be_registered(url: str) -> None:
    await Outbound(resolve=everywhere_public).check(url)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://example.com/", "only https"),
        ("ftp://example.com/", "only https"),
        ("https://ann:secret@example.com/", "neither user nor password"),
        ("https://ann@example.com/", "neither user nor password"),
        ("https:///path", "names a host"),
        ("https://example.com:0/", "is no port"),
        ("https://example.com:65536/", "is no port"),
        (f"https://{'a' * 254}/", "a host has at most 253"),
        ("https://exa%6dple.com/", "a host has"),
        ("https://example.com\\.evil.test/", "a host has"),
        ("https://example.com%2F.evil.test/", "a host has"),
        ("https://exam ple.com/", "a host has"),
        ("https://example.com;x/", "a host has"),
        ("https://example.com\n/", "no URL"),
    ],
)
async def test_an_odd_url_is_refused_wherever_it_leads(url: str, complaint: str) -> None:
    outbound = Outbound(resolve=everywhere_public)
    for asked in (outbound.check(url), outbound.request("GET", url)):
        with pytest.raises(OutboundRefused, match=complaint) as refused:
            await asked
        assert "secret" not in str(refused.value)


async def test_https_is_asked_and_http_only_where_it_is_allowed() -> None:
    async with listening() as peer:
        url = f"http://127.0.0.1:{peer.port}/"
        with pytest.raises(OutboundRefused, match="only https"):
            await ask(Outbound(reach(peer, http=False)), url)
        assert peer.connections == 0
        assert (await ask(Outbound(reach(peer)), url)).body == b"hello"


async def test_one_address_that_is_not_public_among_others_is_enough_to_refuse() -> None:
    async def mixed(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    async with trap() as (there, _):
        outbound = Outbound(Reach(http=True, peers=("127.0.0.2/32",)), resolve=mixed)
        with pytest.raises(OutboundRefused):
            await ask(outbound, f"http://both.test:{there.port}/")
        assert there.connections == 0


async def test_a_name_that_leads_elsewhere_when_it_is_asked_again_is_not_asked_again() -> None:
    said = [["127.0.0.2"], ["127.0.0.1"]]

    async def flips(_host: str, _port: int) -> Sequence[str]:
        return said.pop(0)

    async with (
        listening(answer(b"first", Connection="close"), hosts=("127.0.0.2",)) as good,
        listening(hosts=("127.0.0.1",), port=good.port) as trapped,
    ):
        outbound = Outbound(Reach(http=True, peers=("127.0.0.2/32",)), resolve=flips)
        url = f"http://flips.test:{good.port}/"
        assert (await outbound.request("GET", url)).body == b"first"
        assert said == [["127.0.0.1"]]
        with pytest.raises(OutboundRefused):
            await outbound.request("GET", url)
        assert (good.connections, trapped.connections) == (1, 0)
        await outbound.close()


async def test_a_url_that_was_good_when_it_was_registered_is_looked_at_again() -> None:
    said = [["127.0.0.2"], ["127.0.0.1"]]

    async def flips(_host: str, _port: int) -> Sequence[str]:
        return said.pop(0)

    async with trap() as (there, _):
        outbound = Outbound(Reach(http=True, peers=("127.0.0.2/32",)), resolve=flips)
        url = f"http://flips.test:{there.port}/"
        await outbound.check(url)
        with pytest.raises(OutboundRefused):
            await ask(outbound, url)
        assert there.connections == 0


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_not_followed(status: str) -> None:
    async with trap() as (there, _), listening() as peer:
        peer.say = lambda: answer(b"canary", status, Location=f"http://127.0.0.1:{there.port}/")
        outbound = Outbound(reach(peer))
        url = f"http://127.0.0.1:{peer.port}/"
        with pytest.raises(OutboundFailed, match="redirect") as failed:
            await outbound.request("GET", url)
        assert "canary" not in str(failed.value)
        async with outbound.client() as client:
            with pytest.raises(OutboundFailed, match="redirect"):
                await client.get(url, follow_redirects=True)
        assert there.connections == 0
        await outbound.close()


async def test_proxies_and_passwords_of_the_environment_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login canary password canary\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with trap() as (there, _), listening() as peer:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{there.port}")
        outbound = Outbound(reach(peer))
        assert (await outbound.request("GET", f"http://127.0.0.1:{peer.port}/")).body == b"hello"
        async with outbound.client() as client:
            assert (await client.get(f"http://127.0.0.1:{peer.port}/")).text == "hello"
        assert there.connections == 0
        assert not any(b"authorization" in request.lower() for request in peer.requests)
        await outbound.close()


async def test_a_socket_of_this_machine_is_not_asked(tmp_path: Path) -> None:
    network = Outbound()._network
    with pytest.raises(OutboundRefused, match="sockets of this machine"):
        await network.connect_unix_socket(str(tmp_path / "socket"))


async def test_the_second_address_of_a_name_is_tried_when_the_first_does_not_answer() -> None:
    async def two(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.3", "127.0.0.2"]

    async with listening(hosts=("127.0.0.2",)) as peer:
        outbound = Outbound(Reach(http=True, peers=("127.0.0.0/8",)), resolve=two)
        assert (await ask(outbound, f"http://two.test:{peer.port}/")).body == b"hello"


@pytest.mark.parametrize("found", [[], OSError(), UnicodeError(), ["not an address"]])
async def test_a_name_without_an_address_is_told_apart(found: Any) -> None:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        if isinstance(found, Exception):
            raise found
        return found

    with pytest.raises(OutboundFailed, match=r"'nowhere\.test' has no address"):
        await ask(Outbound(resolve=resolve), "https://nowhere.test/")


# What it sends


async def test_the_name_is_sent_as_it_was_written_to_the_address_that_was_looked_at() -> None:
    tls, trusted = certificates("service.test")
    names: list[str | None] = []
    tls.sni_callback = lambda _socket, name, _context: names.append(name)
    async with listening(tls=tls) as peer:
        rules = Reach(peers=(f"service.test:{peer.port}",))
        outbound = Outbound(rules, resolve=everywhere_here, tls=trusted)
        assert (await ask(outbound, f"https://service.test:{peer.port}/path?query")).body == b"hello"
        assert names == ["service.test"]
        head = peer.requests[0].decode().splitlines()
        assert head[0] == "GET /path?query HTTP/1.1"
        assert f"Host: service.test:{peer.port}" in head


async def test_a_certificate_of_another_name_is_not_taken() -> None:
    tls, trusted = certificates("service.test")
    async with listening(tls=tls) as peer:
        for host, context in (("other.test", trusted), ("service.test", None)):
            outbound = Outbound(Reach(peers=(f"{host}:{peer.port}",)), resolve=everywhere_here, tls=context)
            with pytest.raises(OutboundFailed, match="certificate is not trusted"):
                await ask(outbound, f"https://{host}:{peer.port}/")
        assert peer.requests == []


async def test_headers_and_a_body_are_sent() -> None:
    async with listening() as peer:
        outbound = Outbound(reach(peer))
        url = f"http://127.0.0.1:{peer.port}/"
        got = await outbound.request("POST", url, headers={"X-Key": "value"}, body=b"")
        assert (got.status, got.headers["content-length"], got.body) == (200, "5", b"hello")
        assert b"X-Key: value" in peer.requests[0]
        assert peer.requests[0].startswith(b"POST / ")
        await outbound.close()


def certificates(name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For a server of this name, and for a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    with tempfile.NamedTemporaryFile() as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        file.write(made.public_bytes(Encoding.PEM))
        file.flush()
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(file.name)
    return server, ssl.create_default_context(cadata=made.public_bytes(Encoding.PEM).decode())


# What it does not take


async def test_an_answer_ends_at_its_limit() -> None:
    async with listening(answer(b"canary" * 1000)) as peer:
        url = f"http://127.0.0.1:{peer.port}/"
        with pytest.raises(OutboundFailed, match="more than 5999 bytes") as failed:
            await ask(Outbound(reach(peer, bytes=5999)), url)
        assert "canary" not in str(failed.value)
        for limit in (6000, None):
            assert len((await ask(Outbound(reach(peer, bytes=limit)), url)).body) == 6000
        async with Outbound(reach(peer, bytes=5999)).client() as client:
            with pytest.raises(OutboundFailed, match="more than"):
                await client.get(url)


async def test_an_endless_answer_ends_at_its_limit_as_well() -> None:
    chunks = (b"400\r\n" + b"a" * 1024 + b"\r\n") * 5000
    async with listening(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks) as peer:
        with pytest.raises(OutboundFailed, match="more than 1048576 bytes"):
            await ask(Outbound(reach(peer)), f"http://127.0.0.1:{peer.port}/")


@pytest.mark.parametrize("said", [None, b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"])
async def test_a_peer_that_does_not_come_to_an_end_is_left(said: bytes | None) -> None:
    async with listening(lambda: said) as peer:
        with pytest.raises(OutboundFailed, match=f"http://127.0.0.1:{peer.port} did not answer within 0.1 s"):
            await ask(Outbound(reach(peer, seconds=0.1)), f"http://127.0.0.1:{peer.port}/")


async def test_a_resolver_that_does_not_come_to_an_end_is_left() -> None:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    outbound = Outbound(Reach(seconds=0.05), resolve=resolve)
    with pytest.raises(OutboundFailed, match="did not answer"):
        await outbound.check("https://slow.test/")
    with pytest.raises(OutboundFailed, match="did not answer"):
        await ask(outbound, "https://slow.test/")


@pytest.mark.parametrize("packed", ["gzip", "deflate", "br", "zstd", "GZIP", "gzip, gzip", "x-gzip"])
async def test_a_packed_answer_is_not_unpacked(packed: str) -> None:
    async with listening(answer(b"\x1f\x8b canary", Content_Encoding=packed)) as peer:
        with pytest.raises(OutboundFailed, match="packed body") as failed:
            await ask(Outbound(reach(peer)), f"http://127.0.0.1:{peer.port}/")
        assert "canary" not in str(failed.value)
        assert b"Accept-Encoding: identity" in peer.requests[0]


@pytest.mark.parametrize(
    "said", [b"canary\r\n\r\n", b"HTTP/1.1 canary\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: canary\r\n\r\n"]
)
async def test_what_is_no_http_is_not_repeated(said: bytes) -> None:
    async with listening(said) as peer:
        with pytest.raises(OutboundFailed, match="broke the connection") as failed:
            await ask(Outbound(reach(peer)), f"http://127.0.0.1:{peer.port}/")
        assert "canary" not in str(failed.value)
        assert failed.value.__suppress_context__


async def test_a_head_without_end_is_not_read_to_its_end() -> None:
    async with listening(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n") as peer:
        with pytest.raises(OutboundFailed):
            await ask(Outbound(reach(peer)), f"http://127.0.0.1:{peer.port}/")


async def test_a_peer_that_is_not_there_cannot_be_reached() -> None:
    async with listening() as peer:
        gone = reach(peer)
    with pytest.raises(OutboundFailed, match="cannot be reached"):
        await ask(Outbound(gone), f"http://127.0.0.1:{peer.port}/")


async def test_errors_and_the_log_have_no_secret_of_the_url(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with listening(answer(b"canary-body")) as peer:
        url = f"http://127.0.0.1:{peer.port}/canary-path?key=canary-query"
        await ask(Outbound(reach(peer)), url, headers={"Authorization": "canary-header"}, body=b"canary-sent")
        for outbound in (Outbound(reach(peer, bytes=1)), Outbound(Reach(http=True)), Outbound()):
            with pytest.raises(OutboundError) as failed:
                await ask(outbound, url, headers={"Authorization": "canary-header"})
            assert "canary" not in str(failed.value)
    assert "canary" not in caplog.text
