"""Five things that a callback of a run is used for."""

import asyncio
import logging
from typing import Any

import pytest

from farhand import ToolError
from farhand.client import ClientCall, NotMine
from farhand.models import Turn, Use
from tests.client.story import Heard, office
from tests.client.test_pool import define, told


async def run(callback: Any, *tools: str, **functions: Any) -> tuple[list[str], Any]:
    uses = [Use(name, {"path": name}) for name in tools]
    async with office(script=[Turn("", *uses), "ok"], tools=()) as client:
        for name in tools:
            client.register(define(name), functions.get(name))
        heard = Heard(client, "tool_end")
        result = await client.thread().run("hi", on_tool_call=callback)
        await heard.until(lambda events: len(events) == len(tools))
        return told(result), heard.events


async def test_a_dialog_confirms_calls_and_one_that_is_cancelled_has_a_result_that_says_so() -> None:
    asked: list[str] = []

    async def confirm(call: ClientCall[Any, Any]) -> Any:
        asked.append(f"{call.tool} {call.arguments['path']}")
        if call.tool == "delete":
            return {"cancelled": True}
        return await call.run()

    results, _ = await run(confirm, "read", "delete", read=lambda given: "read", delete=lambda given: 1 / 0)
    assert results == ["read", '{"cancelled":true}']
    assert sorted(asked) == ["delete delete", "read read"]


async def test_calls_are_logged_around_their_own_function(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("tests.tools")

    async def log(call: ClientCall[Any, Any]) -> Any:
        logger.info("before %s", call.tool)
        try:
            return await call.run()
        finally:
            logger.info("after %s", call.tool)

    def fail(given: dict[str, Any]) -> None:
        raise ToolError("no disk")

    with caplog.at_level(logging.INFO, "tests.tools"):
        results, _ = await run(log, "fine", "broken", fine=lambda given: "fine", broken=fail)
    assert results == ["fine", "Error: no disk"]
    mine = [record.getMessage() for record in caplog.records if record.name == "tests.tools"]
    assert sorted(mine) == ["after broken", "after fine", "before broken", "before fine"]


async def test_a_gate_refuses_tools_that_are_not_allowed() -> None:
    ran: list[str] = []

    async def gate(call: ClientCall[Any, Any]) -> Any:
        if call.tool != "read":
            raise ToolError("Permission denied for this tool", code="denied", retryable=False)
        return NotMine

    functions = {name: lambda given, name=name: ran.append(name) for name in ("read", "write")}
    results, events = await run(gate, "read", "write", **functions)
    assert results == ["null", "Error: Permission denied for this tool"]
    assert ran == ["read"]
    assert {event.failure and event.failure.code for event in events} == {None, "denied"}


async def test_calls_are_dispatched_by_the_beginning_of_their_name() -> None:
    async def dispatch(call: ClientCall[Any, Any]) -> Any:
        family, _, verb = call.tool.partition("_")
        match family:
            case "fs":
                return f"file: {verb}"
            case "net":
                return f"page: {verb}"
            case _:
                return NotMine

    results, _ = await run(dispatch, "fs_read", "net_get", "other", other=lambda given: "its own")
    assert results == ["file: read", "page: get", "its own"]


async def test_a_display_shows_what_is_under_way() -> None:
    shown: list[set[str]] = []
    under_way: set[str] = set()
    both = asyncio.Event()

    async def display(call: ClientCall[Any, Any]) -> Any:
        under_way.add(call.tool)
        shown.append(set(under_way))
        if len(under_way) == 2:
            both.set()
        try:
            return await call.run({"path": "changed"})
        finally:
            under_way.discard(call.tool)

    async def work(given: dict[str, Any]) -> str:
        await both.wait()
        return given["path"]

    results, _ = await run(display, "one", "two", one=work, two=work)
    assert results == ["changed", "changed"]
    assert {"one", "two"} in shown
    assert under_way == set()
