"""Everything that may be asked over the native protocol. The frames are in `native`.

`ENDPOINTS` is the table that the server, the client, the description in OpenAPI and the tests of access go by.
"""

from typing import Any

from msgspec import Struct

from farhand.core.updates import Update
from farhand.protocols.native import (
    AnswersRequest,
    CallList,
    CallQuery,
    CallView,
    Cancelled,
    CancelRequest,
    Claimed,
    ClaimRequest,
    Decision,
    Health,
    ProgressRequest,
    ProviderRequest,
    ProviderUpdate,
    Receipt,
    Receipts,
    ReleaseRequest,
    ReportRequest,
    ResultRequest,
    RunHandle,
    RunList,
    RunQuery,
    RunRequest,
    RunView,
    ServerView,
    StatusView,
    ThreadView,
    ToolList,
    UpdatePage,
    WatchQuery,
)


class Endpoint(Struct, kw_only=True, frozen=True):
    """One thing that may be asked."""

    name: str
    method: str
    path: str
    does: str
    scope: str
    """What the principal has to be allowed; `public` is everybody."""
    body: type[Any] | None = None
    query: type[Any] | None = None
    reply: type[Any] | None = None
    status: int = 200
    stream: Any = None
    """The type of what is streamed to whoever accepts `text/event-stream`."""
    text: str = ""
    """The media type of an answer that is no JSON."""
    refusals: tuple[str, ...] = ()
    """Codes of errors that are its own, beside those that every endpoint may answer with."""


_CALL = ("unknown_call", "conflict", "gone", "not_expected", "invalid_answer")

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="start-run",
        method="POST",
        path="/threads/{thread}/runs",
        does="Begin a run",
        scope="chat",
        body=RunRequest,
        reply=RunHandle,
        status=202,
        stream=Update,
        refusals=("invalid_tools", "augmentation_refused", "duplicate_tool_name", "thread_busy", "start_conflict"),
    ),
    Endpoint(
        name="get-thread",
        method="GET",
        path="/threads/{thread}",
        does="A conversation as it stands",
        scope="chat",
        reply=ThreadView,
        refusals=("unknown_call",),
    ),
    Endpoint(
        name="watch-thread",
        method="GET",
        path="/threads/{thread}/updates",
        does="What happened in a thread after a position, and with a stream what happens",
        scope="chat",
        query=WatchQuery,
        reply=UpdatePage,
        stream=Update,
    ),
    Endpoint(
        name="answer-calls",
        method="POST",
        path="/answers",
        does="Several results and decisions at once",
        scope="answer",
        body=AnswersRequest,
        reply=Receipts,
        refusals=_CALL,
    ),
    Endpoint(
        name="list-calls",
        method="GET",
        path="/calls",
        does="Calls that wait for a client or a person",
        scope="chat",
        query=CallQuery,
        reply=CallList,
    ),
    Endpoint(
        name="get-call",
        method="GET",
        path="/calls/{call}",
        does="A call as it stands",
        scope="chat",
        reply=CallView,
        refusals=("unknown_call",),
    ),
    Endpoint(
        name="claim-call",
        method="POST",
        path="/calls/{call}/claim",
        does="Take a call up",
        scope="answer",
        body=ClaimRequest,
        reply=Claimed,
        refusals=_CALL,
    ),
    Endpoint(
        name="release-call",
        method="POST",
        path="/calls/{call}/release",
        does="Give a call back that was taken up",
        scope="answer",
        body=ReleaseRequest,
        reply=Receipt,
        refusals=_CALL,
    ),
    Endpoint(
        name="tell-progress",
        method="POST",
        path="/calls/{call}/progress",
        does="Say how far the work on a call is",
        scope="answer",
        body=ProgressRequest,
        reply=Receipt,
        status=202,
        refusals=_CALL,
    ),
    Endpoint(
        name="answer-call",
        method="POST",
        path="/calls/{call}/result",
        does="A client's answer to its call",
        scope="answer",
        body=ResultRequest,
        reply=Receipt,
        refusals=_CALL,
    ),
    Endpoint(
        name="report-call",
        method="POST",
        path="/calls/{call}/report",
        does="How work in the background has ended",
        scope="answer",
        body=ReportRequest,
        reply=Receipt,
        refusals=_CALL,
    ),
    Endpoint(
        name="decide-call",
        method="POST",
        path="/calls/{call}/approval",
        does="A person's decision",
        scope="approve",
        body=Decision,
        reply=Receipt,
        refusals=_CALL,
    ),
    Endpoint(
        name="cancel-call",
        method="POST",
        path="/calls/{call}/cancel",
        does="Call a call off",
        scope="chat",
        body=CancelRequest,
        reply=Receipt,
        refusals=_CALL,
    ),
    Endpoint(
        name="list-runs",
        method="GET",
        path="/runs",
        does="Your runs, newest first",
        scope="chat",
        query=RunQuery,
        reply=RunList,
    ),
    Endpoint(
        name="get-run",
        method="GET",
        path="/runs/{run}",
        does="A run as it stands",
        scope="chat",
        reply=RunView,
        refusals=("unknown_call", "run_refused"),
    ),
    Endpoint(
        name="cancel-run",
        method="POST",
        path="/runs/{run}/cancel",
        does="Call a run off",
        scope="chat",
        body=CancelRequest,
        reply=Cancelled,
        refusals=("unknown_call", "run_refused"),
    ),
    Endpoint(
        name="provide-tools",
        method="POST",
        path="/provider",
        does="Offer tools to all your threads",
        scope="answer",
        body=ProviderRequest,
        stream=ProviderUpdate,
        refusals=("invalid_tools", "duplicate_tool_name"),
    ),
    Endpoint(
        name="forget-decisions",
        method="DELETE",
        path="/decisions",
        does="Forget all your lasting decisions",
        scope="approve",
        status=204,
    ),
    Endpoint(
        name="list-tools",
        method="GET",
        path="/tools",
        does="The tools of the server's agents",
        scope="chat",
        reply=ToolList,
    ),
    Endpoint(
        name="get-server",
        method="GET",
        path="/server",
        does="What this server is, and who you are",
        scope="chat",
        reply=ServerView,
    ),
    Endpoint(
        name="get-status",
        method="GET",
        path="/status",
        does="How the server is doing",
        scope="operate",
        reply=StatusView,
    ),
    Endpoint(
        name="get-metrics",
        method="GET",
        path="/metrics",
        does="Numbers for Prometheus",
        scope="operate",
        text="text/plain; version=0.0.4; charset=utf-8",
    ),
    Endpoint(
        name="is-alive", method="GET", path="/healthz", does="Whether the process lives", scope="public", reply=Health
    ),
    Endpoint(
        name="is-ready",
        method="GET",
        path="/readyz",
        does="Whether it takes work: the store answers, and it is not shutting down",
        scope="public",
        reply=Health,
    ),
)
BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}
