"""What a client may say about calls and runs by itself, one request each. Each may be said twice and counts once."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET, Raw, UnsetType

from farhand.client.approvals import decision_of
from farhand.client.wire import Wire
from farhand.core.errors import ToolError
from farhand.core.messages import decode_parts
from farhand.groups import dump_augmentation
from farhand.places.faults import said
from farhand.places.values import dump, dump_result
from farhand.protocols.native import (
    AnswersRequest,
    CallList,
    CallQuery,
    CallView,
    CancelRequest,
    Claimed,
    ClaimRequest,
    Decision,
    ProgressRequest,
    Receipt,
    Receipts,
    ReleaseRequest,
    ReportRequest,
    ResultRequest,
    RunList,
    RunQuery,
    RunView,
    ServerView,
    ToolFailure,
    ToolList,
    ToolView,
)
from farhand.runner.decision import Approve, Deny


class Verbs:
    """Everything about one server that needs no stream."""

    def __init__(self, wire: Wire, client: str) -> None:
        self._wire = wire
        self.id = client
        """What this client is called: whoever has taken a call up is known by it."""

    # Looking

    async def server(self) -> ServerView:
        """What the server is, and who you are to it."""
        return await self._wire.ask("get-server")

    async def tools(self) -> tuple[ToolView, ...]:
        """The tools of the server's agents."""
        listed: ToolList = await self._wire.ask("list-tools")
        return listed.tools

    async def runs(self, state: str = "", *, limit: int = 100) -> tuple[RunView, ...]:
        """Your runs, newest first; of one state, if it is given."""
        listed: RunList = await self._wire.ask("list-runs", query=RunQuery(state=state, limit=limit))
        return listed.runs

    async def get_run(self, run_id: str) -> RunView:
        """A run as it stands, with its calls."""
        return await self._wire.ask("get-run", {"run": run_id})

    async def pending(self, thread: str = "", *, limit: int = 100) -> tuple[CallView, ...]:
        """Calls that wait for a client or a person, oldest first; of one thread, if it is given."""
        listed: CallList = await self._wire.ask("list-calls", query=CallQuery(thread=thread, limit=limit))
        return listed.calls

    async def get_call(self, call_id: str) -> CallView:
        """A call as it stands."""
        return await self._wire.ask("get-call", {"call": call_id})

    # A client's side of a call

    async def claim(self, call_id: str) -> Claimed:
        """Take a call up, so that no other client works on it. Raises `AnswerConflict` if one does."""
        return await self._wire.ask("claim-call", {"call": call_id}, body=ClaimRequest(client=self.id))

    async def release(self, call_id: str) -> Receipt:
        """Give back a call that this client has taken up and not begun: any client may take it up."""
        return await self._wire.ask("release-call", {"call": call_id}, body=ReleaseRequest(client=self.id))

    async def answer(
        self, call_id: str, result: Any = None, *, attempt: int | None = None, augmentation: Any = None
    ) -> Receipt:
        """The result of a client tool: any JSON value, or message parts. The first valid answer counts.

        `augmentation`: what is to be changed besides; `receipt.refused` says why it was not.
        """
        raw, multipart = dump_result(result, dump)
        given: dict[str, Any] = {"content": decode_parts(raw)} if multipart else {"result": Raw(raw)}
        if augmentation is not None:
            given["augmentation"] = Raw(dump_augmentation(augmentation))
        return await self._result(call_id, attempt, given)

    async def fail(
        self,
        call_id: str,
        message: str,
        *,
        code: str = "tool_failed",
        path: str = "",
        retryable: bool = True,
        details: Any = None,
        attempt: int | None = None,
    ) -> Receipt:
        """That a call failed; the model is told `message`. The rest is as in `ToolError`."""
        failure = said(ToolError(message, code=code, path=path, retryable=retryable, details=details))
        error = ToolFailure(
            message=failure.message,
            code=failure.code,
            path=failure.path,
            retryable=failure.retryable,
            details=failure.details,
        )
        return await self._result(call_id, attempt, {"error": error})

    async def accept(self, call_id: str, note: str = "", *, attempt: int | None = None) -> Receipt:
        """That this client works on a call in the background: the run goes on, `report` says how that ended."""
        return await self._result(call_id, attempt, {"accepted": note})

    async def report(
        self,
        call_id: str,
        result: Any = None,
        *,
        outcome: Literal["ok", "failed", "cancelled", "unknown"] = "ok",
        message: str = "",
    ) -> Receipt:
        """How work in the background has ended; the model is told in its next turn, or in the thread's next run."""
        body = ReportRequest(outcome=outcome, result=Raw(dump(result)), message=message)
        return await self._wire.ask("report-call", {"call": call_id}, body=body)

    async def progress(self, call_id: str, value: Any, name: str = "progress", *, attempt: int | None = None) -> None:
        """How far a call is; any JSON value. It is said once, and is lost if the server cannot be reached."""
        body = ProgressRequest(value=Raw(dump(value)), name=name, client=self.id, attempt=attempt)
        await self._wire.ask_once("tell-progress", {"call": call_id}, body=body)

    # A person's side of a call

    async def approve(
        self,
        call_id: str,
        *,
        arguments: Any | UnsetType = UNSET,
        payload: Any = None,
        remember: Literal["tool", "arguments"] | None = None,
        shown: str | None = None,
    ) -> Receipt:
        """A person's yes. `arguments` takes the place of the model's; `shown` binds it to what the person saw."""
        said = decision_of(Approve(arguments=arguments, payload=payload, remember=remember))
        body = Decision(
            approved=True, arguments=said.arguments, payload=said.payload, remember=said.remember, shown=shown
        )
        return await self._wire.ask("decide-call", {"call": call_id}, body=body)

    async def deny(
        self, call_id: str, reason: str = "", *, remember: Literal["tool", "arguments"] | None = None
    ) -> Receipt:
        """A person's no; the model is told the reason."""
        return await self._wire.ask("decide-call", {"call": call_id}, body=decision_of(Deny(reason, remember)))

    async def forget(self) -> None:
        """Ask again about everything that was decided for good."""
        await self._wire.ask("forget-decisions")

    async def answers(
        self,
        results: Mapping[str, Any],
        decisions: Mapping[str, bool | Approve | Deny] | None = None,
    ) -> tuple[Receipt, ...]:
        """Several results and decisions about calls of one run, by call id: all of them count, or none."""
        body = AnswersRequest(
            results={call_id: Raw(dump(result)) for call_id, result in results.items()},
            decisions={call_id: decision_of(verdict) for call_id, verdict in (decisions or {}).items()},
        )
        receipts: Receipts = await self._wire.ask("answer-calls", body=body)
        return receipts.receipts

    # Calling off

    async def cancel(self, run_id: str, reason: str = "") -> bool:
        """Call a run off; false if it had ended before."""
        cancelled = await self._wire.ask("cancel-run", {"run": run_id}, body=CancelRequest(reason=reason))
        return not cancelled.repeated

    async def cancel_call(self, call_id: str, reason: str = "") -> Receipt:
        """Call one call off; the run goes on."""
        return await self._wire.ask("cancel-call", {"call": call_id}, body=CancelRequest(reason=reason))

    async def _result(self, call_id: str, attempt: int | None, given: Mapping[str, Any]) -> Receipt:
        body = ResultRequest(client=self.id, attempt=attempt, **given)
        return await self._wire.ask("answer-call", {"call": call_id}, body=body)
