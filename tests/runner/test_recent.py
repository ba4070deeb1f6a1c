"""The runs that a process knows: found by their stored picture while somebody has them, the latest kept for a while."""

import gc

from msgspec import structs

from farhand import Agent, LiveRun, ToolError, scripted, tool
from farhand.models import Turn, Use
from farhand.runner.recent import RecentRuns

pick = tool.define("pick", input={"type": "object"}, description="Pick something.")


def start() -> LiveRun[str]:
    return Agent(scripted([]), recent=RecentRuns()).start("hi")


async def wait_for_pick(recent: RecentRuns, *turns: Turn | Use | str) -> LiveRun[str]:
    return await Agent(scripted([Use("pick"), *turns]), tools=[pick, broken], recent=recent).run("hi")


@tool
async def broken() -> None:
    """Break."""
    raise ToolError("broken")


def test_a_run_is_found_by_its_picture_once_it_is_known() -> None:
    recent, run = RecentRuns(), start()
    assert recent.find(run.state) is None
    recent.note(run)
    assert recent.find(run.state) is run


def test_a_run_that_was_only_noted_is_forgotten_with_its_last_holder() -> None:
    recent, noted, kept = RecentRuns(), start(), start()
    pictures = (noted.state, kept.state)
    recent.note(noted)
    recent.keep(kept)
    del noted, kept
    gc.collect()
    assert [recent.find(picture) is None for picture in pictures] == [True, False]


def test_of_the_kept_runs_the_oldest_goes_first_and_keeping_again_makes_it_young() -> None:
    recent, runs = RecentRuns(size=2), [start() for _ in range(3)]
    pictures = [run.state for run in runs]
    for at in (0, 1, 0, 2):
        recent.keep(runs[at])
    runs.clear()
    gc.collect()
    assert [recent.find(picture) is None for picture in pictures] == [False, True, False]


async def test_an_older_picture_leads_to_the_run_as_it_is_now() -> None:
    recent = RecentRuns()
    run = await wait_for_pick(recent, "done")
    old = run.state
    run.answer(run.pending[0].id)
    await run.wait()
    recent.keep(run)
    assert recent.find(old) is run


async def test_a_newer_picture_wins_over_a_run_that_this_process_has_left_behind() -> None:
    recent = RecentRuns()
    run = await wait_for_pick(recent)
    recent.keep(run)
    assert recent.find(structs.replace(run.state, events=run.state.events + 1)) is None


async def test_a_run_that_was_called_off_may_be_tried_again_from_its_picture() -> None:
    recent = RecentRuns()
    run = await wait_for_pick(recent)
    stored = run.state
    run.cancel()
    recent.keep(run)
    assert recent.find(stored) is None
    assert recent.find(run.state) is run  # a picture of the end is no way back


async def test_a_run_that_dispatched_something_before_it_failed_is_not_tried_again() -> None:
    recent = RecentRuns()
    run = await wait_for_pick(recent, Use("broken"))
    stored = run.state
    run.answer(run.pending[0].id)
    await run.wait()
    recent.keep(run)
    assert run.status == "failed"
    assert recent.find(stored) is run
