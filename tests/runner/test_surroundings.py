"""What goes on around a run: its waiter is cancelled, others decide elsewhere, and everybody has a context."""

import asyncio

import pytest

from farhand import Agent, scripted, tool
from farhand.core.call import Outcome
from farhand.models import Use


@pytest.mark.parametrize("last", ["return", "raise"])
async def test_a_timeout_around_a_run_holds_although_the_tool_swallows_its_cancellation(last: str) -> None:
    @tool
    async def stubborn() -> str:
        """Do not listen."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if last == "raise":
                raise ValueError from None
        return "done all the same"

    model = scripted([Use("stubborn"), "never"])
    run = Agent(model, tools=[stubborn]).start("hi")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run.wait()
    assert (run.status, len(model.requests)) == ("cancelled", 1)
    assert run.calls[0].outcome is (Outcome.OK if last == "return" else Outcome.FAILED)
