"""Access by JWTs of an issuer that you trust: signed with one of its keys, for this audience, at this time."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

from msgspec import Struct

from farhand.asgi.access.base import Connection, because
from farhand.asgi.access.bearer import bearer_of
from farhand.asgi.access.principal import EVERYTHING, USUAL, Principal
from farhand.core.errors import InvalidInput, UsageError
from farhand.outbound import Outbound
from farhand.runner.clock import Clock, SystemClock

try:
    from jwt import PyJWK, PyJWT, PyJWTError, get_unverified_header

    from farhand.asgi.access.jwks import ALGORITHMS, FileKeys, Keys, UrlKeys
except ModuleNotFoundError as error:
    if error.name not in {"jwt", "cryptography"}:
        raise
    raise UsageError("JWTs need PyJWT and cryptography: pip install 'farhand[jwt]'") from error

USUAL_ALGORITHMS: Final = ("RS256", "ES256", "EdDSA")
LEEWAY: Final = 30.0
LATEST: Final = 1e12
KNOWN: Final = 1_000
"""Tokens whose signatures need not be checked again: that is nine tenths of the work."""


class _Known(Struct, frozen=True):
    """A token whose signature was checked."""

    kid: str | None
    key: PyJWK
    claims: Mapping[str, Any]


class Jwt:
    """Whoever the issuer says it is. `keys` is the URL or the file of the issuer's JWK set."""

    def __init__(
        self,
        keys: str | Path,
        *,
        issuer: str,
        audience: str | Iterable[str],
        algorithms: Iterable[str] = USUAL_ALGORITHMS,
        leeway: float = LEEWAY,
        tenant_claim: str | None = None,
        scopes_claim: str | None = None,
        prefix: str = "",
        outbound: Outbound | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._algorithms = frozenset(algorithms)
        self._issuer = issuer
        self._audience = [audience] if isinstance(audience, str) else list(audience)
        if strange := self._algorithms - ALGORITHMS.keys():
            raise InvalidInput(f"{min(strange)!r} is not taken; there are {', '.join(ALGORITHMS)}")
        if not (self._algorithms and issuer and all(self._audience) and self._audience):
            raise InvalidInput("a JWT is taken only with its issuer, its audience and its algorithms given")
        self._leeway = leeway
        self._tenant_claim = tenant_claim
        self._scopes_claim = scopes_claim
        self._prefix = prefix
        self._now = (clock or SystemClock()).now
        self._keys: Keys = (
            UrlKeys(str(keys), outbound or Outbound(), self._now)
            if "://" in str(keys)
            else FileKeys(Path(keys), self._now)
        )
        self._library = PyJWT()
        self._known: dict[bytes, _Known] = {}

    async def __call__(self, connection: Connection) -> Principal | None:
        """Whoever the token is about."""
        token = bearer_of(connection)
        if token is None:
            return None
        try:
            claims = await self._claims(token)
            self._check_times(claims)
            return Principal(self._id(claims), self._scopes(claims))
        except InvalidInput as error:
            return because(connection, f"a JWT: {error}")
        except (PyJWTError, ValueError, TypeError, RecursionError) as error:
            # The library's texts hold parts of the token.
            return because(connection, f"a JWT: {type(error).__name__}")

    async def _claims(self, token: str) -> Mapping[str, Any]:
        """What the issuer has signed. A signature that was checked holds as long as its key is published."""
        digest = sha256(token.encode()).digest()
        known = self._known.get(digest)
        if known is not None and await self._keys.find(known.kid, known.key.algorithm_name) is known.key:
            return known.claims
        key = await self._key(token)
        # The key knows its algorithm; what the token says of it was only for finding the key. The times are looked at
        # later, by the clock that was passed in.
        claims = self._library.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=self._audience,
            issuer=self._issuer,
            options={
                "require": ["exp", "iss", "aud", "sub"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
        if len(self._known) >= KNOWN:
            self._known.clear()
        self._known[digest] = _Known(get_unverified_header(token).get("kid"), key, claims)
        return claims

    async def _key(self, token: str) -> PyJWK:
        """The key that the token has to be signed with."""
        header = get_unverified_header(token)
        algorithm: Any = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self._algorithms:
            raise InvalidInput("an algorithm that is not one of `algorithms`")
        key = await self._keys.find(header.get("kid"), algorithm)
        if key is None:
            raise InvalidInput("none of the issuer's keys is the one")
        return key

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._now() / 1000
        if _number(claims, "exp") <= now - self._leeway:
            raise InvalidInput("expired")
        for name in ("nbf", "iat"):
            if name in claims and _number(claims, name) > now + self._leeway:
                raise InvalidInput("not valid yet")

    def _id(self, claims: Mapping[str, Any]) -> str:
        """Two subjects never get one id: with tenants, the slash between them is the only one."""
        subject = _text(claims, "sub")
        if self._tenant_claim is None:
            return self._prefix + subject
        return f"{self._prefix}{quote(_text(claims, self._tenant_claim), safe='')}/{quote(subject, safe='')}"

    def _scopes(self, claims: Mapping[str, Any]) -> frozenset[str]:
        if self._scopes_claim is None:
            return USUAL
        given = claims.get(self._scopes_claim, "")
        listed = cast("list[object]", given) if isinstance(given, list) else str(given).split()
        return EVERYTHING & frozenset(listed)


def _number(claims: Mapping[str, Any], name: str) -> float:
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LATEST:  # NaN is not either
        raise InvalidInput(f"`{name}` is no time")
    return value


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"`{name}` is no name")
    return value
