"""Who a client says it is."""

from typing import Any

import pytest

from farhand.client.credentials import Credentials
from farhand.core.errors import UsageError


async def one() -> dict[str, str]:
    return {"X-Key": "k"}


@pytest.mark.parametrize(
    ("token", "headers"),
    [
        (None, {}),
        ("", {}),
        ("abc", {"authorization": "Bearer abc"}),
        (" abc\n", {"authorization": "Bearer abc"}),
        ({"X-Key": "k"}, {"X-Key": "k"}),
        (lambda: "abc", {"authorization": "Bearer abc"}),
        (lambda: None, {}),
        (one, {"X-Key": "k"}),
    ],
)
async def test_a_token_headers_or_a_function_become_headers(token: Any, headers: dict[str, str]) -> None:
    assert await Credentials(token).headers() == headers


@pytest.mark.parametrize("token", ["a\nb", "ä", {"X-Key": "a\r\nX-More: b"}])
async def test_what_cannot_be_sent_is_refused_without_showing_it(token: Any) -> None:
    with pytest.raises(UsageError) as raised:
        await Credentials(token).headers()
    assert str(raised.value) == "a token or a header has a character that cannot be sent"


def test_a_token_is_shown_nowhere() -> None:
    assert "secret" not in repr(Credentials("secret"))
    assert repr(Credentials(None)) == "Credentials(None)"
