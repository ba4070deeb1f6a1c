"""Conditions that stop a run: asked after each turn that called tools, and combined with `&` and `|`."""

from typing import Any

import pytest

from farhand import Agent, ToolError, scripted, tool, until
from farhand.core.call import Call, Outcome
from farhand.core.pieces import Finish, Usage
from farhand.core.run import Phase, Run
from farhand.models import Turn, Use
from farhand.stopping import StopWhen, called, failures, finish_reason, max_turns


def make_run(**fields: Any) -> Run:
    from farhand.core.limits import Limits

    return Run("r", "t", "ann", Phase.JUDGING, (), {}, Limits(), **fields)


@tool
async def step(n: int = 0) -> int:
    """Make a step."""
    return n


async def test_a_condition_is_a_sync_or_an_async_function_of_the_run() -> None:
    async def later(run: Run) -> bool:
        return run.turn == 2

    for condition in (until(lambda run: run.turn == 2), until(later)):
        assert [await condition(make_run(turn=turn)) for turn in (1, 2)] == [False, True]


async def test_whatever_is_truthy_stops() -> None:
    condition = until(lambda run: run.usage.total)  # type: ignore[arg-type,return-value]
    assert await condition(make_run(usage=Usage(1, 2))) is True
    assert await condition(make_run()) is False


@pytest.mark.parametrize(("one", "other"), [(False, False), (False, True), (True, False), (True, True)])
async def test_and_needs_both_or_needs_either(one: bool, other: bool) -> None:
    left, right = until(lambda run: one), until(lambda run: other)
    assert await (left & right)(make_run()) is (one and other)
    assert await (left | right)(make_run()) is (one or other)


async def test_the_second_condition_is_asked_only_when_it_matters() -> None:
    def never(run: Run) -> bool:
        raise AssertionError

    assert not await (until(lambda run: False) & until(never))(make_run())
    assert await (until(lambda run: True) | until(never))(make_run())


async def test_combinations_combine_further() -> None:
    condition: StopWhen = (max_turns(3) & called("x")) | max_turns(5)
    assert [await condition(make_run(turn=turn)) for turn in (3, 5)] == [False, True]


async def test_a_number_of_turns_stops_at_that_turn_and_after() -> None:
    assert [await max_turns(2)(make_run(turn=turn)) for turn in (1, 2, 3)] == [False, True, True]


async def test_the_reason_of_the_newest_reply_stops() -> None:
    condition = finish_reason(Finish.LENGTH, Finish.FILTERED)
    assert [await condition(make_run(finish=reason)) for reason in (None, Finish.TOOLS, Finish.LENGTH)] == [
        False,
        False,
        True,
    ]


async def test_a_called_tool_stops_the_run_with_its_result() -> None:
    model = scripted([Turn("one", Use("step", {"n": 1})), "never"])
    run = await Agent(model, tools=[step], stop_when=called("step")).run("hi")
    assert (run.status, run.output, run.calls[0].output, len(model.requests)) == ("stopped", "one", 1, 1)


async def test_an_answer_without_calls_ends_the_run_before_any_condition_is_asked() -> None:
    asked: list[int] = []

    def ask(run: Run) -> bool:
        asked.append(run.turn)
        return False

    run = await Agent(scripted([Use("step"), "done"]), tools=[step], stop_when=until(ask)).run("hi")
    assert (run.status, asked) == ("done", [1])


async def test_a_condition_that_fails_is_the_programs_fault_and_cancels_the_run() -> None:
    def broken(run: Run) -> bool:
        raise LookupError("boom")

    live = Agent(scripted([Use("step")]), tools=[step], stop_when=until(broken)).start("hi")
    with pytest.raises(LookupError, match="boom"):
        await live.wait()
    assert live.status == "cancelled"


@pytest.mark.parametrize(
    ("outcomes", "stops"),
    [
        ("failed failed failed", True),
        ("ok failed invalid timed_out", True),
        ("failed unavailable unknown", True),
        ("failed failed", False),
        ("failed failed ok failed", False),
        ("failed denied failed cancelled failed denied", True),
        ("denied denied denied", False),
        ("", False),
    ],
)
async def test_failures_in_a_row_stop_and_what_nobody_wanted_is_none(outcomes: str, stops: bool) -> None:
    calls = {str(n): make_call(str(n), Outcome(name)) for n, name in enumerate(outcomes.split())}
    assert await failures(3)(make_run(calls=calls)) is stops


async def test_a_run_whose_tools_fail_one_after_the_other_says_that_it_was_stopped() -> None:
    model = scripted(lambda _: Turn("again", Use("break")))
    run = await Agent(model, tools=[tool(name="break")(fail)], stop_when=failures(2)).run("go")
    assert (run.status, len(model.requests)) == ("stopped", 2)
    assert [call.outcome for call in run.calls] == [Outcome.FAILED] * 2


async def fail() -> None:
    """Fail."""
    raise ToolError("no")


def make_call(name: str, outcome: Outcome) -> Call:
    return Call(name, name, "break", 1, outcome=outcome)
