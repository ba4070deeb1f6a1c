"""Providers: clients that offer their tools to all threads of their principal, for as long as they are attached."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import pytest

from farhand import Agent, tool
from farhand.core.admission import AdmissionLimits
from farhand.core.definition import InvalidToolDefinitions
from farhand.core.errors import DuplicateToolName, StoreAway
from farhand.core.updates import CallUnattended, Warned
from farhand.durable import Runner
from farhand.durable.attachment import Attachment
from farhand.models import Turn, Use
from farhand.protocols.native import CallOffered, CallWithdrawn, ProviderUpdate
from farhand.stores import open_store
from farhand.stores.base import Ring, Store
from farhand.stores.memory import MemoryStore
from tests.durable.story import QUICK, by_rule, kill
from tests.stores.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

ANYTHING: Any = {"type": "object"}
CLOSED: Any = {"type": "object", "properties": {}}


def picking(*uses: Use, **policy: Any) -> Agent[Any]:
    """An agent whose model has a client do something first."""
    pick = tool.define("pick", input=ANYTHING, description="Pick something.", **policy)
    return by_rule(Turn("", *(uses or (Use("pick"),))), "done", tools=(pick,))


def definition(name: str, description: str = "Does it.") -> dict[str, Any]:
    return {"name": name, "description": description, "parameters": CLOSED}


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def opened(stack: AsyncExitStack, agent: Agent[Any], store: Store | None = None) -> Runner:
    return await stack.enter_async_context(Runner(agent, store=store or MemoryStore(), timing=QUICK))


class Told:
    """What a provider is told, batch by batch."""

    def __init__(self, attachment: Attachment) -> None:
        self._batches: AsyncGenerator[list[ProviderUpdate], None] = attachment.calls()

    async def more(self) -> list[ProviderUpdate]:
        async with asyncio.timeout(15):
            return await anext(self._batches)

    async def offered(self) -> str:
        """The one call that is offered next."""
        [update] = await self.more()
        assert isinstance(update, CallOffered)
        return update.call.id

    async def close(self) -> None:
        await self._batches.aclose()


async def begun(runner: Runner, thread: str = "t", **settings: Any) -> str:
    """The one call of a new run."""
    run = await runner.run("go", thread=thread, **settings)
    return run.pending[0].id


# What is offered


async def test_a_provider_is_offered_what_is_open_in_any_thread_and_then_what_comes(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    calls = [await begun(runner, f"t{number}") for number in range(3)]
    told = Told(await runner.attach("ide", ["pick"]))
    first = [update for update in await told.more() if isinstance(update, CallOffered)]
    assert [update.call.id for update in first] == calls
    assert [(update.call.thread_id, update.description) for update in first][2] == ("t2", "Pick something.")
    call = await begun(runner, "t4")
    assert await told.offered() == call
    await told.close()


async def test_calls_of_others_and_of_other_tools_are_not_offered(stack: AsyncExitStack) -> None:
    show = tool.define("show", input=ANYTHING, description="Show.")
    pick = tool.define("pick", input=ANYTHING, description="Pick.", needs_approval=True)
    agent = by_rule(Turn("", Use("show"), Use("pick")), "done", tools=(show, pick))
    runner = await opened(stack, agent)
    await runner.run("go", principal="eve")
    run = await runner.run("go")
    told = Told(await runner.attach("ide", ["pick"]))
    await runner.approve(run.pending[1].id)
    assert await told.offered() == run.pending[1].id
    await told.close()


async def test_a_call_that_is_gone_is_withdrawn_whoever_took_it(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking(Use("pick"), Use("pick"), Use("pick")))
    run = await runner.run("go")
    claimed, answered, cancelled = (call.id for call in run.pending)
    told = Told(await runner.attach("ide", ["*"]))
    assert len(await told.more()) == 3
    await runner.claim(claimed, "phone")
    assert await told.more() == [CallWithdrawn(call_id=claimed, attempt=1)]
    await runner.answer(answered, 1)
    assert await told.more() == [CallWithdrawn(call_id=answered, attempt=1)]
    await runner.cancel_call(cancelled)
    assert await told.more() == [CallWithdrawn(call_id=cancelled, attempt=1)]
    await told.close()


async def test_what_it_has_taken_up_itself_stays_and_is_offered_again_when_it_comes_back(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    call = await begun(runner)
    first = await runner.attach("ide", ["pick"])
    told = Told(first)
    assert await told.offered() == call
    await runner.claim(call, "ide")
    other = await begun(runner, "u")
    assert await told.offered() == other
    await first.close()
    again = await Told(await runner.attach("ide", ["pick"])).more()
    assert [(update.call.id, update.call.held_by) for update in again if isinstance(update, CallOffered)] == [
        (call, "ide"),
        (other, ""),
    ]
    elsewhere = Told(await runner.attach("phone", ["pick"]))
    assert await elsewhere.offered() == other


async def test_what_was_taken_by_another_client_is_offered_again_when_it_is_given_back(stack: AsyncExitStack) -> None:
    """Also when nothing was heard of it meanwhile."""
    runner = await opened(stack, picking())
    call = await begun(runner)
    told = Told(await runner.attach("ide", ["pick"]))
    assert await told.offered() == call
    await runner.claim(call, "phone")
    await runner.release(call, "phone")
    again = await told.more()
    while not isinstance(again[-1], CallOffered):
        again = await told.more()
    assert (again[-1].call.id, again[-1].call.attempt) == (call, 1)
    await told.close()


async def test_another_attempt_takes_the_place_of_the_one_that_is_over(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking(effect="idempotent", retries=1))
    call = await begun(runner)
    told = Told(await runner.attach("ide", ["pick"]))
    assert await told.offered() == call
    await runner.fail(call, "not now")
    assert await told.more() == [CallWithdrawn(call_id=call, attempt=1)]
    [again] = await told.more()
    assert isinstance(again, CallOffered)
    assert (again.call.id, again.call.attempt) == (call, 2)
    await told.close()


async def test_calls_for_one_client_are_offered_to_that_one_only(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    phone, ide = [Told(await runner.attach(client, ["pick"])) for client in ("phone", "ide")]
    call = await begun(runner, target="ide")
    assert await ide.offered() == call
    free = await begun(runner, "u")
    assert await ide.offered() == await phone.offered() == free
    await runner.answer(call, 1, client="ide")
    assert await ide.more() == [CallWithdrawn(call_id=call, attempt=1)]
    await runner.answer(free, 1)
    assert await phone.more() == [CallWithdrawn(call_id=free, attempt=1)]


async def test_the_feed_ends_with_the_connection(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    ide = await runner.attach("ide", ["pick"])
    waiting = asyncio.ensure_future(Told(ide).more())
    await asyncio.sleep(0)
    await ide.close()
    with pytest.raises(StopAsyncIteration):
        await waiting
    assert runner._replica.presence.feeds._open == {}


async def test_a_client_of_a_thread_may_be_told_of_its_calls_too(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    told = Told(await runner.attach("tab", ["pick"], thread="t"))
    await begun(runner, "u")
    call = await begun(runner, "t")
    assert await told.offered() == call


# Several processes


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Handles of one store."""
    if request.param == "memory":
        rows = MemoryStore()
        return lambda: MemoryStore(rows)
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:{tmp_path}/runs.db"
    return lambda: open_store(url)


async def test_a_provider_at_one_process_works_for_runs_of_another(
    store_of: Callable[[], Store], stack: AsyncExitStack
) -> None:
    here, there = await opened(stack, picking(), store_of()), await opened(stack, picking(), store_of())
    before = await begun(here, "before")
    ide = await there.attach("ide", ["pick"])
    told = Told(ide)
    assert await told.offered() == before
    run = await here.start("go", thread="t", attended=True)
    call = await told.offered()
    assert not (await there.claim(call, "ide")).repeated
    await there.answer(call, 1, client="ide")
    assert (await run.wait()).output == "done"
    assert await told.more() == [CallWithdrawn(call_id=call, attempt=1)]
    await here.answer(before, 1)
    assert await told.more() == [CallWithdrawn(call_id=before, attempt=1)]
    await ide.close()


async def test_calls_of_many_threads_at_once_are_each_offered_once(
    store_of: Callable[[], Store], stack: AsyncExitStack
) -> None:
    here, there = await opened(stack, picking(), store_of()), await opened(stack, picking(), store_of())
    told = Told(await there.attach("ide", ["pick"]))
    runs = await asyncio.gather(*(here.run("go", thread=f"t{number}") for number in range(40)))
    wanted = {run.pending[0].id for run in runs}
    seen: list[str] = []
    while len(seen) < 40:
        seen += [update.call.id for update in await told.more() if isinstance(update, CallOffered)]
    assert sorted(seen) == sorted(wanted)


async def test_a_provider_of_a_process_that_died_is_missed(
    store_of: Callable[[], Store], stack: AsyncExitStack
) -> None:
    first = Runner(picking(), store=store_of(), timing=QUICK)
    await first.open()
    second = await opened(stack, picking(), store_of())
    await first.attach("ide", ["pick"])
    call = await begun(second, attended=True)
    assert (await second.call(call)).record.grace is None
    await kill(first)
    async with asyncio.timeout(15), aclosing(second.watch("t")) as updates:
        async for update in updates:
            if isinstance(update, CallUnattended):
                break


class Bad(MemoryStore):
    """A store that hears of nothing at first hand, and is away now and then."""

    away = 0

    async def open(self, on_ring: Callable[[Ring], None] | None = None) -> None:
        await super().open(None if on_ring is None else lambda _: on_ring(Ring()))

    async def waiting(self, principal: str, thread: str, limit: int) -> Any:
        if self.away:
            self.away -= 1
            raise StoreAway("away")
        return await super().waiting(principal, thread, limit)


async def test_a_store_that_is_away_or_says_only_that_something_happened_is_looked_at_again(
    stack: AsyncExitStack,
) -> None:
    rows = MemoryStore()
    bad = Bad(rows)
    here, there = await opened(stack, picking(), rows), await opened(stack, picking(), bad)
    told = Told(await there.attach("ide", ["pick"]))
    bad.away = 2
    waiting = asyncio.ensure_future(told.offered())
    await asyncio.sleep(0)
    call = await begun(here)
    assert await waiting == call
    await here.answer(call, 1)
    assert await told.more() == [CallWithdrawn(call_id=call, attempt=1)]
    assert bad.away == 0


async def test_a_thread_that_cannot_be_told_at_once_is_found_later(stack: AsyncExitStack) -> None:
    class Forgetful(MemoryStore):
        away = 1

        async def thread(self, thread: str) -> Any:
            if self.away:
                self.away -= 1
                raise StoreAway("away")
            return await super().thread(thread)

    rows = MemoryStore()
    here, there = await opened(stack, picking(), rows), await opened(stack, picking(), Forgetful(rows))
    told = Told(await there.attach("ide", ["pick"]))
    waiting = asyncio.ensure_future(told.offered())
    await asyncio.sleep(0)
    assert await begun(here) == await waiting


async def test_what_was_found_before_the_store_went_away_is_told_all_the_same(stack: AsyncExitStack) -> None:
    class Failing(MemoryStore):
        loads = 10**6

        async def load(self, run: str) -> Any:
            self.loads -= 1
            if self.loads == 0:
                raise StoreAway("away")
            return await super().load(run)

    rows = MemoryStore()
    failing = Failing(rows)
    here, there = await opened(stack, picking(), rows), await opened(stack, picking(), failing)
    calls = {await begun(here, f"t{number}") for number in range(3)}
    told = Told(await there.attach("ide", ["pick"]))
    failing.loads = 2
    first, second = await told.more(), await told.more()
    assert (len(first), len(second)) == (1, 2)
    assert {update.call.id for update in (*first, *second) if isinstance(update, CallOffered)} == calls


# Tools of its own


async def test_runs_that_begin_while_it_is_attached_have_its_tools(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking(Use("zoom")))
    before = await runner.start("go", thread="before")
    ide = await runner.attach("ide", tools=[definition("zoom")])
    told = Told(ide)
    run = await runner.start("go", thread="t", attended=True)
    call = await told.offered()
    assert (await runner.call(call)).record.grace is None
    await runner.answer(call, "zoomed")
    assert (await run.wait()).calls[0].outcome == "ok"
    assert (await before.wait()).calls[0].outcome == "invalid"
    await ide.close()
    after = await runner.start("go", thread="after")
    assert (await after.wait()).calls[0].outcome == "invalid"


async def test_a_run_keeps_a_providers_tool_when_that_is_gone(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking(Use("zoom")))
    ide = await runner.attach("ide", tools=[definition("zoom")])
    call = await begun(runner, attended=True)
    await ide.close()
    assert (await runner.call(call)).record.grace is not None
    again = await runner.attach("ide", tools=[definition("zoom")])
    assert (await runner.call(call)).record.grace is None
    await runner.answer(call, 1, client="ide")
    await again.close()


async def test_a_provider_at_another_process_brings_its_tools_too(
    store_of: Callable[[], Store], stack: AsyncExitStack
) -> None:
    here, there = [await opened(stack, picking(Use("zoom")), store_of()) for _ in range(2)]
    told = Told(await there.attach("ide", tools=[definition("zoom")]))
    call = await begun(here)
    assert await told.offered() == call


async def test_of_equal_names_the_runs_own_tool_counts_and_then_that_of_the_oldest_provider(
    stack: AsyncExitStack,
) -> None:
    runner = await opened(stack, picking(Use("zoom"), Use("turn")))
    old, new = [
        Told(await runner.attach(client, tools=[definition("zoom", client), definition("turn", client)]))
        for client in ("old", "new")
    ]
    run = await runner.run("go", thread="t", tools=[definition("zoom", "mine")])
    tools = run.state.tools
    assert (tools["zoom"].description, tools["turn"].description) == ("mine", "old")
    warned = [update for update in (await runner.updates("t"))[0] if isinstance(update, Warned)]
    assert [update.message for update in warned] == [
        "tool 'zoom' of provider 'old' was refused: there is another 'zoom' before it",
        "tool 'zoom' of provider 'new' was refused: there is another 'zoom' before it",
        "tool 'turn' of provider 'new' was refused: there is another 'turn' before it",
    ]
    assert await old.offered() == run.pending[1].id
    waiting = asyncio.ensure_future(new.more())
    await runner.answer(run.pending[1].id, 1)
    assert await old.more() == [CallWithdrawn(call_id=run.pending[1].id, attempt=1)]
    assert not waiting.done(), "it defined another tool of that name, and is not asked to run this one"
    waiting.cancel()


async def test_the_same_tool_of_two_providers_is_offered_to_both(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking(Use("zoom")))
    both = [Told(await runner.attach(client, tools=[definition("zoom")])) for client in ("ide", "phone")]
    call = await begun(runner)
    assert [await told.offered() for told in both] == [call, call]
    assert not any(isinstance(update, Warned) for update in (await runner.updates("t"))[0])


async def test_of_one_client_that_has_come_back_the_newest_tools_count(stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking(Use("zoom")))
    await runner.attach("ide", tools=[definition("zoom", "old")])
    await runner.attach("ide", tools=[definition("zoom", "new")])
    run = await runner.run("go", thread="t")
    assert run.state.tools["zoom"].description == "new"
    assert not any(isinstance(update, Warned) for update in (await runner.updates("t"))[0])


@pytest.mark.parametrize("name", ["pick", "Pick"])
async def test_a_tool_with_the_name_of_one_of_the_servers_is_refused(name: str, stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    with pytest.raises(DuplicateToolName):
        await runner.attach("ide", tools=[definition(name)])


@pytest.mark.parametrize("tools", ["nonsense", [{"name": "x y"}], [definition("a"), definition("a")]])
async def test_definitions_pass_the_same_gate_as_those_of_a_run(tools: Any, stack: AsyncExitStack) -> None:
    runner = await opened(stack, picking())
    with pytest.raises(InvalidToolDefinitions):
        await runner.attach("ide", tools=tools)
    assert runner._replica.presence._here == {}


async def test_together_with_the_runs_own_they_keep_to_the_limits_of_the_agent(stack: AsyncExitStack) -> None:
    agent = Agent(picking().model, name="small", admission=AdmissionLimits(tools=2), tools=picking().tools.values())
    runner = await opened(stack, agent)
    await runner.attach("ide", tools=[definition("one"), definition("two")])
    run = await runner.run("go", thread="t", tools=[definition("own")])
    assert [name for name in run.state.tools if name != "pick"] == ["own", "one"]
    [warned] = [update for update in (await runner.updates("t"))[0] if isinstance(update, Warned)]
    assert warned.message == "tool 'two' of provider 'ide' was refused: it is beyond the limits of this agent"


async def test_an_agent_that_takes_less_than_another_leaves_a_providers_tools_out(stack: AsyncExitStack) -> None:
    large, small = picking(), Agent(picking().model, name="small", admission=AdmissionLimits(tools=1))
    runner = await stack.enter_async_context(Runner(large, small, store=MemoryStore(), timing=QUICK))
    await runner.attach("ide", tools=[definition("one"), definition("two")])
    assert len((await runner.run("go", thread="t")).state.tools) == 3
    refused = await runner.start("go", thread="u", agent="small")
    assert (await refused.look()).state.tools == {}


async def test_tools_that_a_client_of_the_thread_runs_as_the_provider_defined_them_are_its_own(
    stack: AsyncExitStack,
) -> None:
    """Naming them among its offers as well does not make it run another tool of that name."""
    runner = await opened(stack, picking(Use("zoom")))
    ide = await runner.attach("ide", ["zoom"], tools=[definition("zoom", "mine")])
    assert ide.row.offers == ()
    call = await begun(runner, attended=True, tools=[definition("zoom", "of the run")])
    assert (await runner.call(call)).record.grace is not None
