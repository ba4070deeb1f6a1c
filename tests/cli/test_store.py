"""`farhand store`: a real process beside the one that runs agents, on real files and a real PostgreSQL."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

import farhand.cli.opening
from farhand import Agent, scripted, tool
from farhand.cli.opening import shown
from farhand.cli.store import migrate
from farhand.core.errors import CallGone, RunRefused
from farhand.core.messages import ToolMessage, UserMessage
from farhand.durable import Runner, StoredRun, Timing
from farhand.models import Request, Use
from farhand.stores.sqlite import SqliteStore
from farhand.stores.sqlite_schema import MIGRATIONS
from tests.cli.test_optional import BLOCKER
from tests.stores.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

COMMAND = Path(sys.executable).parent / "farhand"
QUICK = Timing(lease=3.0, beat=0.5, tick=0.05, check=0.2)

pick = tool.define("pick", input={"type": "object"}, output={"type": "integer"}, description="Pick a number.")


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def reply(request: Request) -> Use | str:
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return f"so: {last.text}"
    assert isinstance(last, UserMessage)
    return Use("pay", {"amount": 5}) if last.text == "pay" else Use("pick") if last.text == "pick" else "hello"


def agent() -> Agent[str]:
    return Agent(scripted(reply), tools=[pick, pay])


def on(url: str) -> Runner:
    return Runner(agent(), store=url, timing=QUICK)


async def farhand_store(
    *arguments: str | Path, typed: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """What the command does, in a process of its own."""
    return await asyncio.to_thread(
        subprocess.run,
        [str(COMMAND), "store", *map(str, arguments)],
        input=typed,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1"} | environment,
    )


async def good(*arguments: str | Path, typed: str = "", **environment: str) -> str:
    ran = await farhand_store(*arguments, typed=typed, **environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


async def bad(*arguments: str | Path, typed: str = "", **environment: str) -> str:
    """The one line that a command which cannot do its work says."""
    ran = await farhand_store(*arguments, typed=typed, **environment)
    assert (ran.stdout, ran.returncode in {1, 2, 3}) == ("", True), ran.stdout + ran.stderr
    [line] = ran.stderr.strip().splitlines()
    return line.removeprefix("farhand: ")


async def paused(url: str, *messages: str) -> list[str]:
    """The ids of the calls that runs with these inputs wait for."""
    async with on(url) as runner:
        views = [await runner.run(message, thread=message) for message in messages]
    return [call.id for view in views for call in view.pending]


def write_to(path: Path, statement: str, *arguments: Any) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, arguments)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:{path}"


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, url: str) -> str:
    """A place for a store, of either kind."""
    return url if request.param == "sqlite" else request.getfixturevalue("postgres_url")


# Tables


async def test_migrate_makes_a_store_and_then_has_nothing_to_do(where: str) -> None:
    assert await good("migrate", where) == f"{where}: set up with version 1\n"
    assert await good("migrate", where) == f"{where}: version 1 already, nothing to do\n"
    assert "threads: 0\n" in await good("check", where)


def test_migrate_says_from_which_version_to_which(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = tmp_path / "steps"
    steps.mkdir()
    for step in MIGRATIONS.glob("*.sql"):
        (steps / step.name).write_text(step.read_text())

    def newer(_: str) -> SqliteStore:
        return SqliteStore(path, migrations=steps)

    monkeypatch.setattr(farhand.cli.opening, "open_store", newer)
    migrate("any")
    (steps / "0002_more.sql").write_text("CREATE TABLE more (id TEXT);\n")
    (steps / "0003_and_more.sql").write_text("CREATE TABLE and_more (id TEXT);\n")
    migrate("any")
    assert capsys.readouterr().out == "any: set up with version 1\nany: from version 1 to version 3\n"


@pytest.mark.parametrize("command", ["migrate", "check", "export", "import", "prune"])
async def test_a_store_of_a_newer_build_is_refused_in_one_line(command: str, url: str, path: Path) -> None:
    await good("migrate", url)
    write_to(path, "UPDATE meta SET value = '99' WHERE name = 'version'")
    further = ["--older-than", "1d"] if command == "prune" else []
    assert "of version 99, and this build reads 1" in await bad(command, url, *further)


async def test_for_programs_every_command_writes_json(url: str, tmp_path: Path) -> None:
    assert json.decode(await good("migrate", url, "--json")) == {"store": url, "before": 0, "version": 1}
    await paused(url, "pay", "hi")
    checked = json.decode(await good("check", url, "--json"))
    assert (checked["threads"], checked["runs"], checked["read"], checked["unfit"]) == (
        2,
        {"done": 1, "waiting": 1},
        1,
        0,
    )
    assert (checked["version"], checked["open_calls"], checked["awaited_calls"], checked["remarks"]) == (1, 1, 1, [])
    back = f"sqlite:{tmp_path}/back.db"
    taken = json.decode(await good("import", back, "--json", typed=await good("export", url)))
    assert taken == {"store": back, "threads": 2, "runs": 2}
    words = ("prune", url, "--older-than", "0s", "--json")
    assert json.decode(await good(*words, "--dry-run")) == {"store": url, "threads": 1, "dry_run": True}
    assert json.decode(await good(*words)) == {"store": url, "threads": 1, "dry_run": False}


# What can be wrong


@pytest.mark.parametrize("command", ["check", "export", "prune"])
async def test_a_store_that_is_not_there_is_one_line_and_is_not_made(command: str, url: str, tmp_path: Path) -> None:
    further = ["--older-than", "1d"] if command == "prune" else []
    said = await bad(command, url, *further)
    assert said == f"there is no store at {url}; `farhand store migrate` makes one"
    assert os.listdir(tmp_path) == []


async def test_what_is_no_store_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("What is this? " * 100)
    (tmp_path / "other.db").touch()
    write_to(tmp_path / "other.db", "CREATE TABLE songs (name TEXT)")
    away = "postgresql://ann:secret@127.0.0.1:1/x"
    for where, why in [
        (f"sqlite:{tmp_path}/text.db", "cannot be opened: file is not a database"),
        (f"sqlite:{tmp_path}/other.db", "holds something else"),
        (f"sqlite:{tmp_path}/no/runs.db", "No such file or directory"),
        (f"sqlite:{tmp_path}", "cannot be opened"),
        (f"sqlite:{tmp_path}/runs.db?sync=off", "the one setting is"),
        ("memory:", "memory: keeps nothing"),
        (away, "PostgreSQL is away"),
    ]:
        said = await bad("migrate", where)
        assert why in said
        assert "secret" not in said
    assert "names no store" in (await farhand_store("check", "mysql://x")).stderr


async def test_without_asyncpg_the_command_says_what_to_install() -> None:
    program = BLOCKER.format(blocked=("asyncpg",)) + "from farhand.cli import main; main()"
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program, "store", "check", "postgresql://x/y"],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.strip().endswith("pip install 'farhand[postgres]'")


def test_a_password_is_not_shown() -> None:
    assert shown("postgresql://ann:s:ec@r@host/db?password=x&a=1") == "postgresql://ann:***@host/db?password=***&a=1"
    assert shown("postgresql://ann@host:5432/db") == "postgresql://ann@host:5432/db"
    assert shown("postgresql://host:5432/db") == "postgresql://host:5432/db"
    assert shown("sqlite:/a:b/c@d.db") == "sqlite:/a:b/c@d.db"


# Check


async def test_check_counts_and_reads_every_open_run(url: str) -> None:
    await paused(url, "pay", "pick", "hi")
    said = await good("check", url)
    assert [line.split(maxsplit=1)[1] for line in said.splitlines()[2:]] == [
        "3",
        "1 done, 2 waiting",
        "2 open, 2 of them wait for a client or a person",
        "open runs read, none of them in vain",
    ]
    assert "\n3 runs read, none of them in vain\n" in await good("check", url, "--all")
    assert await good("check", FARHAND_STORE=url) == said


async def test_a_run_that_does_not_fit_is_reported_with_the_reason(url: str, path: Path) -> None:
    await paused(url, "pay", "hi")
    async with on(url) as runner:
        [call] = await runner.pending()
        run = await runner.store.run_of(call.id)
    write_to(path, "UPDATE snapshots SET body = CAST('{}' AS BLOB) WHERE run = ?", run)
    ran = await farhand_store("check", url)
    assert ran.returncode == 1
    assert f"run {run}: cannot be read: Object missing required field" in ran.stdout
    assert "1 open runs read, 1 of them in vain" in ran.stdout
    write_to(path, "DELETE FROM snapshots")
    write_to(path, "UPDATE runs SET said = said + 1 WHERE state = 'done'")
    ran = await farhand_store("check", url, "--all")
    assert ran.returncode == 1
    assert "its conversation should have 3 messages and has 2" in ran.stdout
    assert "2 runs read, 1 of them in vain" in ran.stdout


async def test_rows_that_are_gone_do_not_end_the_check(url: str, path: Path) -> None:
    await paused(url, "pay", "pick")
    write_to(path, "DELETE FROM threads WHERE name = 'pay'")
    ran = await farhand_store("check", url)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "2 open runs read, 1 of them in vain" in ran.stdout


async def test_a_refused_run_that_can_be_read_again_is_taken_up_after_retry(url: str, path: Path) -> None:
    [call] = await paused(url, "pick")
    async with on(url) as runner:
        run = await runner.store.run_of(call)
        assert run is not None
        write_to(path, "UPDATE log SET events = CAST('[]' AS BLOB), version = version + 1000 WHERE run = ?", run)
        with pytest.raises(RunRefused):
            await runner.answer(call, 1)
    ran = await farhand_store("check", url, "--retry")
    assert ran.returncode == 1
    assert f"run {run}: cannot be read: " in ran.stdout
    write_to(path, "UPDATE log SET version = version - 1000 WHERE run = ?", run)
    assert f"run {run}: refused (cannot be read" in await good("check", url)
    assert f"run {run}: was refused, and is ready again" in await good("check", url, "--retry")
    assert "runs:    1 ready\n" in await good("check", url)
    async with on(url) as runner:
        again: StoredRun[Any] = await runner.find(run)
        await runner.answer(call, 7)
        assert (await again.wait()).text == "so: 7"


HOUSE = '''
from farhand import Agent, scripted, tool

@tool(needs_approval=True)
async def pay(amount: int, to: str = "Ann") -> str:
    """Pay."""
    return "paid"

agent = Agent(scripted([]), tools=[pay])
other = Agent(scripted([]), tools=[], name="other")
'''


async def test_paused_calls_of_tools_that_the_agent_has_no_more_are_told(url: str, tmp_path: Path) -> None:
    approval, answer = await paused(url, "pay", "pick")
    (tmp_path / "changed_house.py").write_text(HOUSE)
    module = {"PYTHONPATH": str(tmp_path)}
    said = await good("check", url, "--agent", "changed_house", "--agent", "changed_house:other", **module)
    assert f"call {approval}: tool 'pay' has changed; it ends `unavailable` when the run is taken up" in said
    assert f"call {answer}: tool 'pick' is gone; a result still counts, under the definition that" in said
    assert "call " not in await good("check", url, "--agent", "changed_house:other", **module)
    assert "there is no module 'nowhere'" in await bad("check", url, "--agent", "nowhere")
    scope: dict[str, Any] = {}
    exec(HOUSE, scope)
    async with Runner(scope["agent"], store=url, timing=QUICK) as runner:  # what was said is what happens
        with pytest.raises(CallGone):
            await runner.approve(approval)
        assert not (await runner.answer(answer, 7)).repeated


# Export and import


async def test_paused_runs_travel_to_postgres_and_back_and_go_on_there(
    url: str, tmp_path: Path, postgres_url: str
) -> None:
    approval, answer = await paused(url, "pay", "pick", "hi")
    file = tmp_path / "runs.jsonl"
    assert await good("export", url, file) == ""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert await good("export", url) == file.read_text()
    assert await good("import", postgres_url, file) == f"{postgres_url}: 3 threads, 3 runs\n"
    assert "2 open runs read, none of them in vain" in await good("check", postgres_url)
    async with on(postgres_url) as runner:
        await runner.approve(approval)
        run = await runner.store.run_of(approval)
        assert run is not None
        assert (await (await runner.find(run)).wait()).text == "so: paid 5"
    back = f"sqlite:{tmp_path}/back.db"
    await good("import", back, typed=await good("export", postgres_url))
    async with on(back) as runner:
        assert (await runner.approve(approval)).repeated
        await runner.answer(answer, 7)
        run = await runner.store.run_of(answer)
        assert run is not None
        assert (await (await runner.find(run)).wait()).text == "so: 7"
    assert "3 runs read, none of them in vain" in await good("check", back, "--all")


async def test_what_cannot_be_imported_is_one_line_and_leaves_the_store_empty(url: str, tmp_path: Path) -> None:
    source = f"sqlite:{tmp_path}/source.db"
    await paused(source, "pay")
    whole = await good("export", source)
    half = whole[: len(whole) // 2]
    assert f"{tmp_path}/no.jsonl: No such file or directory" in await bad("import", url, tmp_path / "no.jsonl")
    assert not (tmp_path / "runs.db").exists()
    assert "this is no export of a store" in await bad("import", url, typed="hello\n")
    assert "of the export" in await bad("import", url, typed=half)
    assert "ends in the middle" in await bad("import", url, typed=whole[: whole.rindex('{"rows"')])
    assert "threads: 0\n" in await good("check", url)
    assert "by an empty store only" in await bad("import", source, typed=whole)


async def test_an_export_that_fails_leaves_what_was_there(url: str, tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text("yesterday's")
    assert "there is no store" in await bad("export", url, file)
    assert file.read_text() == "yesterday's"
    await good("migrate", url)
    assert "No such file or directory" in await bad("export", url, tmp_path / "no" / "runs.jsonl")
    assert [name for name in os.listdir(tmp_path) if name.endswith(".part")] == []
    await good("export", url, file)
    assert file.read_text().endswith('{"rows":0}\n')


# Prune


async def test_prune_deletes_old_threads_and_no_open_one(where: str) -> None:
    await paused(where, "hi", "hello", "pay")
    assert await good("prune", where, "--older-than", "1w") == "0 threads deleted\n"
    assert await good("prune", where, "--older-than", "0s", "--dry-run") == "2 threads would be deleted\n"
    assert "threads: 3\n" in await good("check", where)
    assert await good("prune", where, "--older-than", "0s") == "2 threads deleted\n"
    assert await good("prune", where, "--older-than", "0s") == "0 threads deleted\n"
    assert "threads: 1\n" in await good("check", where, "--all")


@pytest.mark.parametrize("age", ["30", "d", "1.5d", "-1d", "5y", ""])
async def test_an_age_needs_a_number_and_a_unit(age: str, url: str) -> None:
    said = (await farhand_store("prune", url, f"--older-than={age}")).stderr
    assert "is no age: 12h, 30d, 4w" in said
