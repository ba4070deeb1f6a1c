"""The words in which the model, and people, are told why a call did not end well. One function a reason."""

from farhand.core.call import Call
from farhand.core.definition import Definition, Place
from farhand.core.failure import Failure
from farhand.core.problem import Problem


def unknown_tool(name: str) -> Failure:
    """The model named a tool that is not in the catalog."""
    return Failure("unknown_tool", f"Unknown tool: {_cut(name)}")


def no_tools_now(name: str) -> Failure:
    """The run is at its limit; the model was asked without tools and called one all the same."""
    return Failure(
        "limit_reached", f"Tool {_cut(name)} was not run: the limit of this run is reached. Answer without tools."
    )


def too_many_calls(limit: int) -> Failure:
    """One reply held more calls than a turn may have."""
    return Failure("too_many_calls", f"Not run: one turn may have {limit} calls at most.")


def bad_json(reason: str) -> Failure:
    """The arguments are not JSON."""
    return Failure("invalid_json", f"Invalid tool arguments JSON: {reason}")


def bad_arguments(problems: tuple[Problem, ...]) -> Failure:
    """The arguments break the tool's schema."""
    message = " ".join(_sentence(problem.message) for problem in problems)
    return Failure("invalid_arguments", message, path=problems[0].path, problems=problems)


def bad_result(problems: tuple[Problem, ...]) -> Failure:
    """A result breaks the tool's output schema."""
    message = "The tool's result is not valid: " + " ".join(
        _sentence(f"{problem.path or '(whole)'} {problem.message}") for problem in problems
    )
    return Failure("invalid_result", message, path=problems[0].path, problems=problems)


def denied(reason: str) -> Failure:
    """A person said no."""
    return Failure("denied", f"The user denied this call. Reason: {reason}" if reason else "The user denied this call.")


def denied_before() -> Failure:
    """A person said no earlier, for good."""
    return Failure("denied", "The user has decided never to allow this call.")


def would_leak(name: str) -> Failure:
    """It would carry data out of a run that has read private data and strangers' words."""
    return Failure("would_leak", f"Tool {name} was not run: this run has read private data and words of strangers.")


def approval_expired() -> Failure:
    """Nobody decided in time."""
    return Failure("approval_expired", "Nobody approved this call in time, so it was not run.")


def approval_void(call: Call) -> Failure:
    """What is stored of the call is not what a person agreed to."""
    return Failure("approval_void", f"Tool '{call.tool}' was not run: the call is not the one that was approved.")


def timed_out(call: Call, seconds: float, *, once: bool) -> Failure:
    """The tool did not answer in time."""
    who = "Client tool" if call.place is Place.CLIENT else "Tool"
    doubt = " It may or may not have taken effect." if once else ""
    return Failure("timed_out", f"{who} '{call.tool}' timed out after {seconds:g} s.{doubt}")


def cancelled(call: Call, reason: str, *, running: bool) -> Failure:
    """Somebody called it off."""
    what = f"Tool '{call.tool}' was cancelled"
    doubt = " while it ran; it may or may not have taken effect" if running else " before it ran"
    return Failure("cancelled", f"{what}{doubt}." + (f" Reason: {reason}" if reason else ""))


def run_cancelled(reason: str) -> Failure:
    """Somebody called the run off."""
    return Failure("cancelled", f"The run was cancelled. Reason: {reason}" if reason else "The run was cancelled.")


def unknown(call: Call) -> Failure:
    """It was dispatched, and nobody can tell what became of it."""
    return Failure(
        "outcome_unknown",
        f"The outcome of '{call.tool}' is unknown: it may or may not have happened. Do not repeat it without asking.",
    )


def absent(call: Call, definition: Definition) -> Failure:
    """No client is there to run it."""
    template = definition.policy.fallback or "Client disconnected. Tool '{tool}' is unavailable."
    return Failure("client_absent", template.replace("{0}", call.tool).replace("{tool}", call.tool), retryable=True)


def tool_changed(call: Call) -> Failure:
    """The definition is not the one the call was made and approved under."""
    return Failure("tool_changed", f"Tool '{call.tool}' has changed since this call was made, so it was not run.")


def tool_gone(call: Call) -> Failure:
    """The tool is not offered any more."""
    return Failure("tool_gone", f"Tool '{call.tool}' is not available any more.")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _cut(name: str) -> str:
    return name if len(name) <= 64 else f"{name[:64]}…"
