"""The programs of docs/plugins.md and of the five uses of a callback, one after another."""

from office import office

with office():
    # region first
    import asyncio
    from pathlib import Path
    from typing import Any

    from farhand import Client
    from farhand.client import Plugin

    def read_note(arguments: dict[str, Any]) -> str:
        return Path(arguments["name"]).with_suffix(".txt").name

    notes = Plugin(
        "notes",
        "1.0",
        tools=[
            {
                "name": "read_note",
                "description": "Read a note of the user's.",
                "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            }
        ],
        executors={"read_note": read_note},
    )

    async def main() -> None:
        async with Client() as client:
            await client.use(notes)
            print((await client.thread().run("Read the note")).output)
            print(client.plugin_names, [definition.name for definition in client.tools_offered])
            await client.unuse("notes")

    asyncio.run(main())
    # endregion

    # region factory
    from farhand import tool

    def clock_plugin(zone: str) -> Plugin:
        """Tells the time of a zone."""

        @tool(effect="pure")
        def read_clock() -> str:
            """The time of day."""
            return f"noon in {zone}"

        return Plugin("clock", "1.2", tools=[read_clock])

    async def ask_the_time() -> None:
        async with Client() as client:
            await client.use(clock_plugin("Lima"))
            print((await client.thread().run("Read the clock")).output)

    asyncio.run(ask_the_time())
    # endregion

    # region hooks
    from msgspec import structs

    from farhand.client import ClientCall, NotMine, RunResult
    from farhand.protocols.native import RunRequest

    def politely(request: RunRequest) -> RunRequest:
        return structs.replace(request, input=f"{request.input}, please")

    async def shortly(result: RunResult) -> RunResult:
        return structs.replace(result, text=result.text[:20])

    seen: dict[str, Any] = {}

    def from_memory(call: ClientCall[Any, Any]) -> Any:
        return seen.get(call.record.arguments, NotMine)

    def remember(call: ClientCall[Any, Any], result: Any) -> None:
        seen[call.record.arguments] = result

    async def with_hooks() -> None:
        async with Client() as client:
            await client.use(
                notes,
                Plugin("manners", "1", before_request=politely, after_response=shortly),
                Plugin("memory", "1", on_tool_call=from_memory, on_tool_result=remember, requires=["notes>=1"]),
            )
            print((await client.thread().run("Read the note")).output)

    asyncio.run(with_hooks())
    # endregion

    # region confirm
    async def ask_person(question: str) -> bool:
        """A dialog, in a real program."""
        return "delete" not in question

    async def confirm(call: ClientCall[Any, Any]) -> Any:
        if not await ask_person(f"Run {call.tool} with {call.arguments}?"):
            return {"cancelled": True}
        return await call.run()

    # endregion

    # region log
    import logging
    import time

    async def log(call: ClientCall[Any, Any]) -> Any:
        began = time.monotonic()
        try:
            return await call.run()
        finally:
            logging.getLogger("tools").info("%s took %.3f s", call.tool, time.monotonic() - began)

    # endregion

    # region gate
    from farhand import ToolError

    ALLOWED = {"read_note"}

    async def gate(call: ClientCall[Any, Any]) -> Any:
        if call.tool not in ALLOWED:
            raise ToolError("Permission denied for this tool", code="denied", retryable=False)
        return NotMine

    # endregion

    # region dispatch
    async def dispatch(call: ClientCall[Any, Any]) -> Any:
        family, _, verb = call.tool.partition("_")
        match family:
            case "read":
                return f"{verb} is empty"
            case "fs":
                return {"done": verb}
            case _:
                return NotMine

    # endregion

    # region spinner
    async def spinner(call: ClientCall[Any, Any]) -> Any:
        print(f"… {call.tool}")
        try:
            return await call.run()
        finally:
            print(f"✓ {call.tool}")

    # endregion

    async def use_all() -> None:
        async with Client() as client:
            await client.use(notes)
            for callback in (confirm, log, gate, dispatch, spinner):
                print((await client.thread().run("Read the note", on_tool_call=callback)).output)

    asyncio.run(use_all())
