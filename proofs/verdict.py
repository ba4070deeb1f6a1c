"""Holds what everybody was told, and what really happened, against the books. Each problem is one sentence."""

from collections.abc import Iterator

from msgspec import json

from farhand.core.call import Outcome
from farhand.core.run import Ending
from farhand.core.updates import CallApproved, CallEnded, CallExecuting, RunEnded, TurnStarted, Update
from farhand.testing.audit import Books
from proofs.crowd import COUNTED, DOUBT, REPEATED, STRANGER, Crowd, Said
from proofs.stage import ONCE, Stage

HEARD = (COUNTED, REPEATED)
PERHAPS = (*HEARD, DOUBT)


class Story:
    """The books, by what they tell."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self.updates = {thread: books.updates(thread) for thread in books.threads}
        every = [update for updates in self.updates.values() for update in updates]
        self.ended = {update.call_id: update for update in every if isinstance(update, CallEnded)}
        self.approved = {update.call_id for update in every if isinstance(update, CallApproved)}
        self.dispatched = {
            (update.call_id, update.attempt): update for update in every if isinstance(update, CallExecuting)
        }


def verdict(books: Books, crowd: Crowd, stage: Stage) -> list[str]:
    """Everything that is not as it was promised."""
    story = Story(books)
    return [
        *_acknowledged(story, crowd),
        *_refused(story, crowd),
        *_justified(story, crowd),
        *_starts(books, crowd),
        *_bodies(story, stage),
        *_requests(books, stage),
        *_watchers(story, crowd),
    ]


def _acknowledged(story: Story, crowd: Crowd) -> Iterator[str]:
    """What counted for whoever said it counts in the books."""
    for said in crowd.said:
        if said.verdict not in HEARD:
            continue
        if said.principal == STRANGER:
            yield f"a stranger was heard: {said}"
        elif not _is_true(story, said):
            yield f"it was acknowledged, and is not so: {said}; {story.ended.get(said.about)}"
    counted = [(said.kind, said.about) for said in crowd.said if said.verdict == COUNTED and said.kind != "claim"]
    for once in set(counted):
        if counted.count(once) > (8 if once[0] == "fail" else 1):
            yield f"{once} counted {counted.count(once)} times"


def _is_true(story: Story, said: Said) -> bool:
    ended = story.ended.get(said.about)
    outcome = None if ended is None else ended.outcome
    match said.kind:
        case "answer":
            return ended is not None and outcome is Outcome.OK and json.decode(ended.result) == said.value
        case "approve":
            return said.about in story.approved
        case "deny":
            return outcome is Outcome.DENIED
        case "cancel_call":
            return outcome is Outcome.CANCELLED
        case "cancel":
            endings = _endings(story, said.about)
            return len(endings) == 1 and (said.verdict == REPEATED or endings[0] is Ending.CANCELLED)
        case _:
            return True


def _endings(story: Story, run: str) -> list[Ending]:
    row = story.books.runs[run]
    rows = [entry for entry in story.books.log[row.thread] if entry.run == run]
    mine = range(rows[0].seq - _told(rows[0].updates) + 1, rows[-1].seq + 1)
    updates = story.updates[row.thread]
    return [update.ending for update in updates if isinstance(update, RunEnded) and update.seq in mine]


def _told(updates: bytes) -> int:
    return len(json.decode(updates)) if updates else 0


def _refused(story: Story, crowd: Crowd) -> Iterator[str]:
    """What was refused has changed nothing, and a stranger is told nothing."""
    perhaps = {
        (said.about, json.encode(said.value))
        for said in crowd.said
        if said.verdict in PERHAPS and said.kind == "answer" and said.principal != STRANGER
    }
    for said in crowd.said:
        if said.verdict in PERHAPS:
            continue
        if said.principal == STRANGER and said.verdict != "unknown_call":
            yield f"a stranger was told something: {said}"
        ended = story.ended.get(said.about)
        if ended is None or said.kind != "answer" or (said.about, json.encode(said.value)) in perhaps:
            continue
        if ended.outcome is Outcome.OK and json.decode(ended.result) == said.value:
            yield f"it was refused, and counts: {said}"


def _justified(story: Story, crowd: Crowd) -> Iterator[str]:
    """Nothing happened that nobody has said."""
    perhaps = {(said.kind, said.about) for said in crowd.said if said.verdict in PERHAPS and said.principal != STRANGER}
    places = {call_id: update.place for (call_id, _), update in story.dispatched.items()}
    for call_id, ended in story.ended.items():
        if ended.outcome is Outcome.OK and places[call_id] == "client" and ("answer", call_id) not in perhaps:
            yield f"call {call_id} has an answer that nobody gave"
        if ended.outcome is Outcome.DENIED and ("deny", call_id) not in perhaps:
            yield f"call {call_id} was denied by nobody"
        if ended.outcome is Outcome.TIMED_OUT:
            attempts = [update for (call, _), update in story.dispatched.items() if call == call_id]
            if attempts and ended.at < (attempts[-1].deadline or 0):
                yield f"call {call_id} timed out before its time"
    for call_id in story.approved:
        if ("approve", call_id) not in perhaps:
            yield f"call {call_id} was approved by nobody"


def _starts(books: Books, crowd: Crowd) -> Iterator[str]:
    for key, runs in crowd.started.items():
        if len(runs) != 1:
            yield f"{key} is {len(runs)} runs"
        for run in runs:
            if run not in books.runs:
                yield f"{key} was started, and is not there"


def _bodies(story: Story, stage: Stage) -> Iterator[str]:
    """Bodies were entered only by dispatches in the books, once each, and at most one of a call that is `once`."""
    for (call_id, attempt), times in stage.entered.items():
        if (call_id, attempt) not in story.dispatched:
            yield f"attempt {attempt} of call {call_id} was made, and is not in the books"
        if times > 1:
            yield f"attempt {attempt} of call {call_id} was made {times} times"
        if attempt > 1 and stage.tools[call_id] in ONCE:
            yield f"call {call_id} of {stage.tools[call_id]!r} was made again"
    for call_id, ended in story.ended.items():
        if ended.outcome is Outcome.OK and ended.tool in stage.tools.values() and call_id not in stage.given:
            yield f"call {call_id} has a result of nothing"
        given = stage.given.get(call_id)
        if ended.outcome is Outcome.OK and given is not None and json.decode(ended.result) not in given:
            yield f"call {call_id} has a result that its tool did not give"


def _requests(books: Books, stage: Stage) -> Iterator[str]:
    """The model is asked as often as the books say that it is, at most."""
    asked: dict[tuple[str, int], int] = {}
    for rows in books.log.values():
        for row in rows:
            for update in json.decode(row.updates, type=list[Update]) if row.updates else ():
                if isinstance(update, TurnStarted):
                    asked[row.run, update.turn] = asked.get((row.run, update.turn), 0) + 1
    for (run, turn), times in stage.asked.items():
        if times > asked.get((run, turn), 0):
            yield f"turn {turn} of run {run} was asked {times} times, and {asked.get((run, turn), 0)} are in the books"


def _watchers(story: Story, crowd: Crowd) -> Iterator[str]:
    for watched in crowd.watched:
        yield from watched.broken
        stored = story.updates.get(watched.key, [])
        if watched.told != stored:
            yield f"a watcher was told {len(watched.told)} updates of {len(stored)}, or others"
