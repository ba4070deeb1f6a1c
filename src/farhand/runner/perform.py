"""What each effect means in this process: one coroutine a kind, which does the work and commits the answering event."""

import inspect
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, json

from farhand.core import answers
from farhand.core.call import Call as Record
from farhand.core.call import CallState
from farhand.core.definition import Place
from farhand.core.draft import Draft
from farhand.core.effects import AskApproval, AskModel, Dispatch, Effect, JudgeApproval, JudgeStop
from farhand.core.errors import ModelError, ToolError
from farhand.core.events import Answered, ApprovalJudged, Faulted, ModelFailed, StopJudged
from farhand.core.failure import Failure
from farhand.core.pieces import Piece, ToolStart
from farhand.core.run import Phase, Run
from farhand.models.base import Request
from farhand.places.running import CallContext
from farhand.places.values import dump, dump_result
from farhand.runner.decision import Approve, Deny, remembered

if TYPE_CHECKING:
    from farhand.runner.driver import Driver

logger = logging.getLogger("farhand.runner")

DECIDING = 0
JUDGING = -1
CALLBACK = "callback"
"""Who holds a client call that a function of this process runs."""


async def _ask_model(driver: "Driver", effect: AskModel) -> None:
    if not _is_asking(driver, effect):
        return  # the run was called off before anybody got to it
    clock = driver.means.clock
    draft = Draft(effect.turn, driver.seq)
    stream: AsyncIterator[Piece] | None = None
    try:
        stream = driver.means.model.stream(request_of(driver.state, tools=effect.tools))
        async for piece in stream:
            update = draft.feed(piece, clock.now(), clock.new_id() if type(piece) is ToolStart else "")
            if update is not None:
                driver.tell_live(update)
        event = draft.reply(clock.now())
    except ModelError as error:
        event = ModelFailed(clock.now(), Failure(error.code, str(error), retryable=error.retryable))
    except Exception as error:
        logger.exception("model %s failed", driver.means.model.name)
        event = ModelFailed(clock.now(), Failure("model_failed", f"the model failed: {type(error).__name__}"))
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    if _is_asking(driver, effect):
        driver.finish(event)


def _is_asking(driver: "Driver", effect: AskModel) -> bool:
    return driver.state.phase is Phase.ASKING and driver.state.turn == effect.turn


def request_of(run: Run, *, tools: bool) -> Request:
    """What the model is asked at this point of a run."""
    offered = tuple(run.tools.values()) if tools else ()
    schema = None if bytes(run.output_schema) == b"null" else run.output_schema
    return Request(run.messages, offered, run.instructions, run.turn, run.id, schema)


async def _dispatch(driver: "Driver", effect: Dispatch) -> None:
    call = driver.state.calls[effect.call_id]
    if call.state is not CallState.EXECUTING or call.attempt != effect.attempt:
        return  # it was answered or called off before anybody got to it
    function = driver.function(call)
    if call.place is Place.CLIENT:
        claimed = answers.claim(driver.state, driver.state.principal, call.id, CALLBACK, at=driver.means.clock.now())
        if claimed is not None:
            driver.commit(claimed)
    failure: Failure | None = None
    raw, multipart = b"null", False
    try:
        if function is not None:
            context = context_of(driver, call) if function.wants_context else None
            raw, multipart = await function.run(json.decode(call.arguments), context)
        elif driver.means.on_call is not None and call.place is Place.CLIENT:
            value = driver.means.on_call(driver.view(call))
            raw, multipart = dump_result(await value if inspect.isawaitable(value) else value, dump)
        else:
            failure = Failure("tool_missing", f"Tool '{call.tool}' cannot be run here.")
    except ToolError as error:
        failure = Failure(error.code, error.message, error.path, error.retryable, error.details)
    except Exception as error:  # noqa: BLE001  whatever a tool raises is told to the model, never to the program
        failure = _hidden(driver, call, error)
    _settle(driver, call, raw, multipart=multipart, failure=failure)


def _settle(driver: "Driver", call: Record, raw: bytes, *, multipart: bool, failure: Failure | None) -> None:
    """Commit the outcome of an attempt, unless the call has moved on meanwhile."""
    run, now = driver.state, driver.means.clock.now()
    current = run.calls[call.id]
    if current.state is not CallState.EXECUTING or current.attempt != call.attempt:
        return
    if failure is None:
        failure = answers.result_failure(run.definition_of(call), raw, run.limits.result_bytes, multipart=multipart)
    if failure is None:
        driver.finish(Answered(now, call.id, call.attempt, Raw(raw), multipart))
    else:
        driver.finish(Faulted(now, call.id, call.attempt, failure))


def context_of(driver: "Driver", call: Record) -> CallContext:
    """What the tool may know of its call."""
    run = driver.state
    context = driver.contexts[call.id] = CallContext(
        call_id=call.id,
        tool=call.tool,
        attempt=call.attempt,
        run_id=run.id,
        thread_id=run.thread,
        principal=run.principal,
        payload=None if call.approval is None else call.approval.payload,
        on_progress=driver.tell_progress,
    )
    return context


def _hidden(driver: "Driver", call: Record, error: Exception) -> Failure:
    """An exception that no author meant for the model: its text stays in the log, under a number that both see."""
    if driver.means.show_errors:
        return Failure("tool_failed", str(error) or type(error).__name__, retryable=True)
    number = driver.means.clock.new_id()[:8]
    logger.error("tool %s failed (error %s, call %s)", call.tool, number, call.id, exc_info=error)
    return Failure("tool_failed", f"Tool '{call.tool}' failed (error {number}).", retryable=True)


async def _ask_approval(driver: "Driver", effect: AskApproval) -> None:
    ask, call = driver.means.on_approval, driver.state.calls[effect.call_id]
    if ask is None or call.state is not CallState.APPROVAL_REQUESTED:
        return  # it was decided or called off before anybody was asked
    verdict = ask(driver.view(call))
    verdict = await verdict if inspect.isawaitable(verdict) else verdict
    run, now, who = driver.state, driver.means.clock.now(), driver.state.principal
    if run.calls[effect.call_id].state is not CallState.APPROVAL_REQUESTED:
        return
    match verdict:
        case True | Approve():
            yes = verdict if isinstance(verdict, Approve) else Approve()
            text = None if yes.arguments is UNSET else dump(yes.arguments).decode()
            scope = remembered(yes.remember)
            event = answers.approve(
                run, who, effect.call_id, at=now, arguments=text, payload=yes.payload, remember=scope
            )
        case False | Deny():
            no = verdict if isinstance(verdict, Deny) else Deny()
            event = answers.deny(run, who, effect.call_id, at=now, reason=no.reason, remember=remembered(no.remember))
        case _:
            raise TypeError(f"on_approval returns True, False, Approve or Deny, not {type(verdict).__name__}")
    if event is not None:
        driver.finish(event)


async def _judge_approval(driver: "Driver", effect: JudgeApproval) -> None:
    call = driver.state.calls[effect.call_id]
    tool = driver.means.tools.get(call.tool)
    needed = True
    try:
        if tool is not None and tool.judge is not None:
            needed = await tool.judge.needed(json.decode(call.arguments), context_of(driver, call))
    except Exception:
        logger.exception("needs_approval of tool %s failed; a person decides", call.tool)
    if driver.state.calls[effect.call_id].judging:
        driver.finish(ApprovalJudged(driver.means.clock.now(), effect.call_id, needed))


async def _judge_stop(driver: "Driver", _effect: JudgeStop) -> None:
    condition = driver.means.stop_when
    verdict: Any = condition(driver.state) if condition is not None else False
    stop = bool(await verdict if inspect.isawaitable(verdict) else verdict)
    if driver.state.phase is Phase.JUDGING:
        driver.finish(StopJudged(driver.means.clock.now(), stop))


_WORK: dict[type, Callable[["Driver", Any], Coroutine[Any, Any, None]]] = {
    AskModel: _ask_model,
    Dispatch: _dispatch,
    AskApproval: _ask_approval,
    JudgeApproval: _judge_approval,
    JudgeStop: _judge_stop,
}


def perform(driver: "Driver", effect: Effect) -> tuple[Coroutine[Any, Any, None], tuple[str, int]]:
    """The work that an effect asks for, and the name under which it can be stopped."""
    work = _WORK[type(effect)](driver, effect)
    match effect:
        case Dispatch():
            return work, (effect.call_id, effect.attempt)
        case AskModel():
            return work, ("", effect.turn)
        case AskApproval():
            return work, (effect.call_id, DECIDING)
        case JudgeApproval():
            return work, (effect.call_id, JUDGING)
        case _:
            return work, ("", JUDGING)
