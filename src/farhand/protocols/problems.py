"""Errors on the wire: RFC 9457 problem details, and the way back to the exceptions they were made of.

`KINDS` is the whole of it: one row for every error that a door answers with.
"""

from collections.abc import Mapping

from msgspec import Struct, json

from farhand.core.augmentation import AugmentationRefused
from farhand.core.call import Outcome
from farhand.core.definition import InvalidToolDefinitions
from farhand.core.errors import (
    AnswerConflict,
    CallGone,
    DuplicateToolName,
    FarhandError,
    InvalidAnswer,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    NotExpected,
    NotFound,
    NotJson,
    RefusedAnswer,
    RunRefused,
    ServerFailed,
    StartConflict,
    StoreAway,
    StoreError,
    StoreVersion,
    ThreadBusy,
    TooLarge,
    TooMuch,
    UnknownCall,
    UsageError,
    WrongMethod,
)
from farhand.core.problem import Problem, first_of

MEDIA_TYPE = "application/problem+json"


class Kind(Struct, frozen=True):
    """What a client is told of one class of errors."""

    status: int
    title: str
    fix: str
    """What to do about it."""


KINDS: Mapping[type[FarhandError], Kind] = {
    InvalidToolDefinitions: Kind(
        422, "Tool definitions were refused", "Change what `problems` names and send all again."
    ),
    AugmentationRefused: Kind(
        422, "What was to be changed was refused", "Change what `problems` names and send all again."
    ),
    DuplicateToolName: Kind(409, "A tool of this name is there already", "Give your tool another name."),
    InvalidInput: Kind(422, "The request cannot be read", "Compare it with the schema in /v1/openapi.json."),
    NotJson: Kind(415, "The body is not sent as JSON", "Send `Content-Type: application/json`."),
    UsageError: Kind(422, "This cannot be asked for", "Compare the request with the documentation."),
    NotAuthenticated: Kind(
        401, "Nobody is known by these credentials", "Send `Authorization: Bearer` and a valid token."
    ),
    NotAllowed: Kind(403, "You may not do this", "Ask whoever runs the server for the scope that `detail` names."),
    NotFound: Kind(404, "There is nothing here", "See /v1/openapi.json for what there is."),
    WrongMethod: Kind(405, "This method is not taken here", "See the header `Allow`, or /v1/openapi.json."),
    UnknownCall: Kind(404, "There is no such thing for you", "Check the id, and whose token you send."),
    AnswerConflict: Kind(409, "Somebody else was first", "Nothing is to be done; watch the thread to see what counts."),
    NotExpected: Kind(409, "Nothing waits for this", "Look at the state of the call first."),
    CallGone: Kind(410, "The call has ended", "Nothing is to be done; `outcome` says how it ended."),
    InvalidAnswer: Kind(
        422, "The value does not fit", "Mend what `problems` names and answer again; the call is still open."
    ),
    RefusedAnswer: Kind(409, "This does not count", "Look at the state of the call first."),
    ThreadBusy: Kind(
        409, "The thread has an open run", 'Wait for its end, cancel it, or start with `"busy": "replace"`.'
    ),
    StartConflict: Kind(409, "Another run was started under this key", "Use a new key for a new run."),
    TooMuch: Kind(429, "That is more than you may", "Wait for as long as `retry_after` says."),
    TooLarge: Kind(413, "The body is too large", "Send less at once; `detail` names the limit."),
    RunRefused: Kind(409, "This version cannot read the run", "Whoever runs the server: `farhand store check`."),
    StoreVersion: Kind(
        503, "The server's store is of another version", "Whoever runs the server: `farhand store migrate`."
    ),
    StoreAway: Kind(503, "The server cannot reach its store", "Send the same again in a moment."),
    StoreError: Kind(503, "The server cannot use its store", "Whoever runs the server: see its log."),
    ServerFailed: Kind(500, "The server has failed", "Whoever runs the server: the log has `detail`'s number."),
}

RETRY_AFTER = 1.0
"""Seconds, where the error itself does not say."""


class ProblemDetails(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as it is sent. `code` is stable; `detail` is for people and may change."""

    type: str
    title: str
    status: int
    code: str
    detail: str = ""
    fix: str = ""
    """What to do about it."""
    problems: tuple[Problem, ...] = ()
    """Every single fault of what was sent, each with its path in the body."""
    outcome: Outcome | None = None
    """With `gone`: how the call ended."""
    retry_after: float | None = None
    """Seconds after which the same may be tried again."""


def details(error: FarhandError) -> ProblemDetails:
    """What is sent for an exception."""
    kind = kind_of(type(error))
    retry = getattr(error, "retry_after", None)
    if retry is None and isinstance(error, StoreAway):
        retry = RETRY_AFTER
    outcome = getattr(error, "outcome", None)
    return ProblemDetails(
        type=f"urn:farhand:problem:{error.code}",
        title=kind.title,
        status=kind.status,
        code=error.code,
        detail=str(error),
        fix=kind.fix,
        problems=first_of(getattr(error, "problems", ())),
        outcome=outcome if isinstance(outcome, Outcome) else None,
        retry_after=retry,
    )


def kind_of(error: type[FarhandError]) -> Kind:
    """The row of a class, or of the nearest class above it that has one."""
    for each in error.__mro__:
        if each in KINDS:
            return KINDS[each]
    return KINDS[ServerFailed]


def exception(problem: ProblemDetails) -> FarhandError:
    """The exception that a server's answer was made of; a code that is not known here is a `ServerFailed`."""
    made = _BY_CODE.get(problem.code, ServerFailed)
    text = problem.detail or problem.title
    if issubclass(made, CallGone):
        error: FarhandError = made(text, problem.outcome)
    elif issubclass(made, InvalidToolDefinitions):
        error = made(problem.problems)
        error.args = (text,)  # the server's own words
    elif issubclass(made, InvalidAnswer | InvalidInput):
        error = made(text, problem.problems)
    elif issubclass(made, TooMuch):
        error = made(text, retry_after=problem.retry_after or RETRY_AFTER)
    else:
        error = made(text)
    if problem.fix:
        error.add_note(problem.fix)
    return error


def read_problem(body: bytes, status: int) -> ProblemDetails:
    """A server's answer that is no success, also if it came from something that stands before our server."""
    try:
        return _DECODER.decode(body)
    except (ValueError, RecursionError):
        text = f"the server answered {status} with something that is no problem document"
        return ProblemDetails(type="about:blank", title="", status=status, code=_code_of(status), detail=text)


def _code_of(status: int) -> str:
    return {401: "not_authenticated", 403: "not_allowed", 404: "not_found", 413: "too_large", 429: "too_much"}.get(
        status, "server_failed"
    )


_BY_CODE: Mapping[str, type[FarhandError]] = {error.code: error for error in KINDS}
_DECODER = json.Decoder(ProblemDetails)
