"""What a person, or a program for them, may decide about a call; and where lasting decisions are kept in a process."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, json

from farhand.core import answers
from farhand.core.events import Approved, Denied, Memory, Remember
from farhand.core.run import Run
from farhand.places.values import dump


class Approve(Struct, frozen=True, kw_only=True):
    """Yes; perhaps with other arguments, something for the tool to know, or for good."""

    arguments: Any | UnsetType = UNSET
    payload: Any = None
    remember: Literal["tool", "arguments"] | None = None


class Deny(Struct, frozen=True):
    """No; the reason is told to the model."""

    reason: str = ""
    remember: Literal["tool", "arguments"] | None = None


def remembered(scope: str | None) -> Remember | None:
    """The scope of a lasting decision."""
    return None if scope is None else Remember(scope)


def decision(run: Run, who: str, call_id: str, verdict: object, now: int) -> Approved | Denied | None:
    """The event that a verdict deserves: True, False, `Approve(…)` or `Deny(…)`."""
    match verdict:
        case True | Approve():
            yes = verdict if isinstance(verdict, Approve) else Approve()
            text = None if yes.arguments is UNSET else dump(yes.arguments).decode()
            scope, payload = remembered(yes.remember), json.decode(dump(yes.payload))
            return answers.approve(run, who, call_id, at=now, arguments=text, payload=payload, remember=scope)
        case False | Deny():
            no = verdict if isinstance(verdict, Deny) else Deny()
            return answers.deny(run, who, call_id, at=now, reason=no.reason, remember=remembered(no.remember))
        case _:
            raise TypeError(f"on_approval decides True, False, Approve or Deny, not {type(verdict).__name__}")


class Decisions:
    """Lasting decisions by principal. Bound to a tool's pin: a changed tool is asked about again."""

    def __init__(self) -> None:
        self._memory: dict[str, tuple[Memory, ...]] = {}

    def of(self, principal: str) -> tuple[Memory, ...]:
        """What the principal has decided for good, oldest first."""
        return self._memory.get(principal, ())

    def keep(self, principal: str, memory: Memory) -> None:
        """Add a decision; it takes the place of an earlier one about the same."""
        kept = [
            old for old in self.of(principal) if (old.pin, old.arguments_hash) != (memory.pin, memory.arguments_hash)
        ]
        self._memory[principal] = (*kept, memory)

    def forget(self, principal: str) -> None:
        """Ask again about everything."""
        self._memory.pop(principal, None)
