"""Keys that an issuer of JWTs publishes, from a file or a URL: public ones for signatures, each for its algorithms."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from jwt import PyJWK, PyJWTError
from msgspec import Struct

from farhand.asgi.access.watched import Watched
from farhand.core.errors import InvalidInput, OutboundError
from farhand.outbound import Outbound

logger = logging.getLogger("farhand.access")

ALGORITHMS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", "")),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""All that are ever taken, each with the type and curve of its keys. None of them has a shared secret."""

MOST: Final = 100
SMALLEST: Final = 2048
"""Bits of an RSA key."""
FRESH: Final = 600_000
"""Milliseconds after which the URL is asked again."""
PAUSE: Final = 60_000
"""Milliseconds between two questions, whoever asks for whatever key."""
FIRST_PAUSE: Final = 5_000
"""The same as long as there are no keys at all."""
STALE: Final = 86_400_000
"""Milliseconds for which keys count while the URL is away."""


class Keys(Protocol):
    """Where keys come from."""

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The one key of this id for this algorithm; without an id, the only one that there is."""
        ...


class _Jwk(Struct, frozen=True, kw_only=True):
    """What decides whether a key is one of ours."""

    kty: str
    crv: str = ""
    kid: str | None = None
    use: str = "sig"
    key_ops: tuple[str, ...] = ("verify",)
    alg: str | None = None
    d: Any = None

    def takes(self, algorithm: str) -> bool:
        """Whether signatures of this algorithm are made with such keys."""
        return (self.kty, self.crv) == ALGORITHMS.get(algorithm) and self.alg in {None, algorithm}


class KeySet:
    """Keys as they were published together. What cannot be used is left out, and the log says so."""

    def __init__(self, published: Sequence[Mapping[str, Any]] = ()) -> None:
        self._keys: list[tuple[_Jwk, dict[str, PyJWK]]] = []
        for number, jwk in enumerate(published[:MOST]):
            try:
                self._keys.append(_usable(jwk))
            except (PyJWTError, ValueError, TypeError) as error:
                # The text may hold the key, which is a secret if somebody has published the wrong one.
                why = str(error) if isinstance(error, InvalidInput) else type(error).__name__
                logger.warning("key %d of the published ones is not used: %s", number, why)

    def __len__(self) -> int:
        return len(self._keys)

    def has(self, kid: str | None) -> bool:
        """Whether there is a key of this id; without an id, whether there is one at all."""
        return any(kid in {None, key.kid} for key, _ in self._keys)

    def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The one key for it; None if there is none, or a choice."""
        found = [ready[algorithm] for key, ready in self._keys if kid in {None, key.kid} and algorithm in ready]
        return found[0] if len(found) == 1 else None


def _usable(jwk: Mapping[str, Any]) -> tuple[_Jwk, dict[str, PyJWK]]:
    key = msgspec.convert(jwk, _Jwk)
    if key.d is not None:
        raise InvalidInput("it is a private key, which everybody can read now; replace it at its issuer")
    ready = {name: PyJWK(dict(jwk), name) for name in ALGORITHMS if key.takes(name)}
    if not ready or key.use != "sig" or "verify" not in key.key_ops:
        raise InvalidInput("it is not for signatures that are taken here")
    if key.kty == "RSA" and next(iter(ready.values())).key.key_size < SMALLEST:
        raise InvalidInput(f"it has less than {SMALLEST} bits")
    return key, ready


def read_keys(data: bytes) -> KeySet:
    """A JWK set as RFC 7517 has it."""
    try:
        published = msgspec.json.decode(data, type=dict[str, Any])["keys"]
        keys = KeySet(msgspec.convert(published, list[dict[str, Any]]))
    except (KeyError, ValueError, RecursionError):
        raise InvalidInput('no JWK set: it looks like {"keys": […]}') from None
    if not len(keys):
        raise InvalidInput("a JWK set without a key that can be used")
    return keys


class FileKeys:
    """Keys from a file, read again when it has changed."""

    def __init__(self, path: Path, now: Callable[[], int]) -> None:
        self._file = Watched(path, read_keys, now)

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The key as the file has it now."""
        return self._file.value().find(kid, algorithm)


class UrlKeys:
    """Keys from a URL. Asked for a key that is not there, it looks whether there is a newer set, and not too often."""

    def __init__(self, url: str, outbound: Outbound, now: Callable[[], int]) -> None:
        self._url = url
        self._outbound = outbound
        self._now = now
        self._keys = KeySet()
        self._had = self._asked = -STALE
        self._asking: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The key, waiting for the URL only if it may know one that is not known here."""
        if not self._within(STALE, self._had):
            self._keys = KeySet()
        known = self._keys.has(kid)
        if not known or not self._within(FRESH, self._had):
            asking = self._ask()
            if asking is not None and not known:
                await asyncio.shield(asking)  # whoever hangs up does not take the others' answer along
        return self._keys.find(kid, algorithm)

    def _ask(self) -> "asyncio.Task[None] | None":
        if self._asking is None or self._asking.done():
            if self._within(PAUSE if len(self._keys) else FIRST_PAUSE, self._asked):
                return None
            self._asked = self._now()
            self._asking = asyncio.create_task(self._fetch())
        return self._asking

    async def _fetch(self) -> None:
        try:
            answer = await self._outbound.request("GET", self._url, headers={"Accept": "application/json"})
            if answer.status != 200:
                raise InvalidInput(f"the issuer answered {answer.status}")
            self._keys = read_keys(answer.body)
            self._had = self._now()
        except (OutboundError, InvalidInput) as error:
            logger.error("the issuer's keys cannot be had; %d of before still count: %s", len(self._keys), error)

    def _within(self, span: int, since: int) -> bool:
        return 0 <= self._now() - since < span
