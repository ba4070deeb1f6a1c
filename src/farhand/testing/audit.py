"""What has to be true of the rows of a store at any time, and more so at rest. It reads everything.

problems = await audit(store, now=clock.now(), workers={"the", "living"})
assert not problems
"""

from collections import Counter
from collections.abc import Collection, Sequence

from msgspec import json

from farhand.core.call import Call
from farhand.core.errors import FarhandError
from farhand.core.messages import AssistantMessage, Message, ToolMessage
from farhand.core.run import Phase, Run
from farhand.core.updates import CallEnded, CallExecuting, CallReady, RunEnded, RunStarted, Update
from farhand.durable.record import Toolsets, read_messages, read_updates, revive
from farhand.stores.base import CallRow, LogRow, RunRow, Store, Stored, ThreadRow


class Books:
    """Every row of a store, as values."""

    def __init__(self) -> None:
        self.threads: dict[str, ThreadRow] = {}
        self.runs: dict[str, RunRow] = {}
        self.calls: dict[str, CallRow] = {}
        self.log: dict[str, list[LogRow]] = {}

    def updates(self, thread: str) -> list[Update]:
        """Everything that a thread's watchers have to be told."""
        return [update for row in self.log.get(thread, ()) if row.updates for update in read_updates(row)]


async def books(store: Store) -> Books:
    """Read every row."""
    read = Books()
    async for table, fields in store.export():
        match table:
            case "threads":
                thread = ThreadRow(**fields)
                read.threads[thread.id] = thread
            case "runs":
                run = RunRow(**fields)
                read.runs[run.id] = run
            case "calls":
                call = CallRow(**fields)
                read.calls[call.id] = call
            case "log":
                row = LogRow(**fields)
                read.log.setdefault(row.thread, []).append(row)
            case _:
                pass
    for rows in read.log.values():
        rows.sort(key=lambda row: (row.seq, read.runs[row.run].created, row.version))
    return read


async def audit(store: Store, *, now: int | None = None, workers: Collection[str] | None = None) -> list[str]:
    """What is wrong. With `now`, nothing may be overdue; with `workers`, nobody else may hold a run."""
    read = await books(store)
    problems: list[str] = []
    for thread in read.threads.values():
        problems += [f"thread {thread.id}: {problem}" for problem in _thread(read, thread)]
    for row in read.runs.values():
        found = [*_row(row, now, workers), *await _run(store, read, row)]
        problems += [f"run {row.id}: {problem}" for problem in found]
    return problems


def _thread(read: Books, thread: ThreadRow) -> list[str]:
    updates = read.updates(thread.id)
    numbers = [update.seq for update in updates]
    problems: list[str] = []
    if numbers != list(range(1, len(numbers) + 1)):
        problems.append(f"its updates are numbered {numbers}")
    ended = Counter(update.call_id for update in updates if isinstance(update, CallEnded))
    problems += [f"call {call} has {times} outcomes" for call, times in ended.items() if times > 1]
    open_run = read.runs.get(thread.run)
    newest = thread.seq if open_run is None else open_run.seq
    if newest != len(numbers):
        problems.append(f"its last number is {newest} of {len(numbers)}")
    left = read.runs.get(thread.scene)
    if thread.scene and (left is None or left.thread != thread.id or left.id == thread.run):
        problems.append(f"what it has of its client should be with run {thread.scene}")
    started = sum(isinstance(update, RunStarted) for update in updates)
    over = sum(isinstance(update, RunEnded) for update in updates)
    if started != over + bool(thread.run):
        problems.append(f"{started} runs have started and {over} have ended, and the open one is {thread.run!r}")
    return problems


def _same(one: Run, other: Run) -> bool:
    """Equal in all that is stored. A set has no order, in which two equal ones may differ as they are encoded."""
    ordered = [*one.tools] == [*other.tools] and [*one.calls] == [*other.calls]
    return ordered and json.encode(one, order="deterministic") == json.encode(other, order="deterministic")


def _row(row: RunRow, now: int | None, workers: Collection[str] | None) -> list[str]:
    problems: list[str] = []
    if workers is not None:
        if row.holder and row.holder not in workers:
            problems.append(f"it is held by {row.holder}, who is not there")
        if row.state == "ready" or (row.state == "running" and not row.holder):
            problems.append(f"it is {row.state}, and nobody holds it")
    if now is not None and row.state == "waiting" and row.due is not None and row.due < now:
        problems.append(f"it is overdue by {now - row.due} ms")
    if row.state == "refused":
        problems.append(f"it was put aside: {row.why}")
    return problems


async def _run(store: Store, read: Books, row: RunRow) -> list[str]:
    """Its log, from the beginning, leads to its row, and so does its snapshot."""
    stored = await store.load(row.id)
    if stored is None or row.state == "refused":
        return []
    tail = [entry for entry in read.log[row.thread] if entry.run == row.id]
    whole = Stored(run=row, thread=stored.thread, snapshot=b"", tail=tail, messages=stored.messages)
    try:
        quick = await revive(stored, Toolsets(), store.toolset)
        slow = await revive(whole, Toolsets(), store.toolset)
    except FarhandError as error:
        return [str(error)]
    run = slow.run
    problems = [] if _same(quick.run, run) else ["its snapshot is not what its log leads to"]
    status = run.status if row.state in ("waiting", "done", "failed", "cancelled", "limit", "stopped") else row.state
    if status != row.state:
        problems.append(f"it is {row.state} in its row and {run.status} in its log")
    if row.state == "waiting" and row.due != _due(run):
        problems.append(f"its next timer is {_due(run)}, and its row says {row.due}")
    updates = [update for entry in tail if entry.updates for update in read_updates(entry)]
    return problems + _calls(read, run, updates) + _told(run, read_messages(stored.messages))


def _due(run: Run) -> int | None:
    times = [time for call in run.open_calls for time in (call.deadline or call.not_before or None, call.grace)]
    return min((time for time in times if time is not None), default=None)


def _calls(read: Books, run: Run, updates: Sequence[Update]) -> list[str]:
    problems: list[str] = []
    ended = {update.call_id: update.outcome for update in updates if isinstance(update, CallEnded)}
    for call in run.calls.values():
        row = read.calls.get(call.id)
        if row is None or (row.state, bool(row.record)) != (call.state, call.open):
            problems.append(f"the row of call {call.id} says {row}")
        elif call.open and json.decode(row.record, type=Call) != call:
            problems.append(f"the row of call {call.id} has another record")
        if ended.get(call.id) != call.outcome:
            problems.append(f"call {call.id} has {call.outcome}, and watchers were told {ended.get(call.id)}")
        if run.ending is not None and call.open:
            problems.append(f"the run has ended, and call {call.id} has no outcome")
    known = {row.id for row in read.calls.values() if row.run == run.id}
    named = {update.call_id for update in updates if isinstance(update, CallReady | CallExecuting)}
    if known != set(run.calls) or not named <= known:
        problems.append("its calls are not those that have rows")
    return problems


def _told(run: Run, messages: Sequence[Message]) -> list[str]:
    """Each call of each reply is followed by how it ended, once, in call order."""
    problems: list[str] = []
    wanted: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if not wanted or message.call_id != wanted.pop(0):
                problems.append(f"the model was told of call {message.call_id} out of turn")
            call = run.calls.get(message.call_id)
            if call is not None and (call.outcome, bytes(call.result)) != (message.outcome, bytes(message.result)):
                problems.append(f"call {call.id} has {call.outcome}, and the model was told {message.outcome}")
        elif wanted:
            problems.append(f"the model was not told of {wanted}")
            wanted = []
        if isinstance(message, AssistantMessage):
            wanted = [call.id for call in message.calls]
    if wanted and run.phase is not Phase.CALLING:
        problems.append(f"the model was not told of {wanted}")
    return problems
