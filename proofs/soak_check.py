"""What a soak has seen and what the store says at its end, held against the promises."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field, json, structs

from farhand.core.call import Call, Outcome
from farhand.core.definition import Place, SideEffect
from farhand.core.errors import FarhandError
from farhand.core.run import Run
from farhand.core.updates import CallEnded, Update
from farhand.durable.record import Revived, Toolsets, revive
from farhand.stores.base import Row
from farhand.stores.memory import MemoryStore

STRANGER = "eve"
KILLED = -9
SERVER_FAULTS = re.compile(r"(?:ERROR|PANIC|FATAL):\s+(.*)")
RACE = re.compile(r'duplicate key value violates unique constraint "(runs_pkey|runs_key|threads_pkey)"')
"""Two starts at the same moment: one of them loses, is told so by the server, and looks again."""
HARMLESS = ("terminating connection", "the database system is", "connection to client lost", "canceling statement")
ONCE = ("charge", "linger", "pay")
ROOM = 24 << 20
"""So many bytes a surviving process may grow by while it fills its caches."""


class Said(Struct, frozen=True):
    """One thing that was said about a call, and the reply to it."""

    what: str
    call: str
    principal: str
    value: Any
    reply: dict[str, Any]

    @property
    def accepted(self) -> bool:
        """Whether it counts."""
        return "repeated" in self.reply

    @property
    def first(self) -> bool:
        """Whether it was said to be the one that counted."""
        return self.reply.get("repeated") is False


class Story(Struct):
    """What was seen from outside."""

    said: list[Said] = field(default_factory=list[Said])
    starts: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list[tuple[str, list[dict[str, Any]]]])
    killed: list[int] = field(default_factory=list[int])
    frozen: list[int] = field(default_factory=list[int])
    ended: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Workers, and how they ended."""
    never_ended: list[str] = field(default_factory=list[str])
    unanswered: int = 0
    stats: tuple[dict[str, int], dict[str, int]] | None = None


class Report(Struct, frozen=True):
    """Figures, and the promises that were broken."""

    figures: dict[str, Any]
    broken: Sequence[str]
    seconds: float = 0.0

    def with_server_log(self, log: str) -> "Report":
        """Deadlocks and other errors that a database server has seen."""
        faults = [said for said in SERVER_FAULTS.findall(log) if not said.startswith(HARMLESS) and not RACE.match(said)]
        deadlocks = sum("deadlock" in fault for fault in faults)
        broken = [*self.broken, *(f"the server said: {fault}" for fault in Counter(faults))]
        return structs.replace(self, broken=broken, figures={**self.figures, "deadlocks": deadlocks})

    def short(self) -> str:
        """For one line."""
        names = ("kills", "freezes", "runs (each started twice)", "answers accepted exactly once", "unknown")
        return ", ".join(f"{name} {self.figures[name]}" for name in names)

    def table(self, store: str) -> str:
        """For a person."""
        lines = [f"soak on {store}, {self.seconds:.0f} s"]
        lines += [f"  {name:<36} {value}" for name, value in self.figures.items()]
        lines += [f"  BROKEN: {each}" for each in self.broken[:40]] or ["  no promise was broken"]
        return "\n".join(lines)


async def check(
    story: Story, rows: Sequence[tuple[str, Row]], effects: Sequence[Mapping[str, Any]], log: str
) -> Report:
    """Everything."""
    broken: list[str] = []
    runs = await _replayed(rows, broken)
    calls = {call.id: (run, call) for run in runs.values() for call in run.calls.values()}
    _check_ends(story, runs, broken)
    gaps, ended = _check_updates(rows, broken)
    _check_calls(calls, ended, rows, broken)
    lost, accepted, repeated, refused = _check_said(story, calls, broken)
    twice = _check_effects(calls, effects, broken)
    taken_for_dead = {int(line.split()[2]) for line in log.splitlines() if "was taken for dead" in line}
    unknown = _check_unknown(calls, effects, {*story.killed, *story.frozen} | taken_for_dead, broken)
    _check_survivor(story, broken)
    outcomes = Counter(str(call.outcome) for _, call in calls.values())
    figures = {
        "kills": len(story.killed),
        "freezes": len(story.frozen),
        "runs (each started twice)": len(runs),
        "ended": ", ".join(f"{n} {end}" for end, n in Counter(str(run.ending) for run in runs.values()).most_common()),
        "calls, each with one outcome": len(calls),
        "answers accepted exactly once": accepted,
        "accepted answers lost": lost,
        "duplicates told as repeated": repeated,
        "refused (late, different)": refused,
        "foreign answers, told as unknown": sum(said.principal == STRANGER for said in story.said),
        "once bodies entered twice": twice,
        "once bodies entered": _entered(effects, ONCE),
        "pure and idempotent attempts": _entered(effects, ("keep", "weigh")),
        "unknown": unknown,
        "timed out": outcomes["timed_out"],
        "gaps in update numbers": gaps,
        **_survivor_figures(story),
    }
    return Report(figures, broken)


def _entered(effects: Iterable[Mapping[str, Any]], tools: Sequence[str]) -> int:
    return sum(effect["phase"] == "in" and effect["tool"] in tools for effect in effects)


async def _replayed(rows: Sequence[tuple[str, Row]], broken: list[str]) -> dict[str, Run]:
    """Every run from its log alone; it has to be the same as from its snapshot."""
    whole, bare = MemoryStore(), MemoryStore()
    await whole.take_in(rows)
    await bare.take_in([entry for entry in rows if entry[0] != "snapshots"])
    runs: dict[str, Run] = {}
    for table, row in rows:
        if table != "runs":
            continue
        try:
            found = [await _revived(store, row["id"]) for store in (bare, whole)]
        except FarhandError as error:
            broken.append(f"the log of run {row['id']} does not replay: {error}")
            continue
        if found[0].run != found[1].run:
            broken.append(f"run {row['id']} is another one from its snapshot than from its log")
        runs[row["id"]] = found[0].run
    return runs


async def _revived(store: MemoryStore, run: str) -> Revived:
    stored = await store.load(run)
    assert stored is not None
    return await revive(stored, Toolsets(), store.toolset)


def _check_ends(story: Story, runs: Mapping[str, Run], broken: list[str]) -> None:
    broken += [f"never ended: {run}" for run in story.never_ended]
    broken += [f"run {run.id} failed: {run.failure}" for run in runs.values() if run.ending == "failed"]
    broken += [f"worker {pid} ended by itself ({status})" for pid, status in story.ended if status != KILLED]
    if story.unanswered:
        broken.append(f"{story.unanswered} requests were never answered")
    for key, said in story.starts:
        if len({reply.get("run") for reply in said}) != 1 or said[0].get("run") not in runs:
            broken.append(f"two starts under {key}: {said}")


def _check_updates(rows: Iterable[tuple[str, Row]], broken: list[str]) -> tuple[int, Counter[str]]:
    """Numbers of a thread count up from 1; also gives how often each call is told to have ended."""
    numbers: dict[str, list[int]] = defaultdict(list)
    ended: Counter[str] = Counter()
    for table, row in rows:
        if table == "log" and row["updates"]:
            for update in json.decode(row["updates"], type=list[Update]):
                numbers[row["thread"]].append(update.seq)
                if isinstance(update, CallEnded):
                    ended[update.call_id] += 1
    gaps = [thread for thread, found in numbers.items() if sorted(found) != list(range(1, len(found) + 1))]
    broken += [f"gap or repeat in thread {thread}: {sorted(numbers[thread])}" for thread in gaps]
    return len(gaps), ended


def _check_calls(
    calls: Mapping[str, tuple[Run, Call]], ended: Counter[str], rows: Iterable[tuple[str, Row]], broken: list[str]
) -> None:
    broken += [f"call {call} has no outcome" for call, (_, found) in calls.items() if found.outcome is None]
    broken += [f"call {call} is told to have ended {ended[call]} times" for call in calls if ended[call] != 1]
    kept = {row["id"]: row for table, row in rows if table == "calls"}
    for call, (_, found) in calls.items():
        if call not in kept or kept[call]["state"] != found.state or kept[call]["awaited"]:
            broken.append(f"the row of call {call} is not as its run says")


def _check_said(story: Story, calls: Mapping[str, tuple[Run, Call]], broken: list[str]) -> tuple[int, int, int, int]:
    lost = accepted = repeated = refused = 0
    by_call: dict[tuple[str, str], list[Said]] = defaultdict(list)
    for said in story.said:
        if "broken" in said.reply:
            broken.append(f"a request broke: {said.reply['broken']}")
        if said.principal == STRANGER:
            if said.reply != {"refused": "UnknownCall", "message": "there is no such call"}:
                broken.append(f"a stranger was told {said.reply}")
            continue
        kind = "decision" if said.what in ("approve", "deny") else said.what
        by_call[kind, said.call].append(said)
        repeated += said.accepted and not said.first
        refused += "refused" in said.reply
    for (kind, call_id), said in by_call.items():
        counted = [each for each in said if each.accepted]
        firsts = sum(each.first for each in counted)
        if firsts > 1:
            broken.append(f"{kind} of call {call_id} was accepted {firsts} times: {counted}")
        wrong = [each for each in counted if call_id not in calls or not _holds(each, *calls[call_id])]
        lost += len(wrong)
        broken += [f"accepted, and lost: {each}" for each in wrong]
        accepted += kind == "answer" and bool(counted)
    return lost, accepted, repeated, refused


def _holds(said: Said, run: Run, call: Call) -> bool:
    """Whether what was accepted is what the call has in the end."""
    match said.what:
        case "answer":
            return call.outcome is Outcome.OK and json.decode(call.result) == said.value
        case "approve":
            return call.approval is not None and call.approval.decision == "approved"
        case "deny":
            return call.outcome is Outcome.DENIED
        case "cancel_call":
            return call.outcome is Outcome.CANCELLED
        case _:
            return run.ending is not None and (not said.first or run.ending == "cancelled")


def _check_effects(
    calls: Mapping[str, tuple[Run, Call]], effects: Iterable[Mapping[str, Any]], broken: list[str]
) -> int:
    entered: Counter[tuple[str, str]] = Counter()
    for effect in effects:
        entered[effect["call"], effect["tool"]] += effect["phase"] == "in"
    broken += [f"{tool} ran for call {call}, and nobody knows of it" for call, tool in entered if call not in calls]
    twice = {call: n for (call, tool), n in entered.items() if n > 1 and tool in ONCE}
    broken += [f"once entered twice: call {call}, {n} times" for call, n in twice.items()]
    for call, (_, found) in calls.items():
        if found.place is Place.SERVER and found.outcome is Outcome.OK and not entered[call, found.tool]:
            broken.append(f"call {call} ended well, and its tool never ran")
    return len(twice)


def _effect(run: Run, call: Call) -> SideEffect:
    definition = run.definition_of(call)
    assert definition is not None
    return definition.policy.effect


def _check_unknown(
    calls: Mapping[str, tuple[Run, Call]],
    effects: Iterable[Mapping[str, Any]],
    interrupted: set[int],
    broken: list[str],
) -> str:
    where = {effect["call"]: effect["pid"] for effect in effects if effect["phase"] == "in"}
    through = {effect["call"] for effect in effects if effect["phase"] == "out"}
    unknown = [call for call, (_, found) in calls.items() if found.outcome is Outcome.UNKNOWN]
    for call in unknown:
        if _effect(*calls[call]) is not SideEffect.ONCE:
            broken.append(f"call {call} of {calls[call][1].tool} is unknown")
        elif call in where and where[call] not in interrupted:
            broken.append(f"call {call} is unknown, and worker {where[call]} was never interrupted")
    had = sum(call in through for call in unknown)
    return f"{len(unknown)} ({had} had happened, {sum(call not in where for call in unknown)} not begun)"


def _survivor_figures(story: Story) -> dict[str, str]:
    if story.stats is None:
        return {}
    before, after = story.stats
    return {
        "survivor: descriptors": f"{before['descriptors']} -> {after['descriptors']}",
        "survivor: MB": f"{before['rss'] / 1e6:.1f} -> {after['rss'] / 1e6:.1f}",
        "survivor: tasks": f"{before['tasks']} -> {after['tasks']}",
    }


def _check_survivor(story: Story, broken: list[str]) -> None:
    if story.stats is not None:
        before, after = story.stats
        if after["descriptors"] > before["descriptors"] + 4:
            broken.append(f"descriptors of the survivor: {before['descriptors']} -> {after['descriptors']}")
        if after["rss"] > before["rss"] + ROOM:
            broken.append(f"memory of the survivor: {before['rss']} -> {after['rss']}")
