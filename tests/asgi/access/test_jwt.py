"""Access by JWTs: a good one names its principal, and nothing else does."""

import base64
import hashlib
import hmac
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from farhand.asgi.access import Gate, Jwt, Principal
from farhand.asgi.access.base import reasons
from farhand.asgi.access.jwt import KNOWN
from farhand.asgi.access.principal import USUAL
from farhand.core.errors import InvalidInput, NotAuthenticated
from farhand.outbound import Outbound, Reach
from farhand.testing import VirtualClock
from tests.asgi.access.house import bearer, connection
from tests.asgi.access.issuer import AUDIENCE, ISSUER, NOW, Issuer, published
from tests.outbound.peer import answer, listening

ONE = Issuer("one")
RSA = Issuer("rsa", "RS256")
ED = Issuer("ed", "EdDSA")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return publish(tmp_path / "keys.json", ONE, RSA, ED)


def publish(path: Path, *issuers: Issuer) -> Path:
    path.write_bytes(published(*issuers))
    return path


def clock() -> VirtualClock:
    return VirtualClock(NOW * 1000)


def way(keys: Path | str, **given_: Any) -> Jwt:
    return Jwt(keys, **{"issuer": ISSUER, "audience": AUDIENCE, "clock": clock(), **given_})


def part(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


async def why(access: Jwt, token: str) -> str:
    """Why nobody is known by a token."""
    asked = bearer(token)
    assert await access(asked) is None
    return reasons(asked)


@pytest.mark.parametrize("issuer", [ONE, RSA, ED], ids=lambda issuer: issuer.algorithm)
async def test_a_token_names_its_principal(issuer: Issuer, keys: Path) -> None:
    assert await way(keys)(bearer(issuer.token())) == Principal("ann", USUAL)


async def test_without_a_token_nobody_is_known(keys: Path) -> None:
    assert await way(keys)(connection()) is None


async def test_every_bit_of_a_token_counts(keys: Path) -> None:
    access, token = way(keys), ED.token()
    for at in range(len(token)):
        for other in ("A", "B", "_"):
            if token[at] not in {other, "."}:
                assert await access(bearer(token[:at] + other + token[at + 1 :])) is None, at


async def test_a_token_in_pieces_is_none(keys: Path) -> None:
    head, body, sign = ONE.token().split(".")
    for token in (
        head,
        f"{head}.{body}",
        f"{head}.{body}.",
        f".{body}.{sign}",
        f"{head}..{sign}",
        f"{head}.{body}.{sign}.x",
    ):
        assert (await why(way(keys), token)).startswith("a JWT: ")
    assert (await why(way(keys), f"{head}.{body}.{sign}{sign}")) == "a JWT: InvalidSignatureError"


# Algorithms


async def test_no_signature_is_no_token(keys: Path) -> None:
    body = part({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 300})
    for name in ("none", "None", "NONE", "nOnE", ""):
        for sign in ("", part(b"x")):
            token = f"{part({'alg': name, 'kid': 'rsa'})}.{body}.{sign}"
            if sign:
                assert await why(way(keys), token) == "a JWT: an algorithm that is not one of `algorithms`"
            else:
                assert await way(keys)(bearer(token)) is None


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_a_public_key_is_not_a_shared_secret(algorithm: str, keys: Path) -> None:
    public = RSA.private.public_key()
    shapes = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.PEM, PublicFormat.PKCS1),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(RSA.jwk).encode(),
        RSA.jwk["n"].encode(),
        b"",
    ]
    claims = part({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 300})
    signed = f"{part({'alg': algorithm, 'kid': 'rsa'})}.{claims}"
    for secret in shapes:
        digest = hmac.new(secret, signed.encode(), getattr(hashlib, f"sha{algorithm[2:]}")).digest()
        assert await why(way(keys), f"{signed}.{part(digest)}") == "a JWT: an algorithm that is not one of `algorithms`"


async def test_an_algorithm_that_is_not_in_the_settings_is_not_taken(keys: Path) -> None:
    assert await way(keys, algorithms=["RS256"])(bearer(RSA.token())) is not None
    assert "not one of `algorithms`" in await why(way(keys, algorithms=["RS256"]), ONE.token())
    same_key = Issuer("rsa", "RS512")
    same_key.private = RSA.private
    assert "not one of `algorithms`" in await why(way(keys), same_key.token())


@pytest.mark.parametrize("name", ["none", "HS256", "HS512", "ES256K", "RSA1_5", ""])
def test_a_closed_list_of_algorithms_can_be_chosen_from(name: str, keys: Path) -> None:
    with pytest.raises(InvalidInput, match="is not taken; there are RS256"):
        way(keys, algorithms=["RS256", name])


# Keys


async def test_the_key_is_the_one_that_the_token_names(keys: Path) -> None:
    assert await why(way(keys), Issuer("two").token()) == "a JWT: none of the issuer's keys is the one"
    assert await why(way(keys), Issuer("one").token()) == "a JWT: InvalidSignatureError"
    assert await why(way(keys), ONE.token({"kid": "rsa"})) == "a JWT: none of the issuer's keys is the one"
    assert await way(keys)(bearer(ONE.token({"kid": None}))) is not None


@pytest.mark.parametrize(
    "header",
    [
        {"jku": "https://evil.test/keys"},
        {"x5u": "https://evil.test/cert"},
        {"jwk": Issuer("one").jwk},
        {"kid": "../../../../dev/null"},
        {"kid": "one' OR '1'='1"},
    ],
)
async def test_a_key_that_the_token_brings_is_never_used(header: dict[str, Any], keys: Path) -> None:
    eve = Issuer("one")
    assert (await why(way(keys), eve.token(header))).startswith("a JWT: ")


async def test_a_token_that_must_be_understood_better_is_not_taken(keys: Path) -> None:
    assert await why(way(keys), ONE.token({"crit": ["exp"], "exp": NOW})) == "a JWT: InvalidTokenError"
    assert await way(keys)(bearer(ONE.token({"b64": False, "crit": ["b64"]}))) is None


# Claims


@pytest.mark.parametrize("name", ["iss", "aud", "sub", "exp"])
async def test_what_a_token_has_to_say_is_not_left_out(name: str, keys: Path) -> None:
    assert await why(way(keys), ONE.token(**{name: None})) == "a JWT: MissingRequiredClaimError"


@pytest.mark.parametrize("audience", ["other", ["other"], [], "farhand ", "FARHAND", {"farhand": 1}, 7, ["x", 1], ""])
async def test_a_token_for_others_is_not_for_us(audience: Any, keys: Path) -> None:
    assert (await why(way(keys), ONE.token(aud=audience))).startswith("a JWT: ")


async def test_one_of_several_audiences_is_enough(keys: Path) -> None:
    assert await way(keys)(bearer(ONE.token(aud=["other", AUDIENCE]))) is not None
    assert await way(keys, audience=["first", AUDIENCE])(bearer(ONE.token())) is not None


@pytest.mark.parametrize("issuer", ["https://evil.test", f"{ISSUER}/", ISSUER.upper(), [ISSUER], ""])
async def test_a_token_of_another_issuer_is_not_taken(issuer: Any, keys: Path) -> None:
    assert (await why(way(keys), ONE.token(iss=issuer))).startswith("a JWT: ")


async def test_a_token_lasts_until_its_end_and_the_leeway(keys: Path) -> None:
    time = clock()
    access = way(keys, clock=time, leeway=30)
    token = ONE.token(exp=NOW + 10)
    time.advance(39)
    assert await access(bearer(token)) is not None
    time.advance(1)
    assert await why(access, token) == "a JWT: expired"


@pytest.mark.parametrize("name", ["nbf", "iat"])
async def test_a_token_begins_when_it_says_less_the_leeway(name: str, keys: Path) -> None:
    access = way(keys, leeway=30)
    assert await access(bearer(ONE.token(**{name: NOW + 30}))) is not None
    assert await why(access, ONE.token(**{name: NOW + 31})) == "a JWT: not valid yet"
    assert await access(bearer(ONE.token(**{name: None}))) is not None


@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("time", [str(NOW + 10), True, [NOW], {}, float("nan"), float("inf"), "soon"])
async def test_a_time_is_a_number(name: str, time: Any, keys: Path) -> None:
    assert (await why(way(keys), ONE.token(**{name: time}))).startswith("a JWT: ")


async def test_a_time_without_end_is_none(keys: Path) -> None:
    assert await way(keys)(bearer(ONE.token(exp=10**400))) is None


@pytest.mark.parametrize("subject", ["", 7, ["ann"], "a\nb", "a\x00b", "a" * 257, " \u202e"])
async def test_a_subject_is_a_name(subject: Any, keys: Path) -> None:
    assert (await why(way(keys), ONE.token(sub=subject))).startswith("a JWT: ")


# Principals


async def test_a_prefix_keeps_the_names_of_several_ways_apart(keys: Path) -> None:
    known = await way(keys, prefix="sso:")(bearer(ONE.token(sub="local")))
    assert known == Principal("sso:local")


@given(st.tuples(*[st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=20)] * 4))
@settings(deadline=None, max_examples=50)
def test_two_tenants_never_share_a_principal(names: tuple[str, str, str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys.json"
        path.write_bytes(published(ONE))
        access = way(path, tenant_claim="tid")
        first, second, third, fourth = names
        ids = access._id({"tid": first, "sub": second}), access._id({"tid": third, "sub": fourth})
        assert (ids[0] == ids[1]) == ((first, second) == (third, fourth))


async def test_the_tenant_is_part_of_the_principal(keys: Path) -> None:
    access = way(keys, tenant_claim="tid")
    assert await access(bearer(ONE.token(tid="acme"))) == Principal("acme/ann")
    assert await access(bearer(ONE.token(tid="a/b", sub="c/d"))) == Principal("a%2Fb/c%2Fd")
    pairs = [("a/b", "c"), ("a", "b/c"), ("a%2Fb", "c"), ("a", "b%2Fc")]
    known = [await access(bearer(ONE.token(tid=tenant, sub=subject))) for tenant, subject in pairs]
    assert len({principal.id for principal in known if principal}) == 4
    assert await why(access, ONE.token()) == "a JWT: `tid` is no name"


@pytest.mark.parametrize(
    ("claim", "scopes"),
    [
        ("chat approve", {"chat", "approve"}),
        (["chat", "operate"], {"chat", "operate"}),
        ("chat openid profile admin", {"chat"}),
        ("", set()),
        ([], set()),
        (None, set()),
        ("CHAT", set()),
        ({"operate": False}, set()),
        (7, set()),
        ("chat,approve", set()),
    ],
)
async def test_scopes_are_those_that_the_claim_names(claim: Any, scopes: set[str], keys: Path) -> None:
    known = await way(keys, scopes_claim="scope")(bearer(ONE.token(scope=claim)))
    assert known == Principal("ann", frozenset(scopes))


async def test_a_claim_of_scopes_that_cannot_be_read_lets_nobody_in(keys: Path) -> None:
    assert await why(way(keys, scopes_claim="scope"), ONE.token(scope=[{"operate": 1}])) == "a JWT: TypeError"


# Settings


@pytest.mark.parametrize(
    "missing", [{"issuer": ""}, {"audience": ""}, {"audience": []}, {"audience": [""]}, {"algorithms": []}]
)
def test_without_issuer_audience_and_algorithms_no_token_is_taken(missing: dict[str, Any], keys: Path) -> None:
    with pytest.raises(InvalidInput, match="only with its issuer"):
        way(keys, **missing)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"keys.json cannot be read"):
        way(tmp_path / "keys.json")


OPTIONAL = """
import sys
import farhand.asgi.access
assert not {"jwt", "cryptography"} & set(sys.modules)
sys.modules["jwt"] = None
try:
    farhand.asgi.access.Jwt
except farhand.core.errors.UsageError as error:
    print(error)
"""


def test_jwts_are_an_extra_and_the_error_says_which() -> None:
    ran = subprocess.run([sys.executable, "-c", OPTIONAL], capture_output=True, encoding="utf-8", timeout=30)
    assert ran.stdout == "JWTs need PyJWT and cryptography: pip install 'farhand[jwt]'\n", ran.stderr


# Over HTTP


async def test_keys_rotate_at_a_real_issuer_without_anybody_being_sent_away() -> None:
    old, new, time = Issuer("old"), Issuer("new"), clock()
    said = [published(old), published(old, new), published(new)]
    async with listening(lambda: answer(said[0])) as peer:
        outbound = Outbound(Reach(http=True, peers=(f"127.0.0.1:{peer.port}",)))
        access = way(f"http://127.0.0.1:{peer.port}/keys", clock=time, outbound=outbound)

        def token(issuer: Issuer) -> str:
            return issuer.token(exp=time.now() // 1000 + 300, nbf=None, iat=None)

        assert await access(bearer(token(old))) is not None
        assert await access(bearer(token(new))) is None
        said.pop(0)  # the issuer publishes the new key before it signs with it
        time.advance(61)
        assert await access(bearer(token(new))) is not None
        assert await access(bearer(token(old))) is not None
        said.pop(0)  # and takes the old one back
        time.advance(61)
        assert await access(bearer(token(Issuer("made up")))) is None
        assert await access(bearer(token(new))) is not None
        assert await access(bearer(token(old))) is None
        assert len(peer.requests) == 3
        await outbound.close()


async def test_a_token_that_was_taken_once_is_not_taken_for_longer_than_its_time_or_its_key(keys: Path) -> None:
    time = clock()
    access = way(keys, clock=time)
    token, other = ONE.token(), RSA.token()
    for _ in range(3):
        assert await access(bearer(token)) == await access(bearer(other)) == Principal("ann")
    publish(keys, RSA)
    time.advance(1)
    assert await access(bearer(token)) is None
    assert await access(bearer(other)) is not None
    publish(keys, Issuer("one"), RSA)
    time.advance(1)
    assert await why(access, token) == "a JWT: InvalidSignatureError"
    time.advance(400)
    assert await why(access, other) == "a JWT: expired"


async def test_only_so_many_tokens_are_remembered(keys: Path) -> None:
    access = way(keys)
    for number in range(KNOWN + 10):
        assert await access(bearer(ED.token(sub=f"user {number}"))) == Principal(f"user {number}")
    assert len(access._known) == 10
    assert await access(bearer("a.b.c")) is None
    assert len(access._known) == 10


async def test_the_log_has_the_reason_and_not_the_token(keys: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    gate = Gate(way(keys))
    eve = Issuer("canary-kid")
    bad = [
        ONE.token(sub="canary-subject", exp=NOW - 1000),
        ONE.token(aud="canary-audience"),
        eve.token(sub="canary-subject"),
        ONE.token({"crit": ["canary"], "canary": 1}),
        "canary.canary.canary",
        f"{part({'alg': 'canary', 'kid': 'canary'})}.{part({'sub': 'canary'})}.canary",
    ]
    for token in bad:
        with pytest.raises(NotAuthenticated):
            await gate.admit(bearer(token), "chat")
    assert caplog.text.count("refused") == len(bad)
    assert "canary" not in caplog.text
    assert not any(token in caplog.text for token in bad)


@given(st.binary(max_size=60), st.binary(max_size=200), st.binary(max_size=70))
@settings(deadline=None, max_examples=300)
async def test_whatever_is_sent_nobody_is_known_and_nothing_breaks(head: bytes, body: bytes, sign: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys.json"
        path.write_bytes(published(ONE))
        access = way(path)
        for token in (f"{part(head)}.{part(body)}.{part(sign)}", f"{part({'alg': 'ES256'})}.{part(body)}.{part(sign)}"):
            assert await access(bearer(token)) is None
        for deep in (b"[" * 5_000, b'{"a":' * 1_200, b'{"alg":' + b"9" * 5_000 + b"}"):
            assert await access(bearer(f"{part(deep)}.{part(body)}.{part(sign)}")) is None
