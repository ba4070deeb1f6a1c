"""An issuer of JWTs, with keys of every kind."""

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example"
AUDIENCE = "farhand"
NOW = 1_800_000_000
"""Seconds."""


class Issuer:
    """One key, published under an id."""

    def __init__(self, kid: str | None = "one", algorithm: str = "ES256", bits: int = 2048) -> None:
        self.kid = kid
        self.algorithm = algorithm
        made: Any
        if algorithm.startswith(("RS", "PS")):
            made, kind = rsa.generate_private_key(65537, bits), RSAAlgorithm
        elif algorithm == "EdDSA":
            made, kind = ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm
        else:
            curve = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}[algorithm]
            made, kind = ec.generate_private_key(curve()), ECAlgorithm
        self.private = made
        self.private_jwk: dict[str, Any] = kind.to_jwk(made, as_dict=True)
        self.jwk: dict[str, Any] = kind.to_jwk(made.public_key(), as_dict=True)
        self.jwk.pop("key_ops", None)
        if kid is not None:
            self.jwk["kid"] = kid

    def token(self, header: dict[str, Any] | None = None, /, **claims: Any) -> str:
        """A good token, but for what is said otherwise; a claim of None is left out."""
        good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 300, "nbf": NOW, "iat": NOW}
        said = {name: value for name, value in {**good, **claims}.items() if value is not None}
        heads = {"kid": self.kid, **(header or {})}
        return jwt.PyJWS().encode(
            json.dumps(said).encode(),
            self.private,
            self.algorithm,
            headers={name: value for name, value in heads.items() if value is not None},
        )


def published(*issuers: Issuer | dict[str, Any]) -> bytes:
    """A JWK set."""
    return json.dumps({"keys": [each.jwk if isinstance(each, Issuer) else each for each in issuers]}).encode()
