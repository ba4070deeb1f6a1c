"""Rows and writes for the tests of stores: small, and all fields have something in them."""

from typing import Any

from msgspec import structs

from farhand.stores.base import CallRow, LogRow, RunRow, Store, ThreadRow, WorkerRow, Write


def run_row(run: str = "r1", thread: str = "t1", **fields: Any) -> RunRow:
    """A run after its first commit."""
    given: dict[str, Any] = {"agent": "helper", "principal": "ann", "state": "running", "version": 2, "seq": 3}
    given |= {"said": 1, "created": 1_000, "updated": 1_000}
    return RunRow(id=run, thread=thread, **(given | fields))


def log_row(run: RunRow, count: int, **fields: Any) -> LogRow:
    """What a commit adds to the log: something of each kind, unless it is said otherwise."""
    name = f"{run.id}-{run.version}"
    given: dict[str, Any] = {"events": f'[["event {name}"]]'.encode(), "updates": f'[["update {name}"]]'.encode()}
    given |= {"messages": f'[["message {name}"]]'.encode(), "at": run.updated}
    numbers = {"version": run.version, "count": count, "seq": run.seq, "said": run.said}
    return LogRow(thread=run.thread, run=run.id, **numbers, **(given | fields))


def call_row(call: str, run: RunRow, **fields: Any) -> CallRow:
    """A call that waits for its owner."""
    given: dict[str, Any] = {"tool": "ask", "state": "client", "awaited": True, "record": b'{"a":1}', "updated": 1_000}
    return CallRow(id=call, run=run.id, thread=run.thread, principal=run.principal, **(given | fields))


def worker_row(worker: str, expires: int = 10_000) -> WorkerRow:
    """A worker that began a while ago."""
    return WorkerRow(id=worker, host="here", build="1", started=0, beat=0, expires=expires)


def start(run: RunRow, seq: int = 0, said: int = 0, **fields: Any) -> Write:
    """The first commit of a run; its thread is new unless it is at some number."""
    thread = ThreadRow(
        id=run.thread,
        owner=run.principal,
        name="",
        run=run.id,
        seq=seq,
        said=said,
        created=run.created,
        updated=run.updated,
    )
    return Write(run=run, was=None, begins=thread, log=log_row(run, run.version), **fields)


def step(before: RunRow, count: int = 2, log: dict[str, Any] | None = None, **fields: Any) -> Write:
    """A further commit: some events more, two updates, one message."""
    given: dict[str, Any] = {"version": before.version + count, "seq": before.seq + 2, "said": before.said + 1}
    given["updated"] = before.updated + 10
    of_write = {name: fields.pop(name) for name in Write.__struct_fields__ if name in fields}
    run = structs.replace(before, **(given | fields))
    return Write(run=run, was=(before.version, before.epoch), log=log_row(run, count, **(log or {})), **of_write)


async def done(store: Store, *writes: Write) -> RunRow:
    """Commit one after the other, all as expected; gives the run as it is then."""
    for write in writes:
        assert await store.write(write)
    return writes[-1].run


async def ended(store: Store, run: RunRow, **fields: Any) -> RunRow:
    """Commit the end of a run."""
    last: dict[str, Any] = {"state": "done", "holder": "", "due": None, **fields}
    return await done(store, step(run, ends=True, **last))


async def row_of(store: Store, run: str) -> RunRow:
    """A run as it is now."""
    stored = await store.load(run)
    assert stored is not None
    return stored.run


async def exported(store: Store) -> list[tuple[str, tuple[tuple[str, Any], ...]]]:
    """Everything in a store, in an order of its own."""
    return sorted([(table, tuple(sorted(row.items()))) async for table, row in store.export()], key=repr)
