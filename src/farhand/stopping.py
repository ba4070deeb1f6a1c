"""When a run shall stop although the model would go on: conditions that combine with `&` and `|`."""

import inspect
from collections.abc import Awaitable, Callable

from farhand.core.call import Outcome
from farhand.core.pieces import Finish
from farhand.core.run import Run


class StopWhen:
    """A condition over the run, asked after each turn that called tools. `a & b` needs both, `a | b` either."""

    def __init__(self, predicate: Callable[[Run], bool | Awaitable[bool]]) -> None:
        self._predicate = predicate

    async def __call__(self, run: Run) -> bool:
        """Whether to stop here."""
        verdict = self._predicate(run)
        return bool(await verdict if inspect.isawaitable(verdict) else verdict)

    def __and__(self, other: "StopWhen") -> "StopWhen":
        async def both(run: Run) -> bool:
            return await self(run) and await other(run)

        return StopWhen(both)

    def __or__(self, other: "StopWhen") -> "StopWhen":
        async def either(run: Run) -> bool:
            return await self(run) or await other(run)

        return StopWhen(either)


def until(predicate: Callable[[Run], bool | Awaitable[bool]]) -> StopWhen:
    """Stop when `predicate(run)` says so; it sees the run's messages, calls, turn and usage."""
    return StopWhen(predicate)


def max_turns(turns: int) -> StopWhen:
    """Stop after this many replies. `Limits.max_turns` always holds, and gives the model a last word."""
    return StopWhen(lambda run: run.turn >= turns)


def called(tool: str) -> StopWhen:
    """Stop once a tool was called and the call has ended."""
    return StopWhen(lambda run: any(call.tool == tool for call in run.turn_calls))


def finish_reason(*reasons: Finish) -> StopWhen:
    """Stop when the model's newest reply ended for one of these reasons."""
    return StopWhen(lambda run: run.finish in reasons)


NO_FAILURE = frozenset({Outcome.DENIED, Outcome.CANCELLED})
"""Somebody did not want the call; that says nothing of whether tools work."""


def failures(in_a_row: int = 3) -> StopWhen:
    """Stop after so many calls in a row that came to nothing: failed, invalid, timed out, unavailable, unknown."""

    def failed(run: Run) -> bool:
        newest = [call.outcome for call in reversed(run.calls.values()) if call.outcome not in NO_FAILURE][:in_a_row]
        return len(newest) == in_a_row and Outcome.OK not in newest

    return StopWhen(failed)
