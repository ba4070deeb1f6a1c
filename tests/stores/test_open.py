"""Stores by their URLs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from farhand.core.errors import StoreError
from farhand.stores import open_store
from farhand.stores.memory import MemoryStore
from farhand.stores.sqlite import SqliteStore


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:runs.db", "runs.db"),
        ("sqlite:folder/runs", "folder/runs"),
        ("sqlite:{root}/runs.db", "runs.db"),
        ("sqlite://{root}/runs.db", "runs.db"),
        ("sqlite:///{root}/runs.db?synchronous=normal", "runs.db"),
        ("sqlite:with%20space.db?synchronous=FULL", "with space.db"),
        ("folder/runs.db", "folder/runs.db"),
        ("{root}/runs.sqlite", "runs.sqlite"),
    ],
)
async def test_a_url_names_a_file(url: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder")
    store = open_store(url.replace("{root}", str(tmp_path)))
    assert isinstance(store, SqliteStore)
    await store.open()
    await store.close()
    assert Path(file).name in os.listdir((tmp_path / file).parent)


def test_a_url_names_a_store_in_memory() -> None:
    assert isinstance(open_store("memory:"), MemoryStore)


@pytest.mark.parametrize("url", ["postgres://ann@host/base", "postgresql://host/base?sslmode=require"])
def test_a_url_names_a_postgresql_database(url: str) -> None:
    assert type(open_store(url)).__name__ == "PostgresStore"


@pytest.mark.parametrize(
    "url", ["", "mysql://host/base", "runs.txt", "memory", "postgres:base", "https://a.example/x.db"]
)
def test_whatever_else_is_refused_with_a_list_of_what_there_is(url: str) -> None:
    with pytest.raises(StoreError, match=r"names no store\. A store is one of\n  memory: "):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:", "names no file"),
        ("sqlite:?synchronous=full", "names no file"),
        ("sqlite://runs.db", "names a host"),
        ("sqlite:runs.db?synchronous=off", "the one setting is synchronous=full or"),
        ("sqlite:runs.db?mode=ro", "the one setting is"),
        ("sqlite::memory:", "MemoryStore"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(url: str, said: str) -> None:
    with pytest.raises(StoreError, match=said):
        open_store(url)


def test_postgresql_without_its_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("farhand.stores.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(StoreError, match=r"pip install 'farhand\[postgres\]'"):
        open_store("postgresql://host/base")


def test_asking_where_stores_are_loads_none() -> None:
    program = "import farhand.stores, sys; print({'sqlite3', 'asyncpg', 'asyncio', 'msgspec'} & set(sys.modules))"
    before = "import farhand, sys; print({'sqlite3', 'asyncpg', 'asyncio', 'msgspec'} & set(sys.modules))"
    found = [
        subprocess.run([sys.executable, "-c", each], capture_output=True, check=True, timeout=30).stdout
        for each in (program, before)
    ]
    assert sorted(found[0]) == sorted(found[1])
