"""A process that is stopped for longer than its lease and then goes on as if nothing had been: nothing of it counts."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofs.soak import Nursery, Settings, Worker
from tests.stores.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:{tmp_path}/runs.db"
    return Settings(cycles=0, store=url, folder=tmp_path)


def effects(settings: Settings) -> list[dict[str, Any]]:
    path = settings.folder / "effects"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


async def until(worker: Worker, asked: dict[str, Any], **expected: Any) -> dict[str, Any]:
    """Ask until the reply is like that."""
    async with asyncio.timeout(30):
        while True:
            said = await worker.ask(asked)
            if said | expected == said:
                return said
            await asyncio.sleep(0.02)


async def seen(condition: Callable[[], object]) -> None:
    """Another process has done it; it says so in a file."""
    async with asyncio.timeout(30):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


def said_in_log(settings: Settings, words: str) -> bool:
    return words in (settings.folder / "log").read_text(encoding="utf-8")


async def test_a_frozen_process_is_fenced_and_its_once_call_is_not_run_again(settings: Settings) -> None:
    async with Nursery(settings) as nursery:
        frozen, other = await nursery.fork(), await nursery.fork()
        started = await frozen.ask({"do": "start", "plan": [["linger"], ["charge"]], "thread": "t", "key": "k"})
        look = {"do": "look", "run": started["run"]}
        await seen(lambda: effects(settings))
        await nursery.order("stop", frozen.pid)
        ended = await until(other, look, status="done")
        assert ended["outcomes"] == ["unknown", "ok"]
        await nursery.order("cont", frozen.pid)
        await seen(lambda: said_in_log(settings, "was taken for dead"))
        again = await frozen.ask({"do": "start", "plan": [["charge"]], "thread": "u", "key": "l"})
        assert (await until(frozen, {"do": "look", "run": again["run"]}, status="done"))["outcomes"] == ["ok"]
        for worker in (frozen, other):
            assert (await worker.ask(look))["outcomes"] == ["unknown", "ok"]
        entered = [(line["call"], line["pid"]) for line in effects(settings) if line["phase"] == "in"]
        assert len({call for call, _ in entered}) == len(entered) == 3
        assert [pid for _, pid in entered] == [frozen.pid, other.pid, frozen.pid]
        for worker in (frozen, other):
            assert (await nursery.order("kill", worker.pid))["status"] == -9
            await worker.end()
