"""Writes the store that every later version has to read: `python -m tests.durable.golden.make`.

Once a format was released, its file stays as it is, and this one writes the next.
"""

import asyncio
import io
from pathlib import Path
from typing import Any

from msgspec import json, structs

from farhand import Agent, Approve, CallContext, Limits, ToolError, scripted, tool
from farhand.core.messages import ToolMessage, UserMessage
from farhand.core.run import Run
from farhand.durable import Runner, Timing
from farhand.durable.record import Toolsets, revive
from farhand.models import Request, Turn, Use
from farhand.stores import transfer
from farhand.stores.base import FORMAT, Store
from farhand.stores.memory import MemoryStore
from farhand.testing.clock import VirtualClock
from tests.durable.story import kill

HERE = Path(__file__).parent
STORE = HERE / f"format-{FORMAT}.jsonl"
RUNS = HERE / f"format-{FORMAT}.runs.json"
TIMING = Timing(lease=1000.0, beat=1.0, tick=0.02, check=0.02, drain=0.1)

WORD = {"type": "object", "properties": {"word": {"type": "string"}}}
pick = tool.define("pick", input=WORD, output={"type": "integer"}, description="Pick a number.")
hurry = tool.define("hurry", input=WORD, description="Be quick.", timeout=1_000_000, effect="pure", retries=1)
rush = tool.define("rush", input=WORD, description="Be quicker.", timeout=100, effect="pure")
sign = tool.define("sign", input=WORD, description="Sign.", needs_approval=True)


@tool(effect="pure", retries=1)
async def look(word: str = "", context: CallContext | None = None) -> str:
    """Look; it works only when it is tried again."""
    if context is not None and context.attempt == 1:
        raise ToolError("not yet", retryable=True)
    return word.upper()


@tool(needs_approval=True)
async def pay(word: str = "") -> str:
    """Pay."""
    return f"paid {word}"


@tool
async def hang(word: str = "") -> str:
    """Never come back."""
    await asyncio.Event().wait()
    return word


PLANS: dict[str, list[Turn | Use | str]] = {
    "look": [Turn("Let me see.", Use("look", {"word": "fjord"}), reasoning="A fjord."), "It is a FJORD."],
    "wait": [Turn("", Use("pick"), Use("pay", {"word": "Ann"}), Use("hurry")), "All done."],
    "decide": [Turn("", Use("pay", {"word": "a"}), Use("pay", {"word": "b"}), Use("sign", {"word": "c"})), "Decided."],
    "again": [Use("pay", {"word": "c"}), "Remembered."],
    "later": [Use("pick"), "It will come."],
    "hang": [Use("hang"), "Nobody knows."],
    "badly": [Turn("", Use("pick", "{no JSON"), Use("nothing", {})), "I was wrong."],
    "miss": [Use("rush"), "Too late."],
    "own": [Use("mine", {"word": "x"}), "Yours."],
}


def reply(request: Request) -> Turn | Use | str:
    """What the plan has next."""
    said = 0
    for message in reversed(request.messages):
        if isinstance(message, UserMessage):
            return PLANS.get(message.text, ["Thanks for the news."])[said]
        said += not isinstance(message, ToolMessage)
    raise AssertionError


def agent() -> Agent[Any]:
    """The agent of all these runs."""
    return Agent(
        scripted(reply),
        tools=[pick, hurry, rush, sign, look, pay, hang],
        name="golden",
        limits=Limits(client_timeout=None),
    )


async def tell(rows: MemoryStore, clock: VirtualClock) -> None:
    """Everything that a run may come to."""
    async with Runner(agent(), store=MemoryStore(rows), timing=TIMING, clock=clock) as runner:
        await look_twice(runner, clock, "local")
        waits = await runner.run("wait", thread="one")
        await runner.answer(next(call.id for call in waits.pending if call.tool == "pick"), 7)
        await runner.run("wait", thread="two", key="a key", principal="ann")
        await look_twice(runner, clock, "ann", thread="two")  # takes its place
        await decide(runner)
        await runner.run("badly", thread="badly")
        mine = {"name": "mine", "description": "Of the client.", "parameters": WORD}
        await runner.run("own", thread="own", tools=[mine], principal="ann")
        missed = await runner.start("miss", thread="miss")
        await missed.wait()
        later = await runner.run("later", thread="later")
        [call] = later.pending
        await runner.accept(call.id, "on it")
        await (await runner.find(later.id)).wait()
        await runner.report(call.id, 12)
        await runner.run("wait", thread="claimed")
        [call] = [call for call in await runner.pending(thread="claimed") if call.tool == "pick"]
        await runner.claim(call.id, "this tab")
    dies = Runner(agent(), store=MemoryStore(rows), timing=TIMING, clock=clock)
    await dies.open()
    run = await dies.start("hang", thread="hang")
    await until(rows, run.id, "running", b"replied")
    await kill(dies)
    clock.advance(TIMING.lease + 1)
    async with Runner(agent(), store=MemoryStore(rows), timing=TIMING, clock=clock) as runner:
        for each in (run.id, missed.id):
            await ended(runner, each)


async def ended(runner: Runner, run: str) -> None:
    """The run has ended."""
    async with asyncio.timeout(10):
        while True:
            view = await (await runner.find(run)).wait()
            if view.state.ending is not None:
                return
            await asyncio.sleep(0)


async def look_twice(runner: Runner, clock: VirtualClock, principal: str, thread: str = "one") -> None:
    """A tool fails, waits a moment, and is tried again."""
    run = await runner.start("look", thread=thread, principal=principal)
    waiting = asyncio.ensure_future(run.wait())
    async with asyncio.timeout(10):
        while not waiting.done():
            clock.advance(0.01)
            await asyncio.sleep(0)


async def decide(runner: Runner) -> None:
    """Yes to other arguments, no, and yes for good."""
    run = await runner.start("decide", thread="decide")
    first, second, third = (await run.wait()).pending
    await runner.approve(first.id, arguments={"word": "z"})
    await runner.deny(second.id, "too much")
    await runner.approve(third.id, remember="tool")
    view = await run.wait()
    await runner.answer(view.pending[0].id, {"signed": True})
    await run.wait()
    run = await runner.start("again", thread="decide")
    await runner.settle({}, {call.id: Approve(remember="arguments") for call in (await run.wait()).pending})
    await run.wait()


async def until(rows: MemoryStore, run: str, state: str, word: bytes) -> None:
    """The run is in a state, and something has been said in its log."""
    async with asyncio.timeout(10):
        while True:
            stored = await rows.load(run)
            assert stored is not None
            if stored.run.state == state and any(word in row.events for row in stored.tail):
                return
            await asyncio.sleep(0)


async def read(store: Store) -> dict[str, Run]:
    """All runs, by their ids."""
    found: dict[str, Run] = {}
    for row in await store.runs("", "", 1000):
        stored = await store.load(row.id)
        assert stored is not None
        found[row.id] = (await revive(stored, Toolsets(), store.toolset)).run
    return found


async def main() -> None:
    """Write both files."""
    rows = MemoryStore()
    await tell(rows, VirtualClock())
    file = io.BytesIO()
    await transfer.dump(rows, file)
    STORE.write_bytes(file.getvalue())
    runs = {name: structs.replace(run, tools={}) for name, run in (await read(rows)).items()}
    RUNS.write_bytes(json.format(json.encode(runs, order="sorted"), indent=1) + b"\n")


if __name__ == "__main__":
    asyncio.run(main())
