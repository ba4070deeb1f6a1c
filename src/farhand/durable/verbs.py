"""What clients and persons say about calls and runs, on any replica; when a verb returns, it is stored."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from msgspec import UNSET, UnsetType, json

from farhand.core import answers
from farhand.core.call import Call as Record
from farhand.core.call import Outcome
from farhand.core.errors import RunRefused, UnknownCall
from farhand.core.events import Event
from farhand.core.failure import Failure
from farhand.core.presence import is_with_clients
from farhand.core.run import Run
from farhand.core.step import step
from farhand.core.updates import CallProgress
from farhand.durable.names import LOCAL
from farhand.durable.record import Revived
from farhand.durable.replica import Decide, Replica
from farhand.durable.standing import Claimed
from farhand.groups import dump_augmentation
from farhand.places.values import dump, dump_result
from farhand.runner.decision import Approve, Deny, decision, remembered
from farhand.runner.live import Receipt
from farhand.stores.base import CallRow, Store
from farhand.stores.presence import ProgressRow


class Verbs(ABC):
    """The verbs of a runner. Who may say what, and what counts, is decided in `core.answers`."""

    store: Store
    _replica: Replica

    # Calls

    async def answer(
        self,
        call_id: str,
        result: Any = None,
        *,
        principal: str = LOCAL,
        attempt: int | None = None,
        client: str = "",
        augmentation: Any = None,
    ) -> Receipt:
        """A client's result for its call. The first valid answer counts; the run goes on by itself.

        A `client` that says who it is does not answer what another one has taken up. `augmentation`: what the client
        wishes to be changed besides, as JSON; `Receipt.refused` says if it is not, and the answer counts all the same.
        """
        raw, multipart = dump_result(result, dump)
        wish = None if augmentation is None else dump_augmentation(augmentation)
        refused = [""]

        def decide(run: Run, now: int) -> Sequence[Event | None]:
            event = answers.answer(
                run,
                principal,
                call_id,
                raw,
                at=now,
                attempt=attempt,
                multipart=multipart,
                client=client,
                augmentation=wish,
            )
            refused[0] = run.calls[call_id].refused if event is None else event.refused
            return [event]

        [repeated] = await self._say_of(await self._run_of(call_id), principal, decide)
        return Receipt(call_id, repeated, refused[0])

    async def fail(
        self,
        call_id: str,
        message: str,
        *,
        code: str = "tool_failed",
        path: str = "",
        retryable: bool = True,
        details: Any = None,
        principal: str = LOCAL,
        attempt: int | None = None,
        client: str = "",
    ) -> Receipt:
        """A client's word that its call failed."""
        failure = Failure(code, message, path, retryable, json.decode(dump(details)))
        say = partial(answers.fail, failure=failure, attempt=attempt, client=client)
        return await self._say(call_id, principal, say)

    async def accept(
        self,
        call_id: str,
        note: str = "",
        *,
        principal: str = LOCAL,
        attempt: int | None = None,
        client: str = "",
    ) -> Receipt:
        """A client's word that it works on a call in the background: the run goes on, `report` says how that ended."""
        return await self._say(call_id, principal, partial(answers.accept, note=note, attempt=attempt, client=client))

    async def report(
        self,
        call_id: str,
        result: Any = None,
        *,
        outcome: Literal["ok", "failed", "cancelled", "unknown"] = "ok",
        message: str = "",
        principal: str = LOCAL,
    ) -> Receipt:
        """How work in the background has ended, at any time. If its run is over, the thread's next run tells the model.

        That is the run that is open by then, or else one that begins with the news.
        """
        say = partial(answers.report, outcome=Outcome(outcome), result=dump(result), message=message)
        receipt = await self._say(call_id, principal, say)
        revived = await self._replica.read(await self._run_of(call_id))
        if revived is not None and revived.run.ending is not None:
            await self._tell_thread(revived, call_id)
        return receipt

    async def claim(self, call_id: str, client: str, *, principal: str = LOCAL) -> Claimed:
        """One of several clients takes a call up; the others see that it is taken."""
        presence = self._replica.presence
        row, _ = await self._standing(call_id, principal)
        was_there = await presence.knows(principal, row.thread, client)
        taken: list[Run] = []

        def decide(run: Run, now: int) -> Sequence[Event | None]:
            event = answers.claim(run, principal, call_id, client, at=now)
            taken[:] = [run]
            return [event]

        [repeated] = await self._say_of(row.run, principal, decide)
        run, call = taken[0], taken[0].calls[call_id]
        if was_there and run.attended:
            presence.look_after(run.id, principal, row.thread, call_id, client)
        return Claimed(
            call_id,
            repeated,
            attempt=call.attempt,
            arguments=call.arguments,
            deadline=call.deadline,
            payload=None if call.approval is None else call.approval.payload,
        )

    async def release(self, call_id: str, client: str, *, principal: str = LOCAL) -> Receipt:
        """Whoever has taken a call up gives it back untouched: any client may take it up. Its deadline stays."""
        row, _ = await self._standing(call_id, principal)
        attended: list[bool] = []

        def decide(run: Run, now: int) -> Sequence[Event | None]:
            attended[:] = [run.attended]
            return [answers.release(run, principal, call_id, holder=client, at=now)]

        [repeated] = await self._say_of(row.run, principal, decide)
        if attended[0]:
            self._replica.presence.look_for(row.run, principal, row.thread, call_id)
        return Receipt(call_id, repeated)

    async def progress(
        self,
        call_id: str,
        value: Any,
        *,
        name: str = "progress",
        client: str = "",
        attempt: int | None = None,
        principal: str = LOCAL,
    ) -> None:
        """How far a client is with its call, for whoever watches. It is refused where an answer would be."""
        raw = dump(value)
        said = json.decode(raw)
        row, seq = await self._standing(call_id, principal)
        if len(raw) + len(name) > answers.REASON_BYTES or not _is_open_to(row.record, attempt, client):
            revived = await self._read(call_id, principal)
            answers.progress(revived.run, principal, call_id, [name, said], attempt=attempt, client=client)
        now = self._replica.reports.time(call_id, self._replica.clock.now())
        self._replica.feeds.teller(row.thread)(CallProgress(seq, now, call_id, said, name))
        self._replica.reports.put(ProgressRow(call=call_id, run=row.run, name=name, value=raw, at=now))

    # Decisions

    async def approve(
        self,
        call_id: str,
        *,
        arguments: Any | UnsetType = UNSET,
        payload: Any = None,
        remember: Literal["tool", "arguments"] | None = None,
        shown: str | None = None,
        principal: str = LOCAL,
    ) -> Receipt:
        """A person's yes, bound to what was shown; it counts once."""
        text = None if arguments is UNSET else dump(arguments).decode()
        said = json.decode(dump(payload))
        say = partial(answers.approve, arguments=text, shown=shown, payload=said, remember=remembered(remember))
        return await self._say(call_id, principal, say)

    async def deny(
        self,
        call_id: str,
        reason: str = "",
        *,
        remember: Literal["tool", "arguments"] | None = None,
        principal: str = LOCAL,
    ) -> Receipt:
        """A person's no; the model is told the reason."""
        return await self._say(call_id, principal, partial(answers.deny, reason=reason, remember=remembered(remember)))

    # Several at once, and calling off

    async def settle(
        self,
        results: Mapping[str, Any],
        decisions: Mapping[str, bool | Approve | Deny] | None = None,
        *,
        principal: str = LOCAL,
    ) -> tuple[Receipt, ...]:
        """Several results and decisions about calls of one run; all of them count or, when one is refused, none."""
        asked: list[Callable[[Run, int], Event | None]] = []
        for call_id, verdict in (decisions or {}).items():
            asked.append(partial(_decide, principal, call_id, verdict))
        for call_id, result in results.items():
            raw, multipart = dump_result(result, dump)
            asked.append(partial(_answer, principal, call_id, raw, multipart))
        call_ids = [*(decisions or {}), *results]
        if not call_ids:
            return ()
        repeated = await self._say_of(await self._run_of(call_ids[0]), principal, partial(_in_turn, asked))
        return tuple(Receipt(call_id, said) for call_id, said in zip(call_ids, repeated, strict=True))

    async def cancel_call(self, call_id: str, reason: str = "", *, principal: str = LOCAL) -> Receipt:
        """Call one call off; the place that works on it is told, and so is the model."""
        return await self._say(call_id, principal, partial(answers.cancel_call, reason=reason))

    async def cancel(self, run: str, reason: str = "", *, principal: str = LOCAL) -> bool:
        """Call a whole run off; false if it had ended already."""

        def decide(state: Run, now: int) -> Sequence[Event | None]:
            return [answers.cancel_run(state, principal, at=now, reason=reason)]

        [repeated] = await self._say_of(run, principal, decide, "there is no such run")
        return not repeated

    async def forget(self, *, principal: str = LOCAL) -> None:
        """Ask again about everything that the principal has decided for good."""
        await self.store.forget(principal)

    # How it is done

    async def _say(self, call_id: str, principal: str, say: Callable[..., Event | None]) -> Receipt:
        def decide(run: Run, now: int) -> Sequence[Event | None]:
            return [say(run, principal, call_id, at=now)]

        [repeated] = await self._say_of(await self._run_of(call_id), principal, decide)
        return Receipt(call_id, repeated)

    async def _say_of(
        self, run: str, principal: str, decide: Decide, unknown: str = "there is no such call"
    ) -> Sequence[bool]:
        """A stranger is told just what he is told of a run that is not there, also of one that was put aside."""
        try:
            return await self._replica.say(run, decide)
        except UnknownCall:
            raise UnknownCall(unknown) from None
        except RunRefused:
            await self._expect_owner(run, principal, unknown)
            raise

    async def _read(self, call_id: str, principal: str) -> Revived:
        """The run of a call, for its owner."""
        run = await self._run_of(call_id)
        try:
            revived = await self._replica.read(run)
        except RunRefused:
            await self._expect_owner(run, principal, "there is no such call")
            raise
        if revived is None or revived.run.principal != principal:
            raise UnknownCall("there is no such call")
        return revived

    async def _expect_owner(self, run: str, principal: str, unknown: str) -> None:
        stored = await self.store.load(run)
        if stored is None or stored.run.principal != principal:
            raise UnknownCall(unknown) from None

    async def _standing(self, call_id: str, principal: str) -> tuple[CallRow, int]:
        """A call's row, for its owner, and the number of its run's last update."""
        found = await self.store.standing(call_id)
        if found is None or found[0].principal != principal:
            raise UnknownCall("there is no such call")
        return found

    async def _run_of(self, call_id: str) -> str:
        run = await self.store.run_of(call_id)
        if run is None:
            raise UnknownCall("there is no such call")
        return run

    @abstractmethod
    async def _tell_thread(self, revived: Revived, call_id: str) -> None:
        """Have the model told of what came after the end of a run."""


def _is_open_to(record: bytes, attempt: int | None, client: str) -> bool:
    """Whether it is clear from the call alone that a client may speak of it; otherwise its run has to be asked."""
    if not record:
        return False
    call = json.decode(record, type=Record)
    return is_with_clients(call) and attempt in (None, call.attempt) and client in ("", call.held_by)


def _answer(principal: str, call_id: str, raw: bytes, multipart: bool, run: Run, now: int) -> Event | None:
    return answers.answer(run, principal, call_id, raw, at=now, multipart=multipart)


def _decide(principal: str, call_id: str, verdict: object, run: Run, now: int) -> Event | None:
    return decision(run, principal, call_id, verdict, now)


def _in_turn(asked: Sequence[Callable[[Run, int], Event | None]], run: Run, now: int) -> Sequence[Event | None]:
    """Each is tried on what the ones before it would make of the run."""
    events: list[Event | None] = []
    for ask in asked:
        events.append(ask(run, now))
        if events[-1] is not None:
            run, _ = step(run, events[-1])
    return events
