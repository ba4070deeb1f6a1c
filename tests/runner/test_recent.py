"""The runs that a process has taken up lately: found by id, the oldest forgotten first."""

from farhand import Agent, LiveRun, scripted
from farhand.runner.recent import RecentRuns


def start() -> LiveRun[str]:
    return Agent(scripted([])).start("hi")


def test_a_run_is_found_by_its_id() -> None:
    recent, run = RecentRuns(), start()
    assert recent.get(run.id) is None
    recent.add(run)
    assert recent.get(run.id) is run


def test_the_oldest_run_is_forgotten_first_and_adding_again_makes_it_young() -> None:
    recent, runs = RecentRuns(size=2), [start() for _ in range(3)]
    for run in (runs[0], runs[1], runs[0], runs[2]):
        recent.add(run)
    assert [recent.get(run.id) is run for run in runs] == [True, False, True]


def test_a_memory_of_no_size_keeps_nothing() -> None:
    recent, run = RecentRuns(size=0), start()
    recent.add(run)
    assert recent.get(run.id) is None
