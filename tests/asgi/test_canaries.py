"""Canaries: a word of its own in everything that is sent, and none of them where it does not belong.

A whole story over a real server with its log at DEBUG, spans and metrics: what is written there, and what errors say,
is searched for every word. The same search finds leaks that were planted.
"""

import asyncio
import base64
import contextlib
import os
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec import json
from websockets.asyncio.client import connect

ROOT = Path(__file__).parents[2]
SECRET, CLIENTS = "@secret@", "@client@"
"""The model puts secrets of its own in the place of these; the second one is for a client that runs a tool."""


class Canaries:
    """Words that nobody else says, each with where it was put."""

    def __init__(self) -> None:
        self._put: dict[str, str] = {}

    def __call__(self, where: str) -> str:
        word = f"canary{secrets.token_hex(10)}"
        self._put[word] = where
        return word

    def found_in(self, text: str, *, only: str = "") -> set[str]:
        """Where the words were put that are in a text, as they are or in base64."""
        return {
            where
            for word, where in self._put.items()
            if where.startswith(only) and any(form in text for form in _forms(word))
        }


def _forms(word: str) -> list[str]:
    shifted = [base64.b64encode(b" " * shift + word.encode() + b" " * 2)[shift * 2 : -8] for shift in range(3)]
    return [word, word.encode().hex(), *(form.decode()[2:] for form in shifted)]


class Stage:
    """The server and everything that comes out of it."""

    def __init__(self, folder: Path, canary: Canaries) -> None:
        self.folder = folder
        self.canary = canary
        self.token = canary("token")
        self.other = canary("other token")
        self.errors: list[str] = []
        self.shown: list[str] = []
        """What was answered with success, and all that streams said."""
        self.metrics = ""
        self.http: httpx2.AsyncClient

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text("utf-8")

    @property
    def spans(self) -> str:
        return (self.folder / "spans.jsonl").read_text("utf-8")

    @property
    def kept(self) -> str:
        """The files of the store."""
        return b"".join(path.read_bytes() for path in self.folder.rglob("*.db*") if path.is_file()).decode("latin-1")

    def headers(self) -> dict[str, str]:
        """Those of every request, each with a word of its own."""
        put = self.canary
        return {
            "authorization": f"Bearer {self.token}",
            "user-agent": put("user agent"),
            "cookie": f"session={put('cookie')}",
            "referer": f"http://localhost/{put('referer')}",
            "x-forwarded-for": put("forwarded for"),
            "x-mine": put("header"),
            "tracestate": f"vendor={put('tracestate')}",
            "traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01",
            "baggage": f"user={put('baggage')}",
            "accept-language": put("language"),
        }

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """One request; whatever comes is kept for the search."""
        headers = self.headers() | {"content-type": "application/json"} | more.pop("headers", {})
        content = body if isinstance(body, bytes) or body is None else json.encode(body)
        response = await self.http.request(method, path, content=content, headers=headers, **more)
        (self.shown if response.is_success else self.errors).append(f"{response.headers} {response.text}")
        return response.json() if response.content and response.is_success and "json" in str(response.headers) else None

    async def run(self, text: str, **body: Any) -> list[Any]:
        """One run, streamed until it waits or has ended; its updates."""
        thread = self.canary("thread")
        asked = {"input": text, "wait": "turn", **body}
        headers = self.headers() | {"accept": "text/event-stream", "last-event-id": ""}
        async with self.http.stream("POST", f"/threads/{thread}/runs", json=asked, headers=headers) as response:
            said = (await response.aread()).decode()
        (self.shown if response.is_success else self.errors).append(said)
        await self.ask("GET", f"/threads/{thread}")
        await self.ask("GET", f"/threads/{thread}/updates")
        return [json.decode(line[6:]) for line in said.splitlines() if line.startswith("data: ")]


@asynccontextmanager
async def stage(folder: Path, *options: str) -> AsyncGenerator[Stage]:
    """A server of its own for as long as this is entered."""
    canary = Canaries()
    here = Stage(folder, canary)
    environment = {
        **os.environ,
        "CANARY_TOKEN": here.token,
        "CANARY_OTHER_TOKEN": here.other,
        "CANARY_INSTRUCTIONS": canary("instructions"),
        "CANARY_UNUSED": canary("environment"),
        "CANARY_SECRET": canary("secret argument"),
        "CANARY_CLIENTS_SECRET": canary("client's secret argument"),
    }
    store = f"sqlite:{folder / canary('store')}.db"
    with (folder / "log.txt").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "tests.asgi.canary_server", str(folder), store, *options],
            cwd=ROOT,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            async with asyncio.timeout(30):
                url = (await process.stdout.readline()).decode().strip()
            assert url, here.log
            async with httpx2.AsyncClient(base_url=f"{url}/v1", timeout=20) as here.http:
                yield here
            process.stdin.close()
            async with asyncio.timeout(30):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def arguments(name: str, **values: str) -> str:
    return f"{name}={json.encode(values).decode()}"


async def story(here: Stage) -> None:
    """Everything that a client can do and do wrong."""
    await _talk(here)
    await _work(here)
    await _decide(here)
    await _stumble(here)
    await _connect(here)
    here.metrics = (await here.http.get("/metrics", headers={"authorization": f"Bearer {here.token}"})).text
    assert "farhand_runs_started_total" in here.metrics


async def _talk(here: Stage) -> None:
    put = here.canary
    await here.run(f"say {put('model text')}")
    await here.run(f"raise {put('exception of a model')}")
    await here.run(f"refuse {put('error of a model')}")
    await here.run(f"break {put('broken reply')}")
    part = {"type": "binary", "mime_type": "image/png", "url": f"http://x/{put('url')}", "filename": put("file")}
    await here.run("", input=[{"type": "text", "text": put("part")}, {"type": "json", "value": put("json")}, part])
    for name in ("echo", "crash", "regret", "judged", "odd", "stop", "missing"):
        await here.run("call " + arguments(name, text=put(f"argument of {name}")))
    await here.run(f'call echo={{"text": 1, "other": "{put("argument that does not fit")}"}}')
    await here.run(f'call echo={{"text": "{put("argument that is no JSON")}')
    await here.run("call " + arguments("echo", text="open", key=SECRET))


async def _work(here: Stage) -> None:
    """A client's calls: taken up, told about, answered, failed, accepted, reported."""
    put = here.canary
    for what in ("result", "error", "accepted", "wrong", "cancelled", "run"):
        use = arguments("pick", text=put("argument of a client"), key=CLIENTS)
        await here.run(f"call {use}", client=put("client"), offers=[])
        waiting = await here.ask("GET", "/calls")
        [call] = [call for call in waiting["calls"] if call["tool"] == "pick"]
        client = put("client")
        await here.ask("POST", f"/calls/{call['id']}/claim", {"client": client})
        await here.ask("POST", f"/calls/{call['id']}/claim", {"client": put("another client")})
        await here.ask("POST", f"/calls/{call['id']}/progress", {"value": put("progress"), "client": client})
        answer = f"/calls/{call['id']}/result"
        match what:
            case "result":
                result = {"n": 1, "text": put("result"), "key": put("secret result")}
                await here.ask("POST", answer, {"result": result, "client": client})
                await here.ask("POST", answer, {"result": {"n": 2, "text": put("late result")}, "client": client})
            case "error":
                error = {"message": put("failure"), "code": "no_luck", "details": {"text": put("details")}}
                await here.ask("POST", answer, {"error": error, "client": client})
            case "accepted":
                await here.ask("POST", answer, {"accepted": put("note"), "client": client})
                report = {"result": {"text": put("report"), "key": put("secret report")}}
                await here.ask("POST", f"/calls/{call['id']}/report", report)
            case "wrong":
                wrong = {"n": put("result that does not fit"), "other": put("property that is not taken")}
                await here.ask("POST", answer, {"result": wrong, "client": client})
                await here.ask("POST", answer, {"result": 1, "error": {"message": put("both")}, "client": client})
                await here.ask("POST", f"/calls/{call['id']}/cancel", {"reason": put("reason")})
            case "cancelled":
                await here.ask("POST", f"/calls/{call['id']}/cancel", {"reason": put("reason")})
            case _:
                await here.ask("POST", f"/runs/{call['run_id']}/cancel", {"reason": put("reason of a run")})
        await here.ask("GET", f"/calls/{call['id']}")
        await here.ask("GET", f"/runs/{call['run_id']}")


async def _decide(here: Stage) -> None:
    """A person decides about secrets that he does not see."""
    put = here.canary
    for what in ("yes", "edited", "wrong", "no"):
        updates = await here.run("call " + arguments("vault", user=put("user"), key=SECRET))
        [waiting] = [update for update in updates if update["type"] == "call-waiting"]
        path, shown = f"/calls/{waiting['call_id']}/approval", json.decode(waiting["arguments"])
        await here.ask("GET", "/calls")
        match what:
            case "yes":
                await here.ask("POST", path, {"approved": True, "payload": put("payload")})
            case "edited":
                edited = {**shown, "user": put("edited")}
                await here.ask("POST", path, {"approved": True, "arguments": edited})
            case "wrong":
                await here.ask("POST", path, {"approved": True, "arguments": {"user": {"a": put("bad edit")}}})
                await here.ask("POST", path, {"approved": True, "shown": put("hash")})
                await here.ask("POST", path, {"approved": False, "reason": put("no")})
                await here.ask("POST", path, {"approved": False, "reason": put("another no")})
            case _:
                await here.ask("POST", path, {"approved": False, "reason": put("no"), "remember": "tool"})
        await here.ask("GET", f"/calls/{waiting['call_id']}")


async def _stumble(here: Stage) -> None:
    """Requests that are refused, each in another way."""
    put = here.canary
    run = f"/threads/{put('thread')}/runs"
    for token in (put("wrong token"), here.other):
        await here.ask("GET", "/metrics", headers={"authorization": f"Bearer {token}"})
    await here.ask("GET", "/server", headers={"authorization": f"Basic {put('basic')}"})
    await here.ask("GET", "/server", headers={"x-break": put("exception of access")})
    await here.ask("GET", "/server", headers={"host": f"{put('host')}.example"})
    await here.ask("POST", run, {}, headers={"origin": f"https://{put('origin')}.example"})
    await here.ask("GET", f"/{put('path')}?{put('query')}=1#{put('fragment')}")
    await here.ask("GET", f"/calls/{put('call')}?{put('query name')}={put('query value')}")
    await here.ask("GET", f"/runs/{put('run')}")
    await here.ask("PURGE", f"/runs/{put('run')}")
    await here.ask("GET", f"/runs?limit={put('limit')}&state={put('state')}")
    await here.ask("GET", f"/threads/t/updates?after={put('position')}")
    await here.ask("GET", "/threads/t/updates", headers={"last-event-id": put("last event")})
    bodies: list[Any] = [
        b'{"input": "' + put("cut body").encode(),
        b'{"input": "\xff' + put("body that is no text").encode() + b'"}',
        put("text in place of an object").encode(),
        {"input": {"type": put("kind of part")}},
        {"input": [{"type": "text", "text": {"a": put("text that is none")}}]},
        {"input": "x" * 30_000 + put("large body")},
        {"input": "hi", "agent": put("agent")},
        {"input": "hi", "busy": put("busy")},
        {"input": "hi", "requires": [put("capability")]},
        {"input": "hi", "client": put("client") * 20},
        {"input": "hi", "key": put("key") + "\n"},
        {"input": "hi", "tools": [{"name": "pick", "description": put("description"), "parameters": {}}]},
        {"input": "hi", "tools": [{"name": "a", "parameters": {"type": "object", "default": put("default")}}]},
        {"input": "hi", "tools": {put("tools that are no list"): 1}},
    ]
    for body in bodies:
        await here.ask("POST", run, body)
    await here.ask("POST", run, {"input": "hi"}, headers={"content-type": f"text/{put('content type')}"})
    key = put("key")
    for text in ("one", "two"):
        await here.ask("POST", run, {"input": put(text), "key": key})
    mine = [{"name": "mine", "description": put("description"), "parameters": {"type": "object", "properties": {}}}]
    await here.run(f"call {arguments('mine')}", tools=mine, target=put("target"))
    await here.ask("POST", run, {"input": put("busy"), "busy": "refuse"})


async def _connect(here: Stage) -> None:
    """A socket and a provider."""
    put = here.canary
    provider = {"client": put("provider"), "offers": [put("offer")], "tools": []}
    headers = here.headers() | {"accept": "text/event-stream"}
    async with here.http.stream("POST", "/provider", json=provider, headers=headers) as response:
        assert response.is_success, (await response.aread()).decode()
    url = str(here.http.base_url).replace("http", "ws").rstrip("/") + "/socket"
    headers = here.headers()
    async with connect(url, additional_headers=headers, user_agent_header=headers.pop("user-agent")) as socket:

        async def ask(**frame: Any) -> None:
            await socket.send(json.encode(frame).decode())
            answer = json.decode(await socket.recv())
            kept = here.shown if answer.get("status", 200) < 400 else here.errors
            kept.append(json.encode(answer.get("body")).decode())

        await ask(id=put("frame"), method="GET", path=f"/calls/{put('call')}")
        await ask(id=1, method=put("method"), path=f"/{put('path')}")
        await ask(id=2, method="POST", path="/threads/t/runs", body={"input": {"a": put("input")}})
        await ask(id=3, method="POST", path=f"/threads/{put('thread')}/runs", body={"input": f"say {put('text')}"})
        await socket.send(json.encode({"stop": put("stop")}).decode())
        await socket.send(put("frame that is none"))
        with contextlib.suppress(Exception):
            await socket.recv()
    with pytest.raises(Exception, match="401"):
        await connect(url, additional_headers={"authorization": f"Bearer {put('wrong token')}"})


def played(folder: Path, *options: str) -> Stage:
    """The story, when it is over."""

    async def play() -> Stage:
        async with stage(folder, *options) as here:
            await story(here)
        return here

    return asyncio.run(play())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """With logging as a program sets it up that knows nothing of ours."""
    return played(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """With logs as we set them up."""
    return played(tmp_path_factory.mktemp("configured"), "configured")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """With leaks on purpose."""
    return played(tmp_path_factory.mktemp("planted"), "planted")


@pytest.mark.parametrize("logs", ["plain", "configured"])
def test_no_word_is_where_it_does_not_belong(logs: str, request: pytest.FixtureRequest) -> None:
    here: Stage = request.getfixturevalue(logs)
    found_in = here.canary.found_in
    assert len(here.errors) > 30
    assert "failure" in "".join(here.errors)  # one was a fault of the server's
    assert here.log.count("\n") > 100
    assert here.spans.count("\n") > 100
    assert found_in(here.log) == set()
    assert found_in(here.spans) == set()
    assert found_in(here.metrics) == set()
    assert found_in("\n".join(here.errors)) == set()


def test_what_is_secret_is_shown_to_nobody(plain: Stage) -> None:
    shown = "\n".join(plain.shown)
    assert plain.canary.found_in(shown, only="secret") == set()
    assert plain.canary.found_in(shown, only="model text")
    assert plain.canary.found_in(shown, only="user")
    assert plain.canary.found_in(shown, only="client's")


def test_what_let_somebody_in_is_not_in_the_store(plain: Stage) -> None:
    found = plain.canary.found_in(plain.kept)
    assert "model text" in found
    for kind in ("token", "other token", "wrong token", "cookie", "header", "environment", "baggage", "user agent"):
        assert kind not in found


def test_a_leak_that_was_planted_is_found(planted: Stage) -> None:
    found_in = planted.canary.found_in
    assert {"argument of echo", "token", "cookie", "header"} <= found_in(planted.log)
    assert {"model text", "argument of echo", "instructions"} <= found_in(planted.spans)
    assert "argument of crash" in found_in(planted.metrics)
    assert "call" in found_in("\n".join(planted.errors))


def test_a_trace_with_content_has_no_secrets(planted: Stage) -> None:
    assert planted.canary.found_in(planted.spans, only="secret argument") == set()


async def test_a_password_of_a_database_is_not_told_by_a_server_that_cannot_reach_it(tmp_path: Path) -> None:
    password = Canaries()
    store = f"postgresql://ann:{password('password')}@127.0.0.1:9/farhand"
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "tests.asgi.canary_server", str(tmp_path), store],
        cwd=ROOT,
        env={
            **os.environ,
            **dict.fromkeys(("CANARY_TOKEN", "CANARY_OTHER_TOKEN"), "a" * 24),
            "CANARY_INSTRUCTIONS": "",
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(30):
        said, _ = await process.communicate()
    assert b"StoreAway" in said
    assert password.found_in(said.decode()) == set()
