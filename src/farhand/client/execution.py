"""One call being run: who is asked for its result, how long that may take, and what is said of whatever comes of it."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Literal
from uuid import uuid4

from msgspec import Raw, Struct, json

from farhand.client.calls import ClientCall
from farhand.client.events import Events, MissingTool, Timeout, ToolStart, ToolValidationError
from farhand.client.hands import Hands
from farhand.core import reasons
from farhand.core.definition import SideEffect
from farhand.core.errors import ToolError
from farhand.core.failure import Failure
from farhand.core.messages import decode_parts
from farhand.groups import dump_augmentation
from farhand.places.faults import hidden, said, shown, where
from farhand.places.running import Accepted, Augmented
from farhand.places.values import dump, dump_result
from farhand.plugins import PluginSet
from farhand.plugins.plugin_set import is_not_mine
from farhand.protocols.native import ResultRequest, ToolFailure

logger = logging.getLogger("farhand.client")


class Done(Struct, frozen=True):
    """What came of a call here."""

    request: ResultRequest
    """As the server is told it."""
    outcome: Literal["ok", "failed", "accepted"]
    result: Any = None
    failure: Failure | None = None


class Execution:
    """Runs one attempt of a call. Nothing that a function does comes out of here as an exception."""

    def __init__(
        self,
        call: ClientCall[Any, Any],
        hands: Hands,
        plugins: PluginSet,
        events: Events,
        *,
        client: str,
        timeout: float | None,
        show_errors: bool,
    ) -> None:
        self.call = call
        self._hands = hands
        self._plugins = plugins
        self._events = events
        self._client = client
        self._show_errors = show_errors
        tool = hands.tools.get(call.tool)
        self._seconds = timeout if tool is None else tool.definition.policy.timeout or timeout
        self._began: float | None = None

    @property
    def began(self) -> bool:
        """Whether anybody was asked yet."""
        return self._began is not None

    @property
    def seconds(self) -> float:
        """Since then."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    async def run(self, is_over: Callable[[], bool]) -> Done:
        """The call's result or failure; `is_over` says whether a cancellation is meant for this."""
        if not self._hands.can_run(self.call.tool) and not self._plugins.answers_calls:
            self._events.tell(MissingTool(self.call))
            return self.failed(reasons.unknown_tool(self.call.tool))
        tool = self._hands.tools.get(self.call.tool)
        problems = () if tool is None else tool.check(self.call.arguments)
        if problems:
            self._events.tell(ToolValidationError(self.call, "arguments", problems))
            return self.failed(reasons.bad_arguments(problems))
        self._began = time.monotonic()
        self._events.tell(ToolStart(self.call))
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                value = await self._value()
            return await self._succeeded(value)
        except ToolError as error:
            return self.failed(said(error))
        except asyncio.CancelledError as error:
            if is_over():
                raise
            return await self._hidden(error)
        except Exception as error:  # noqa: BLE001  whatever a tool raises is told to the model
            return self._late() if limit.expired() else await self._hidden(error)

    def failed(self, failure: Failure) -> Done:
        """A failure, as the server is told it."""
        error = ToolFailure(
            message=failure.message,
            code=failure.code,
            path=failure.path,
            retryable=failure.retryable,
            details=failure.details,
        )
        return Done(self._request(error=error), "failed", None, failure)

    async def _value(self) -> Any:
        """Who is asked, in this order: the callback of the run, the plugins, the tool's own function."""
        if self._hands.asks:
            value = await self._hands.ask(self.call)
            if not is_not_mine(value):
                return value
        value = await self._plugins.on_tool_call(self.call)
        if not is_not_mine(value):
            return value
        if not self.call.has_executor:
            self._events.tell(MissingTool(self.call))
        return await self.call.run()

    async def _succeeded(self, value: Any) -> Done:
        if isinstance(value, Accepted):
            return Done(self._request(accepted=value.note), "accepted", value.note)
        given: dict[str, Any] = {}
        if isinstance(value, Augmented):
            given["augmentation"] = Raw(dump_augmentation(value.augmentation))
            value = value.value
        value = await self._plugins.on_tool_result(self.call, value)
        tool = self._hands.tools.get(self.call.tool)
        function = None if tool is None else tool.function
        raw, multipart = dump_result(value, dump) if function is None else function.write(value)
        given |= {"content": decode_parts(raw)} if multipart else {"result": Raw(raw)}
        return Done(self._request(**given), "ok", json.decode(raw))

    async def _hidden(self, error: BaseException) -> Done:
        number = uuid4().hex[:8]
        tool = self.call.tool
        place = where(error, text=self._show_errors)
        logger.error("tool %s failed (error %s, call %s): %s", tool, number, self.call.id, place)
        await self._plugins.tell(error, f"tool {tool!r}")
        return self.failed(shown(error) if self._show_errors else hidden(tool, number))

    def _late(self) -> Done:
        seconds = self._seconds or 0.0
        self.call.context.cancelled = True
        self._events.tell(Timeout(self.call, seconds))
        definition = self._hands.definition(self.call.tool)
        once = definition is None or definition.policy.effect is SideEffect.ONCE
        return self.failed(reasons.timed_out(self.call.record, seconds, once=once))

    def _request(self, **given: Any) -> ResultRequest:
        return ResultRequest(client=self._client, attempt=self.call.record.attempt, **given)
