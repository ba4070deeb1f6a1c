"""A run as its owner holds it: what it is, what others may say about its calls, going on. `driver` does the work."""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, json

from farhand.core import answers
from farhand.core.call import Outcome
from farhand.core.errors import UsageError
from farhand.core.events import Event
from farhand.core.failure import Failure
from farhand.core.run import Run
from farhand.core.step import step
from farhand.core.updates import Update
from farhand.groups import dump_augmentation
from farhand.places.values import dump, dump_result
from farhand.runner.decision import Approve, Deny, decision, remembered
from farhand.runner.driver import Driver, Means
from farhand.runner.snapshot import Snapshot
from farhand.runner.view import Output, Readable


class Receipt(Struct, frozen=True):
    """What became of an answer or a decision: it counted, or it said again what had counted before."""

    call_id: str
    repeated: bool = False
    refused: str = ""
    """Why nothing of what was wished for beside it was done; the answer itself counts."""


class LiveRun(Readable[Output]):
    """A run as its owner holds it. `wait()` goes on until it ended or needs somebody; the verbs answer its calls."""

    __slots__ = (
        "__weakref__",
        "_driver",
        "_written",
    )

    def __init__(self, driver: Driver, written: "Callable[[LiveRun[Any]], None] | None" = None) -> None:
        self._driver = driver
        self._written = written

    # What the run is

    @property
    def state(self) -> Run:
        """The run as the core sees it: a value that never changes; the next event brings another one."""
        return self._driver.state

    @property
    def means(self) -> Means:
        """What it works with in this process."""
        return self._driver.means

    @property
    def log(self) -> tuple[Event, ...]:
        """Every event since this process took the run up; from the start, `replay` leads from it to the same state."""
        return tuple(self._driver.log)

    @property
    def busy(self) -> bool:
        """Whether somebody waits for it right now, so that it works."""
        return self._driver.busy

    def follow(self, other: "LiveRun[Any]") -> None:
        """Be another handle of the same run: it was taken up again from what this one wrote down."""
        self._driver = other._driver

    def to_json(self) -> bytes:
        """The run as JSON, for `Agent.resume`. Keep it where its clients cannot change it."""
        if self._driver.busy:
            raise UsageError("the run is working; wait until it waits or has ended")
        if self._written is not None:
            self._written(self)
        return json.encode(Snapshot(seq=self._driver.seq, run=self.state, unsent=self._driver.unsent))

    # What others may say

    def answer(
        self,
        call_id: str,
        result: Any = None,
        *,
        principal: str | None = None,
        attempt: int | None = None,
        augmentation: Any = None,
    ) -> Receipt:
        """A client's result for its call; any JSON value, or message parts. Then `wait()` to go on.

        `augmentation`: what the client wishes to be changed besides, as JSON; `Receipt.refused` says if it is not.
        """
        raw, multipart = dump_result(result, dump)
        wish = None if augmentation is None else dump_augmentation(augmentation)
        receipt = self._say(
            answers.answer, call_id, principal, raw, attempt=attempt, multipart=multipart, augmentation=wish
        )
        return Receipt(call_id, receipt.repeated, self.state.calls[call_id].refused)

    def fail(
        self,
        call_id: str,
        message: str,
        *,
        code: str = "tool_failed",
        path: str = "",
        retryable: bool = True,
        details: Any = None,
        principal: str | None = None,
        attempt: int | None = None,
    ) -> Receipt:
        """A client's word that its call failed; the model is told `message`. The rest is as in `ToolError`."""
        failure = Failure(code, message, path, retryable, json.decode(dump(details)))
        return self._say(answers.fail, call_id, principal, failure, attempt=attempt)

    def accept(
        self, call_id: str, note: str = "", *, principal: str | None = None, attempt: int | None = None
    ) -> Receipt:
        """A client's word that it works on a call in the background: the run goes on, `report` says how that ended."""
        return self._say(answers.accept, call_id, principal, note=note, attempt=attempt)

    def report(
        self,
        call_id: str,
        result: Any = None,
        *,
        outcome: Literal["ok", "failed", "cancelled", "unknown"] = "ok",
        message: str = "",
        principal: str | None = None,
    ) -> Receipt:
        """How work in the background has ended. The model is told at its next turn, if the run has one."""
        raw = dump(result)
        return self._say(answers.report, call_id, principal, outcome=Outcome(outcome), result=raw, message=message)

    def approve(
        self,
        call_id: str,
        *,
        arguments: Any | UnsetType = UNSET,
        payload: Any = None,
        remember: Literal["tool", "arguments"] | None = None,
        shown: str | None = None,
        principal: str | None = None,
    ) -> Receipt:
        """A person's yes. `arguments` takes the place of the model's; `remember` makes it last."""
        text = None if arguments is UNSET else dump(arguments).decode()
        return self._say(
            answers.approve,
            call_id,
            principal,
            arguments=text,
            shown=shown,
            payload=json.decode(dump(payload)),
            remember=remembered(remember),
        )

    def deny(
        self,
        call_id: str,
        reason: str = "",
        *,
        remember: Literal["tool", "arguments"] | None = None,
        principal: str | None = None,
    ) -> Receipt:
        """A person's no; the model is told the reason."""
        return self._say(answers.deny, call_id, principal, reason=reason, remember=remembered(remember))

    def settle(
        self,
        results: Mapping[str, Any],
        decisions: Mapping[str, bool | Approve | Deny] | None = None,
        *,
        principal: str | None = None,
    ) -> tuple[Receipt, ...]:
        """Several results and decisions by call id, all of them or, when one is refused, none."""
        if not decisions and len(results) == 1:
            ((call_id, result),) = results.items()
            return (self.answer(call_id, result, principal=principal),)
        with self._driver.lock:
            return self._settle(results, decisions or {}, self._principal(principal))

    def _settle(
        self, results: Mapping[str, Any], decisions: Mapping[str, bool | Approve | Deny], who: str
    ) -> tuple[Receipt, ...]:
        now = self._now()
        asked: list[Callable[[Run], Event | None]] = []
        for call_id, verdict in decisions.items():
            asked.append(partial(decision, who=who, call_id=call_id, verdict=verdict, now=now))
        for call_id, result in results.items():
            raw, multipart = dump_result(result, dump)
            asked.append(
                partial(answers.answer, principal=who, call_id=call_id, result=raw, at=now, multipart=multipart)
            )
        events: list[Event | None] = []
        run = self.state
        for ask in asked:  # each is tried on what the ones before it would make of the run
            if events and events[-1] is not None:
                run, _ = step(run, events[-1])
            events.append(ask(run))
        for event in events:
            if event is not None:
                self._driver.commit(event)
        call_ids = [*decisions, *results]
        return tuple([Receipt(call_id, events[place] is None) for place, call_id in enumerate(call_ids)])

    def cancel_call(self, call_id: str, reason: str = "", *, principal: str | None = None) -> Receipt:
        """Call one call off; the place that works on it is told, and so is the model."""
        return self._say(answers.cancel_call, call_id, principal, reason=reason)

    def cancel(self, reason: str = "", *, principal: str | None = None) -> None:
        """Call the whole run off."""
        driver = self._driver
        with driver.lock:
            self._expect_here()
            now = driver.means.clock.now()
            event = answers.cancel_run(self.state, self._principal(principal), at=now, reason=reason)
            if event is not None:
                driver.commit(event)

    # Going on

    async def wait(self, *, hold: bool = False) -> "LiveRun[Output]":
        """Go on until the run has ended or waits for a client or a person; with `hold`, until it has ended.

        Cancelling this cancels the run.
        """
        await self._driver.drive(hold=hold)
        return self

    async def reach(self) -> None:
        """Wait while another thread works on the run: only there could anything be said about it."""
        while self._driver.elsewhere:
            await self._driver.other_driver()

    def watch(self, watcher: Callable[[Update], None], *, current: bool = False) -> Callable[[], None]:
        """Call `watcher` with every further update; returns what ends that.

        With `current`, it hears first where the run stands.
        """
        return self._driver.join(watcher) if current else self._driver.watchers.add(watcher)

    async def updates(self, *, hold: bool = False) -> AsyncGenerator[Update, None]:
        """Go on like `wait`, and give every update as it comes. Leaving the loop early cancels the run."""
        backlog: deque[Update] = deque()
        unwatch = self._driver.watchers.add(backlog.append)
        try:
            async with aclosing(self._driver.driving(hold=hold)) as news:
                async for _ in news:
                    while backlog:
                        yield backlog.popleft()
        finally:
            unwatch()

    def _say(
        self, decide: Callable[..., Event | None], call_id: str, principal: str | None, *args: Any, **keywords: Any
    ) -> Receipt:
        with self._driver.lock:
            now = self._now()
            event = decide(self.state, self._principal(principal), call_id, *args, at=now, **keywords)
            if event is not None:
                self._driver.commit(event)
        return Receipt(call_id, repeated=event is None)

    def _now(self) -> int:
        """The time, after everything has fired that was due before it."""
        self._expect_here()
        self._driver.fire_overdue()
        return self._driver.means.clock.now()

    def _expect_here(self) -> None:
        """Nothing about a run at work is made for two threads: the other's event loop would not even wake up."""
        if self._driver.elsewhere:
            raise UsageError("another thread works on this run; say it there: loop.call_soon_threadsafe(run.answer, …)")

    def _principal(self, principal: str | None) -> str:
        return self.state.principal if principal is None else principal
