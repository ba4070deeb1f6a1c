"""The exceptions a user of Farhand meets.

FarhandError
├── UsageError              the program asked for something that cannot be
│   ├── InvalidToolDefinitions   definitions that were refused, with every problem (in `definition`)
│   ├── BadSchema           a schema that was refused, with every problem (in `schema`)
│   ├── DuplicateToolName   two tools of one name in one run
│   ├── PatchTooDeep        a merge patch with more levels than are followed (in `merge_patch`)
│   ├── InvalidInput        input, settings, a request or a stored run that cannot be read
│   │   └── NotJson         a body that is not sent as JSON
│   └── UnknownModel        a model name that nothing answers to
├── RefusedAnswer           an answer, approval or cancellation that does not count
│   ├── UnknownCall         no such call here, or not yours
│   ├── AnswerConflict      another answer was first
│   ├── CallGone            the call ended without this answer
│   ├── NotExpected         the call does not wait for this kind of answer
│   └── InvalidAnswer       the value breaks the tool's schema; the call stays open
├── RunFailed               the run ended without a result
├── ModelError              the model, or the way to it, failed
│   └── ModelBroke          a model adapter broke the rules of its contract
├── IllegalChange           an event that this state does not take: a fault of the adapter
├── ThreadBusy              the thread has an open run, and this start does not take its place
├── StartConflict           another run was started under this key
├── RunRefused              a stored run that this version cannot read; nothing is guessed at
├── NotAuthenticated        nobody is known by the credentials that were sent
├── NotAllowed              whoever asks may not do this
├── NotFound                there is nothing at this address
│   └── WrongMethod         there is something, which does not take this method
├── TooMuch                 more than this principal may; try again later
├── TooLarge                a body above its limit
├── ServerFailed            the server failed, or said something that cannot be read
├── ConnectionLost          the server cannot be reached just now, or the connection broke
├── OutboundError           a request to somebody else's server came to nothing
│   ├── OutboundRefused     it was not made: its address is not one that may be asked
│   └── OutboundFailed      it was made, and there is no answer that can be taken
└── StoreError              the store cannot be used as it is
    ├── StoreAway           it cannot be reached or written just now; try again
    └── StoreVersion        its tables are of another version

ToolError stands apart: a tool raises it, and the model reads it.
"""

from typing import Any


class FarhandError(Exception):
    """Base of all."""

    code = "error"


class UsageError(FarhandError, ValueError):
    """The program asked for something that cannot be."""

    code = "usage"


class DuplicateToolName(UsageError):
    """Two tools of one run have the same name."""

    code = "duplicate_tool_name"


class InvalidInput(UsageError):
    """Input, settings or a stored run that cannot be read."""

    code = "invalid_input"

    def __init__(self, message: str, problems: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class NotJson(InvalidInput):
    """A body that is not sent as JSON."""

    code = "not_json"


class UnknownModel(UsageError):
    """No model answers to this name."""

    code = "unknown_model"


class RefusedAnswer(FarhandError):
    """An answer, approval or cancellation that does not count."""

    code = "refused"


class UnknownCall(RefusedAnswer):
    """There is no such call for you."""

    code = "unknown_call"


class AnswerConflict(RefusedAnswer):
    """Another answer was first and stands."""

    code = "conflict"


class CallGone(RefusedAnswer):
    """The call ended before this answer came."""

    code = "gone"

    def __init__(self, message: str, outcome: Any = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        """How the call ended; None if only the attempt is over."""


class NotExpected(RefusedAnswer):
    """The call does not wait for this kind of answer."""

    code = "not_expected"


class InvalidAnswer(RefusedAnswer):
    """The value breaks the tool's schema; the call stays open to a right one."""

    code = "invalid_answer"

    def __init__(self, message: str, problems: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class RunFailed(FarhandError):
    """The run ended without a result."""

    code = "run_failed"

    def __init__(self, message: str, failure: Any = None) -> None:
        super().__init__(message)
        self.failure = failure


class ModelError(FarhandError):
    """The model, or the way to it, failed."""

    code = "model_failed"

    def __init__(self, message: str, *, code: str = "model_failed", retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable


class ModelBroke(ModelError):
    """A model adapter broke the rules of its contract, or its stream ended before its end."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="model_broke_contract")


class IllegalChange(FarhandError):
    """An event that this state does not take: a fault of the adapter, not of a client."""

    code = "illegal_change"


class ThreadBusy(FarhandError):
    """The thread has an open run, and this start was told not to take its place."""

    code = "thread_busy"


class StartConflict(FarhandError):
    """Another run was started under this key."""

    code = "start_conflict"


class RunRefused(FarhandError):
    """A stored run that cannot be read; it was put aside, and nothing is guessed at."""

    code = "run_refused"


class NotAuthenticated(FarhandError):
    """Nobody is known by the credentials that were sent, or none were sent."""

    code = "not_authenticated"


class NotAllowed(FarhandError):
    """Whoever asks is known, and may not do this."""

    code = "not_allowed"


class NotFound(FarhandError):
    """There is nothing at this address."""

    code = "not_found"


class WrongMethod(NotFound):
    """There is something at this address, which does not take this method."""

    code = "wrong_method"

    def __init__(self, message: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.allowed = allowed


class TooMuch(FarhandError):
    """More than this principal may have at once, or in this time."""

    code = "too_much"

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds."""


class TooLarge(FarhandError):
    """A body above its limit; it was not read."""

    code = "too_large"


class ServerFailed(FarhandError):
    """The server failed, or said something that cannot be read."""

    code = "server_failed"


class ConnectionLost(FarhandError):
    """The server cannot be reached just now, or the connection broke; what was asked may or may not have happened."""

    code = "connection_lost"


class OutboundError(FarhandError):
    """A request to somebody else's server came to nothing."""

    code = "outbound"


class OutboundRefused(OutboundError):
    """A request that was not made: its address is not one that may be asked."""

    code = "outbound_refused"


class OutboundFailed(OutboundError):
    """A request without an answer that can be taken."""

    code = "outbound_failed"


class StoreError(FarhandError):
    """The store cannot be used as it is."""

    code = "store"


class StoreAway(StoreError):
    """The store cannot be reached or written just now. Nothing that was asked of it counts as done."""

    code = "store_away"


class StoreVersion(StoreError):
    """The store's tables are of another version than this build reads."""

    code = "store_version"


class ToolError(Exception):
    """Raise this in a tool to tell the model what went wrong; any other exception is shown only in general terms."""

    def __init__(
        self, message: str, *, code: str = "tool_failed", path: str = "", retryable: bool = True, details: Any = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.path = path
        self.retryable = retryable
        self.details = details
