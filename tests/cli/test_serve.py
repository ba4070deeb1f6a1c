"""`farhand serve`: a server as an operator starts it, and what is said when it cannot be."""

import os
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from msgspec import json

from tests.cli.command import COMMAND, HOUSE, ROOT, SECONDS, Served, bad, environment, farhand, good, serving, told

TOKEN = "a-token-that-is-long-enough"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file with a token."""
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def taken() -> Generator[int]:
    """A port where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def asked(served: Served, token: str) -> int:
    """What the server answers to somebody with this token."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.get(f"{served.bare}/v1/server", headers=headers, trust_env=False).status_code


# How it begins


def test_it_says_where_it_is_its_token_and_what_to_try_and_stops_in_order(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [str(COMMAND), "serve", HOUSE, "--port", "0", "--store", f"sqlite:{tmp_path}/runs.db"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        cwd=ROOT,
        env=environment(),
    )
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or "Ctrl-C" not in lines[-1]:
        lines.append(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    rest, wrong = process.communicate(timeout=SECONDS)
    url = lines[0].rpartition(" ")[2].strip()
    assert lines[0].startswith("farhand ")
    assert " serves house at http://127.0.0.1:" in lines[0]
    assert f"runs are kept in sqlite:{tmp_path}/runs.db" in lines[1]
    token = lines[2].rpartition(" ")[2].strip()
    assert f"chat '{url}/#token={token}'" in lines[5]
    assert (process.returncode, rest.strip()) == (0, "stopped; runs that are under way go on at the next start")
    assert token not in wrong


def test_for_programs_the_first_line_is_json_and_there_is_no_other() -> None:
    with serving("serve", HOUSE, "--store", "memory:") as served:
        assert served.ready["agents"] == ["house"]
        assert asked(served, served.token) == 200
        assert asked(served, TOKEN) == 401
        served.process.terminate()
        rest, _ = served.process.communicate(timeout=SECONDS)
    assert (served.process.returncode, rest) == (0, "")


def test_sigterm_loses_nothing_and_the_next_start_goes_on(tmp_path: Path) -> None:
    words = ("serve", HOUSE, "--store", f"sqlite:{tmp_path}/runs.db")
    with serving(*words) as served:
        asked_for = farhand("chat", served.url, "pay", "--thread", "money")
        assert asked_for.returncode == 1
        [run] = told("runs", "list", served.url)["runs"]
        assert run["state"] == "waiting"
        code, said = served.stop()
        assert code == 0
        assert "Traceback" not in said
    with serving(*words) as served:
        good("runs", "approve", served.url, run["id"])
        assert "so: paid 5" in good("runs", "watch", served.url, run["id"])


def test_several_agents_are_told_apart_by_their_names() -> None:
    with serving("serve", HOUSE, "farhand.demo:demo_agent", "--store", "memory:") as served:
        assert served.ready["agents"] == ["house", "demo"]
        assert "I follow a few rules" in good("chat", served.url, "hello", "--agent", "demo")
        said = bad(2, "chat", served.url, "hello", "--agent", "nobody")
        assert said == "the server has no agent 'nobody'; it has house, demo"


# Who may come in


def test_a_token_of_ones_own_is_not_repeated(secret: Path) -> None:
    for words, variables in (
        (["--token", TOKEN], {}),
        (["--token-file", str(secret)], {}),
        ([], {"FARHAND_TOKEN": TOKEN}),
        ([], {"FARHAND_TOKEN_FILE": str(secret)}),
    ):
        with serving("serve", HOUSE, "--store", "memory:", *words, **variables) as served:
            assert served.token == ""
            assert (asked(served, TOKEN), asked(served, TOKEN + "x")) == (200, 401)


def test_tokens_of_several_people_come_from_a_file(tmp_path: Path) -> None:
    people = tmp_path / "people.toml"
    people.write_text(f'[[tokens]]\nprincipal = "ann"\ntoken = "{TOKEN}"\nscopes = ["chat"]\n')
    people.chmod(0o600)
    with serving("serve", HOUSE, "--store", "memory:", "--tokens", people) as served:
        assert farhand("chat", served.bare, "pay", FARHAND_TOKEN=TOKEN).returncode == 1
        [run] = told("runs", "list", served.bare, FARHAND_TOKEN=TOKEN)["runs"]
        said = bad(5, "runs", "approve", served.bare, run["id"], FARHAND_TOKEN=TOKEN)
        assert said == "this needs the scope 'approve' (ask whoever runs the server for a token with this scope)"
        assert bad(4, "runs", "list", served.bare).endswith("or the URL as the server printed it)")
    people.chmod(0o644)
    said = bad(2, "serve", HOUSE, "--store", "memory:", "--tokens", people)
    assert said == f"others may read or change {people}: chmod 600 {people}"


def test_jwts_need_to_be_of_somebody_and_for_somebody(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"keys": []}')
    words = ("serve", HOUSE, "--store", "memory:", "--jwks", keys)
    assert "--jwks needs --issuer and --audience" in bad(2, *words)
    assert "a JWK set without a key" in bad(2, *words, "--issuer", "i", "--audience", "a")
    assert "name the keys with --jwks" in bad(2, "serve", HOUSE, "--issuer", "i")


def test_a_public_address_is_served_only_to_those_who_are_known_under_known_names(secret: Path) -> None:
    words = ("serve", HOUSE, "--store", "memory:", "--host", "0.0.0.0")
    assert "on 0.0.0.0 anybody could come in: say who may with --token-file" in bad(2, *words)
    assert "--host-name agents.example.com" in bad(2, *words, "--token-file", secret)
    with serving(
        *words, "--token-file", secret, "--host-name", "agents.example.com", "--host-name", "127.0.0.1"
    ) as served:
        assert served.bare.startswith("http://agents.example.com:")
        here = served.bare.replace("agents.example.com", "127.0.0.1")
        sent = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx2.get(f"{here}/v1/server", headers=sent, trust_env=False).json()["principal"] == "local"
        strange = httpx2.get(f"{here}/v1/server", headers={**sent, "Host": "evil.example"}, trust_env=False)
        assert strange.status_code == 403


# What can be wrong


def test_a_port_that_is_taken_is_told(taken: int) -> None:
    said = bad(1, "serve", HOUSE, "--store", "memory:", "--port", str(taken))
    assert said == f"port {taken} of 127.0.0.1 is taken: stop what runs there, or choose another --port"


def test_an_address_of_another_machine_is_told(secret: Path) -> None:
    words = ("serve", HOUSE, "--store", "memory:", "--token-file", secret, "--port", "0")
    assert "this machine cannot listen on 192.0.2.1" in bad(1, *words, "--host", "192.0.2.1")


def test_a_store_that_cannot_be_used_is_told_before_anything_is_served(tmp_path: Path) -> None:
    newer = tmp_path / "newer.db"
    good("store", "migrate", f"sqlite:{newer}")
    with closing(sqlite3.connect(newer)) as connection, connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    assert "of version 99, and this build reads" in bad(1, "serve", HOUSE, "--port", "0", "--store", f"sqlite:{newer}")
    assert "names no store" in bad(1, "serve", HOUSE, "--port", "0", "--store", "mysql://x")
    away = bad(3, "serve", HOUSE, "--port", "0", "--store", "postgresql://ann:secret@127.0.0.1:1/x")
    assert "secret" not in away


def test_a_token_that_can_be_guessed_or_read_by_others_is_refused(secret: Path) -> None:
    assert "a token has at least 20" in bad(2, "serve", HOUSE, "--store", "memory:", "--token", "short")
    secret.chmod(0o644)
    said = bad(2, "serve", HOUSE, "--store", "memory:", "--token-file", secret)
    assert said == f"others may read or change {secret}: chmod 600 {secret}"
    os.unlink(secret)
    assert f"{secret}: No such file" in bad(1, "serve", HOUSE, "--store", "memory:", "--token-file", secret)


# The log


def test_the_log_is_for_people_or_for_programs_and_holds_no_token() -> None:
    for style in ("plain", "json"):
        with serving("serve", HOUSE, "--store", "memory:", "--log", style) as served:
            assert asked(served, "somebody-elses-token-of-theirs") == 401
            _, log = served.stop()
        [line] = [line for line in log.splitlines() if "somebody unknown" in line]
        assert "somebody-elses" not in log
        if style == "json":
            said = json.decode(line)
            assert (said["level"], said["logger"]) == ("info", "farhand.access")
        else:
            assert " info    farhand.access: refused 'chat' to somebody unknown" in line


def test_quiet_leaves_out_all_but_what_is_wrong() -> None:
    with serving("serve", HOUSE, "--store", "memory:", "--quiet") as served:
        assert asked(served, "somebody-elses-token-of-theirs") == 401
        assert served.stop() == (0, "")
