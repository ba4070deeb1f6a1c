"""A run as a program reads it: its answer, its calls, its conversation. It changes nothing; `live` has the verbs."""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar, cast

from farhand.calls import Call
from farhand.core.call import Call as Record
from farhand.core.errors import RunFailed
from farhand.core.final import output_value
from farhand.core.messages import AssistantMessage, Message
from farhand.core.opening import ClientState, client_state
from farhand.core.pieces import Usage
from farhand.core.run import Ending, Run
from farhand.runner.driver import Means
from farhand.tool import In, Out, Tool

Output = TypeVar("Output")

_BROKEN = (Ending.FAILED, Ending.CANCELLED)


class Readable(ABC, Generic[Output]):
    """What can be read off a run's state. Whoever has a state and means has all of this."""

    __slots__ = ()

    @property
    @abstractmethod
    def state(self) -> Run:
        """The run as the core sees it: a value that never changes; the next event brings another one."""

    @property
    @abstractmethod
    def means(self) -> Means:
        """What it works with in this process."""

    @property
    def id(self) -> str:
        """The run's id."""
        return self.state.id

    @property
    def status(self) -> str:
        """`running`, `waiting`, `done`, `limit`, `stopped`, `failed` or `cancelled`."""
        return self.state.status

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far; give it to `Agent.run(history=…)` to go on with it."""
        return self.state.messages

    @property
    def usage(self) -> Usage:
        """Tokens so far."""
        return self.state.usage

    @property
    def text(self) -> str:
        """The answer's text; at a limit, whatever the model said last."""
        if self.state.output:
            return self.state.output
        mine = self.state.messages[self.state.said_before :]
        said = [message.text for message in mine if isinstance(message, AssistantMessage)]
        return said[-1] if said else ""

    @property
    def output(self) -> Output:
        """The answer, as the agent's output type. Raises `RunFailed` when there is none."""
        run = self.state
        if run.ending in _BROKEN:
            why = run.failure.message if run.failure is not None else "it was cancelled"
            raise RunFailed(f"the run ended without a result: {why}", run.failure)
        if run.ending is None:
            waits = ", ".join(call.tool for call in self.pending)
            raise RunFailed(f"the run has no result yet; it is {self.status}" + (f" for {waits}" if waits else ""))
        if self.means.output is None:
            return cast("Output", run.output or self.text)
        try:
            return self.means.output.load(output_value(run.output))
        except ValueError as error:
            raise RunFailed(f"the answer is not what was asked for: {error}", run.failure) from error

    @property
    def client_state(self) -> ClientState | None:
        """What the thread has of its client by now, for the run after this one."""
        return client_state(self.state.scene, self.state.tools)

    @property
    def calls(self) -> tuple[Call[Any, Any], ...]:
        """Every call of the run, oldest first."""
        return tuple(self._call(record) for record in self.state.calls.values())

    @property
    def pending(self) -> tuple[Call[Any, Any], ...]:
        """The calls that wait for a client or a person."""
        return tuple(self._call(record) for record in self.state.awaited_calls)

    def calls_of(self, tool: Tool[In, Out]) -> tuple[Call[In, Out], ...]:
        """The calls of one tool, with its types."""
        return tuple(Call(record, tool) for record in self.state.calls.values() if record.tool == tool.name)

    def _call(self, record: Record) -> Call[Any, Any]:
        return Call(record, self.means.tools.get(record.tool))


class RunView(Readable[Output]):
    """A run as it stood when it was looked at."""

    __slots__ = ("_means", "_state")

    def __init__(self, state: Run, means: Means) -> None:
        self._state = state
        self._means = means

    @property
    def state(self) -> Run:
        """The run as the core sees it."""
        return self._state

    @property
    def means(self) -> Means:
        """What it works with in this process."""
        return self._means

    def __repr__(self) -> str:
        return f"<RunView {self.id}: {self.status}>"
