"""What is special about PostgreSQL: many handles on the same rows, groups of writes, the schema, other event loops."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from msgspec import structs

from farhand.core.errors import StoreAway, StoreError, StoreVersion
from farhand.stores import postgres_queries as sql
from farhand.stores import postgres_schema, postgres_writer
from farhand.stores.base import CallRow, LogRow, MemoryRow, PieceRow, RunRow, Store, ThreadRow
from farhand.stores.postgres import PostgresStore
from farhand.testing.store_rows import (
    call_row,
    done,
    ended,
    exported,
    log_row,
    row_of,
    run_row,
    start,
    step,
    worker_row,
)


@asynccontextmanager
async def handles(url: str, count: int, **settings: Any) -> AsyncIterator[list[PostgresStore]]:
    stores = [PostgresStore(url, **settings) for _ in range(count)]
    try:
        for store in stores:
            await store.open()
        yield stores
    finally:
        for store in stores:
            await store.close()


@asynccontextmanager
async def direct(url: str) -> AsyncIterator[Any]:
    """A connection beside the stores."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with handles(postgres_url, 1) as (store,):
        yield store


@pytest.fixture
async def connection(postgres_url: str) -> AsyncIterator[Any]:
    async with direct(postgres_url) as connection:
        yield connection


async def several(store: Store, count: int, **fields: Any) -> list[RunRow]:
    """Runs of a thread each."""
    runs = [run_row(f"r{n}", f"t{n}", **fields) for n in range(count)]
    assert all(await asyncio.gather(*(store.write(start(run)) for run in runs)))
    return runs


# Writes


async def test_of_100_equal_writes_through_two_handles_exactly_one_counts(postgres_url: str) -> None:
    async with handles(postgres_url, 2) as stores:
        run = await done(stores[0], start(run_row()))
        written = await asyncio.gather(*(stores[n % 2].write(step(run)) for n in range(100)))
        assert written.count(True) == 1
        assert [row.version for row in await stores[0].log("t1", 0, 9)] == [2, 4]


async def test_of_100_runs_begun_under_one_key_through_two_handles_exactly_one_is_there(postgres_url: str) -> None:
    async with handles(postgres_url, 2) as stores:
        begun = [start(run_row(f"r{n}", f"t{n}", key="order 7")) for n in range(100)]
        written = await asyncio.gather(*(stores[n % 2].write(write) for n, write in enumerate(begun)))
        assert written.count(True) == 1
        assert [row["id"] async for table, row in stores[0].export() if table == "runs"] == [f"r{written.index(True)}"]


async def test_of_100_runs_begun_in_one_new_thread_exactly_one_is_there(postgres_url: str) -> None:
    async with handles(postgres_url, 2) as stores:
        begun = [start(run_row(f"r{n}")) for n in range(100)]
        written = await asyncio.gather(*(stores[n % 2].write(write) for n, write in enumerate(begun)))
        assert written.count(True) == 1
        assert len(await stores[0].runs("", "", 200)) == 1


async def test_a_run_does_not_begin_in_a_thread_that_another_run_has_made_since_it_looked(
    store: PostgresStore, connection: Any
) -> None:
    async with connection.transaction():
        await connection.execute("lock table farhand.runs in share mode")
        second = asyncio.ensure_future(store.write(start(run_row("second", "t"))))
        async with asyncio.timeout(10):
            await waits_for_a_lock(connection, "writes")  # it has looked, and now wants to write
        assert await connection.fetchval(sql.WRITE, *postgres_writer._arguments([start(run_row("first", "t"))]))
    assert not await second
    assert [run.id for run in await store.runs("", "", 10)] == ["first"]
    thread = await store.thread("t")
    assert thread is not None
    assert thread.run == "first"


async def test_a_run_that_may_not_begin_leaves_nothing_behind(store: PostgresStore) -> None:
    await done(store, start(run_row(key="k")))
    before = await exported(store)
    memory = MemoryRow(principal="ann", pin="p", arguments_hash="", allow=True, at=1)
    extra: dict[str, Any] = {"toolset": ("h", b"[]"), "memories": [memory]}
    refused = [
        start(run_row("r2"), calls=[call_row("c2", run_row("r2"))], snapshot=b"s", **extra),
        start(run_row("r3", "t3", key="k"), calls=[call_row("c3", run_row("r3", "t3"))], snapshot=b"s", **extra),
        start(run_row("r4", "t4"), seq=5, **extra),
        start(run_row("r1", "t5"), **extra),
    ]
    kept = start(run_row("r6", "t6"))
    assert await asyncio.gather(*map(store.write, [*refused, kept])) == [False, False, False, False, True]
    left = [row for row in await exported(store) if row not in before]
    assert sorted(table for table, _ in left) == ["log", "runs", "threads"]


async def test_a_stale_write_in_a_group_leaves_nothing_of_itself_behind(store: PostgresStore) -> None:
    stale, fresh = await several(store, 2)
    await done(store, step(stale))
    before = await exported(store)
    late = step(stale, snapshot=b"s", calls=[call_row("c", stale)], toolset=("h", b"[]"), ends=True)
    assert await asyncio.gather(store.write(late), store.write(step(fresh))) == [False, True]
    left = [row for row in await exported(store) if row not in before]
    assert sorted(table for table, _ in left) == ["log", "runs"]


async def test_one_bad_write_in_a_group_does_not_fail_the_others(store: PostgresStore) -> None:
    runs = await several(store, 5)
    await done(store, step(runs[4], calls=[call_row("taken", runs[4])]))
    writes = [step(run) for run in runs[:4]]
    writes[1] = step(runs[1], why="no \0 in text")
    writes[2] = step(runs[2], version=2**70)
    writes[3] = step(runs[3], calls=[call_row("taken", runs[3])])
    found = await asyncio.gather(*map(store.write, writes), return_exceptions=True)
    assert found[0] is True
    assert [type(each) for each in found[1:]] == [StoreError] * 3
    assert not any("no \0 in text" in str(each) for each in found)
    assert [(await row_of(store, run.id)).version for run in runs[1:4]] == [2, 2, 2]


async def test_the_writes_of_one_run_are_made_in_the_order_they_were_asked_for(store: PostgresStore) -> None:
    run = await done(store, start(run_row()))
    writes = [step(run)]
    for _ in range(20):
        writes.append(step(writes[-1].run))
    assert await asyncio.gather(*map(store.write, writes)) == [True] * 21


async def test_more_writes_than_a_group_holds_are_made_in_several(store: PostgresStore) -> None:
    runs = await several(store, 2 * postgres_writer.GROUP + 1)
    assert all(await asyncio.gather(*(store.write(step(run)) for run in runs)))


async def test_a_write_that_nobody_waits_for_any_more_is_not_sent(store: PostgresStore) -> None:
    run = await done(store, start(run_row()))
    given_up = asyncio.ensure_future(store.write(step(run)))
    given_up.cancel()
    assert await store.write(step(run, why="kept"))
    assert (await row_of(store, run.id)).why == "kept"


async def test_the_last_row_of_a_call_that_is_written_twice_at_once_is_kept(store: PostgresStore) -> None:
    run = run_row()
    calls = [call_row("c", run, state="first"), call_row("c", run, state="last")]
    memory = MemoryRow(principal="ann", pin="p", arguments_hash="", allow=False, at=1)
    await done(store, start(run, calls=calls, memories=[memory, structs.replace(memory, allow=True)]))
    assert [call.state for call in await store.waiting("ann", "", 9)] == ["last"]
    assert [kept.allow for kept in await store.memories("ann")] == [True]


async def test_two_runs_may_decide_the_same_and_bring_the_same_tools_in_one_group(store: PostgresStore) -> None:
    memory = MemoryRow(principal="ann", pin="p", arguments_hash="", allow=False, at=1)
    both = [
        start(run_row(f"r{n}", f"t{n}"), toolset=("h", b"[]"), memories=[structs.replace(memory, allow=n == 1, at=n)])
        for n in range(2)
    ]
    assert await asyncio.gather(*map(store.write, both)) == [True, True]
    assert [kept.at for kept in await store.memories("ann")] == [1]


async def test_reads_do_not_wait_for_a_write_that_waits(store: PostgresStore, connection: Any) -> None:
    run = await done(store, start(run_row()))
    async with connection.transaction():
        await connection.execute("select from farhand.runs for update")
        waits = asyncio.ensure_future(store.write(step(run)))
        async with asyncio.timeout(5):
            assert (await row_of(store, run.id)).version == 2
            assert await store.time() > 0
        assert not waits.done()
    async with asyncio.timeout(5):
        assert await waits


async def test_a_run_is_updated_in_place_while_it_is_held(store: PostgresStore, connection: Any) -> None:
    run = await done(store, start(run_row()))
    for _ in range(100):
        run = await done(store, step(run))
    await store.close()  # what a connection has counted is told when it ends
    async with asyncio.timeout(10):
        while await connection.fetchval("select n_tup_upd from pg_stat_user_tables where relname = 'runs'") < 100:
            await connection.execute("select pg_stat_clear_snapshot()")
    in_place = await connection.fetchval("select n_tup_hot_upd from pg_stat_user_tables where relname = 'runs'")
    assert in_place >= 95


# Work


async def test_four_handles_take_up_each_run_once(postgres_url: str) -> None:
    async with handles(postgres_url, 4) as stores:
        for n, store in enumerate(stores):
            await store.enter(worker_row(f"w{n}"))
        runs = await several(stores[0], 100, state="ready")
        due = [run_row(f"d{n}", f"s{n}", state="waiting", due=50) for n in range(100)]
        await asyncio.gather(*(stores[1].write(start(run)) for run in due))

        async def take(n: int) -> list[str]:
            taken: list[str] = []
            idle = 0
            while idle < 3:
                claims = await stores[n].claim(f"w{n}", ["helper"], 50, 7)
                taken += [claim.run for claim in claims]
                idle = 0 if claims else idle + 1
            return taken

        taken = await asyncio.gather(*map(take, range(4)))
        assert sorted(run for runs in taken for run in runs) == sorted(run.id for run in [*runs, *due])
        held = [await stores[n].held(f"w{n}") for n in range(4)]
        assert {epoch for rows in held for _, epoch in rows.values()} == {2}


async def test_a_storm_over_the_same_runs_makes_no_deadlock(postgres_url: str, connection: Any) -> None:
    deadlocks = "select deadlocks from pg_stat_database where datname = current_database()"
    before = await connection.fetchval(deadlocks)
    async with handles(postgres_url, 3) as stores:
        runs = await several(stores[0], 24, state="ready")
        ids = [run.id for run in runs]

        async def write(store: PostgresStore, offset: int) -> None:
            for _ in range(12):
                order = ids[offset:] + ids[:offset]
                rows = await asyncio.gather(*(row_of(store, run) for run in order))
                await asyncio.gather(*(store.write(step(row, state="ready", holder="", ends=False)) for row in rows))
                begun = [run_row(f"{row.id}+", f"{row.thread}+", key=f"key {row.id}") for row in rows]
                await asyncio.gather(*(store.write(start(row, toolset=(f"h{row.id}", b"[]"))) for row in begun))

        async def work(store: PostgresStore, worker: str) -> None:
            for now in range(25):
                await store.enter(worker_row(worker, expires=now))
                await store.claim(worker, ["helper"], 10_000, 8)
                await store.expire(now if now % 2 else now + 1)
                await store.leave(worker)
                await store.prune(10**6, 3)

        async with asyncio.timeout(60):
            await asyncio.gather(
                *(write(store, 7 * n) for n, store in enumerate(stores)),
                *(work(store, f"w{n}") for n, store in enumerate(stores)),
            )
    assert await connection.fetchval(deadlocks) == before


async def test_runs_that_are_due_are_found_in_an_index(store: PostgresStore, connection: Any) -> None:
    columns = "id, thread, agent, principal, key, request, state, version, epoch, holder, due, seq, said, format, why"
    await connection.execute(
        f"insert into farhand.runs ({columns}, created, updated)"
        " select 'r' || n, 't' || n, 'helper', 'ann', '', '', 'waiting', 1, 1, '', 1000 + n, 1, 1, 1, '', n, n"
        " from generate_series(1, 20000) n"
    )
    await connection.execute("analyze farhand.runs")
    plan = await connection.fetchval(f"explain (format json) {sql.CLAIM}", "w", ["helper"], 1_005, 10, 1)
    assert '"Index Name": "runs_due"' in plan
    assert '"Index Name": "runs_ready"' in plan
    assert "(due <= " in plan
    assert '"Seq Scan"' not in plan
    assert sorted(claim.run for claim in await store.claim("w", ["helper"], 1_005, 10)) == [
        "r1",
        "r2",
        "r3",
        "r4",
        "r5",
    ]


async def test_a_plan_made_for_small_tables_is_not_kept_to_the_harm_of_large_ones(
    store: PostgresStore, connection: Any
) -> None:
    first = await done(store, start(run_row()))
    await connection.execute("analyze farhand.runs")
    for _ in range(3):
        first = await done(store, step(first))
        await ended(store, await done(store, start(run_row(f"a{first.version}", f"a{first.version}"))))
    columns = "id, thread, agent, principal, key, request, state, version, epoch, holder, due, seq, said, format, why"
    await connection.execute(
        f"insert into farhand.runs ({columns}, created, updated)"
        " select 'x' || n, 'x' || n, 'helper', 'ann', '', '', 'done', 1, 1, '', null, 1, 1, 1, '', n, n"
        " from generate_series(1, 20000) n"
    )
    reads = "select sum(idx_tup_read) from pg_stat_user_indexes where relname in ('runs', 'threads')"
    before = await connection.fetchval(reads)
    for n in range(20):
        first = await done(store, step(first))
        await ended(store, await done(store, start(run_row(f"b{n}", f"b{n}"))))
    await store.close()
    await connection.execute("select pg_stat_clear_snapshot()")
    assert await connection.fetchval(reads) - before < 1_000


async def test_pieces_of_an_epoch_that_is_over_are_not_kept(store: PostgresStore) -> None:
    await done(store, start(run_row()))
    places = [("r1", 1), ("r1", 0), ("r9", 1)]
    pieces = [PieceRow(run=run, epoch=epoch, turn=1, offset=0, text="x") for run, epoch in places]
    await store.stream(pieces)
    assert list(await store.streamed("r1")) == pieces[:1]


# Housekeeping


async def test_definitions_go_with_the_last_thread_that_refers_to_them(store: PostgresStore) -> None:
    for n, toolset in enumerate(["both", "both", "mine"]):
        run = run_row(f"r{n}", f"t{n}", updated=n)
        write = start(run, toolset=(toolset, b"[]"))
        log = log_row(run, 2, toolset=toolset)
        await ended(store, await done(store, structs.replace(write, log=log)), updated=n)
    assert await store.prune(1, 9) == 1
    assert await store.toolset("both") == b"[]"
    assert await store.prune(9, 1) == 1
    assert await store.toolset("both") is None
    assert await store.prune(9, 99) == 1
    assert await exported(store) == []


async def test_many_threads_are_pruned_in_small_transactions(store: PostgresStore) -> None:
    runs = await several(store, 120)
    await asyncio.gather(*(ended(store, run) for run in runs))
    assert await store.prune(10**6, 110) == 110
    assert len(await store.runs("", "", 999)) == 10


async def test_an_export_shows_the_store_as_it_was_when_it_began(store: PostgresStore) -> None:
    runs = await several(store, 3)
    rows = store.export()
    seen = [await anext(rows)]
    await asyncio.gather(*(store.write(step(run)) for run in runs))
    seen += [row async for row in rows]
    assert {row["version"] for table, row in seen if table == "runs"} == {2}


async def test_an_export_that_is_broken_off_gives_its_connection_back(store: PostgresStore, connection: Any) -> None:
    await several(store, 3)
    rows: Any = store.export()
    await anext(rows)
    await rows.aclose()
    assert await backends(connection, "export", 0)


# The schema


async def test_two_handles_may_open_an_empty_database_at_once(postgres_url: str, connection: Any) -> None:
    stores = [PostgresStore(postgres_url) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    assert await connection.fetchval("select count(*) from farhand.meta") == 1
    await asyncio.gather(*(store.close() for store in stores))


async def test_opening_a_store_that_is_set_up_changes_nothing_in_its_tables(postgres_url: str, connection: Any) -> None:
    async with handles(postgres_url, 1):
        pass
    names = """
        select array_agg(oid::text || xmin::text order by oid) from pg_class
        where relnamespace = 'farhand'::regnamespace
    """
    before = await connection.fetchval(names)
    async with handles(postgres_url, 1):
        assert await connection.fetchval(names) == before


async def test_a_store_of_a_newer_version_is_refused(postgres_url: str, connection: Any) -> None:
    async with handles(postgres_url, 1):
        await connection.execute("update farhand.meta set version = 99")
    with pytest.raises(StoreVersion, match="of version 99"):
        await PostgresStore(postgres_url).open()
    assert await PostgresStore(postgres_url).migrate() == 0


async def test_a_store_of_an_older_version_is_refused_until_it_is_migrated(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with handles(postgres_url, 1) as (store,):
        run = await done(store, start(run_row()))
    steps = {**postgres_schema.migrations(), 2: "create table farhand.more (id text)"}
    monkeypatch.setattr(postgres_schema, "migrations", lambda: steps)
    with pytest.raises(StoreVersion, match="farhand store migrate URL"):
        await PostgresStore(postgres_url).open()
    assert sorted(await asyncio.gather(*(PostgresStore(postgres_url).migrate() for _ in range(3)))) == [0, 0, 1]
    async with handles(postgres_url, 1) as (store,):
        assert await row_of(store, run.id) == run


async def test_a_migration_that_fails_leaves_the_tables_as_they_were(
    postgres_url: str, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with handles(postgres_url, 1):
        pass
    steps = {**postgres_schema.migrations(), 2: "create table farhand.more (id text)", 3: "no such thing"}
    monkeypatch.setattr(postgres_schema, "migrations", lambda: steps)
    with pytest.raises(StoreError):
        await PostgresStore(postgres_url).migrate()
    assert await connection.fetchval("select version from farhand.meta") == 1
    assert not await connection.fetchval("select to_regclass('farhand.more') is not null")


async def test_two_stores_in_two_schemas_of_a_database_do_not_meet(postgres_url: str) -> None:
    async with handles(postgres_url, 1) as (one,), handles(postgres_url, 1, schema="other") as (other,):
        run = await done(one, start(run_row()))
        assert await other.load(run.id) is None
        assert await other.write(start(run))
        assert await other.prune(10**6, 9) == 0


@pytest.mark.parametrize("name", ["", "Big", 'a"b', "a.b", "pg_catalog", "x" * 60])
def test_a_schema_has_a_plain_name(name: str) -> None:
    with pytest.raises(StoreError, match="no name for a schema"):
        PostgresStore("postgresql://nowhere", schema=name)


@pytest.mark.parametrize("row", [ThreadRow, RunRow, LogRow, CallRow, MemoryRow])
async def test_a_statement_carries_the_fields_of_a_row_in_their_order(
    store: PostgresStore, connection: Any, row: type[Any]
) -> None:
    name = f"farhand.{row.__name__.removesuffix('Row').lower()}_1"
    fields = await connection.fetchval(
        "select array_agg(attname::text order by attnum) from pg_attribute"
        " where attrelid = (select typrelid from pg_type where oid = $1::text::regtype)",
        name,
    )
    own = ["run"] if row is MemoryRow else []
    assert fields == [*own, *row.__struct_fields__]


# Open and closed, other event loops


async def waits_for_a_lock(connection: Any, purpose: str) -> None:
    query = "select count(*) from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'"
    while not await connection.fetchval(query, f"farhand {purpose}"):
        pass


async def backends(connection: Any, purpose: str, count: int) -> bool:
    """Wait until the stores have so many connections for a purpose: a server takes a moment to let go of one."""
    query = "select count(*) from pg_stat_activity where application_name like $1"
    async with asyncio.timeout(5):
        while await connection.fetchval(query, f"farhand {purpose}") != count:
            pass
    return True


async def test_a_store_that_is_not_open_is_away(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    with pytest.raises(StoreAway):
        await store.time()
    with pytest.raises(StoreAway):
        await store.write(start(run_row()))
    await store.open()
    await store.close()
    with pytest.raises(StoreAway):
        await store.write(start(run_row()))
    await store.close()


async def test_a_store_may_be_closed_and_opened_again(store: PostgresStore) -> None:
    await store.close()
    await store.open()
    await done(store, start(run_row()))


async def test_what_was_queued_is_written_before_the_store_closes(postgres_url: str) -> None:
    async with handles(postgres_url, 1) as (store,):
        queued = [asyncio.ensure_future(store.write(start(run_row(f"r{n}", f"t{n}")))) for n in range(10)]
        await asyncio.sleep(0)
        await store.close()
        assert await asyncio.gather(*queued) == [True] * 10


async def test_signs_of_life_come_from_a_loop_of_their_own(store: PostgresStore, connection: Any) -> None:
    await store.enter(worker_row("w1"))
    found: list[bool] = []

    async def beat() -> None:
        for worker, now in [("w1", 1), ("w2", 1), ("w1", 2)]:
            found.append(await store.beat(worker, now, 20_000))

    thread = threading.Thread(target=lambda: asyncio.run(beat()))
    thread.start()
    await asyncio.to_thread(thread.join)
    assert found == [True, False, True]
    assert await connection.fetchval("select beat from farhand.workers where id = 'w1'") == 2
    assert await backends(connection, "beats", 0)


async def test_a_loop_that_still_gives_signs_of_life_when_the_store_closes_is_hung_up_on(
    store: PostgresStore, connection: Any
) -> None:
    await store.enter(worker_row("w1"))
    beaten, over = threading.Event(), threading.Event()

    async def beat() -> None:
        await store.beat("w1", 1, 20_000)
        beaten.set()
        await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(beat()))
    thread.start()
    await asyncio.to_thread(beaten.wait, 5)
    assert await backends(connection, "beats", 1)
    await store.close()
    over.set()
    await asyncio.to_thread(thread.join)
    assert await backends(connection, "%", 0)
