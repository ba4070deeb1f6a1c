"""An agent inside an application of somebody else's, as the examples show it, run by plain uvicorn."""

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from farhand.asgi.access import Loopback
from farhand.asgi.app import App
from farhand.core.errors import UsageError
from farhand.demo import demo_agent

EXAMPLES = Path(__file__).parents[2] / "examples"


@asynccontextmanager
async def uvicorn(program: str, folder: Path) -> AsyncGenerator[httpx2.AsyncClient]:
    """A program served as its docstring says, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        fd = listening.fileno()
        process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "uvicorn", f"{program}:app", "--fd", str(fd), "--app-dir", str(EXAMPLES)],
            cwd=folder,
            pass_fds=[fd],
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        while b"startup complete" not in (line := await process.stderr.readline()):
            assert line, "it ended"
        reading = asyncio.ensure_future(process.stderr.read())
        try:
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
                yield client
        finally:
            process.terminate()
            await process.wait()
            said = await reading
            assert b"Traceback" not in said, said.decode()


async def test_an_agent_in_a_fastapi_application_has_its_users(tmp_path: Path) -> None:
    async with asyncio.timeout(30), uvicorn("fastapi_app", tmp_path) as client:
        ann, ben = {"x-session": "a-session-of-ann"}, {"x-session": "a-session-of-ben"}
        assert (await client.get("/me", headers=ann)).json() == "ann"
        assert (await client.get("/agent/v1/tools")).status_code == 401
        body = {"input": "what time is it in Lima?"}
        told = await client.post("/agent/v1/threads/t/runs", json=body, headers=ann | {"accept": "text/event-stream"})
        assert '"ending":"done"' in told.text
        assert (await client.get("/agent/v1/threads/t", headers=ann)).status_code == 200
        assert (await client.get("/agent/v1/threads/t", headers=ben)).status_code == 404


async def test_an_agent_in_a_starlette_application_is_at_its_path(tmp_path: Path) -> None:
    async with asyncio.timeout(30), uvicorn("starlette_app", tmp_path) as client:
        assert "/agent/v1" in (await client.get("/")).text
        assert (await client.get("/agent/v1/healthz")).json() == {"status": "ok"}
        assert (await client.get("/agent/v1/tools")).status_code == 401


async def test_an_agent_is_an_application() -> None:
    app = demo_agent().asgi(store="memory:")
    assert isinstance(app, App)
    assert isinstance(app.authenticate, Loopback)


def test_a_server_without_its_packages_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith(("farhand.asgi", "starlette"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(UsageError, match=r"pip install 'farhand\[server\]'"):
        demo_agent().asgi(store="memory:")
