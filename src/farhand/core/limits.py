"""How far a run may go, and how long anything may take. Settings of the server's owner, stored with each run."""

from typing import Literal

from msgspec import Struct

from farhand.core.definition import MAX_TIMEOUT
from farhand.core.errors import UsageError


class Limits(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Limits of one run. Times are seconds; `None` means no limit."""

    max_turns: int = 5
    """Model replies that may call tools, per user message, pauses included."""
    final_turn: bool = True
    """At `max_turns`, ask the model once more without tools."""
    calls_per_turn: int = 64
    """Further calls of one reply are refused and the model is told."""
    max_calls: int | None = None
    """Calls of a run; further ones are refused, and the model is asked once more without tools."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    """At a token limit the model is not asked again."""
    parallel: int = 8
    """Calls that run at the same time on the server."""
    flow: Literal["ask", "refuse", "off"] = "ask"
    """What becomes of a call that sends data out, once the run has read private data and strangers' words."""
    gate: Literal["call", "turn"] = "call"
    """`turn`: no server call of a turn starts while another of it waits for a person."""
    server_timeout: float | None = 30.0
    """For a server tool that sets none."""
    client_timeout: float | None = 600.0
    """For a client, MCP or A2A tool that sets none."""
    approval_timeout: float | None = None
    """For an approval of a tool that sets none."""
    grace: float = 5.0
    """How long to wait for a client that is not there before `absent` counts."""
    retry_delay: float = 0.5
    """Before the second attempt; doubled for each further one."""
    absent_retries: int = 3
    """Dispatches of a call whose tool says `absent="retry"`."""
    max_losses: int = 3
    """How often a `pure` or `idempotent` call is run again after its process died; then its outcome is unknown."""
    reply_characters: int = 4_194_304
    """Text, thinking, and calls with their names and arguments, of one reply; a model that says more has failed."""
    argument_bytes: int = 262_144
    result_bytes: int = 1_048_576
    output_repairs: int = 2
    """Further turns in which the model may mend a final answer that breaks the output schema."""

    def __post_init__(self) -> None:
        if self in _SEEN:
            return  # a stored run brings them again and again
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if value is not None and not (type(value) is int and value >= least):
                raise UsageError(f"Limits.{name} is {value!r}; it must be a whole number, {least} at least")
        for name in _TIMES:
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 <= value <= MAX_TIMEOUT):
                raise UsageError(f"Limits.{name} is {value!r}; it must be a number of seconds, {MAX_TIMEOUT} at most")
        if self.flow not in ("ask", "refuse", "off"):
            raise UsageError(f"Limits.flow is {self.flow!r}; it must be 'ask', 'refuse' or 'off'")
        if self.gate not in ("call", "turn"):
            raise UsageError(f"Limits.gate is {self.gate!r}; it must be 'call' or 'turn'")


_SEEN: list[Limits] = []
_COUNTS = {
    **dict.fromkeys(
        ("max_turns", "calls_per_turn", "parallel", "argument_bytes", "result_bytes", "reply_characters"), 1
    ),
    **dict.fromkeys(
        (
            "max_calls",
            "input_tokens",
            "output_tokens",
            "total_tokens",
            "output_repairs",
            "absent_retries",
            "max_losses",
        ),
        0,
    ),
}
_TIMES = ("server_timeout", "client_timeout", "approval_timeout", "grace", "retry_delay")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SEEN.append(Limits())
