"""Who a client says it is: found anew for every request, and sent in its headers only."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from farhand.core.errors import UsageError

Said: TypeAlias = str | Mapping[str, str] | None
Token: TypeAlias = Said | Callable[[], Said | Awaitable[Said]]
"""A token, headers, or a function that gives one of them; sync or async."""


class Credentials:
    """The headers of each request that say who asks."""

    def __init__(self, token: Token) -> None:
        self._token = token

    async def headers(self) -> dict[str, str]:
        """For one request; nothing without a token."""
        given = self._token() if callable(self._token) else self._token
        said = await given if inspect.isawaitable(given) else given
        if not said:
            return {}
        if isinstance(said, Mapping):
            return {_clean(name): _clean(value) for name, value in said.items()}
        return {"authorization": f"Bearer {_clean(said)}"}

    def __repr__(self) -> str:
        return "Credentials(…)" if self._token is not None else "Credentials(None)"


def _clean(text: str) -> str:
    """Without it, the whole request would come to nothing, and the error would hold the token."""
    text = text.strip()
    if not text.isascii() or not text.isprintable():
        raise UsageError("a token or a header has a character that cannot be sent")
    return text
