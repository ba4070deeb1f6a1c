"""What a thread has of its client lasts from run to run: over restarts, on any replica, until the client resets it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from farhand import Agent, scripted, tool
from farhand.core.definition import InvalidToolDefinitions
from farhand.core.errors import InvalidAnswer, StartConflict, UsageError
from farhand.core.messages import ToolMessage, UserMessage
from farhand.core.updates import SceneChanged
from farhand.durable import Runner
from farhand.groups import TRUSTING, Group, Showing
from farhand.models import Request, Turn, Use
from farhand.stores import open_store
from farhand.stores.base import Store, Stored
from farhand.stores.memory import MemoryStore
from farhand.testing.audit import audit
from tests.durable.story import QUICK, kill
from tests.stores.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

open_file = tool.define("open_file", input={"type": "object"}, description="Open a file.")
save_file = tool.define("save_file", input={"type": "object"}, description="Save a file.")
pay = tool.define("pay", input={"type": "object"}, description="Pay.")
IDE = Group(name="IDE", tools=[open_file, save_file], description="The editor.", instructions="Save often.")
SHOP = Group(name="Shop", tools=[pay], description="The shop.")
TRUSTED = Showing(changes=TRUSTING)

Connect = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Connect:
    """Another handle of the same rows each time, as every process has one."""
    if request.param == "memory":
        rows = MemoryStore()
        return lambda: MemoryStore(rows)
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:{tmp_path}/runs.db"
    return lambda: open_store(url)


def told(seen: list[Request], *turns: Any, **settings: Any) -> Agent[Any]:
    """An agent whose model notes what it is shown; its turns are counted from the last input on."""

    def reply(request: Request) -> Turn | Use | str:
        seen.append(request)
        said = 0
        for message in reversed(request.messages):
            if isinstance(message, UserMessage):
                break
            said += not isinstance(message, ToolMessage)
        return turns[said]

    return Agent(scripted(reply), **settings)


def shown(request: Request) -> set[str]:
    return {definition.name for definition in request.tools}


class Counting(MemoryStore):
    """Counts how often a whole run is read."""

    loads = 0

    async def load(self, run: str) -> Stored | None:
        self.loads += 1
        return await super().load(run)


async def test_what_a_client_has_told_is_there_in_the_next_run_of_the_thread_after_a_restart(connect: Connect) -> None:
    seen: list[Request] = []
    async with Runner(told(seen, "hello"), store=connect()) as first:
        await first.run(
            "hi",
            thread="t",
            groups=[IDE],
            expanded=["IDE"],
            hidden=["save_file"],
            context=[{"description": "open file", "value": "a.py"}],
            state={"tab": 1},
        )
    async with Runner(told(seen, "hello"), store=connect()) as second:
        await second.run("and now?", thread="t")
        thread = await second.thread("t")
        assert await audit(second.store) == []
    assert [shown(request) for request in seen] == [{"open_file"}, {"open_file"}]
    assert "a.py" in seen[1].told
    assert thread.scene is not None
    assert [group.name for group in thread.scene.groups] == ["IDE"]
    assert bytes(thread.scene.state) == b'{"tab":1}'


async def test_another_replica_starts_with_what_the_first_has_been_told(connect: Connect) -> None:
    seen: list[Request] = []
    async with (
        Runner(told(seen, "hello"), store=connect()) as first,
        Runner(told(seen, "hello"), store=connect()) as second,
    ):
        await first.run("hi", thread="t", groups=[IDE])
        await second.run("and now?", thread="t", expanded=["IDE"])
        await first.run("and then?", thread="t")
    assert [shown(request) for request in seen] == [{"IDE"}, {"open_file", "save_file"}, {"open_file", "save_file"}]


async def test_a_reset_forgets_all_of_it_and_takes_what_comes_along(connect: Connect) -> None:
    seen: list[Request] = []
    async with Runner(told(seen, "hello"), store=connect()) as runner:
        await runner.run("hi", thread="t", groups=[IDE], context=[{"description": "open file", "value": "a.py"}])
        await runner.run("and now?", thread="t", groups=[SHOP], reset_client_state=True)
        await runner.run("and now?", thread="t")
        assert [shown(request) for request in seen] == [{"IDE"}, {"Shop"}, {"Shop"}]
        assert "a.py" not in seen[1].told
        await runner.run("and now?", thread="t", reset_client_state=True)
        assert shown(seen[-1]) == set()
        assert (await runner.thread("t")).scene is None


async def test_what_the_model_has_opened_lasts_for_its_run_unless_the_owner_says_otherwise() -> None:
    for lasting in ("run", "thread"):
        seen: list[Request] = []
        agent = told(seen, Use("IDE"), "hello", showing=Showing(lasting=lasting))
        async with Runner(agent, store=MemoryStore()) as runner:
            await runner.run("hi", thread="t", groups=[IDE])
            assert shown(seen[1]) == {"open_file", "save_file"}
            thread = await runner.thread("t")
            assert thread.scene is not None
            assert set(thread.scene.opened) == ({"IDE"} if lasting == "thread" else set())
            await runner.run("and now?", thread="t")
            assert shown(seen[2]) == ({"open_file", "save_file"} if lasting == "thread" else {"IDE"})


async def test_a_thread_whose_client_has_told_nothing_costs_no_read_of_its_last_run() -> None:
    store = Counting()
    own = Group(name="Own", tools=[tool(echo)], description="What there is.")
    async with Runner(told([], "hello", groups=[own]), store=store) as runner:
        for _ in range(3):
            await runner.run("hi", thread="plain")
        before = store.loads
        last = await runner.start("hi", thread="plain")
        assert store.loads == before
        await last.wait()
        assert (await runner.thread("plain")).scene is None


async def test_principals_have_what_their_own_clients_have_told() -> None:
    seen: list[Request] = []
    async with Runner(told(seen, "hello"), store=MemoryStore()) as runner:
        await runner.run("hi", thread="t", principal="ann", groups=[IDE], context=[{"description": "at", "value": "x"}])
        await runner.run("hi", thread="t", principal="bob")
        assert shown(seen[1]) == set()
        assert seen[1].told == ""


async def test_what_comes_along_belongs_to_what_a_key_stands_for() -> None:
    async with Runner(told([], "hello"), store=MemoryStore()) as runner:
        first = await runner.start("hi", thread="t", key="k", groups=[IDE])
        again = await runner.start("hi", thread="t", key="k", groups=[IDE])
        assert again.id == first.id
        with pytest.raises(StartConflict):
            await runner.start("hi", thread="t", key="k", groups=[SHOP])


async def test_a_group_that_is_there_already_refuses_the_whole_start() -> None:
    async with Runner(told([], "hello"), store=MemoryStore()) as runner:
        await runner.run("hi", thread="t", groups=[IDE])
        with pytest.raises(InvalidToolDefinitions, match="already"):
            await runner.start("hi", thread="t", groups=[SHOP, IDE])
        thread = await runner.thread("t")
        assert (thread.run, len(thread.messages)) == ("", 2)
        assert thread.scene is not None
        assert [group.name for group in thread.scene.groups] == ["IDE"]
        await runner.run("hi", thread="t", groups=[SHOP, IDE], replace=True)


async def test_functions_belong_to_the_agent_and_not_to_what_a_client_brings() -> None:
    async with Runner(told([], "hello"), store=MemoryStore()) as runner:
        with pytest.raises(UsageError, match="definitions"):
            await runner.start("hi", groups=[Group(name="G", tools=[tool(echo)], description="Echoes.")])


async def test_a_group_that_came_with_a_result_survives_the_death_of_the_process(connect: Connect) -> None:
    def build(seen: list[Request]) -> Agent[Any]:
        look = tool.define("look", input={"type": "object"}, description="Look.")
        return told(seen, Use("look"), Use("pay"), "paid", tools=[look], showing=TRUSTED)

    seen: list[Request] = []
    first = Runner(build(seen), store=connect(), timing=QUICK)
    await first.open()
    run = await first.start("hi", thread="t")
    [call] = (await run.wait()).pending
    receipt = await first.answer(call.id, "seen", augmentation={"inject": [SHOP.definition], "expand": ["Shop"]})
    assert (receipt.repeated, receipt.refused) == (False, "")
    view = await run.wait()
    assert [call.tool for call in view.pending] == ["pay"]
    assert shown(seen[1]) == {"look", "pay"}
    await kill(first)
    async with asyncio.timeout(20), Runner(build(seen), store=connect(), timing=QUICK) as second:
        [call] = await second.pending()
        await second.answer(call.id, "ok")
        found = await second.find(run.id)
        assert (await found.wait()).output == "paid"
        assert shown(seen[2]) == {"look", "pay"}
        assert await audit(second.store) == []
        await second.run("again", thread="t")
        assert shown(seen[3]) == {"look", "pay"}


async def test_a_process_that_dies_after_the_answer_was_stored_loses_nothing_of_what_came_with_it(
    connect: Connect,
) -> None:
    entered = asyncio.Event()
    deaf = True

    async def reply(request: Request) -> Turn | Use | str:
        if any(isinstance(message, ToolMessage) for message in request.messages):
            if deaf:
                entered.set()
                await asyncio.Event().wait()
            return "done"
        return Use("look")

    class Slow:
        name = "slow"

        async def stream(self, request: Request) -> AsyncIterator[Any]:
            chosen = await reply(request)
            async for piece in scripted([chosen]).stream(request):
                yield piece

    def build() -> Agent[Any]:
        look = tool.define("look", input={"type": "object"}, description="Look.")
        return Agent(Slow(), tools=[look], showing=TRUSTED)

    first = Runner(build(), store=connect(), timing=QUICK)
    await first.open()
    run = await first.start("hi", thread="t")
    [call] = (await run.wait()).pending
    await first.answer(call.id, "seen", augmentation={"inject": [SHOP.definition], "updateState": {"n": 1}})
    await entered.wait()  # the change is stored, the next turn is not
    await kill(first)
    deaf = False
    async with asyncio.timeout(20), Runner(build(), store=connect(), timing=QUICK) as second:
        found = await second.find(run.id)
        view = await found.wait()
        assert view.output == "done"
        assert "pay" in view.state.tools
        assert view.state.scene is not None
        assert bytes(view.state.scene.state) == b'{"n":1}'
        assert await audit(second.store) == []


async def test_two_clients_on_two_replicas_change_things_in_one_turn_and_nothing_is_lost(connect: Connect) -> None:
    look = tool.define("look", input={"type": "object"}, description="Look.")

    def build(seen: list[Request]) -> Agent[Any]:
        return told(seen, Turn("", Use("look"), Use("look")), "done", tools=[look], showing=TRUSTED)

    seen: list[Request] = []
    async with (
        asyncio.timeout(20),
        Runner(build(seen), store=connect(), timing=QUICK) as first,
        Runner(build(seen), store=connect(), timing=QUICK) as second,
    ):
        run = await first.start("hi", thread="t")
        one, two = (await run.wait()).pending
        receipts = await asyncio.gather(
            first.answer(one.id, 1, augmentation={"inject": [IDE.definition], "patchState": {"a": 1}}),
            second.answer(two.id, 2, augmentation={"inject": [SHOP.definition], "patchState": {"b": 2}}),
        )
        assert [receipt.refused for receipt in receipts] == ["", ""]
        view = await run.wait()
        assert view.output == "done"
        scene = view.state.scene
        assert scene is not None
        assert [group.name for group in scene.groups] == ["IDE", "Shop"]
        assert bytes(scene.state) == b'{"a":1,"b":2}'
        assert shown(seen[-1]) == {"look", "IDE", "Shop"}
        updates, _ = await first.updates("t", limit=1000)
        assert any(isinstance(update, SceneChanged) and update.groups == ("IDE", "Shop") for update in updates)
        assert await audit(first.store) == []


async def test_definitions_of_today_and_a_group_that_came_in_are_both_kept_although_they_come_at_once() -> None:
    look = tool.define("look", input={"type": "object"}, description="Look.")
    rows = MemoryStore()
    seen: list[Request] = []
    first = Runner(told(seen, Use("look"), Use("pay"), "done", tools=[look], showing=TRUSTED), store=rows)
    await first.open()
    run = await first.start("hi", thread="t")
    [call] = (await run.wait()).pending
    await kill(first)
    more = [look, tool(echo)]
    agent = told(seen, Use("look"), Use("pay"), "done", tools=more, showing=TRUSTED)
    second = Runner(agent, store=MemoryStore(rows), timing=QUICK)
    await second.open()
    await second.answer(call.id, "seen", augmentation={"inject": [SHOP.definition], "expand": ["Shop"]})
    found = await second.find(run.id)
    await found.wait()
    assert await audit(second.store) == []
    await kill(second)
    agent = told(seen, Use("look"), Use("pay"), "done", tools=more, showing=TRUSTED)
    async with Runner(agent, store=MemoryStore(rows)) as third:
        [call] = await third.pending()
        assert call.tool == "pay"
        await third.answer(call.id, "ok")
        view = await (await third.find(run.id)).wait()
        assert (view.output, set(view.state.tools)) == ("done", {"look", "echo", "pay"})
        assert await audit(third.store) == []


async def test_a_wish_that_is_refused_is_told_again_with_the_same_answer() -> None:
    look = tool.define("look", input={"type": "object"}, description="Look.")
    async with Runner(told([], Use("look"), "done", tools=[look]), store=MemoryStore()) as runner:
        run = await runner.start("hi", thread="t")
        [call] = (await run.wait()).pending
        wish = {"inject": [SHOP.definition]}
        receipt = await runner.answer(call.id, "seen", augmentation=wish)
        again = await runner.answer(call.id, "seen", augmentation=wish)
        assert not receipt.repeated
        assert "/inject" in receipt.refused
        assert (again.repeated, again.refused) == (True, receipt.refused)
        view = await run.wait()
        assert view.output == "done"
        assert view.calls[0].record.refused == receipt.refused


async def test_how_background_work_ends_is_held_against_its_definition_though_its_group_has_gone() -> None:
    look = tool.define("look", input={"type": "object"}, description="Look.")
    output = {"type": "object", "required": ["paid"]}
    order = tool.define("order", input={"type": "object"}, output=output, description="Order.")
    shop = Group(name="Shop", description="The shop.", tools=[order])
    script = [Turn("", Use("order"), Use("look")), "done", "told"]
    agent = Agent(scripted(script), tools=[look], showing=TRUSTED)
    async with Runner(agent, store=MemoryStore()) as runner:
        run = await runner.start("hi", thread="t", groups=[shop], expanded=["Shop"])
        work, seen = (await run.wait()).pending
        await runner.accept(work.id, "soon")
        await runner.answer(seen.id, 1, augmentation={"remove": ["Shop"]})
        assert "order" not in (await run.wait()).state.tools
        with pytest.raises(InvalidAnswer, match="paid"):
            await runner.report(work.id, {"b": 1})
        assert not (await runner.report(work.id, {"paid": 5})).repeated


async def echo(text: str) -> str:
    """Say it again."""
    return text
