"""A key names one run of its principal, whatever else was left open when it was started."""

import pytest

from farhand.core.errors import StartConflict
from farhand.durable import Runner
from farhand.stores.memory import MemoryStore
from tests.durable.story import agent


async def test_a_start_under_a_key_without_a_thread_gives_the_same_run_again() -> None:
    async with Runner(agent("hello"), store=MemoryStore()) as runner:
        first = await runner.start("hi", key="job-1")
        again = await runner.start("hi", key="job-1")
        assert (again.id, again.thread) == (first.id, first.thread)
        assert (await runner.thread(again.thread)).messages[0].text == "hi"
        with pytest.raises(StartConflict):
            await runner.start("hi", key="job-1", thread=first.thread)
