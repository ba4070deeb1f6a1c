"""Keys that an issuer publishes."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from farhand.asgi.access.jwks import MOST, FileKeys, KeySet, UrlKeys, read_keys
from farhand.core.errors import InvalidInput
from farhand.outbound import Outbound, Reach
from farhand.testing import VirtualClock
from tests.asgi.access.issuer import Issuer, published
from tests.outbound.peer import Peer, answer, listening

ONE, TWO = Issuer("one"), Issuer("two")
RSA = Issuer("rsa", "RS256")


# A set


@pytest.mark.parametrize("algorithm", ["RS256", "PS384", "ES256", "ES384", "ES512", "EdDSA"])
def test_a_key_is_found_by_its_id_and_its_algorithm(algorithm: str) -> None:
    keys = read_keys(published(ONE, Issuer("mine", algorithm)))
    found = keys.find("mine", algorithm)
    assert found is not None
    assert (found.key_id, found.algorithm_name) == ("mine", algorithm)
    assert keys.find("other", algorithm) is None


def test_a_key_of_one_kind_is_not_found_for_another() -> None:
    keys = read_keys(published(RSA, ONE))
    assert keys.find("rsa", "ES256") is None
    assert keys.find("one", "RS256") is None
    for shared in ("HS256", "HS512", "none", "", "ES256K", "dir"):
        assert keys.find("rsa", shared) is None


def test_a_key_that_names_its_algorithm_is_for_no_other() -> None:
    keys = read_keys(published({**RSA.jwk, "alg": "RS512"}))
    assert keys.find("rsa", "RS512") is not None
    assert keys.find("rsa", "RS256") is None


def test_without_an_id_the_only_key_is_found_and_of_several_none() -> None:
    assert read_keys(published(ONE, RSA)).find(None, "ES256") is not None
    assert read_keys(published(ONE, TWO)).find(None, "ES256") is None


def test_of_two_keys_with_one_id_none_is_found() -> None:
    assert read_keys(published(ONE, Issuer("one"))).find("one", "ES256") is None


@pytest.mark.parametrize(
    "bad",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "bad"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "bad", "alg": "HS256"},
        {**ONE.private_jwk, "kid": "bad"},
        {**ONE.jwk, "kid": "bad", "use": "enc"},
        {**ONE.jwk, "kid": "bad", "key_ops": ["sign"]},
        {**ONE.jwk, "kid": "bad", "alg": "HS256"},
        {**ONE.jwk, "kid": "bad", "alg": "none"},
        {**ONE.jwk, "kid": "bad", "x": ONE.jwk["y"]},
        {**ONE.jwk, "kid": "bad", "crv": "secp256k1"},
        {**ONE.jwk, "kid": 7},
        {"kty": "RSA", "kid": "bad"},
        {"kid": "bad"},
        {},
        Issuer("bad", "RS256", 1024).jwk,
    ],
)
def test_a_key_that_is_not_for_us_is_left_out_and_the_log_says_so_without_it(
    bad: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    keys = read_keys(published(bad, TWO))
    assert len(keys) == 1
    assert all(keys.find("bad", name) is None for name in ("RS256", "ES256", "HS256", "none"))
    assert "key 0 of the published ones is not used" in caplog.text
    assert "c2VjcmV0" not in caplog.text
    assert str(bad.get("d")) not in caplog.text


@pytest.mark.parametrize(
    "data",
    [b"", b"no", b"[]", b"{}", b'{"keys": []}', b'{"keys": {}}', b'{"keys": [1]}', b'{"keys": [{}]}', b"[" * 100_000],
)
def test_what_is_no_set_of_keys_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="JWK set"):
        read_keys(data)


def test_only_so_many_keys_are_looked_at() -> None:
    assert len(KeySet([ONE.jwk] * (MOST + 5))) == MOST


# A file


async def test_keys_of_a_file_are_read_again_when_it_changes(tmp_path: Path) -> None:
    path, clock = tmp_path / "keys.json", VirtualClock()
    path.write_bytes(published(ONE))
    keys = FileKeys(path, clock.now)
    assert await keys.find("one", "ES256") is not None
    path.write_bytes(published(TWO, ONE))
    clock.advance(1)
    assert await keys.find("two", "ES256") is not None


# A URL


@asynccontextmanager
async def url(say: Any, clock: VirtualClock) -> AsyncIterator[tuple[UrlKeys, Peer]]:
    """Keys at a real peer."""
    async with listening(say) as peer:
        outbound = Outbound(Reach(http=True, peers=(f"127.0.0.1:{peer.port}",), seconds=5))
        yield UrlKeys(f"http://127.0.0.1:{peer.port}/keys", outbound, clock.now), peer
        await outbound.close()


async def test_a_url_is_asked_once_for_many() -> None:
    async with url(answer(published(ONE)), VirtualClock()) as (keys, peer):
        found = await asyncio.gather(*[keys.find("one", "ES256") for _ in range(100)])
        assert all(found)
        assert len(peer.requests) == 1


async def test_a_new_key_is_fetched_when_it_is_first_asked_for() -> None:
    clock, said = VirtualClock(), [answer(published(ONE)), answer(published(TWO))]
    async with url(lambda: said.pop(0), clock) as (keys, peer):
        assert await keys.find("one", "ES256") is not None
        clock.advance(61)
        assert await keys.find("two", "ES256") is not None
        assert await keys.find("one", "ES256") is None
        assert len(peer.requests) == 2


async def test_keys_that_nobody_has_are_asked_for_once_a_minute_at_most() -> None:
    clock = VirtualClock()
    async with url(answer(published(ONE)), clock) as (keys, peer):
        for second in range(180):
            assert await keys.find(f"made up {second}", "ES256") is None
            clock.advance(1)
        assert len(peer.requests) == 3


async def test_while_the_url_is_away_the_keys_of_before_count_for_a_day(caplog: pytest.LogCaptureFixture) -> None:
    clock, said = VirtualClock(), [answer(published(ONE))]
    async with url(lambda: said.pop(0) if said else answer(b"", "503 Away"), clock) as (keys, peer):
        for _ in range(23 * 6):
            assert await keys.find("one", "ES256") is not None
            await settled(keys)
            clock.advance(600)
        assert len(peer.requests) > 100
        assert "the issuer answered 503" in caplog.text
        clock.advance(3600)
        assert await keys.find("one", "ES256") is None


async def test_a_key_that_is_known_is_not_waited_for() -> None:
    clock, said = VirtualClock(), [answer(published(ONE))]
    async with url(lambda: said.pop(0) if said else None, clock) as (keys, _peer):
        assert await keys.find("one", "ES256") is not None
        clock.advance(601)
        async with asyncio.timeout(1):  # the peer says nothing
            assert await keys.find("one", "ES256") is not None
        await settled(keys, cancel=True)


async def test_a_key_that_was_taken_back_is_gone_ten_minutes_later() -> None:
    clock, said = VirtualClock(), [answer(published(ONE, TWO)), answer(published(TWO))]
    async with url(lambda: said.pop(0), clock) as (keys, _peer):
        assert await keys.find("one", "ES256") is not None
        clock.advance(601)
        await keys.find("two", "ES256")
        await settled(keys)
        assert await keys.find("one", "ES256") is None


async def test_whoever_hangs_up_does_not_take_the_others_answer_along() -> None:
    async with url(answer(published(ONE)), VirtualClock()) as (keys, peer):
        hanging_up = asyncio.create_task(keys.find("one", "ES256"))
        await asyncio.sleep(0)
        hanging_up.cancel()
        assert await keys.find("one", "ES256") is not None
        assert len(peer.requests) == 1


async def test_a_server_without_keys_yet_asks_again_sooner() -> None:
    clock, said = VirtualClock(), [answer(b"", "503 Away"), answer(published(ONE))]
    async with url(lambda: said.pop(0), clock) as (keys, _peer):
        assert await keys.find("one", "ES256") is None
        clock.advance(5)
        assert await keys.find("one", "ES256") is not None


@pytest.mark.parametrize(
    "said", [answer(b"<html>canary"), answer(b"canary", "404 Not Found"), answer(b'{"keys": [{"kty": "canary"}]}')]
)
async def test_what_the_url_says_instead_of_keys_is_not_repeated(said: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with url(said, VirtualClock()) as (keys, _peer):
        assert await keys.find("one", "ES256") is None
        assert "the issuer's keys cannot be had" in caplog.text
        assert "canary" not in caplog.text


async def test_a_url_that_may_not_be_asked_gives_no_keys(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(answer(published(ONE))) as peer:
        for address in (f"http://127.0.0.1:{peer.port}", f"https://127.0.0.1:{peer.port}", "file:///etc/passwd"):
            keys = UrlKeys(address, Outbound(), VirtualClock().now)
            assert await keys.find("one", "ES256") is None
        assert peer.connections == 0
        assert caplog.text.count("cannot be had") == 3


async def settled(keys: UrlKeys, *, cancel: bool = False) -> None:
    """Wait for the question that is under way."""
    asking = keys._asking
    assert asking is not None
    if cancel:
        asking.cancel()
    await asyncio.wait({asking})
