"""Those outside: people and clients who talk to whichever process is there, watch, repeat themselves, and lie.

What they said and what they were told is kept, to be held against the books at the end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from random import Random
from typing import Any

from msgspec import Struct

from farhand.calls import Call
from farhand.core.errors import RefusedAnswer, StoreError
from farhand.core.updates import CallEnded, ReplyEnded, TextStreamed, Update
from farhand.durable import Runner
from farhand.durable.position import LIVE, Position
from farhand.durable.runner import thread_key
from farhand.testing.world import Process, Unreachable, World

STRANGER = "eve"
DOUBT = "doubt"
"""Whoever said it does not know whether it counts."""
COUNTED = "counted"
REPEATED = "repeated"
FINALE = "finale"
LATECOMERS = 4
"""So many begin to watch each thread only at the very end."""
MANNERS = ((8, 2, 3, 1, 1, 1, 1, 4, 1), (1, 1, 1, 0, 0, 0, 0, 12, 0))
"""How likely people are to answer in one way or another; some worlds are full of those who are just in time, or not."""
AWAY = (Unreachable, StoreError, TimeoutError)

Say = Callable[[Runner, str], Awaitable[Any]]


class Said(Struct):
    """Something that was said about a call or a run, and what came back."""

    kind: str
    about: str
    value: Any
    principal: str
    verdict: str = DOUBT
    at: float = 0.0


class Connection:
    """One time that somebody watches: what he is told has to follow what he was told before."""

    def __init__(self, watched: "Watched", turn: int = 0, text: str = "") -> None:
        self.watched = watched
        self.open = True
        self.turn = turn
        self.text = text

    @property
    def position(self) -> Position:
        """How far it is, to go on from there: also in the middle of a text."""
        return Position(self.watched.last, self.turn, len(self.text))

    def hear(self, update: Update) -> None:
        """The next update."""
        watched = self.watched
        if not self.open:
            return
        if type(update) is TextStreamed:
            self._hear_text(update)
        elif type(update) not in LIVE and not (type(update) is CallEnded and update.seq == watched.last):
            if update.seq != watched.last + 1:
                watched.broken.append(f"{update.seq} was told after {watched.last}")
            if type(update) is ReplyEnded and self.turn == update.turn and not update.text.startswith(self.text):
                watched.broken.append(f"{self.text!r} was told before {update.text!r}")
            self.turn, self.text = 0, ""
            watched.last = update.seq
            watched.told.append(update)

    def _hear_text(self, update: TextStreamed) -> None:
        if self.turn != update.turn or update.offset == 0:
            self.turn, self.text = update.turn, ""
        if update.offset != len(self.text):
            self.watched.broken.append(f"text from {update.offset} was told after {len(self.text)} characters")
        self.text += update.text


class Watched:
    """What one watcher of a thread was told, all in all. He comes back with the last number he has."""

    def __init__(self, principal: str, thread: str) -> None:
        self.principal = principal
        self.thread = thread
        self.key = thread_key(principal, thread)
        self.last = 0
        self.told: list[Update] = []
        self.broken: list[str] = []


class Crowd:
    """Everybody outside."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = Random(f"crowd {seed}")  # noqa: S311
        self.manners = self.random.choice(MANNERS)
        self.said: list[Said] = []
        self.calls: dict[str, str] = {}
        """Every call that was ever seen, with its principal."""
        self.runs: dict[str, str] = {}
        self.started: dict[str, set[str]] = {}
        self.watched: list[Watched] = []
        self.over = False
        self._values = 0
        self._tasks: list[asyncio.Task[Any]] = []

    # Reaching somebody

    def anybody(self) -> Process:
        """Some process; whoever is not up is not chosen if another one is."""
        up = [process for process in self.world.processes if process.up]
        return self.random.choice(up or list(self.world.processes))

    async def ask(self, what: Callable[[Runner], Awaitable[Any]]) -> Any:
        """Have some process do something, with some patience."""
        async with asyncio.timeout(self.random.uniform(1.0, 6.0)):
            return await self.anybody().ask(what)

    def beside(self, work: Any) -> None:
        """Do something beside everything else."""
        self._tasks.append(asyncio.ensure_future(work))

    async def leave(self) -> None:
        """Nobody says anything more. Raises whatever went wrong for somebody."""
        self.over = True
        while self._tasks:
            await self._tasks.pop(0)

    async def say(self, kind: str, about: str, value: Any, principal: str, what: Say) -> None:
        """Say something until it is known whether it counts, or for a few times."""
        for _ in range(self.random.choice((1, 1, 4))):
            said = Said(kind, about, value, principal)
            self.said.append(said)
            try:
                receipt = await self.ask(lambda runner: what(runner, principal))
            except AWAY:
                await asyncio.sleep(self.random.random() * 0.5)
                continue
            except RefusedAnswer as error:
                said.verdict = error.code
            else:
                said.verdict = REPEATED if receipt is False or getattr(receipt, "repeated", False) else COUNTED
            said.at = self.world.loop.time()
            return

    # Runs

    async def converse(self, principal: str, thread: str) -> None:
        """Start some runs in a thread, one after the other or one in place of the other."""
        for number in range(self.random.choice((1, 2))):
            key = f"{principal}-{thread}-{number}"
            copies = self.random.choice((1, 1, 2))
            await asyncio.gather(*(self._start(principal, thread, key) for _ in range(copies)))
            await asyncio.sleep(self.random.uniform(0.5, 9.0))

    async def _start(self, principal: str, thread: str, key: str) -> None:
        while not self.over or key.endswith(FINALE):
            try:
                run = await self.ask(lambda runner: runner.start(key, thread=thread, principal=principal, key=key))
            except AWAY:
                await asyncio.sleep(self.random.random())
                continue
            self.started.setdefault(key, set()).add(run.id)
            self.runs[run.id] = principal
            return

    # Answers

    async def decide(self, principal: str) -> None:
        """See what waits, and say something about it."""
        while not self.over:
            await asyncio.sleep(self.random.uniform(0.05, 1.0))
            try:
                pending = await self.ask(lambda runner: runner.pending(principal=principal))
            except AWAY:
                continue
            for call in pending:
                self.calls[call.id] = principal
                if self.random.random() < 0.7:
                    self.beside(self._approve(call) if call.needs_approval else self._answer(call))
            if self.calls and self.random.random() < 0.3:
                self.beside(self._gossip(self.random.choice(list(self.calls))))
            if self.runs and self.random.random() < 0.02:
                await self._cancel(self.random.choice(list(self.runs)))

    def value(self) -> int:
        """One that nobody has used."""
        self._values += 1
        return self._values

    async def answer(self, call: str, value: Any, principal: str | None = None) -> None:
        """Answer a call."""
        who = self.calls[call] if principal is None else principal
        await self.say("answer", call, value, who, lambda runner, who: runner.answer(call, value, principal=who))

    async def _answer(self, call: Call[Any, Any]) -> None:
        one, other = self.value(), self.value()
        match self.random.choices(range(9), self.manners)[0]:
            case 0:
                await self.answer(call.id, one)
            case 1:
                await asyncio.gather(self.answer(call.id, one), self.answer(call.id, one))
            case 2:
                await asyncio.gather(self.answer(call.id, one), self.answer(call.id, other))
            case 3:
                await self.say(
                    "fail",
                    call.id,
                    one,
                    self.calls[call.id],
                    lambda runner, who: runner.fail(call.id, f"failed {one}", principal=who, retryable=one % 2 == 0),
                )
            case 4:
                await self.answer(call.id, one, STRANGER)
            case 5:
                await self.say(
                    "claim",
                    call.id,
                    one,
                    self.calls[call.id],
                    lambda runner, who: runner.claim(call.id, f"client {one}", principal=who),
                )
                await self.answer(call.id, one)
            case 6:
                await self.say(
                    "cancel_call",
                    call.id,
                    one,
                    self.calls[call.id],
                    lambda runner, who: runner.cancel_call(call.id, principal=who),
                )
            case 7:
                await self._just_in_time(call, one)
            case _:
                await self.answer(call.id, "not a number")

    async def _just_in_time(self, call: Call[Any, Any], value: int) -> None:
        """At the very moment when its time is over, or a little before or after."""
        deadline = call.record.deadline
        if deadline is not None:
            early = self.world.faults.slow * self.random.uniform(-1.0, 4.0)
            await asyncio.sleep(max(0.0, deadline / 1000 - self.world.loop.time() - early))
        await self.answer(call.id, value)

    async def _approve(self, call: Call[Any, Any]) -> None:
        def yes(who: str) -> Awaitable[None]:
            return self.say("approve", call.id, None, who, lambda runner, who: runner.approve(call.id, principal=who))

        def no() -> Awaitable[None]:
            return self.say("deny", call.id, None, who, lambda runner, who: runner.deny(call.id, principal=who))

        who = self.calls[call.id]
        match self.random.choices(range(5), (8, 2, 2, 1, 1))[0]:
            case 0:
                await yes(who)
            case 1:
                await asyncio.gather(yes(who), yes(who))
            case 2:
                await asyncio.gather(yes(who), no())
            case 3:
                await no()
            case _:
                await yes(STRANGER)

    async def _gossip(self, call: str) -> None:
        """Something about a call of long ago: again, otherwise, or by somebody who has no say."""
        values = [said.value for said in self.said if said.about == call and said.kind == "answer"]
        old = self.random.choice(values) if values else self.value()
        match self.random.randrange(4):
            case 0 | 1:
                await self.answer(call, old)
            case 2:
                await self.answer(call, self.value())
            case _:
                await self.answer(call, old, STRANGER)

    async def _cancel(self, run: str) -> None:
        who = self.random.choice((self.runs[run], self.runs[run], STRANGER))
        await self.say("cancel", run, None, who, lambda runner, who: runner.cancel(run, principal=who))

    # Watchers

    async def watch(self, watched: Watched) -> None:
        """Watch a thread, now here and now there."""
        self.watched.append(watched)
        connection: Connection | None = None
        while not self.over:
            connection, task = self.connect(watched, self.random.choice((connection, None)))
            await asyncio.sleep(self.random.uniform(0.1, 4.0))
            connection.open = False
            if task is not None and self.random.random() < 0.7:
                task.cancel()

    def connect(
        self, watched: Watched, before: Connection | None = None
    ) -> tuple[Connection, "asyncio.Task[None] | None"]:
        """Watch in some process, as long as that goes well; from a number, or from where `before` was in the text."""
        connection = Connection(watched) if before is None else Connection(watched, before.turn, before.text)

        async def listen(runner: Runner) -> None:
            after = connection.position
            watching = runner.watch(watched.thread, principal=watched.principal, after=after)
            with suppress(StoreError):  # he comes back
                async with aclosing(watching) as updates:
                    async for update in updates:
                        connection.hear(update)

        return connection, self.anybody().spawn(listen)

    async def finale(self, threads: Sequence[tuple[str, str]]) -> None:
        """All is well again. Whoever begins to watch while a last run is under way misses nothing of it either."""

        async def join(watched: Watched) -> None:
            await asyncio.sleep(self.random.uniform(0.0, 0.5))
            self.connect(watched)

        for principal, thread in threads:
            self.beside(self._start(principal, thread, f"{principal}-{thread}-{FINALE}"))
        self.watched += [Watched(*place) for place in threads for _ in range(LATECOMERS)]
        for watched in self.watched:
            self.beside(join(watched))
        await self.leave()
