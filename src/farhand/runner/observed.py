"""`perform`, with somebody who looks on while models are asked and calls are run."""

from collections.abc import Coroutine
from typing import Any

from farhand.core.effects import AskModel, Dispatch, Effect
from farhand.runner.activity import Asking, Running
from farhand.runner.driver import Driver, Perform
from farhand.runner.observer import Onlookers
from farhand.runner.perform import ask_model, is_asking, is_executing, perform, run_call


def observed(onlookers: Onlookers) -> Perform:
    """The work that an effect asks for, begun and ended before their eyes."""

    def start(driver: Driver, effect: Effect) -> Coroutine[Any, Any, None]:
        if type(effect) is AskModel and is_asking(driver, effect):
            return _asking(onlookers, driver, effect)
        if type(effect) is Dispatch and is_executing(driver, effect):
            return _running(onlookers, driver, effect)
        return perform(driver, effect)

    return start


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
