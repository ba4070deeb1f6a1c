"""What each endpoint of the native protocol does: asks the runner, and shows what it says. It knows nothing of HTTP.

`Desk.answers` has one entry for every endpoint; a test holds it against `ENDPOINTS`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from farhand.asgi.access.principal import Principal, authorise
from farhand.asgi.access.quota import Quotas
from farhand.asgi.board import Board
from farhand.asgi.routes import checked_id
from farhand.asgi.scenery import scenery_of, tools_in
from farhand.asgi.streams import Batches, Encoder
from farhand.asgi.views import row_view, run_view
from farhand.core.definition import safe_validate_tool_definitions
from farhand.core.errors import InvalidInput, NotAllowed, StoreError, UnknownCall
from farhand.core.messages import Part
from farhand.core.secrets import told_message
from farhand.core.updates import RunEnded, RunWaiting, Update, current
from farhand.durable import Runner, StoredRun
from farhand.durable.names import thread_key
from farhand.durable.position import Position
from farhand.protocols import native
from farhand.protocols.offer import tool_views
from farhand.protocols.views import call_view, client_state_view
from farhand.runner.decision import Approve, Deny


class Asked(Struct, frozen=True):
    """One request, when it is known who asks and what was sent."""

    who: Principal
    ids: Mapping[str, str]
    """Those in the path."""
    body: Any = None
    query: Any = None
    last_event: str = ""


class Streamed(Struct, frozen=True):
    """An answer that goes on."""

    batches: Batches
    headers: tuple[tuple[bytes, bytes], ...] = ()


ClientTools: TypeAlias = Literal["accept", "refuse", "ignore"]
"""What becomes of definitions that clients bring. Tools that the agents define may be run by clients either way."""
Answer: TypeAlias = Callable[[Asked], Awaitable[Any]]


class Desk:
    """Answers what a principal asks, from a runner."""

    def __init__(
        self,
        runner: Runner,
        quotas: Quotas,
        board: Callable[[Encoder], Board],
        *,
        version: str,
        client_tools: ClientTools = "accept",
    ) -> None:
        self.runner = runner
        self.encoder = Encoder()
        self.board = board(self.encoder)
        self.draining = False
        self._leaving: set[asyncio.Future[None]] = set()
        self._quotas = quotas
        self._client_tools = client_tools
        self.version = version
        self.answers: Mapping[str, Answer] = {
            "start-run": self._start_run,
            "get-thread": self._get_thread,
            "watch-thread": self._watch_thread,
            "answer-calls": self._answer_calls,
            "list-calls": self._list_calls,
            "get-call": self._get_call,
            "claim-call": self._claim_call,
            "release-call": self._release_call,
            "tell-progress": self._tell_progress,
            "answer-call": self._answer_call,
            "report-call": self._report_call,
            "decide-call": self._decide_call,
            "cancel-call": self._cancel_call,
            "list-runs": self._list_runs,
            "get-run": self._get_run,
            "cancel-run": self._cancel_run,
            "forget-decisions": self._forget_decisions,
            "list-tools": self._list_tools,
            "get-server": self._get_server,
            "get-status": self._get_status,
            "get-metrics": self._get_metrics,
            "is-alive": self._is_alive,
            "is-ready": self._is_ready,
        }
        self.streams: Mapping[str, Callable[[Asked], Awaitable[Streamed]]] = {
            "start-run": self._stream_run,
            "watch-thread": self._stream_thread,
            "provide-tools": self._stream_offers,
        }

    # Runs

    async def _start(self, asked: Asked) -> StoredRun[Any]:
        body: native.RunRequest = asked.body
        who = asked.who
        for at, capability in enumerate(body.requires):
            if capability not in native.CAPABILITIES:
                known = ", ".join(sorted(native.CAPABILITIES))
                raise InvalidInput(f"/requires/{at}: this server cannot do that; it can: {known}")
        tools = self._brought(who, body.tools, body.groups, body.declared)
        await self._expect_room(who.id, asked.ids["thread"])
        return await self.runner.start(
            body.input,
            thread=asked.ids["thread"],
            principal=who.id,
            agent=body.agent or None,
            tools=tools,
            key=body.key,
            busy=body.busy,
            attended=body.wait == "held",
            target=body.target,
            clashes="refuse",
            **scenery_of(body, takes_tools=self._client_tools == "accept"),
        )

    def _brought(self, who: Principal, tools: Raw, *groups: Raw) -> bytes | tuple[()]:
        """The definitions that a client brings, if the server takes any; those in groups are counted with them."""
        if all(bytes(each) == b"[]" for each in (tools, *groups)) or self._client_tools == "ignore":
            return ()
        if self._client_tools == "refuse":
            raise NotAllowed("this server takes no tools of its clients")
        self._quotas.registered(who.id)
        return () if bytes(tools) == b"[]" else bytes(tools)

    async def _expect_room(self, who: str, thread: str) -> None:
        """Raise if a principal would have more than its quota with another run in a thread."""
        quota = self._quotas.quota
        if (quota.threads, quota.runs, quota.calls) == (None, None, None):
            return
        has = await self.runner.store.holdings(who)
        known = await self.runner.store.thread(thread_key(who, thread))
        self._quotas.calls(has.calls)
        if known is None:
            self._quotas.threads(has.threads)
        if known is None or not known.run:
            self._quotas.runs(has.runs)

    async def _start_run(self, asked: Asked) -> native.RunHandle:
        run = await self._start(asked)
        return native.RunHandle(run_id=run.id, thread_id=run.thread, seq=run.seq)

    async def _stream_run(self, asked: Asked) -> Streamed:
        body: native.RunRequest = asked.body
        thread = asked.ids["thread"]
        offers = body.offers
        if offers is None:
            offers = (*_named(body.tools), *tools_in(body.groups), *tools_in(body.declared))
        attachment = None
        if body.client or offers:  # before the run begins, so that its first call finds somebody
            client = body.client or self.runner.new_id()
            attachment = await self.runner.attach(client, offers, principal=asked.who.id, thread=thread)
        try:
            run = await self._start(asked)
        except BaseException:
            if attachment is not None:
                await attachment.close()
            raise
        after = Position.parse(asked.last_event) if asked.last_event else Position(run.seq)
        batches = self._run_updates(run, asked.who.id, after, attachment, hold=body.wait == "held")
        return Streamed(batches, ((b"farhand-run", run.id.encode()), (b"farhand-thread", _header(run.thread))))

    async def _run_updates(
        self, run: StoredRun[Any], principal: str, after: Position, attachment: Any, *, hold: bool
    ) -> Batches:
        """Updates of a run until its end; without `hold` also until it waits for somebody."""
        try:
            ended = await _how_it_ended(run)
            if ended and after.seq >= ended[-1].seq:  # asked for again, when everything was over
                yield ended
                return
            async with aclosing(self.runner.watch_many(run.thread, after, principal=principal)) as batches:
                async for batch in batches:
                    last = _end_of(batch, hold=hold)
                    yield batch if last is None else batch[: last + 1]
                    if last is not None:
                        return
        finally:
            if attachment is not None:  # the stream ends without waiting for that to be stored
                leaving = asyncio.ensure_future(attachment.close())
                self._leaving.add(leaving)
                leaving.add_done_callback(self._leaving.discard)

    async def _list_runs(self, asked: Asked) -> native.RunList:
        query: native.RunQuery = asked.query
        rows = await self.runner.runs(principal=asked.who.id, state=query.state, limit=query.limit)
        return native.RunList(runs=tuple([row_view(row, thread) for row, thread in rows]))

    async def _get_run(self, asked: Asked) -> native.RunView:
        run = await self.runner.find(asked.ids["run"], principal=asked.who.id)
        view = await run.look()
        return run_view(view.state, agent=run.agent, seq=run.seq)

    async def _cancel_run(self, asked: Asked) -> native.Cancelled:
        first = await self.runner.cancel(asked.ids["run"], asked.body.reason, principal=asked.who.id)
        return native.Cancelled(repeated=not first)

    # Threads

    async def _get_thread(self, asked: Asked) -> native.ThreadView:
        thread = await self.runner.thread(asked.ids["thread"], principal=asked.who.id)
        return native.ThreadView(
            id=thread.id,
            seq=thread.seq,
            run_id=thread.run,
            messages=tuple(map(told_message, thread.messages)),
            calls=tuple([call_view(call.record, run=thread.run, thread=thread.id) for call in thread.pending]),
            latest_run_id=thread.latest,
            client_state=None if thread.scene is None else client_state_view(thread.scene),
        )

    async def _watch_thread(self, asked: Asked) -> native.UpdatePage:
        query: native.WatchQuery = asked.query
        after = Position.parse(asked.last_event or query.after).seq
        updates, more = await self.runner.updates(asked.ids["thread"], after, principal=asked.who.id, limit=query.limit)
        raws = tuple([Raw(self.encoder.encode(update)) for update in updates])
        return native.UpdatePage(updates=raws, seq=updates[-1].seq if updates else after, more=more)

    async def _stream_thread(self, asked: Asked) -> Streamed:
        query: native.WatchQuery = asked.query
        after = Position.parse(asked.last_event or query.after)
        attachment = None
        if query.client and query.offers:
            offers = [checked_id(name, "a tool") for name in query.offers.split(",")]
            attachment = await self.runner.attach(
                query.client, offers, principal=asked.who.id, thread=asked.ids["thread"]
            )
        return Streamed(self._thread_updates(asked.ids["thread"], asked.who.id, after, attachment))

    async def _thread_updates(self, thread: str, principal: str, after: Position, attachment: Any) -> Batches:
        try:
            async with aclosing(self.runner.watch_many(thread, after, principal=principal)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            if attachment is not None:
                await attachment.close()

    # Calls

    async def _list_calls(self, asked: Asked) -> native.CallList:
        query: native.CallQuery = asked.query
        rows = await self.runner.waiting(principal=asked.who.id, thread=query.thread, limit=query.limit)
        return native.CallList(calls=tuple([call_view(row.record, run=row.run, thread=row.thread) for row in rows]))

    async def _get_call(self, asked: Asked) -> native.CallView:
        found = await self.runner.call(asked.ids["call"], principal=asked.who.id)
        return call_view(found.record, run=found.run, thread=found.thread)

    async def _claim_call(self, asked: Asked) -> native.Claimed:
        claimed = await self.runner.claim(asked.ids["call"], asked.body.client, principal=asked.who.id)
        return native.Claimed(
            call_id=claimed.call_id,
            attempt=claimed.attempt,
            arguments=claimed.arguments,
            deadline=claimed.deadline,
            repeated=claimed.repeated,
            principal=asked.who.id,
            payload=claimed.payload,
        )

    async def _release_call(self, asked: Asked) -> native.Receipt:
        receipt = await self.runner.release(asked.ids["call"], asked.body.client, principal=asked.who.id)
        return native.Receipt(call_id=receipt.call_id, repeated=receipt.repeated)

    async def _tell_progress(self, asked: Asked) -> native.Receipt:
        body: native.ProgressRequest = asked.body
        call = asked.ids["call"]
        await self.runner.progress(
            call, body.value, name=body.name, client=body.client, attempt=body.attempt, principal=asked.who.id
        )
        return native.Receipt(call_id=call)

    async def _answer_call(self, asked: Asked) -> native.Receipt:
        body: native.ResultRequest = asked.body
        call, who = asked.ids["call"], asked.who.id
        given = [body.result, body.content, body.error, body.accepted]
        if sum(value is not UNSET for value in given) != 1:
            raise InvalidInput("an answer has exactly one of result, content, error and accepted")
        wishes = not isinstance(body.augmentation, UnsetType)
        if wishes and body.result is UNSET and body.content is UNSET:
            raise InvalidInput("/augmentation: it goes with a result or content")
        context: dict[str, Any] = {"principal": who, "attempt": body.attempt, "client": body.client}
        if not isinstance(body.error, UnsetType):
            error = body.error
            receipt = await self.runner.fail(
                call,
                error.message,
                code=error.code,
                path=error.path,
                retryable=error.retryable,
                details=error.details,
                **context,
            )
        elif not isinstance(body.accepted, UnsetType):
            receipt = await self.runner.accept(call, body.accepted, **context)
        else:
            value = body.result if body.content is UNSET else list(_parts(body.content))
            wish = body.augmentation if wishes else None
            receipt = await self.runner.answer(call, value, augmentation=wish, **context)
        return native.Receipt(call_id=call, repeated=receipt.repeated, refused=receipt.refused)

    async def _report_call(self, asked: Asked) -> native.Receipt:
        body: native.ReportRequest = asked.body
        receipt = await self.runner.report(
            asked.ids["call"], body.result, outcome=body.outcome, message=body.message, principal=asked.who.id
        )
        return native.Receipt(call_id=receipt.call_id, repeated=receipt.repeated)

    async def _decide_call(self, asked: Asked) -> native.Receipt:
        body: native.Decision = asked.body
        call, who = asked.ids["call"], asked.who.id
        if body.approved:
            receipt = await self.runner.approve(
                call,
                arguments=body.arguments,
                payload=body.payload,
                remember=body.remember,
                shown=body.shown,
                principal=who,
            )
        else:
            receipt = await self.runner.deny(call, body.reason, remember=body.remember, principal=who)
        return native.Receipt(call_id=call, repeated=receipt.repeated)

    async def _answer_calls(self, asked: Asked) -> native.Receipts:
        body: native.AnswersRequest = asked.body
        if body.decisions:
            authorise(asked.who, "approve")
        decisions: dict[str, bool | Approve | Deny] = {
            call: Approve(arguments=decision.arguments, payload=decision.payload, remember=decision.remember)
            if decision.approved
            else Deny(decision.reason, decision.remember)
            for call, decision in body.decisions.items()
        }
        receipts = await self.runner.settle(body.results, decisions, principal=asked.who.id)
        return native.Receipts(
            receipts=tuple([native.Receipt(call_id=each.call_id, repeated=each.repeated) for each in receipts])
        )

    async def _cancel_call(self, asked: Asked) -> native.Receipt:
        receipt = await self.runner.cancel_call(asked.ids["call"], asked.body.reason, principal=asked.who.id)
        return native.Receipt(call_id=receipt.call_id, repeated=receipt.repeated)

    async def _forget_decisions(self, asked: Asked) -> None:
        await self.runner.forget(principal=asked.who.id)

    # Providers

    async def _stream_offers(self, asked: Asked) -> Streamed:
        body: native.ProviderRequest = asked.body
        tools = self._brought(asked.who, body.tools)
        offers = (*body.offers, *_named(body.tools))
        attachment = await self.runner.attach(body.client, offers, principal=asked.who.id, tools=tools)
        return Streamed(self._offers(attachment))

    async def _offers(self, attachment: Any) -> Batches:
        try:
            async with aclosing(attachment.calls()) as batches:
                async for batch in batches:
                    yield batch
        finally:
            await attachment.close()

    # The server itself

    async def _list_tools(self, asked: Asked) -> native.ToolList:
        agents = self.runner.agents.values()
        return native.ToolList(
            tools=tuple([view for agent in agents for view in tool_views(agent.name, agent.definitions)])
        )

    async def _get_server(self, asked: Asked) -> native.ServerView:
        return native.ServerView(
            version=self.version,
            agents=tuple(self.runner.agents),
            capabilities=tuple(sorted(native.CAPABILITIES)),
            principal=asked.who.id,
            scopes=tuple(sorted(asked.who.scopes)),
        )

    async def _get_status(self, asked: Asked) -> native.StatusView:
        return await self.board.status(draining=self.draining)

    async def _get_metrics(self, asked: Asked) -> str:
        return await self.board.metrics()

    async def _is_alive(self, asked: Asked) -> native.Health:
        return native.Health(status="ok")

    async def _is_ready(self, asked: Asked) -> native.Health:
        if self.draining:
            return native.Health(status="draining")
        with suppress(StoreError):
            await self.runner.store.time()
            return native.Health(status="ok")
        return native.Health(status="away", detail="the store does not answer")


async def _how_it_ended(run: StoredRun[Any]) -> list[Update]:
    """The last update of a run that is over; nothing of one that is not."""
    try:
        view = await run.look()
    except UnknownCall:  # pruned meanwhile
        return []
    return [] if view.state.ending is None else current(view.state, run.seq)


def _end_of(batch: list[Update], *, hold: bool) -> int | None:
    """Where a run's stream ends."""
    for at, update in enumerate(batch):
        if type(update) is RunEnded or (not hold and type(update) is RunWaiting):
            return at
    return None


def _named(tools: Raw) -> tuple[str, ...]:
    """The tools that somebody defines; of definitions that are refused, none."""
    return tuple([definition.name for definition in safe_validate_tool_definitions(bytes(tools)).data or ()])


def _parts(content: tuple[Part, ...] | UnsetType) -> tuple[Part, ...]:
    assert not isinstance(content, UnsetType)
    return content


def _header(text: str) -> bytes:
    return text.encode("ascii", "replace")
