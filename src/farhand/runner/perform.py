"""What each effect means in this process: one coroutine a kind, which does the work and commits the answering event."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from msgspec import Raw, json

from farhand.core import answers
from farhand.core.call import Call as Record
from farhand.core.call import CallState
from farhand.core.definition import Place
from farhand.core.draft import Draft
from farhand.core.effects import AskApproval, AskModel, Dispatch, JudgeApproval, JudgeStop
from farhand.core.errors import InvalidAnswer, ModelError, ToolError
from farhand.core.events import Answered, ApprovalJudged, Faulted, ModelFailed, Replied, StopJudged
from farhand.core.failure import Failure
from farhand.core.final import NO_SCHEMA
from farhand.core.pieces import Piece, ToolStart
from farhand.core.run import Phase, Run
from farhand.core.scene import CLIENT
from farhand.core.shown import shown as shown_of
from farhand.groups import dump_augmentation
from farhand.models.base import Request
from farhand.places.faults import hidden, said, shown, where
from farhand.places.functions import takes_two
from farhand.places.running import Augmented, CallContext
from farhand.places.values import dump, dump_result
from farhand.runner.activity import Asking, Running
from farhand.runner.decision import decision
from farhand.runner.driver import JUDGING, Driver, Key, Perform

logger = logging.getLogger("farhand.runner")

_ASKING = Phase.ASKING
_EXECUTING = CallState.EXECUTING
_CLIENT = Place.CLIENT

PROCESS = "this process"
"""Who holds a client call that a function of this process runs."""
PIECES = 128
"""After so many pieces of a model that never waits, everybody else has a turn."""


async def ask_model(driver: Driver, effect: AskModel, seen: Asking | None = None) -> None:
    """Have the model reply; `seen` is told what came of it."""
    run = driver.state
    if run.phase is not _ASKING or run.turn != effect.turn:
        return  # it was called off before anybody got to it
    clock = driver.means.clock
    now = clock.now
    draft = Draft(effect.turn, driver.seq, run.limits.reply_characters, run.tools)
    stream: AsyncIterator[Piece] | None = None
    left = PIECES
    asked = at = now()
    feed, tell = draft.feed, driver.tell_live
    try:
        stream = driver.means.model.stream(request_of(run, tools=effect.tools))
        async for piece in stream:
            at = now()
            update = feed(piece, at, clock.new_id() if type(piece) is ToolStart else "")
            if update is not None:
                tell(update)
            left -= 1
            if not left:
                left = PIECES
                await asyncio.sleep(0)
        event: Replied | ModelFailed = draft.reply(at)
    except (Exception, asyncio.CancelledError) as error:
        await _close(driver, stream)
        driver.tell(draft.abandon(now()))
        if isinstance(error, asyncio.CancelledError) and driver.interrupted(("", effect.turn)):
            raise
        event = ModelFailed(now(), _model_failure(driver, error))
    if seen is not None:
        seen.event = event
        seen.first_text = None if draft.text_at is None else (draft.text_at - asked) / 1000
    if driver.state is run or is_asking(driver, effect):
        driver.finish(event)


def _model_failure(driver: Driver, error: BaseException) -> Failure:
    if isinstance(error, ModelError):
        return Failure(error.code, str(error), retryable=error.retryable)
    logger.error("model %s failed: %s", driver.means.model.name, _where(driver, error))
    return Failure("model_failed", f"the model failed: {type(error).__name__}")


async def _close(driver: Driver, stream: Any) -> None:
    """Close the connection of a model that has not come to its end."""
    try:
        if hasattr(stream, "aclose"):
            await stream.aclose()
    except Exception as error:  # noqa: BLE001
        logger.error("closing model %s failed: %s", driver.means.model.name, _where(driver, error))


def is_asking(driver: Driver, effect: AskModel) -> bool:
    """Whether the run still waits for this reply."""
    run = driver.state
    return run.phase is _ASKING and run.turn == effect.turn


def request_of(run: Run, *, tools: bool) -> Request:
    """What the model is asked at this point of a run."""
    schema = None if run.output_schema == NO_SCHEMA else run.output_schema
    if run.scene is not None:
        seen = shown_of(run.tools, run.scene)
        said = "\n\n".join(text for text in (run.instructions, seen.instructions) if text)
        return Request(run.messages, seen.tools if tools else (), said, run.turn, run.id, schema, seen.told)
    offered = tuple(run.tools.values()) if tools else ()
    return Request(run.messages, offered, run.instructions, run.turn, run.id, schema)


def is_executing(driver: Driver, effect: Dispatch) -> bool:
    """Whether this attempt is still the one that is under way."""
    call = driver.state.calls[effect.call_id]
    return call.state is _EXECUTING and call.attempt == effect.attempt


async def run_call(driver: Driver, effect: Dispatch, seen: Running | None = None) -> None:
    """Have the function or callback of this process run a call; `seen` is told what came of it."""
    call = driver.state.calls[effect.call_id]
    if call.state is not _EXECUTING or call.attempt != effect.attempt:
        return  # it was answered or called off before anybody got to it
    function = driver.function(call)
    if call.place is _CLIENT:
        now, who = driver.means.clock.now(), driver.state.principal
        claimed = answers.claim(driver.state, who, call.id, PROCESS, at=now, dies=True)
        if claimed is not None:
            driver.commit(claimed)
    failure: Failure | None = None
    raw, multipart = b"null", False
    wish: Any = None
    try:
        if function is None:
            value = await _ask_callback(driver, call)
            value, wish = _apart(call, value)
            raw, multipart = dump_result(value, dump)
        else:
            context = context_of(driver, call, (call.id, call.attempt)) if function.wants_context else None
            value = await function.begin(json.decode(call.arguments), context)
            value, wish = _apart(call, value)
            raw, multipart = function.write(value)
    except ToolError as error:
        failure = said(error)
    except asyncio.CancelledError as error:
        if driver.interrupted((call.id, call.attempt)):
            raise
        failure = _hidden(driver, call, error)
    except Exception as error:  # noqa: BLE001  whatever a tool raises is told to the model, never to the program
        failure = _hidden(driver, call, error)
    event = _settle(driver, call, raw, multipart=multipart, failure=failure, wish=wish)
    if seen is not None:
        seen.event = event


def _apart(call: Record, value: Any) -> tuple[Any, Any]:
    """A result, and what a client wishes besides. The server's own functions have nothing to wish for."""
    return (value.value, value.augmentation) if type(value) is Augmented and call.source == CLIENT else (value, None)


async def _ask_callback(driver: Driver, call: Record) -> Any:
    if driver.means.on_call is None or call.place is not Place.CLIENT:
        raise ToolError(f"Tool '{call.tool}' cannot be run here.", code="tool_missing", retryable=False)
    ask: Callable[..., Any] = driver.means.on_call
    here = (context_of(driver, call, (call.id, call.attempt)),) if takes_two(ask) else ()
    value = ask(driver.view(call), *here)
    return await value if inspect.isawaitable(value) else value


def _settle(
    driver: Driver, call: Record, raw: bytes, *, multipart: bool, failure: Failure | None, wish: Any = None
) -> Answered | Faulted | None:
    """Commit the outcome of an attempt, unless the call has moved on meanwhile."""
    run, now = driver.state, driver.means.clock.now()
    current = run.calls[call.id]
    if current.state is not _EXECUTING or current.attempt != call.attempt:
        return None
    if failure is None:
        failure = answers.result_failure(run.definition_of(call), raw, run.limits.result_bytes, multipart=multipart)
    if failure is None:
        wanted, refused = (None, "") if wish is None else answers.wish_of(run, call.id, dump_augmentation(wish))
        event: Answered | Faulted = Answered(now, call.id, call.attempt, Raw(raw), multipart, wanted, refused)
    else:
        event = Faulted(now, call.id, call.attempt, failure)
    driver.finish(event)
    return event


def context_of(driver: Driver, call: Record, key: Key) -> CallContext:
    """What the tool may know of its call."""
    run = driver.state
    context = driver.contexts[key] = CallContext(
        call_id=call.id,
        tool=call.tool,
        attempt=call.attempt,
        run_id=run.id,
        thread_id=run.thread,
        principal=run.principal,
        payload=None if call.approval is None else call.approval.payload,
        on_progress=lambda name, value: driver.tell_progress(key, name, value),
    )
    return context


def _hidden(driver: Driver, call: Record, error: BaseException) -> Failure:
    number = driver.means.clock.new_id()[:8]
    logger.error("tool %s failed (error %s, call %s): %s", call.tool, number, call.id, _where(driver, error))
    return shown(error) if driver.means.show_errors else hidden(call.tool, number)


def _where(driver: Driver, error: BaseException) -> str:
    return where(error, text=driver.means.show_errors)


async def _ask_approval(driver: Driver, effect: AskApproval) -> None:
    ask, call = driver.means.on_approval, driver.state.calls[effect.call_id]
    if ask is None or call.state is not CallState.APPROVAL_REQUESTED:
        return  # it was decided or called off before anybody was asked
    verdict = ask(driver.view(call))
    verdict = await verdict if inspect.isawaitable(verdict) else verdict
    now = driver.means.clock.now()
    driver.fire_overdue()  # whoever was asked may have taken longer than there was time, and let no timer ring
    run, who = driver.state, driver.state.principal
    if run.calls[effect.call_id].state is not CallState.APPROVAL_REQUESTED:
        return
    try:
        event = decision(run, who, call.id, verdict, now)
    except InvalidAnswer as error:
        driver.warn(
            "edit_refused", f"the edited arguments of {call.tool!r} were refused, the call still waits: {error}"
        )
        return
    if event is not None:
        driver.finish(event)


async def _judge_approval(driver: Driver, effect: JudgeApproval) -> None:
    call = driver.state.calls[effect.call_id]
    if not call.judging:
        return  # it was called off before anybody got to it
    tool = driver.means.tools.get(call.tool)
    needed = True
    try:
        if tool is not None and tool.judge is not None:
            async with asyncio.timeout(driver.state.limits.server_timeout):
                needed = await tool.judge.needed(
                    json.decode(call.arguments), context_of(driver, call, (call.id, JUDGING))
                )
    except Exception as error:  # noqa: BLE001  a judge that fails or hangs lets a person decide
        logger.error("needs_approval of tool %s failed, a person decides: %s", call.tool, _where(driver, error))
    if driver.state.calls[effect.call_id].judging:
        driver.finish(ApprovalJudged(driver.means.clock.now(), effect.call_id, needed))


async def _judge_stop(driver: Driver, _effect: JudgeStop) -> None:
    condition = driver.means.stop_when
    verdict: Any = condition(driver.state) if condition is not None else False
    stop = bool(await verdict if inspect.isawaitable(verdict) else verdict)
    if driver.state.phase is Phase.JUDGING:
        driver.finish(StopJudged(driver.means.clock.now(), stop))


perform: Perform = {
    AskModel: ask_model,
    Dispatch: run_call,
    AskApproval: _ask_approval,
    JudgeApproval: _judge_approval,
    JudgeStop: _judge_stop,
}
"""The work that an effect asks for."""
