"""Every store passes the suite of stores."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farhand.stores import open_store
from farhand.stores.base import Store
from farhand.stores.memory import MemoryStore
from farhand.testing.stores import StoreSuite


@pytest.fixture(params=["memory", "sqlite-full", "sqlite-normal", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "memory":
            return "memory:"
        case "postgres":
            return request.getfixturevalue("postgres_url")
        case kind:
            return f"sqlite:{tmp_path}/runs.db?synchronous={kind.removeprefix('sqlite-')}"


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def other(url: str, store: Store) -> AsyncIterator[Store]:
    other = MemoryStore(store) if isinstance(store, MemoryStore) else open_store(url)
    yield other
    await other.close()


class TestStores(StoreSuite):
    pass
