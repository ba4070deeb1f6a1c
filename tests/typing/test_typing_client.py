"""What a type checker knows of a program that uses the client. `basedpyright` reads this file; nothing here runs."""

from typing import Any, assert_type

from pydantic import BaseModel

from farhand import Call, CallContext, Client, tool
from farhand.client import Accepted, BlockingClient, ClientCall, NotMine, Plugin, RunResult
from farhand.core.updates import Update
from farhand.protocols.native import CallView, RunHandle, ThreadView


class Item(BaseModel):
    """An item."""

    name: str


async def check_a_client(client: Client, context: CallContext) -> None:
    @client.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @client.tool(effect="pure", timeout=3.0)
    async def find(name: str, context: CallContext) -> Item:
        """Find."""
        return Item(name=name)

    assert_type(add(1, 2), int)
    assert_type(await find("x", context), Item)
    add("one", 2)  # pyright: ignore[reportArgumentType]
    client.implement("pick", lambda arguments: arguments["x"])
    client.implement(tool.define("pick", description="Pick."), lambda arguments, context: context.call_id)
    client.on("tool_begin", print)  # pyright: ignore[reportArgumentType]

    thread = client.thread("t")
    result = await thread.run("hi", max_tool_rounds=3, on_tool_call=ask, on_approval=decide)
    assert_type(result, RunResult)
    assert_type(result.output_as(Item), Item)
    assert_type(result.calls_of(add)[0].output, int)
    await thread.run("hi", max_rounds=3)  # pyright: ignore[reportCallIssue]
    async for update in thread.stream("hi"):
        assert_type(update, Update)
    assert_type(await thread.resume(), RunResult)
    assert_type(await thread.start("hi"), RunHandle)
    assert_type(await thread.state(), ThreadView)
    assert_type(await client.pending(), tuple[CallView, ...])
    await client.use(Plugin("p", "1", executors={"pick": lambda arguments: 1}))


async def ask(call: ClientCall[Any, Any]) -> Any:
    """Answers some calls."""
    return await call.run() if call.has_executor else NotMine


async def decide(call: Call[Any, Any]) -> bool:
    """Decides."""
    return call.needs_approval


async def render(scene: str) -> Item | Accepted:
    """Now or later."""
    return Accepted(scene)


def check_the_blocking_client(client: BlockingClient) -> None:
    @client.tool
    def add(a: int) -> int:
        """Add."""
        return a

    thread = client.thread()
    assert_type(thread.run("hi", hold=True), RunResult)
    thread.run("hi", hold=1)  # pyright: ignore[reportArgumentType]
    for update in thread.stream("hi"):
        assert_type(update, Update)
    assert_type(client.pending("t"), tuple[CallView, ...])
    assert_type(add(1), int)
