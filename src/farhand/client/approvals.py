"""Decisions of a person, asked of the program's callback beside the stream, and sent to the server."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw

from farhand.calls import Call
from farhand.client.events import Events, ToolValidationError
from farhand.client.hands import OnApproval, run_anyhow
from farhand.client.wire import Wire
from farhand.core.errors import InvalidAnswer, RefusedAnswer
from farhand.places.values import dump
from farhand.protocols.native import Decision
from farhand.runner.decision import Approve, Deny

logger = logging.getLogger("farhand.client")

Failed = Callable[[BaseException], None]
After = Callable[[bool], None]


class Approvals:
    """The questions that are open here."""

    def __init__(self, wire: Wire, events: Events) -> None:
        self._wire = wire
        self._events = events
        self._open: dict[str, asyncio.Task[None]] = {}
        self._deciding: set[str] = set()

    def ask(self, call: Call[Any, Any], on_approval: OnApproval, after: After, failed: Failed) -> None:
        """Ask about a call. `failed` is told what the callback raises, `after` whether the call is decided."""
        if call.id not in self._open:
            self._open[call.id] = asyncio.create_task(self._ask(call, on_approval, after, failed))

    def withdraw(self, call_id: str) -> None:
        """Somebody else has decided, or the call has ended."""
        if call_id in self._open and call_id not in self._deciding:
            self._open[call_id].cancel()

    async def close(self) -> None:
        """Ask no more."""
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _ask(self, call: Call[Any, Any], on_approval: OnApproval, after: After, failed: Failed) -> None:
        decided = False
        try:
            said = decision_of(await run_anyhow(on_approval, call), call)
            self._deciding.add(call.id)
            await self._wire.ask("decide-call", {"call": call.id}, body=said)
            decided = True
        except asyncio.CancelledError:
            pass  # nobody wants to know any more
        except InvalidAnswer as error:
            self._events.tell(ToolValidationError(call, "edit", error.problems))
        except RefusedAnswer as error:
            logger.debug("the decision about call %s does not count: %s", call.id, error.code)
            decided = True
        except BaseException as error:  # noqa: BLE001  it belongs to whoever follows the run
            failed(error)
        finally:
            self._deciding.discard(call.id)
            del self._open[call.id]
            after(decided)


def decision_of(verdict: object, call: Call[Any, Any] | None = None) -> Decision:
    """True, False, `Approve(…)` or `Deny(…)` as it is sent; bound to what the call showed."""
    shown = call.record.approval.arguments_hash if call is not None and call.record.approval is not None else None
    match verdict:
        case True | Approve():
            yes = verdict if isinstance(verdict, Approve) else Approve()
            return Decision(
                approved=True,
                arguments=UNSET if yes.arguments is UNSET else Raw(dump(yes.arguments)),
                payload=Raw(dump(yes.payload)),
                remember=yes.remember,
                shown=shown or None,
            )
        case False | Deny():
            no = verdict if isinstance(verdict, Deny) else Deny()
            return Decision(approved=False, reason=no.reason, remember=no.remember)
        case _:
            raise TypeError(f"on_approval decides True, False, Approve or Deny, not {type(verdict).__name__}")
