"""Access by tokens that the operator has given out."""

import json
import logging
import pickle
from hashlib import sha256
from pathlib import Path

import pytest

from farhand.asgi.access import Principal, Tokens
from farhand.asgi.access.base import reasons
from farhand.core.errors import InvalidInput
from farhand.testing import VirtualClock
from tests.asgi.access.house import bearer, connection

ANN, BEN = "token-of-ann-0123456789", "token-of-ben-0123456789"
HASH = sha256(ANN.encode()).hexdigest()


def file(folder: Path, text: str, name: str = "tokens.toml") -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o600)
    return path


async def test_a_token_names_its_principal() -> None:
    tokens = Tokens({ANN: "ann", BEN: Principal("ben", frozenset({"chat"}))})
    assert await tokens(bearer(ANN)) == Principal("ann")
    assert await tokens(bearer(BEN)) == Principal("ben", frozenset({"chat"}))


@pytest.mark.parametrize("token", ["x", ANN[:-1], ANN + "x", ANN.upper(), f"{ANN}=", HASH, "a" * 8000])
async def test_any_other_token_is_nobodys(token: str) -> None:
    asked = bearer(token)
    assert await Tokens({ANN: "ann"})(asked) is None
    assert reasons(asked) == "a token that was given to nobody"
    assert await Tokens({ANN: "ann"})(connection()) is None


async def test_nothing_that_is_kept_holds_a_token_or_its_plain_hash() -> None:
    tokens = Tokens({ANN: "ann"})
    await tokens(bearer(ANN))
    kept = pickle.dumps(vars(tokens))
    assert b"ann" in kept
    assert ANN.encode() not in kept
    assert sha256(ANN.encode()).digest() not in kept
    assert ANN not in repr(tokens)


async def test_tokens_come_from_a_toml_file(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        f"""
        [[tokens]]
        principal = "ann"
        sha256 = "{HASH}"

        [[tokens]]
        principal = "ben"
        token = "{BEN}"
        scopes = ["chat", "operate"]
        """,
    )
    tokens = Tokens(path)
    assert await tokens(bearer(ANN)) == Principal("ann")
    assert await tokens(bearer(BEN)) == Principal("ben", frozenset({"chat", "operate"}))
    assert await Tokens(str(path))(bearer(ANN)) == Principal("ann")


async def test_tokens_come_from_a_json_file(tmp_path: Path) -> None:
    path = file(tmp_path, json.dumps({"tokens": [{"principal": "ann", "sha256": HASH.upper()}]}), "tokens.json")
    assert await Tokens(path)(bearer(ANN)) == Principal("ann")


async def test_a_token_that_is_taken_out_of_the_file_is_nobodys_a_second_later(tmp_path: Path) -> None:
    clock = VirtualClock()
    path = file(tmp_path, f'tokens = [{{principal = "ann", token = "{ANN}"}}]')
    tokens = Tokens(path, clock=clock)
    assert await tokens(bearer(ANN)) == Principal("ann")
    file(tmp_path, f'tokens = [{{principal = "ben", token = "{BEN}"}}]')
    clock.advance(1)
    assert await tokens(bearer(ANN)) is None
    assert await tokens(bearer(BEN)) == Principal("ben")


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path, f'tokens = [{{principal = "ann", token = "{ANN}"}}]')
    path.chmod(0o644)
    with pytest.raises(InvalidInput, match="chmod 600"):
        Tokens(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tokens = [", "neither TOML nor"),
        ("", "missing required field `tokens`"),
        ('tokens = [{principal = "ann"}]', "token 1: give either `token` or `sha256`"),
        (f'tokens = [{{principal = "ann", token = "{ANN}", sha256 = "{HASH}"}}]', "give either"),
        ('tokens = [{principal = "ann", sha256 = "abc"}]', "64 hexadecimal digits"),
        (f'tokens = [{{principal = "ann", sha256 = "{HASH[:-1]}"}}]', "64 hexadecimal digits"),
        ('tokens = [{principal = "ann", token = "short"}]', "token_urlsafe"),
        (f'tokens = [{{principal = "", token = "{ANN}", scopes = ["chat"]}}]', "printable"),
        (f'tokens = [{{principal = "ann", token = "{ANN}", scopes = ["admin"]}}]', "no scope 'admin'"),
        (f'tokens = [{{principal = "ann", token = "{ANN}", scope = ["chat"]}}]', "nothing is known"),
        (f'"{ANN}" = "ann"\ntokens = []', "nothing is known"),
        (
            f'tokens = [{{principal = "ann", token = "{ANN}"}}, {{principal = "ben", sha256 = "{HASH}"}}]',
            "token 2: this",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_its_tokens_are_not(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=complaint) as refused:
        Tokens(file(tmp_path, text))
    assert str(tmp_path) in str(refused.value)
    assert ANN not in str(refused.value)
    assert refused.value.__context__ is None or refused.value.__suppress_context__


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 20"):
        Tokens({"letmein": "ann"})


async def test_the_log_never_has_a_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    clock = VirtualClock()
    tokens = Tokens(file(tmp_path, f'tokens = [{{principal = "ann", token = "{ANN}"}}]'), clock=clock)
    for text in (f'token = "{BEN}', f'"{BEN}" = 1\ntokens = []', f'tokens = [{{principal = 1, token = "{BEN}"}}]'):
        file(tmp_path, text)
        clock.advance(1)
        assert await tokens(bearer(BEN)) is None
    assert len(caplog.records) == 3
    assert ANN not in caplog.text
    assert BEN not in caplog.text
