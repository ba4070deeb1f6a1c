"""Clients that come and go, in a world whose processes die and freeze and whose store is slow, away and in doubt.

Calls have no deadline here: one that nobody is told to miss would wait for ever.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import pytest

from farhand import Agent, Limits, scripted, tool
from farhand.core.call import Outcome
from farhand.core.errors import RefusedAnswer, StoreError
from farhand.core.messages import ToolMessage, UserMessage
from farhand.durable import Runner
from farhand.durable.attachment import Attachment
from farhand.durable.names import thread_key
from farhand.durable.standing import Standing
from farhand.models import Request, Turn, Use
from farhand.testing.faulty import Faults
from farhand.testing.world import Process, Unreachable, World

GRACE = 20.0
THREADS = ("one", "two", "three")
AWAY = (Unreachable, StoreError, TimeoutError)
WEATHER = [
    Faults(),
    Faults(slow=0.1, deaf=0.8),
    Faults(slow=0.02, away=0.05, doubt=0.05, late=0.02, deaf=0.2),
]
ANYTHING: Any = {"type": "object"}


def agents() -> list[Agent[Any]]:
    """An agent that asks clients for this and that in two turns."""

    def reply(request: Request) -> Turn | str:
        said = 0
        for message in reversed(request.messages):
            if isinstance(message, UserMessage):
                break
            said += not isinstance(message, ToolMessage)
        return Turn("", Use("once"), Use("again"), Use("retried")) if said < 2 else "done"

    tools = (
        tool.define("once", input=ANYTHING, description="Once."),
        tool.define("again", input=ANYTHING, description="Again.", effect="idempotent"),
        tool.define("retried", input=ANYTHING, description="Retried.", effect="pure", absent="retry"),
    )
    return [Agent(scripted(reply), tools=tools, limits=Limits(grace=GRACE, client_timeout=None))]


class Client:
    """Somebody who is connected to one process after the other."""

    def __init__(self, world: World, name: str, random: Random) -> None:
        self.world = world
        self.name = name
        self.random = random
        self.answered: list[str] = []
        self._connected: tuple[Process, object, Attachment] | None = None

    async def ask(self, what: Callable[[Runner], Awaitable[Any]]) -> Any:
        up = [process for process in self.world.processes if process.up] or list(self.world.processes)
        async with asyncio.timeout(5):
            return await self.random.choice(up).ask(what)

    @property
    def connected(self) -> bool:
        """Whether the process that it is connected to has not died since."""
        if self._connected is None:
            return False
        process, life, attachment = self._connected
        return process.up and process._life is life and not attachment.closed

    async def connect(self, thread: str | None) -> None:
        """Be there somewhere, however often that takes. An attachment that nobody heard of ends with its process."""
        while not self.connected:
            process = self.random.choice(self.world.processes)

            wanted = asyncio.Event()
            wanted.set()
            try:
                async with asyncio.timeout(5):
                    attachment = await process.ask(partial(self._attach, thread, wanted))
            except AWAY:
                wanted.clear()
                await asyncio.sleep(0.3)
            except asyncio.CancelledError:
                wanted.clear()
                raise
            else:
                self._connected = (process, process._life, attachment)

    async def _attach(self, thread: str | None, wanted: asyncio.Event, runner: Runner) -> Attachment:
        attachment = await runner.attach(self.name, ["*"], thread=thread)
        if not wanted.is_set():  # whoever asked has hung up meanwhile
            await attachment.close()
        return attachment

    def leave(self) -> None:
        """Be cut off."""
        if self.connected and self._connected is not None:
            process, _, attachment = self._connected
            process.spawn(lambda _: attachment.close())
        self._connected = None

    async def waiting(self) -> list[Standing]:
        try:
            return await self.ask(lambda runner: runner.waiting())
        except AWAY:
            return []

    async def claim(self, call: Standing) -> bool:
        """Only who is connected takes a call up; whoever is not will not be missed."""
        key = thread_key("local", call.thread)

        async def claim(runner: Runner) -> None:
            if self.name not in {row.client for row in await runner.store.clients("local", key)}:
                raise Unreachable("not connected")
            await runner.claim(call.record.id, self.name)

        for _ in range(20):
            try:
                await self.ask(claim)
            except AWAY:
                await asyncio.sleep(0.2)
            except RefusedAnswer:
                return False
            else:
                return True
        return False

    async def release(self, call: str) -> None:
        """Give it back, and not insist on it."""
        with suppress(RefusedAnswer, *AWAY):
            await self.ask(lambda runner: runner.release(call, self.name))

    async def answer(self, call: str) -> None:
        while True:
            try:
                await self.ask(lambda runner: runner.answer(call, 1, client=self.name))
            except AWAY:
                await asyncio.sleep(0.2)
            else:
                self.answered.append(call)
                return


async def fickle(client: Client, seconds: float) -> None:
    """Come and go, sometimes work, and sometimes give a call back."""
    end = client.world.loop.time() + seconds
    while client.world.loop.time() < end:
        await client.connect(client.random.choice((*THREADS, None)))
        await asyncio.sleep(client.random.uniform(0, 6))
        for call in client.random.sample(waiting := await client.waiting(), k=min(2, len(waiting))):
            if not await client.claim(call):
                continue
            mood = client.random.random()
            await asyncio.sleep(client.random.uniform(0, 8))
            if mood < 0.5:
                with suppress(RefusedAnswer):
                    await client.answer(call.record.id)
            elif mood < 0.8:
                await client.release(call.record.id)
        client.leave()
        await asyncio.sleep(client.random.uniform(0, 10))


async def loyal(client: Client, thread: str, seconds: float) -> None:
    """Stay, come back at once after every death, and answer everything that was taken up, if late."""
    end = client.world.loop.time() + seconds

    async def stay() -> None:
        while True:
            await client.connect(thread)
            await asyncio.sleep(0.2)

    staying = asyncio.ensure_future(stay())
    while client.world.loop.time() < end:
        mine = [call for call in await client.waiting() if call.thread == thread]
        for call in mine[:1]:
            if await client.claim(call):
                await asyncio.sleep(1.5 * GRACE)
                await client.answer(call.record.id)
        await asyncio.sleep(0.5)
    staying.cancel()
    client.leave()


async def misfortunes(world: World, random: Random, seconds: float) -> None:
    end = world.loop.time() + seconds
    while world.loop.time() < end:
        await asyncio.sleep(random.uniform(3, 15))
        process = random.choice(world.processes)
        if random.random() < 0.5:
            process.kill()
            await asyncio.sleep(random.uniform(0, 3))
            await process.start()
        else:
            process.freeze()
            await asyncio.sleep(random.uniform(0, 6))
            process.thaw()


async def begin(world: World, random: Random, thread: str) -> None:
    """Have a run, and another one when it is over."""
    for number in range(2):
        key, run = f"{thread} {number}", None
        while run is None or not await _over(world, random, run):
            process = random.choice(world.processes)
            try:
                async with asyncio.timeout(5):
                    run = await process.ask(partial(_start, thread, key))
            except AWAY:
                await asyncio.sleep(0.5)


async def _start(thread: str, key: str, runner: Runner) -> Any:
    return await runner.start("go", thread=thread, key=key, attended=True)


async def _over(world: World, random: Random, run: Any) -> bool:
    await asyncio.sleep(2)
    rows = [row for row in await world.store.runs("", "", 1000) if row.id == run.id]
    return rows[0].state not in ("waiting", "ready", "running")


@pytest.mark.parametrize("seed", range(9))
def test_nobody_is_missed_who_is_there_and_whoever_is_gone_is_missed_in_the_end(seed: int) -> None:
    random = Random(f"presence {seed}")
    weather = WEATHER[seed % len(WEATHER)]
    faults = Faults(slow=weather.slow, away=weather.away, doubt=weather.doubt, late=weather.late, deaf=weather.deaf)
    world = World(seed, agents, processes=2 + seed % 2, faults=faults)

    async def story(world: World) -> None:
        clients = [Client(world, f"client {number}", random) for number in range(3)]
        faithful = Client(world, "faithful", random)
        runs = [asyncio.ensure_future(begin(world, random, thread)) for thread in THREADS]
        await asyncio.gather(
            misfortunes(world, random, 150),
            loyal(faithful, THREADS[0], 150),
            *(fickle(client, 150) for client in clients),
        )
        # Everybody has gone; whatever waits for a client finds none.
        await asyncio.wait_for(asyncio.gather(*runs), 900)
        await world.rest()
        rows = await world.store.runs("", "", 1000)
        assert [row.state for row in rows] == ["done"] * 6
        assert world.store._tables.clients == {}
        for call in faithful.answered:
            standing = await world.processes[0].ask(lambda runner, call=call: runner.call(call))
            assert standing.record.outcome is Outcome.OK
        assert not await world.problems()

    world.run(story)
