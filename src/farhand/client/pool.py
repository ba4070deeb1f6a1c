"""Works on calls: takes them up, runs them side by side up to a limit, and answers. Nothing here reads a stream.

Whatever happens in a function, its call is answered. Only a call that somebody else has ended, or taken, is left alone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Raw, structs

from farhand.client.calls import ClientCall, Offer
from farhand.client.events import AugmentationRefused, Events, MaxToolsReached, ToolEnd, ToolValidationError
from farhand.client.execution import Done, Execution
from farhand.client.hands import Hands
from farhand.client.progress import Progress
from farhand.client.wire import Wire
from farhand.core import reasons
from farhand.core.definition import SideEffect
from farhand.core.errors import FarhandError, InvalidAnswer, RefusedAnswer
from farhand.core.failure import Failure
from farhand.places.faults import where
from farhand.places.running import CallContext
from farhand.plugins import PluginSet
from farhand.protocols.native import Claimed, ClaimRequest, ProgressRequest, ReleaseRequest

logger = logging.getLogger("farhand.client")

CLOSING = 2.0
"""Seconds that a client takes to tell the server of what it leaves unfinished."""
_UNSENDABLE = frozenset({"too_large", "invalid_input", "usage"})


class Work:
    """One attempt of a call that is worked on."""

    def __init__(self, offer: Offer, hands: Hands, after: Callable[[], None] | None) -> None:
        self.offer = offer
        self.hands = hands
        self.after = [] if after is None else [after]
        """Called once nothing is done about it any more."""
        self.task: asyncio.Task[None] | None = None
        self.claiming = False
        """Whether the server may think that this client has it."""
        self.execution: Execution | None = None
        self.answering = False
        """From here on it is the server that says what counts."""
        self.withdrawn = ""

    @property
    def attempt(self) -> int:
        """Which one."""
        return self.offer.record.attempt


class Pool:
    """All calls that this client works on, whichever stream told of them; each attempt once."""

    def __init__(
        self,
        wire: Wire,
        events: Events,
        plugins: PluginSet,
        *,
        client: str,
        parallel: int,
        timeout: float | None,
        show_errors: bool,
    ) -> None:
        self._wire = wire
        self._events = events
        self._plugins = plugins
        self._client = client
        self._timeout = timeout
        self._show_errors = show_errors
        self._for_ever = structs.replace(wire.patience, total=None)
        """What was done is told however long that takes, or until the client is closed."""
        self._slots = asyncio.Semaphore(parallel)
        self._works: dict[str, Work] = {}
        self._followed: dict[str, int] = {}
        self._aside: dict[str, tuple[Offer, Hands]] = {}
        self._left_alone: set[str] = set()
        self._closed = False

    # Who tells of calls

    def take(self, offer: Offer, hands: Hands, after: Callable[[], None] | None = None) -> None:
        """Work on a call."""
        if self._closed or offer.record.id in self._left_alone:
            return
        known = self._works.get(offer.record.id)
        if known is not None and known.attempt >= offer.record.attempt and not known.withdrawn:
            if after is not None:
                known.after.append(after)
            return
        self.withdraw(offer.record.id)
        work = self._works[offer.record.id] = Work(offer, hands, after)
        work.task = asyncio.create_task(self._work(work))

    def leave_alone(self, call_id: str) -> None:
        """A call that this client gives back is not taken up again by itself."""
        self._left_alone.add(call_id)

    def take_unless_followed(self, offer: Offer, hands: Hands) -> None:
        """The same for a provider, whose client may follow the run itself and then has more to say about its calls."""
        if offer.run_id in self._followed:
            self._aside[offer.record.id] = (offer, hands)
        else:
            self.take(offer, hands)

    def follow(self, run_id: str) -> None:
        """A run is followed by a stream that takes its calls."""
        self._followed[run_id] = self._followed.get(run_id, 0) + 1

    def unfollow(self, run_id: str) -> None:
        """Not any more: what a provider is offered of it is taken from now on."""
        self._followed[run_id] -= 1
        if not self._followed[run_id]:
            del self._followed[run_id]
            for offer, hands in [each for each in self._aside.values() if each[0].run_id == run_id]:
                del self._aside[offer.record.id]
                self.take(offer, hands)

    def withdraw(self, call_id: str, attempt: int | None = None, *, why: str = "ended") -> None:
        """Stop working on a call, or on one attempt of it: it has ended, or is somebody else's."""
        self._aside.pop(call_id, None)
        work = self._works.get(call_id)
        if work is None or work.answering or work.withdrawn or (attempt is not None and attempt < work.attempt):
            return
        work.withdrawn = why
        if work.execution is not None:
            work.execution.call.context.cancelled = True
        if work.task is not None:
            work.task.cancel()

    async def close(self) -> None:
        """Stop everything, and tell the server of it as far as it listens."""
        self._closed = True
        for call_id in list(self._works):
            self.withdraw(call_id, why="closed")
        tasks = [work.task for work in self._works.values() if work.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSING)
            for task in late:
                task.cancel()

    # How one is worked on

    async def _work(self, work: Work) -> None:
        try:
            await self._until_answered(work)
        except asyncio.CancelledError:
            if not work.withdrawn or work.task is None or work.task.uncancel():
                raise
            await self._leave(work)
        except Exception as error:  # noqa: BLE001  the stream goes on, and so do other calls
            await self._plugins.report(error, f"call {work.offer.record.id} of tool {work.offer.record.tool!r}")
        finally:
            if self._works.get(work.offer.record.id) is work:
                del self._works[work.offer.record.id]
            for after in work.after:
                after()

    async def _until_answered(self, work: Work) -> None:
        if not work.hands.rounds.allow(work.offer.record.turn):
            await self._refuse(work)
            return
        if work.offer.record.held_by == self._client and not self._may_repeat(work):
            await self._give_up(work)
            return
        async with self._slots:
            claimed = await self._claim(work)
            if claimed is None:
                return
            progress = Progress(self._teller(claimed))
            execution = work.execution = self._execution(work, claimed, progress.tell)
            try:
                done = await execution.run(lambda: bool(work.withdrawn) or _is_cancelled(work))
                work.answering = True
                await progress.flush()
            finally:
                progress.stop()
        await self._answer(execution, done)

    async def _claim(self, work: Work) -> Claimed | None:
        call_id = work.offer.record.id
        work.claiming = True
        try:
            return await self._wire.ask("claim-call", {"call": call_id}, body=ClaimRequest(client=self._client))
        except RefusedAnswer as error:
            logger.debug("call %s is not ours: %s", call_id, error.code)
            work.claiming = False
            return None

    def _teller(self, claimed: Claimed) -> Callable[[str, Raw], Awaitable[Any]]:
        def send(name: str, value: Raw) -> Awaitable[Any]:
            body = ProgressRequest(value=value, name=name, client=self._client, attempt=claimed.attempt)
            return self._wire.ask_once("tell-progress", {"call": claimed.call_id}, body=body)

        return send

    def _execution(self, work: Work, claimed: Claimed | None, on_progress: Callable[[str, Any], None]) -> Execution:
        """What the program gets of a call; what was claimed is newer than what was offered."""
        record = work.offer.record
        if claimed is not None:
            record = structs.replace(
                record, arguments=claimed.arguments, attempt=claimed.attempt, deadline=claimed.deadline
            )
        context = CallContext(
            call_id=record.id,
            tool=record.tool,
            attempt=record.attempt,
            run_id=work.offer.run_id,
            thread_id=work.offer.thread_id,
            principal="" if claimed is None else claimed.principal,
            payload=None if claimed is None else claimed.payload,
            on_progress=on_progress,
        )
        call = ClientCall(record, work.hands.tools.get(record.tool), context)
        return Execution(
            call,
            work.hands,
            self._plugins,
            self._events,
            client=self._client,
            timeout=self._timeout,
            show_errors=self._show_errors,
        )

    async def _answer(self, execution: Execution, done: Done) -> None:
        """Say it until the server has it: then it counts, or the server says why it does not."""
        call, counts = execution.call, True
        try:
            path = {"call": call.id}
            receipt = await self._wire.ask("answer-call", path, body=done.request, patience=self._for_ever)
            if receipt.refused:
                self._events.tell(AugmentationRefused(call, receipt.refused))
        except InvalidAnswer as error:
            if done.failure is not None:
                raise
            self._events.tell(ToolValidationError(call, "result", error.problems))
            await self._answer(execution, execution.failed(Failure("invalid_result", str(error))))
            return
        except RefusedAnswer as error:
            logger.debug("the answer to call %s does not count: %s", call.id, error.code)
            counts = False
        except FarhandError as error:
            if done.failure is not None or error.code not in _UNSENDABLE:
                raise
            await self._answer(execution, execution.failed(Failure(error.code, str(error))))
            return
        outcome = done.outcome if counts else "cancelled"
        self._events.tell(ToolEnd(call, outcome, done.result, done.failure, execution.seconds))

    async def _refuse(self, work: Work) -> None:
        """A call beyond the limit of rounds is not run: its result would come to a model that shall not go on."""
        rounds, tool = work.hands.rounds, work.offer.record.tool
        if not rounds.told:
            rounds.told = True
            self._events.tell(MaxToolsReached(work.offer.run_id, rounds.limit))
        text = f"Tool '{tool}' was not run: the limit of {rounds.limit} rounds of tools is reached."
        work.answering = True
        execution = self._execution(work, None, _unheard)
        await self._answer(execution, execution.failed(Failure("limit_reached", f"{text} Answer without tools.")))

    def _may_repeat(self, work: Work) -> bool:
        definition = work.hands.definition(work.offer.record.tool)
        return definition is not None and definition.policy.effect is not SideEffect.ONCE

    async def _give_up(self, work: Work) -> None:
        """A call that an earlier life of this client had taken up: nobody can tell what became of it."""
        work.answering = True
        execution = self._execution(work, None, _unheard)
        await self._answer(execution, execution.failed(reasons.unknown(work.offer.record)))

    async def _leave(self, work: Work) -> None:
        """A call that was withdrawn while it ran."""
        execution = work.execution
        if execution is None or not execution.began:
            if work.claiming and work.withdrawn == "closed":
                await self._tell_once(work, "release-call", ReleaseRequest(client=self._client))
            return
        self._events.tell(ToolEnd(execution.call, "cancelled", None, None, execution.seconds))
        if work.withdrawn == "closed":
            text = f"Client tool '{execution.call.tool}' was stopped: its client has closed."
            done = execution.failed(Failure("client_closed", text, retryable=True))
            await self._tell_once(work, "answer-call", done.request)

    async def _tell_once(self, work: Work, what: str, body: Any) -> None:
        try:
            await self._wire.ask_once(what, {"call": work.offer.record.id}, body=body)
        except Exception as error:  # noqa: BLE001  the server will miss the client by itself
            logger.debug("call %s was left unanswered: %s", work.offer.record.id, where(error))


def _is_cancelled(work: Work) -> bool:
    return work.task is not None and bool(work.task.cancelling())


def _unheard(_name: str, _value: Any) -> None:
    """Of a call that is not run, nobody hears how far it is."""
