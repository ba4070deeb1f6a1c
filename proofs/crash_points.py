"""Dies at every point of a run, one after the other, and each time a fresh process brings the run to its end.

A point is before and after every call of the store, and before and after whatever is done outside: a request to the
model, the body of a tool, an acknowledgement. For each of them a run is started that dies just there, until there is no
such point any more. `python -m proofs.crash_points --store sqlite` (or `memory`, or `postgres`: a server of its own).
"""

import argparse
import asyncio
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec import Struct, json

from farhand import Agent, CallContext, tool
from farhand.core.call import CallState, Outcome
from farhand.core.errors import StoreAway
from farhand.core.limits import Limits
from farhand.core.updates import CallEnded, CallExecuting
from farhand.durable import Runner, Timing
from farhand.durable.record import Toolsets, revive
from farhand.durable.runner import thread_key
from farhand.models.base import Request
from farhand.models.scripted import Scripted, Use
from farhand.runner.clock import SystemClock
from farhand.stores import open_store
from farhand.stores.base import Ring, Store
from farhand.stores.memory import MemoryStore
from farhand.testing.audit import audit, books
from farhand.testing.loop import VirtualLoop
from proofs.server import postgres

EFFECTS = ("once", "pure", "idempotent")
TURNS = 4
ANSWER = 42
PATIENCE = 20.0
LEASE = 36_000.0
SEEN = frozenset({"enter", "beat", "expire", "held", "claim", "time", "streamed"})
"""Calls of the store that are not about any one run. They are made once before the run begins."""
LIMITS = Limits(server_timeout=None, client_timeout=None)


class Fate:
    """Counts the points of one life, and ends it at one of them: whatever comes to a point then stays there."""

    def __init__(self, dies_at: int = 0) -> None:
        self.points: list[str] = []
        self.died = False
        """Whether it came to the point where it was to die."""
        self.dead = asyncio.Event()
        self.buried = False
        self._dies_at = dies_at
        self._never = asyncio.Event()

    async def point(self, name: str) -> None:
        """Something is about to happen, or has just happened."""
        if not self.dead.is_set():
            self.points.append(name)
            if len(self.points) != self._dies_at:
                return
            self.died = True
            self.dead.set()
        if self.buried:
            raise StoreAway("this process is dead")
        await self._never.wait()

    @property
    def writes(self) -> bool:
        """Whether it waits for a write: the store may have it, and the process does not know yet."""
        return self.points[-1] == "before write"


class Pointed:
    """A store whose every call has a point before and one after."""

    def __init__(self, inner: Store, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate
        self.looked = asyncio.Event()
        """The process has looked for work."""
        self.on_ring: Callable[[Ring], None] | None = None

    async def open(self, on_ring: Callable[[Ring], None] | None = None) -> None:
        """It is open already."""

    async def close(self) -> None:
        """Whoever opened it closes it."""

    def __getattr__(self, name: str) -> Any:
        ask = getattr(self._inner, name)

        async def asked(*args: Any) -> Any:
            if name in SEEN:
                if self._fate.dead.is_set():
                    await self._fate.point(name)
                value = await ask(*args)
                if name == "claim":
                    self.looked.set()
                return value
            await self._fate.point(f"before {name}")
            value = await ask(*args)
            await self._fate.point(f"after {name}")
            return value

        return asked


class LaterClock(SystemClock):
    """The time of day, some leases later."""

    ahead = 0

    def now(self) -> int:
        """The time."""
        return super().now() + self.ahead


class Outside:
    """What was really done, and what the client knows; it outlives every process."""

    def __init__(self, effect: str, thread: str) -> None:
        self.effect = effect
        self.thread = thread
        self.asked: Counter[int] = Counter()
        self.bodies: dict[str, list[str]] = {"charge": [], "book": []}
        """The keys under which the bodies were done."""
        self.acknowledged: dict[str, str] = {}
        self.seen: dict[str, str] = {}
        self.in_doubt: dict[str, int] = {"charge": -1, "book": -1}
        """Bodies that were done when the process died while the books said that the call was executing; -1: it was
        not."""

    def agent(self, fate: Fate) -> Agent[Any]:
        """The agent, as one life has it."""

        def reply(request: Request) -> Use | str:
            self.asked[request.turn] += 1
            return (Use("charge"), Use("ask"), Use("book"), "done")[request.turn - 1]

        async def body(context: CallContext) -> int:
            await fate.point(f"before {context.tool}")
            self.bodies[context.tool].append(context.call_id)
            await fate.point(f"after {context.tool}")
            return 7

        @tool(effect=self.effect)  # pyright: ignore[reportArgumentType]
        async def charge(context: CallContext) -> int:
            """Charge."""
            return await body(context)

        @tool(needs_approval=True)
        async def book(context: CallContext) -> int:
            """Book, once, after a yes."""
            return await body(context)

        ask = tool.define("ask", input={"type": "object"}, output=int, description="Ask the person.")
        return Agent(PointedModel(Scripted(reply), fate), tools=[charge, ask, book], limits=LIMITS)


class PointedModel:
    """A model with a point before the request and one when the whole reply is there."""

    name = "pointed"

    def __init__(self, model: Scripted, fate: Fate) -> None:
        self._model = model
        self._fate = fate

    async def stream(self, request: Request) -> Any:
        """The reply."""
        await self._fate.point("before model")
        pieces = [piece async for piece in self._model.stream(request)]
        await self._fate.point("after model")
        for piece in pieces:
            yield piece


# One process, and the client that talks to it


async def live(outside: Outside, inner: Store, look: Store, fate: Fate) -> None:
    """One life: to the end of the run, or to the point where it dies."""
    store = Pointed(inner, fate)
    timing = Timing(lease=LEASE, beat=LEASE / 4, tick=LEASE / 4, check=LEASE / 4)
    runner = Runner(outside.agent(fate), store=store, timing=timing, clock=LaterClock())  # pyright: ignore
    story = asyncio.create_task(_client(outside, runner, store, look, fate))
    death = asyncio.create_task(fate.dead.wait())
    done, _ = await asyncio.wait((story, death), timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    if story in done or not done:
        fate.dead.set()
    fate.buried = True
    await _bury({story, death})
    if story in done:
        await story
    if not done:
        raise TimeoutError(f"nothing happens after {fate.points[-3:]}")


async def _bury(own: set[asyncio.Task[Any]]) -> None:
    """Let what is left of the process notice; no store takes anything from it any more."""
    quiet = 0
    for _ in range(1000):
        left = [task for task in asyncio.all_tasks() if task in own or _is_ours(task)]
        left = [task for task in left if task is not asyncio.current_task()]
        quiet = 0 if left else quiet + 1
        if quiet > 5:
            return
        for task in left:
            task.cancel()
        await asyncio.sleep(0)
    raise AssertionError("they do not end")


def _is_ours(task: asyncio.Task[Any]) -> bool:
    """Whether a task is the runner's, and not the store's, which goes on as a server would."""
    code = getattr(task.get_coro(), "cr_code", None)
    file = "" if code is None else code.co_filename
    return file == __file__ or "/durable/" in file or "/runner/" in file


async def _client(outside: Outside, runner: Runner, store: Pointed, look: Store, fate: Fate) -> None:
    await runner.open()
    await store.looked.wait()
    if "start" not in outside.acknowledged:
        run = await _say(fate, lambda: runner.start("go", thread=outside.thread, key=outside.thread))
        outside.acknowledged["start"] = run.id
    for name, say in (
        ("ask", lambda call: runner.answer(call, ANSWER)),
        ("book", lambda call: runner.approve(call)),
    ):
        if name not in outside.acknowledged:
            call = outside.seen.get(name) or await _awaited(outside, look, fate, name)
            outside.seen[name] = call
            await _say(fate, lambda call=call, say=say: say(call))
            outside.acknowledged[name] = call
    await _until(lambda: _ended(outside, look))


async def _say(fate: Fate, say: Callable[[], Awaitable[Any]]) -> Any:
    """What is said is acknowledged when this returns."""
    value = await say()
    await fate.point("acknowledged")
    return value


async def _awaited(outside: Outside, look: Store, fate: Fate, name: str) -> str:
    """The call, as soon as the process knows as well that it waits: how far it is then does not depend on chance."""
    key = thread_key("local", outside.thread)

    async def waits() -> str | None:
        if fate.writes:
            return None
        found = [row.id for row in await look.waiting("local", key, 10) if row.tool == name]
        return found[0] if found else None

    return await _until(waits)


async def _ended(outside: Outside, look: Store) -> bool | None:
    row = await look.run_under("local", outside.thread)
    return True if row is not None and row.state not in ("running", "ready", "waiting") else None


async def _until(what: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    while (found := await what()) is None:  # noqa: ASYNC110  the store is asked, which does not ring here
        await asyncio.sleep(0.002)
    return found


# What has to be true at the end


async def note_doubt(outside: Outside, look: Store) -> None:
    """At death: which calls on the server were handed out and have no result."""
    row = await look.run_under("local", outside.thread)
    stored = None if row is None else await look.load(row.id)
    if stored is not None:
        revived = await revive(stored, Toolsets(), look.toolset)
        for call in revived.run.open_calls:
            if call.state is CallState.EXECUTING and call.tool in outside.bodies:
                outside.in_doubt[call.tool] = len(outside.bodies[call.tool])


async def problems(outside: Outside, look: Store, deaths: int) -> list[str]:
    """What is not as the table of guarantees says."""
    found = await audit(look, workers=())
    read = await books(look)
    updates = read.updates(thread_key("local", outside.thread))
    ended = {update.tool: update for update in updates if isinstance(update, CallEnded)}
    for name, keys in outside.bodies.items():
        effect = "once" if name == "book" else outside.effect
        found += _body(name, effect, keys, ended.get(name), outside.in_doubt[name])
    done = sum(isinstance(update, CallExecuting) and update.tool in outside.bodies for update in updates)
    if sum(map(len, outside.bodies.values())) > done:
        found.append("a body was done that the books do not know")
    ask = ended.get("ask")
    if ask is None or ask.outcome is not Outcome.OK or json.decode(ask.result) != ANSWER:
        found.append(f"the answer does not hold: {ask}")
    if len(ended) != TURNS - 1 or set(outside.asked) != set(range(1, TURNS + 1)):
        found.append(f"not everything was done: {sorted(ended)}, {dict(outside.asked)}")
    if sum(outside.asked.values()) > TURNS + deaths:
        found.append(f"the model was asked {sum(outside.asked.values())} times")
    runs = [run.id for run in read.runs.values() if run.key == outside.thread]
    if runs != [outside.acknowledged["start"]]:
        found.append(f"{outside.acknowledged['start']} was acknowledged, and there is {runs}")
    return found


def _body(name: str, effect: str, keys: list[str], ended: CallEnded | None, in_doubt: int) -> list[str]:
    outcome = None if ended is None else ended.outcome
    if effect == "once":
        wanted = (1, Outcome.OK) if in_doubt < 0 else (in_doubt, Outcome.UNKNOWN)
    else:
        wanted = (1 if in_doubt < 0 else in_doubt + 1, Outcome.OK)
    found = [] if (len(keys), outcome) == wanted else [f"{name} is {(len(keys), outcome)}, and not {wanted}"]
    return found + ([f"{name} was done under {set(keys)}"] if len(set(keys)) > 1 else [])


# One crash, or two


class Place:
    """Where the store is, for one life after the other.

    A fresh process opens the store anew. On a server it takes over the connections of the one before it: what that one
    has asked for is done all the same, and to connect takes longer than to live.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._memory = MemoryStore()
        self._kept: list[Store] = []

    async def open(self) -> Store:
        """As a fresh process does."""
        if self._kept:
            return self._kept.pop()
        store: Store = MemoryStore(self._memory) if self.url == "memory:" else open_store(self.url)
        await store.open(None)
        return store

    async def close(self, store: Store) -> None:
        """As the system does when a process is gone."""
        if self.url.startswith("postgresql:"):
            self._kept.append(store)
        else:
            await store.close()

    async def leave(self) -> None:
        """Nobody comes any more."""
        for store in self._kept:
            await store.close()


class Crashed(Struct):
    """What one story of dying came to."""

    at: tuple[int, ...]
    name: str
    problems: list[str]
    deaths: int


async def crash(place: Place, effect: str, at: tuple[int, ...]) -> Crashed:
    """Die at a point of the first life, at one of the second, and so on; the last life goes to the end."""
    thread = f"{effect}-{'-'.join(map(str, at))}"
    outside = Outside(effect, thread)
    look = await place.open()
    names: list[str] = []
    deaths = 0
    broken: list[str] = []
    try:
        for dies_at in (*at, 0):
            fate = Fate(dies_at)
            inner = await place.open()
            try:
                await live(outside, inner, look, fate)
            finally:
                await place.close(inner)
            if not fate.died:
                break
            deaths += 1
            names.append(fate.points[-1])
            await note_doubt(outside, look)
            LaterClock.ahead += round(LEASE * 2000)
        await look.expire(LaterClock().now())
        broken = await problems(outside, look, len(at))
    except Exception as error:  # noqa: BLE001  a run that does not come to its end is what is looked for
        broken.append(f"{type(error).__name__}: {error}")
    finally:
        await look.prune(LaterClock().now() + 1, 1000)
        await place.close(look)
    return Crashed(at, " and ".join(names), broken, deaths)


class Survived(Struct):
    """Of so many points (and pairs of them), those that were not survived."""

    points: int
    broken: list[Crashed]

    def short(self) -> str:
        """For one line."""
        return f"{self.points - len(self.broken)} of {self.points}"


async def enumerate_all(url: str, effect: str, *, twice: int = 0) -> Survived:
    """Every point, one after the other; with `twice`, each of them with every `twice`-th point after it.

    Which points there are may depend on how fast a store is. So this goes on until lives come to their end, three times
    in a row, before they come to the point where they should have died.
    """
    place = Place(url)
    survived = Survived(0, [])

    async def die(*at: int) -> bool:
        crashed = await crash(place, effect, at)
        died = crashed.deaths == len(at)
        survived.points += died
        survived.broken += [crashed] if crashed.problems else []
        return died

    async def die_in_the_end(*at: int) -> bool:
        return await die(*at) or await die(*at) or await die(*at)

    first = 1
    while await die_in_the_end(first):
        second = 1 + first % twice if twice else 0
        while second and await die_in_the_end(first, second):
            second += twice
        first += 1
    await place.leave()
    return survived


def in_virtual_time(work: Coroutine[Any, Any, Any]) -> Any:
    """For a store in memory nothing has to be waited for."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.bury()
        loop.close()


def die_everywhere(store: str, *, twice: int = 0) -> dict[str, Survived]:
    """All points of all effects on a store, by the name of its kind or by its URL."""
    if store == "postgres":
        with postgres() as server:
            return die_everywhere(server.url(), twice=twice)
    with tempfile.TemporaryDirectory() as folder:
        url = {"memory": "memory:", "sqlite": f"sqlite:{folder}/runs.db"}.get(store, store)
        run: Callable[[Coroutine[Any, Any, Survived]], Survived] = in_virtual_time if store == "memory" else asyncio.run
        return {effect: run(enumerate_all(url, effect, twice=twice)) for effect in EFFECTS}


def main() -> int:
    """Die as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m proofs.crash_points", description=__doc__)
    parser.add_argument("--store", default="memory", help="memory, sqlite, postgres, or a URL")
    parser.add_argument("--twice", type=int, default=0, help="die twice, the second time at every so manieth point")
    chosen = parser.parse_args()
    logging.getLogger("farhand").setLevel(logging.CRITICAL)
    survived = die_everywhere(chosen.store, twice=chosen.twice)
    for effect, found in survived.items():
        sys.stdout.write(f"{effect}: {found.short()} crash points survived on {chosen.store}\n")
        for crashed in found.broken[:5]:
            sys.stdout.write(f"  {crashed.at} {crashed.name}: {crashed.problems}\n")
    return int(any(found.broken for found in survived.values()))


if __name__ == "__main__":
    sys.exit(main())
