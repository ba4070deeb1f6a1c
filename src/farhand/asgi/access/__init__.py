"""Who may come in: principals, the ways to be known, what pages of browsers may do, and how much of everything.

`Gate` is the one way in. The contract for a way of your own is in `base`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from farhand.asgi.access.base import Authenticate, Connection, because
from farhand.asgi.access.gate import FirstOf, Gate
from farhand.asgi.access.loopback import Loopback
from farhand.asgi.access.origins import Origins
from farhand.asgi.access.principal import Principal, authorise
from farhand.asgi.access.proxy import ProxyHeader
from farhand.asgi.access.quota import Quota, Quotas
from farhand.asgi.access.site import Site
from farhand.asgi.access.tokens import Tokens

if TYPE_CHECKING:
    from farhand.asgi.access.jwt import Jwt

__all__ = [
    "Authenticate",
    "Connection",
    "FirstOf",
    "Gate",
    "Jwt",
    "Loopback",
    "Origins",
    "Principal",
    "ProxyHeader",
    "Quota",
    "Quotas",
    "Site",
    "Tokens",
    "authorise",
    "because",
]


def __getattr__(name: str) -> Any:
    """`Jwt` is loaded when it is asked for: it has an extra of its own."""
    if name == "Jwt":
        return importlib.import_module("farhand.asgi.access.jwt").Jwt
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
