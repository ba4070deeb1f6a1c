"""`perform`, with somebody who looks on while models are asked and calls are run."""

from collections.abc import Coroutine
from typing import Any

from farhand.core.effects import AskModel, Dispatch
from farhand.runner.activity import Asking, Running
from farhand.runner.driver import Driver, Perform
from farhand.runner.observer import Onlookers
from farhand.runner.perform import ask_model, is_asking, is_executing, perform, run_call


def observed(onlookers: Onlookers) -> Perform:
    """The work that an effect asks for, begun and ended before their eyes."""

    def ask(driver: Driver, effect: AskModel) -> Coroutine[Any, Any, None]:
        return _asking(onlookers, driver, effect) if is_asking(driver, effect) else ask_model(driver, effect)

    def run(driver: Driver, effect: Dispatch) -> Coroutine[Any, Any, None]:
        return _running(onlookers, driver, effect) if is_executing(driver, effect) else run_call(driver, effect)

    return {**perform, AskModel: ask, Dispatch: run}


async def _asking(onlookers: Onlookers, driver: Driver, effect: AskModel) -> None:
    means = driver.means
    seen = Asking(agent=means.agent, model=means.model.name, run=driver.state, tools=effect.tools)
    with onlookers.during(seen):
        await ask_model(driver, effect, seen)


async def _running(onlookers: Onlookers, driver: Driver, effect: Dispatch) -> None:
    run = driver.state
    seen = Running(agent=driver.means.agent, run=run, call=run.calls[effect.call_id])
    with onlookers.during(seen):
        await run_call(driver, effect, seen)
