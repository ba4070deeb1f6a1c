"""What a client does about the calls of one run, or of all that a provider is offered: its tools and callbacks."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from farhand.calls import Call
from farhand.client.calls import ClientCall
from farhand.core.definition import Definition
from farhand.places.functions import in_thread, is_async, takes_two
from farhand.places.running import CallContext
from farhand.tool import Tool

OnToolCall: TypeAlias = Callable[[ClientCall[Any, Any]], Any] | Callable[[ClientCall[Any, Any], CallContext], Any]
"""Gets a `ClientCall`, and its `CallContext` if it takes two; gives the result, or `NotMine`."""
OnApproval: TypeAlias = Callable[[Call[Any, Any]], Any]
"""Gets a `Call`; gives True, False, `Approve(…)` or `Deny(…)`."""

ALL = "*"


class Rounds:
    """Replies of the model whose calls were run here, counted up to a limit; 0 is none."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.told = False
        """Whether it was said that the limit is reached."""
        self._turns: set[int] = set()

    def allow(self, turn: int) -> bool:
        """Whether calls of this turn may run; then it counts."""
        if self.limit and turn not in self._turns and len(self._turns) >= self.limit:
            return False
        self._turns.add(turn)
        return True


class Hands:
    """Tools with their functions, what they are offered as, and who is asked before them."""

    def __init__(
        self,
        tools: Mapping[str, Tool[Any, Any]],
        *,
        offers: tuple[str, ...],
        on_tool_call: OnToolCall | None = None,
        on_approval: OnApproval | None = None,
        rounds: int = 0,
    ) -> None:
        self.tools = tools
        self.offers = offers
        self.rounds = Rounds(rounds)
        self.on_approval = on_approval
        self._on_tool_call = on_tool_call

    def takes(self, tool: str) -> bool:
        """Whether calls of this tool are to be answered here."""
        return tool in self.offers or ALL in self.offers

    def definition(self, tool: str) -> Definition | None:
        """What is known here of a tool."""
        found = self.tools.get(tool)
        return None if found is None else found.definition

    def can_run(self, tool: str) -> bool:
        """Whether anything here may have a result for it."""
        found = self.tools.get(tool)
        return self._on_tool_call is not None or (found is not None and found.function is not None)

    async def ask(self, call: ClientCall[Any, Any]) -> Any:
        """What the callback of this run says to a call. One that is not async runs in a thread."""
        assert self._on_tool_call is not None
        given = (call, call.context) if takes_two(self._on_tool_call) else (call,)
        return await run_anyhow(self._on_tool_call, *given)

    @property
    def asks(self) -> bool:
        """Whether there is such a callback."""
        return self._on_tool_call is not None


async def run_anyhow(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function of the program's: in the loop if it is async, else in a thread, where it may block."""
    if not is_async(function):
        return await in_thread(function, *given)
    answer = function(*given)
    return await answer if inspect.isawaitable(answer) else answer
