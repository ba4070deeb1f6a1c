"""Tests of every store: who is there, and how far clients are with their calls."""

from typing import Any

from msgspec import structs

from farhand.stores.base import Store
from farhand.stores.presence import ClientRow, ProgressRow
from farhand.testing.store_rows import call_row, done, exported, run_row, start, step, worker_row
from farhand.testing.store_upkeep import Heard


def client_row(connection: str, **fields: Any) -> ClientRow:
    """A connection with something in all of its fields."""
    given: dict[str, Any] = {"client": "tab", "principal": "ann", "thread": "t1", "worker": "w1", "since": 1_000}
    given |= {"offers": ("pick", "open, file"), "tools": b'[{"name":"zoom"}]'}
    return ClientRow(connection=connection, **(given | fields))


def progress_row(call: str, **fields: Any) -> ProgressRow:
    """Something that was said of a call."""
    given: dict[str, Any] = {"run": "r1", "name": "progress", "value": b'{"x":[1]}', "at": 2_000}
    return ProgressRow(call=call, **(given | fields))


class PresenceSuite:
    """What a store promises to clients that are connected."""

    async def test_whoever_is_there_for_a_thread_is_found(self, store: Store, other: Store) -> None:
        """With providers, who are there for any of their principal's; oldest first, also by another handle."""
        await other.open()
        await store.enter(worker_row("w1"))
        here, provider = client_row("a", since=20), client_row("b", thread="", since=10)
        for row in (here, provider, client_row("c", thread="t2"), client_row("d", principal="bob")):
            await store.attach(row)
        assert list(await other.clients("ann", "t1")) == [provider, here]
        assert list(await other.clients("ann", "")) == [provider]
        assert list(await other.clients("bob", "")) == []
        await other.detach("a")
        await other.detach("nobody")
        assert list(await store.clients("ann", "t1")) == [provider]

    async def test_a_connection_that_is_said_again_is_as_it_was_said_last(self, store: Store) -> None:
        """One that is closing is not there any more."""
        await store.enter(worker_row("w1"))
        await store.attach(row := client_row("a"))
        await store.attach(new := structs.replace(row, client="phone", offers=(), tools=b"", since=30))
        assert list(await store.clients("ann", "t1")) == [new]
        await store.attach(structs.replace(new, closing=True))
        assert list(await store.clients("ann", "t1")) == []
        assert list(await store.orphans("w2", 9)) == []  # its worker sees to it
        assert list(await store.orphans("w1", 9)) == [structs.replace(new, closing=True)]

    async def test_connections_of_a_worker_that_is_gone_are_taken_over_once(self, store: Store, other: Store) -> None:
        """From the moment it is gone they are not there, and they are found again when the next one is gone as well."""
        await other.open()
        await store.enter(worker_row("w1"))
        await store.enter(worker_row("w2", expires=20_000))
        rows = [client_row(name, since=number) for number, name in enumerate("cab")]
        for row in rows:
            await store.attach(row)
        assert list(await other.orphans("w2", 9)) == []
        await store.expire(15_000)
        assert list(await other.clients("ann", "t1")) == []
        taken = [structs.replace(row, worker="w2", closing=True) for row in rows]
        assert list(await other.orphans("w2", 2)) == taken[:2]
        assert list(await store.orphans("w3", 9)) == [structs.replace(taken[2], worker="w3")]
        await store.leave("w2")
        await store.enter(worker_row("w3", expires=30_000))
        assert [row.connection for row in await store.orphans("w3", 9)] == ["c", "a", "b"]
        for row in rows:
            await store.detach(row.connection)
        assert list(await store.orphans("w4", 9)) == []

    async def test_the_last_that_was_said_of_an_open_call_is_kept(self, store: Store, other: Store) -> None:
        """And others are told where to look."""
        heard = Heard()
        await other.open(heard)
        run = run_row()
        await done(store, start(run, calls=[call_row("c1", run), call_row("c2", run), call_row("c3", run, record=b"")]))
        heard.rings.clear()
        await store.tell(progress_row("c1", name="first"))
        await heard.of("t1", "r1")
        await store.tell(last := progress_row("c1", at=2_001))
        await store.tell(second := progress_row("c2"))
        await store.tell(progress_row("c3"))
        await store.tell(progress_row("unknown"))
        assert list(await other.told("r1")) == [last, second]
        assert list(await other.told("r2")) == []

    async def test_what_was_said_of_a_call_is_gone_with_it_and_with_its_attempt(self, store: Store) -> None:
        """Whatever has changed about the call came later."""
        run = run_row()
        first, second = call_row("c1", run), call_row("c2", run)
        run = await done(store, start(run, calls=[first, second]))
        await store.tell(progress_row("c1"))
        await store.tell(progress_row("c2"))
        ended = structs.replace(first, record=b"", awaited=False, updated=1_500)
        run = await done(store, step(run, calls=[ended, structs.replace(second, updated=2_001)]))
        assert list(await store.told("r1")) == []
        await store.tell(again := progress_row("c2", at=2_001))
        assert list(await store.told("r1")) == [again]
        await store.expire(0)
        assert list(await store.told("r1")) == [again]

    async def test_a_call_is_found_with_the_place_of_its_run(self, store: Store) -> None:
        """Whatever state it is in."""
        run = run_row()
        calls = [call_row("c1", run), call_row("c2", run, awaited=False, record=b"")]
        run = await done(store, start(run, calls=calls))
        assert [await store.standing(call.id) for call in calls] == [(call, run.seq) for call in calls]
        run = await done(store, step(run))
        assert await store.standing("c1") == (calls[0], run.seq)
        assert await store.standing("unknown") is None

    async def test_who_is_there_is_no_part_of_an_export(self, store: Store) -> None:
        """It means nothing anywhere else."""
        run = run_row()
        await done(store, start(run, calls=[call_row("c1", run)]))
        before = await exported(store)
        await store.enter(worker_row("w1"))
        await store.attach(client_row("a"))
        await store.tell(progress_row("c1"))
        assert await exported(store) == before

    async def test_waiting_calls_of_a_thread_are_those_of_its_open_run(self, store: Store) -> None:
        """Not those of the thread's earlier runs, and nobody else's."""
        run = run_row()
        call = call_row("c1", run)
        run = await done(store, start(run, calls=[call]))
        assert list(await store.waiting("ann", "t1", 9)) == [call]
        assert list(await store.waiting("bob", "t1", 9)) == []
        over = structs.replace(call, awaited=False, record=b"")
        run = await done(store, step(run, calls=[over], ends=True, state="done"))
        again = run_row("r2", seq=run.seq + 1)
        second = call_row("c2", again, updated=1_010)
        await done(store, start(again, seq=run.seq, calls=[second]))
        assert list(await store.waiting("ann", "t1", 9)) == [second]
        assert list(await store.waiting("ann", "t9", 9)) == []
