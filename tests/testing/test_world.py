"""A small world of processes: it repeats itself, and processes in it die, freeze, leave and come back."""

import asyncio
from typing import Any

import pytest

from farhand import Agent, scripted, tool
from farhand.core.call import Outcome
from farhand.core.messages import ToolMessage
from farhand.models import Request, Use
from farhand.testing.faulty import Faults
from farhand.testing.world import Unreachable, World

pick = tool.define("pick", input={"type": "object"}, description="Pick something.")


def reply(request: Request) -> Use | str:
    return "done" if isinstance(request.messages[-1], ToolMessage) else Use("pick")


def agents() -> list[Agent[Any]]:
    return [Agent(scripted(reply), tools=[pick])]


async def answered(world: World) -> str:
    """A run is started at one process and answered at the other."""
    first, second = world.processes
    run = await first.ask(lambda runner: runner.start("hi", key="k"))
    await first.ask(lambda _: run.wait())
    [call] = await second.ask(lambda runner: runner.pending())
    await second.ask(lambda runner: runner.answer(call.id, 1))
    return run.id


def test_a_story_is_told_to_its_end_and_leaves_nothing_behind() -> None:
    async def story(world: World) -> list[str]:
        await answered(world)
        await world.rest()
        [row] = await world.store.runs("", "", 10)
        assert row.state == "done"
        return await world.problems()

    assert World(7, agents).run(story) == []


def test_the_same_seed_makes_the_same_story() -> None:
    async def story(world: World) -> tuple[float, list[tuple[str, Any]]]:
        await answered(world)
        world.processes[0].kill()
        await world.rest()
        return world.loop.time(), [(table, str(row)) async for table, row in world.store.export()]

    assert World(3, agents).run(story) == World(3, agents).run(story)
    assert World(3, agents).run(story) != World(4, agents).run(story)


def test_a_process_that_was_killed_is_out_of_reach_and_others_go_on_with_its_runs() -> None:
    entered: list[int] = []

    @tool(effect="pure")
    async def work() -> int:
        """Work for a minute."""
        entered.append(1)
        await asyncio.sleep(2)
        return len(entered)

    def workers() -> list[Agent[Any]]:
        return [Agent(scripted(lambda request: reply_with_work(request)), tools=[work])]

    async def story(world: World) -> list[str]:
        first, second = world.processes
        run = await first.ask(lambda runner: runner.start("hi"))
        await world.until(lambda: bool(entered))
        first.kill()
        assert not first.up
        with pytest.raises(Unreachable):
            await first.ask(lambda runner: runner.pending())
        await world.rest(seconds=60)
        view = await (await second.ask(lambda runner: runner.find(run.id))).look()
        assert (view.output, view.calls[0].outcome, len(entered)) == ("done", Outcome.OK, 2)
        return await world.problems()

    assert World(7, workers).run(story) == []


def reply_with_work(request: Request) -> Use | str:
    return "done" if isinstance(request.messages[-1], ToolMessage) else Use("work")


def test_a_process_that_was_frozen_for_long_comes_back_under_another_name() -> None:
    async def story(world: World) -> list[str]:
        first, _ = world.processes
        before = await first.ask(worker)
        first.freeze()
        assert first.frozen
        await asyncio.sleep(10)
        first.thaw()
        await asyncio.sleep(3)
        assert await first.ask(worker) not in ("", before)
        await answered(world)
        await world.rest()
        return await world.problems()

    assert World(7, agents).run(story) == []


async def worker(runner: Any) -> str:
    return runner._replica.worker


def test_a_process_may_leave_in_order_and_come_back() -> None:
    async def story(world: World) -> list[str]:
        first, _ = world.processes
        await first.stop()
        assert not first.up
        await first.start()
        assert first.lives == 2
        await answered(world)
        await world.rest()
        return await world.problems()

    assert World(7, agents).run(story) == []


def test_what_is_left_undone_is_a_problem() -> None:
    async def story(world: World) -> list[str]:
        first, _ = world.processes
        run = await first.ask(lambda runner: runner.start("hi"))
        await first.ask(lambda _: run.wait())
        stored = await world.store.load(run.id)
        assert stored is not None
        await world.store.refuse(stored.run, "a test wants it so")
        return await world.problems()

    [problem] = World(7, agents).run(story)
    assert "put aside: a test wants it so" in problem


def test_replies_that_get_lost_may_have_been_heard() -> None:
    async def story(world: World) -> int:
        lost = 0
        for number in range(20):
            try:
                await world.processes[0].ask(lambda runner, number=number: runner.start("hi", key=str(number)))
            except Unreachable:
                lost += 1
        world.mute = 0.0
        assert len(await world.store.runs("", "", 100)) == 20
        return lost

    assert 0 < World(7, agents, mute=0.5).run(story) < 20


def test_with_faults_everything_takes_longer_and_comes_out_the_same() -> None:
    async def story(world: World) -> list[str]:
        world.faults.end()
        await answered(world)
        await world.rest()
        assert world.loop.time() > 1_000_000
        return await world.problems()

    assert World(7, agents, faults=Faults(slow=0.5, away=0.3, doubt=0.2)).run(story) == []
