"""PostgreSQL goes away and comes back, whole or a connection at a time; and wake-ups between handles."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from farhand.core.errors import StoreAway, StoreError
from farhand.stores import postgres_bell
from farhand.stores.base import PieceRow, Ring, RunRow
from farhand.stores.postgres import PostgresStore
from farhand.testing.store_rows import done, row_of, run_row, start, step, worker_row
from tests.stores.postgres import PostgresServer

NEVER = 3_600.0


class Heard:
    """What a handle was told."""

    def __init__(self) -> None:
        self.rings: list[Ring] = []
        self._more = asyncio.Event()

    def __call__(self, ring: Ring) -> None:
        self.rings.append(ring)
        self._more.set()

    async def until(self, there: Callable[[list[Ring]], bool]) -> None:
        async with asyncio.timeout(10):
            while not there(self.rings):
                self._more.clear()
                await self._more.wait()


@asynccontextmanager
async def handle(url: str, heard: Heard | None = None, poll: float = NEVER) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, poll=poll)
    await store.open(heard)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def connection(postgres_url: str) -> AsyncIterator[Any]:
    """One beside the stores."""
    connection: Any = await asyncpg.connect(postgres_url)
    yield connection
    connection.terminate()


async def kill(connection: Any, purpose: str) -> None:
    """End the connections that stores have for a purpose, from the side of the server."""
    await connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", f"farhand {purpose}"
    )


async def back(store: PostgresStore, run: RunRow) -> RunRow:
    """Write until it is possible again; gives the run as it is then."""
    async with asyncio.timeout(30):
        while True:
            try:
                before = await row_of(store, run.id)
                assert await store.write(step(before))
                return await row_of(store, run.id)
            except StoreAway:
                await asyncio.sleep(0.01)


# Away


async def test_after_a_crash_in_mid_load_every_acknowledged_write_is_there(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    heard = Heard()
    acknowledged: dict[str, int] = {}
    in_doubt: list[str] = []
    under_way, crashed = asyncio.Event(), asyncio.Event()

    async def work(store: PostgresStore, run: RunRow) -> None:
        while not crashed.is_set():
            write = step(run)
            try:
                assert await store.write(write)
            except StoreAway:
                in_doubt.append(run.id)
                return
            run = write.run
            acknowledged[run.id] = run.version
            if run.version > 40:
                under_way.set()

    async with handle(postgres_url) as store, handle(postgres_url, heard) as other:
        runs = [run_row(f"r{n}", f"t{n}") for n in range(30)]
        await asyncio.gather(*(done(store, start(run)) for run in runs))
        working = asyncio.gather(*(work(store, run) for run in runs))
        async with asyncio.timeout(30):
            await under_way.wait()
            heard.rings.clear()  # now: its connection may be back before the server is said to be
            await asyncio.to_thread(postgres_server.restart)
            crashed.set()
            await working
        assert in_doubt
        first = await back(store, runs[0])
        await back(other, runs[1])
        for run in runs[2:]:
            version = (await row_of(store, run.id)).version
            assert version - acknowledged[run.id] in ((0, 2) if run.id in in_doubt else (0,))
        assert first.version >= acknowledged[runs[0].id]
        await heard.until(lambda rings: Ring() in rings)  # it listens again, and says that it may have missed something
        await done(store, start(run_row("new", "new")))
        await heard.until(lambda rings: Ring("new", "new") in rings)


async def test_a_write_whose_connection_broke_is_in_doubt(postgres_url: str, connection: Any) -> None:
    async with handle(postgres_url) as store:
        run = await done(store, start(run_row()))
        async with connection.transaction():
            await connection.execute("select from farhand.runs for update")
            writes = [asyncio.ensure_future(store.write(step(run))) for _ in range(2)]
            async with asyncio.timeout(5):
                while not await connection.fetchval("select count(*) from pg_locks where not granted"):
                    pass
            await kill(connection, "writes")
            async with asyncio.timeout(5):
                found = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(each) for each in found] == [StoreAway] * 2
        assert (await row_of(store, run.id)).version == 2
        assert (await back(store, run)).version == 4


async def test_a_connection_that_is_lost_while_nothing_is_asked_of_it_comes_back(
    postgres_url: str, connection: Any
) -> None:
    heard = Heard()
    async with handle(postgres_url) as store, handle(postgres_url, heard):
        run = await done(store, start(run_row()))
        for purpose in ("writes", "reads"):
            await kill(connection, purpose)
            run = await back(store, run)
        heard.rings.clear()
        await kill(connection, "wake-ups")
        await heard.until(lambda rings: Ring() in rings)
        run = await back(store, run)
        await heard.until(lambda rings: Ring("t1", "r1") in rings)


async def test_where_there_is_no_server_a_store_is_away_and_does_not_tell_its_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = PostgresStore("postgresql://ann:secret@127.0.0.1:1/there")
    with pytest.raises(StoreAway) as caught:
        await store.open()
    assert "secret" not in str(caught.value) + caplog.text


async def test_a_database_that_is_not_there_is_an_error_that_waiting_does_not_help(
    postgres_server: PostgresServer,
) -> None:
    with pytest.raises(StoreError) as caught:
        await PostgresStore(postgres_server.url("nowhere")).open()
    assert not isinstance(caught.value, StoreAway)


async def test_what_is_logged_holds_counts_and_nothing_that_was_written(
    postgres_url: str, connection: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "farhand")
    async with handle(postgres_url) as store:
        bad = step(await done(store, start(run_row())), why="whisper\0")
        fine = start(run_row("r2", "t2"))
        found = await asyncio.gather(store.write(bad), store.write(fine), return_exceptions=True)
        assert isinstance(found[0], StoreError)
        await kill(connection, "writes")
        await back(store, fine.run)
    assert "one of 2 writes was refused" in caplog.text
    assert "the connection for writes was lost" in caplog.text
    assert "whisper" not in caplog.text + str(found)
    assert postgres_url not in caplog.text


# Wake-ups


async def test_a_write_rings_at_the_other_handle_only(postgres_url: str) -> None:
    mine, theirs = Heard(), Heard()
    async with handle(postgres_url, mine) as store, handle(postgres_url, theirs) as other:
        await done(store, start(run_row()))
        await theirs.until(lambda rings: rings == [Ring("t1", "r1")])
        await done(other, start(run_row("r2", "t2")))
        await mine.until(lambda rings: rings == [Ring("t2", "r2")])
        assert theirs.rings == [Ring("t1", "r1")]


async def test_pieces_of_a_reply_and_runs_that_become_free_ring_too(postgres_url: str) -> None:
    heard = Heard()
    async with handle(postgres_url) as store, handle(postgres_url, heard):
        await store.enter(worker_row("w1", expires=5))
        await done(store, start(run_row(holder="w1")))
        await heard.until(lambda rings: bool(rings))
        heard.rings.clear()
        await store.stream([PieceRow(run="r1", epoch=1, turn=1, offset=0, text="x")])
        await heard.until(lambda rings: rings == [Ring("t1", "r1")])
        assert await store.expire(6) == 1
        await heard.until(lambda rings: Ring() in rings)


async def test_many_rings_at_once_share_a_few_payloads(postgres_url: str, connection: Any) -> None:
    payloads: list[str] = []
    heard = Heard()
    await connection.add_listener("farhand", lambda *told: payloads.append(told[3]))
    async with handle(postgres_url) as store, handle(postgres_url, heard):
        runs = [run_row(f"run {'x' * 20} {n}", f"thread {'y' * 20} {n}") for n in range(600)]
        assert all(await asyncio.gather(*(store.write(start(run)) for run in runs)))
        await heard.until(lambda rings: len(rings) == 600)
        assert set(heard.rings) == {Ring(run.thread, run.id) for run in runs}
        sent = [payload for payload in payloads if "run" in payload]
        assert len(sent) <= 20
        assert max(len(payload.encode()) for payload in sent) <= postgres_bell.PAYLOAD


async def test_ids_that_cannot_be_told_ring_everywhere(postgres_url: str) -> None:
    heard = Heard()
    async with handle(postgres_url) as store, handle(postgres_url, heard):
        for n, odd in enumerate(["a,b", "a;b", "x" * 2_000]):
            heard.rings.clear()
            await done(store, start(run_row(f"r{n}", odd)))
            await heard.until(lambda rings: rings == [Ring()])


async def test_with_nobody_there_nothing_is_sent(
    postgres_url: str, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_bell, "_DOUBT", 0.0)
    payloads: list[str] = []
    over = asyncio.Event()

    def hear(_: Any, __: int, ___: str, payload: str) -> None:
        payloads.append(payload.partition(":")[2])
        if payload == "over":
            over.set()

    await connection.add_listener("farhand", hear)
    async with handle(postgres_url) as store:
        run = await done(store, start(run_row()))
        await done(store, step(run))
    async with asyncio.timeout(5):
        await connection.execute("notify farhand, 'over'")
        await over.wait()
    assert payloads == ["?", ".", ""]  # hello and good-bye


async def test_what_no_bell_told_is_found_by_looking(postgres_url: str) -> None:
    heard = Heard()
    async with handle(postgres_url, heard, poll=0.02):
        await heard.until(lambda rings: rings == [Ring()] * 3)


async def test_a_hearer_that_fails_does_not_end_the_wake_ups(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    def fail(ring: Ring) -> None:
        heard(ring)
        raise ValueError("oh")

    store = PostgresStore(postgres_url, poll=0.02)
    await store.open(fail)
    await heard.until(lambda rings: len(rings) == 2)
    await store.close()
    assert "whoever hears of wake-ups failed" in caplog.text
