"""The programs of docs/client.md, one after another."""

from office import office

with office():
    # region first
    import asyncio

    from farhand import Client

    async def main() -> None:
        async with Client() as client:

            @client.tool
            def read_clipboard() -> str:
                """What the user has copied."""
                return "forty-two"

            result = await client.thread().run("Read what I copied.")
            print(result.output)

    asyncio.run(main())
    # endregion

    # region stream
    from farhand.core.updates import CallEnded, TextStreamed

    async def show() -> None:
        async with Client() as client:
            stream = client.thread("diary").stream("Good morning")
            async for update in stream:
                match update:
                    case TextStreamed(text=text):
                        print(text, end="", flush=True)
                    case CallEnded(tool=name, outcome=outcome):
                        print(f"[{name}: {outcome}]")
                    case _:
                        pass
            result = await stream
            print(f"\n{result.status}, {len(result.messages)} messages, watch on from {result.position}")

    asyncio.run(show())
    # endregion

    # region implement
    async def edit() -> None:
        async with Client() as client:
            client.implement("open_file", lambda arguments: f"{arguments['path']} is open")
            print((await client.thread().run("Please open it")).output)

    asyncio.run(edit())
    # endregion

    # region background
    from farhand import CallContext
    from farhand.client import Accepted
    from farhand.core.updates import RunEnded

    async def render_later() -> None:
        async with Client() as client:
            jobs: asyncio.Queue[str] = asyncio.Queue()

            @client.tool
            async def render(scene: str, context: CallContext) -> Accepted:
                """Render a picture; it takes a while."""
                context.progress({"done": 0, "of": 100})
                await jobs.put(context.call_id)
                return Accepted(f"rendering {scene}")

            thread = client.thread("pictures")
            print((await thread.run("Please render the sunset")).output[:40])
            await client.report(await jobs.get(), {"file": "sunset.png"})
            ended = 0
            async for update in thread.watch():
                ended += isinstance(update, RunEnded)
                if ended == 2:  # the run that has told the model of it
                    break

    asyncio.run(render_later())
    # endregion

    # region approval
    from typing import Any

    from farhand import Approve, Call, Deny

    async def decide(call: Call[Any, Any]) -> Approve | Deny:
        print(f"may {call.tool} run with {call.arguments}?")
        return Approve() if call.arguments["amount"] < 10 else Deny("too much for today")

    async def shop() -> None:
        async with Client(on_approval=decide) as client:
            print((await client.thread().run("Please pay")).output)

    asyncio.run(shop())
    # endregion

    # region later
    async def decide_later() -> None:
        async with Client() as client:
            waiting = await client.thread("shop").run("Please pay")
            print(waiting.status, [call.tool for call in waiting.pending])
        # … another program, another day …
        async with Client() as client:
            for call in await client.pending("shop"):
                await client.approve(call.id, shown=call.arguments_hash)
            print((await client.thread("shop").resume()).output)

    asyncio.run(decide_later())
    # endregion

    # region provider
    async def editor() -> None:
        async with Client(id="editor") as editor, Client(id="chat") as chat:
            editor.implement("open_file", lambda arguments: f"opened {arguments['path']}")
            async with editor.providing():
                print((await chat.thread().run("Please open it")).output)

    asyncio.run(editor())
    # endregion

    # region events
    async def listen() -> None:
        async with Client() as client:
            off = client.on("tool_end", lambda event: print(f"{event.call.tool}: {event.outcome} {event.result!r}"))
            client.implement("open_file", lambda arguments: "opened")
            ended = asyncio.Event()
            client.on("tool_end", lambda event: ended.set())
            await client.thread().run("Please open it")
            await ended.wait()
            off()

    asyncio.run(listen())
    # endregion

    # region blocking
    from farhand.client import BlockingClient

    with BlockingClient() as client:

        @client.tool
        def read_clipboard() -> str:
            """What the user has copied."""
            return "forty-two"

        thread = client.thread()
        print(thread.run("Read what I copied.").output)
        for update in thread.stream("And now?"):
            print(type(update).__name__, end=" ")
    # endregion
