"""The store goes away under everything and comes back: what was said and done counts once, and all runs end."""

import asyncio
from collections import Counter
from typing import Any

from farhand import CallContext, tool
from farhand.core.call import Outcome
from farhand.core.errors import StoreAway
from farhand.durable import Runner, Timing
from farhand.models import Turn, Use
from farhand.stores import open_store
from farhand.testing.audit import audit
from tests.durable.story import by_rule, pick
from tests.stores.postgres import PostgresServer, postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

TIMING = Timing(lease=60.0, beat=0.5, tick=0.05, check=0.2, drain=2.0)
"""Longer than a server takes to come back: nobody is taken for dead."""
RUNS = 25


async def said(say: Any) -> bool:
    """Say something until it is known whether it counts; gives whether it had counted before."""
    async with asyncio.timeout(60):
        while True:
            try:
                return (await say()).repeated
            except StoreAway:
                await asyncio.sleep(0.02)


async def test_a_database_that_is_restarted_in_mid_work_loses_nothing_and_repeats_nothing(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    entered: Counter[str] = Counter()
    in_the_middle = asyncio.Event()

    @tool
    async def work(context: CallContext) -> str:
        """Work a little."""
        entered[context.call_id] += 1
        if len(entered) == RUNS:
            in_the_middle.set()
        await asyncio.sleep(0.01)
        return "worked"

    agent = by_rule(Turn("", Use("work"), Use("pick")), Use("work"), "done", tools=(work, pick))

    async def begin(runner: Runner, number: int) -> str:
        async with asyncio.timeout(60):
            while True:
                try:
                    return (await runner.start("go", thread=str(number), key=str(number))).id
                except StoreAway:
                    await asyncio.sleep(0.02)

    async def live(runner: Runner, number: int) -> bool:
        run = await begin(runner, number)
        repeated = True
        async with asyncio.timeout(60):
            while True:
                try:
                    view = await (await runner.find(run)).look()
                    if view.state.ending is not None:
                        return repeated
                    for call in view.pending:
                        repeated = await said(lambda call=call: runner.answer(call.id, number))
                except StoreAway:
                    pass
                await asyncio.sleep(0.02)

    async with (
        Runner(agent, store=open_store(postgres_url), timing=TIMING) as first,
        Runner(agent, store=open_store(postgres_url), timing=TIMING) as second,
    ):
        names = (first._replica.worker, second._replica.worker)
        lives = [asyncio.ensure_future(live((first, second)[n % 2], n)) for n in range(RUNS)]
        async with asyncio.timeout(30):
            await in_the_middle.wait()
        await asyncio.to_thread(postgres_server.restart)
        await asyncio.gather(*lives)
        assert (first._replica.worker, second._replica.worker) == names
        for row in await first.store.runs("", "", 100):
            view = await (await first.find(row.id)).look()
            assert (view.output, {call.outcome for call in view.calls}) == ("done", {Outcome.OK})
        assert len(entered) == 2 * RUNS
        assert set(entered.values()) == {1}
        assert await audit(first.store) == []
