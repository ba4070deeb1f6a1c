"""`farhand doctor`: each thing that can be wrong is found, with what to do about it."""

import json
import os
import re
import resource
import socketserver
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any

import pytest

from farhand import __version__
from tests.cli.command import COMMAND, HOUSE, ROOT, Served, environment, farhand, good, serving
from tests.cli.test_optional import BLOCKER


@pytest.fixture(scope="module")
def server() -> Generator[Served]:
    with serving("serve", HOUSE, "--store", "memory:") as served:
        yield served


def found(*words: str | Path, code: int = 0, folder: Path | None = None, **variables: str) -> list[dict[str, str]]:
    """All checks."""
    ran = farhand("doctor", *words, "--json", folder=folder, **variables)
    assert ran.returncode == code, ran.stdout + ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout)
    assert said["ok"] == (code == 0)
    return said["checks"]


def check(checks: list[dict[str, str]], name: str, text: str = "") -> Mapping[str, str]:
    """The one that is called so, and has this text."""
    [one] = [each for each in checks if each["name"] == name and text in each["said"]]
    return one


# This machine


def test_a_machine_that_is_well_is_told_in_lines(tmp_path: Path) -> None:
    lines = good("doctor", folder=tmp_path).splitlines()
    assert lines[0].startswith(f"✓ python:   farhand {__version__} on CPython {sys.version.split()[0]}")
    assert "✓ extra:    server: serve agents" in lines
    assert not any(line.startswith("✗") for line in lines)


def test_an_extra_that_is_missing_is_noted_with_what_brings_it() -> None:
    program = (
        BLOCKER.format(blocked=("asyncpg", "httpx2")) + "from farhand.cli.line import run; sys.exit(run(sys.argv[1:]))"
    )
    for words, code in (([], 0), (["http://127.0.0.1:1"], 1)):
        ran = subprocess.run(
            [sys.executable, "-c", program, "doctor", *words],
            capture_output=True,
            encoding="utf-8",
            env=environment(),
            timeout=60,
        )
        assert ran.returncode == code, ran.stderr
        assert "! extra:    postgres is not installed (asyncpg); it is to keep runs in PostgreSQL" in ran.stdout
        assert "pip install 'farhand[postgres]'" in ran.stdout
    assert "✗ server:   no server can be asked without the extra `client`" in ran.stdout


def test_few_open_files_are_noted(tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    ran = subprocess.run(
        [str(COMMAND), "doctor"],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard)),
    )
    assert ran.returncode == 0
    assert "! files:    256 may be open at once" in ran.stdout
    assert "ulimit -n " in ran.stdout


# A token


def test_a_token_file_that_others_may_read_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("a-token-that-is-long-enough")
    path.chmod(0o644)
    said = check(found("--token-file", path, code=1), "token")
    assert (said["health"], said["fix"]) == ("broken", f"chmod 600 {path}")
    path.chmod(0o600)
    assert check(found(FARHAND_TOKEN_FILE=str(path)), "token")["said"] == f"{path} is for you alone"
    path.unlink()
    assert "cannot be read" in check(found(FARHAND_TOKEN_FILE=str(path), code=1), "token")["said"]


# A store


def test_a_store_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "farhand.db"
    url = f"sqlite:{path}"
    assert check(found("--store", url), "store")["said"] == f"there is none at {url} yet"
    assert [each for each in found(folder=tmp_path) if each["name"] == "store"] == []
    good("store", "migrate", url)
    said = check(found(FARHAND_STORE=url), "store")
    assert (said["health"], said["said"]) == ("well", f"{url}: version 1, 0 threads, 0 runs")
    assert "version 1, 0 threads" in check(found(folder=tmp_path), "store")["said"]
    path.chmod(0o644)
    assert check(found("--store", url), "store", "others may read")["fix"] == f"chmod 600 {path}"


def test_a_store_that_cannot_be_used_is_broken(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("What is this? " * 100)
    for url in (f"sqlite:{tmp_path}/text.db", "postgresql://ann:secret@127.0.0.1:1/x", "mysql://x"):
        said = check(found("--store", url, code=1), "store")
        assert said["health"] == "broken"
        assert "secret" not in said["said"]


# A server


def test_a_server_that_is_well_says_who_one_is_and_what_one_may(server: Served) -> None:
    checks = found(server.url)
    assert "takes work, and answers in" in check(checks, "server")["said"]
    assert check(checks, "clock")["said"] == "the clock of the server agrees with this one"
    assert check(checks, "network")["said"] == "the server is reached on this machine only, by this address"
    assert check(checks, "access")["said"] == "you are 'local' there, and may answer, approve, chat, operate"
    assert check(checks, "agents")["said"] == "house"
    assert check(found(FARHAND_URL=server.url), "agents")["said"] == "house"


def test_a_token_that_does_not_count_is_broken_and_none_is_noted(server: Served) -> None:
    said = check(found(server.bare, "--token", "x" * 30, code=1), "access")
    assert (said["health"], said["fix"].startswith("give a token")) == ("broken", True)
    assert check(found(server.bare), "access")["health"] == "note"


def test_a_server_that_is_not_there_is_broken() -> None:
    said = check(found("http://127.0.0.1:1", code=1), "server")
    assert said["said"].startswith("http://127.0.0.1:1 cannot be reached: ")
    assert "is it running" in said["fix"]
    assert "begins with http:// or https://" in check(found("ftp://x", code=1), "server")["said"]


@contextmanager
def answering(status: int, date: str, body: bytes, host: str = "127.0.0.1") -> Generator[str]:
    """Something that answers every request like this."""

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            head = f"HTTP/1.1 {status} X\r\nDate: {date}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            self.wfile.write(head.encode() + body)

    with socketserver.ThreadingTCPServer((host, 0), Answer) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://{host}:{listening.server_address[1]}"
        listening.shutdown()
        thread.join()


def test_a_clock_that_is_wrong_is_noted() -> None:
    with answering(200, formatdate(time() - 3600, usegmt=True), b'{"status":"ok"}') as url:
        said = check(found(url), "clock")
    assert said["health"] == "note"
    assert re.fullmatch(r"the clock of the server is 36\d\d s behind this one", said["said"])


def test_a_server_that_takes_no_work_and_one_that_is_none_of_ours_are_broken() -> None:
    for body, why in (
        (b'{"status":"draining"}', "takes no work: draining"),
        (b'{"status":"away","detail":"the store does not answer"}', "takes no work: away"),
        (b"<html>", "is no Farhand server"),
        (b"\xff", "is no Farhand server"),
    ):
        with answering(503, formatdate(usegmt=True), body) as url:
            assert why in check(found(url, code=1), "server")["said"]


def test_what_goes_through_the_network_as_it_is_is_broken() -> None:
    with answering(200, formatdate(usegmt=True), b'{"status":"ok"}', host="127.0.0.2") as url:
        said = check(found(url, code=1), "network")
    assert said["fix"] == "put a proxy with TLS before the server, and use https://"


def test_runs_that_were_put_aside_are_broken(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    url = f"sqlite:{tmp_path}/runs.db"
    farhand("chat", HOUSE, "--store", url, typed="pay\n", folder=ROOT)
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("UPDATE runs SET state = 'refused'")
    said = check(found("--store", url, code=1), "store", "put aside")
    assert said["fix"] == f"farhand store check {url}"
    assert os.path.exists(tmp_path / "runs.db")
