"""`farhand thread`: one conversation, to look at, to keep, and to see again."""

import asyncio
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from farhand.cli.options import NOBODY, Json, Login, Server, Who
from farhand.cli.output import moment, write, write_json
from farhand.cli.remote import reached
from farhand.core.call import Outcome
from farhand.core.messages import AssistantMessage, Message, ToolMessage, UserMessage, part_text
from farhand.protocols.native import ThreadView

Name: TypeAlias = Annotated[str, Parameter(help="What you call the conversation.")]

thread = App(name="thread", help="A conversation: show it, export it, replay it.")
thread.command(
    "farhand.cli.thread_export:export", name="export", help="Write a conversation as JSON lines: messages and updates."
)
thread.command(
    "farhand.cli.thread_replay:replay",
    name="replay",
    help="Show again what happened, with its timing, or one moment of it.",
)


@thread.command
def show(server: Server, name: Name, /, *, who: Who = NOBODY, as_json: Json = False) -> None:
    """Show a conversation as it stands: what was said, and what waits."""
    found = asyncio.run(_state(server, name, who))
    if as_json:
        write_json(found)
        return
    write(f"thread {found.id}, updates up to {found.seq}" + (f", run {found.run_id} is open" if found.run_id else ""))
    for message in found.messages:
        for line in lines_of(message):
            write(line)
    for call in found.calls:
        until = f", until {moment(call.deadline)}" if call.deadline else ""
        write(f"call {call.id} {call.tool} {call.arguments}: {call.state}{until}")


async def _state(server: str, name: str, who: Login) -> ThreadView:
    async with reached(server, who) as client:
        return await client.thread(name).state()


def lines_of(message: Message) -> list[str]:
    """A message as it is shown."""
    match message:
        case UserMessage(parts=parts):
            return [f"you> {''.join(map(part_text, parts))}"]
        case AssistantMessage(text=text, calls=calls):
            return [*([text] if text else []), *(f"  → {call.tool} {call.arguments}" for call in calls)]
        case ToolMessage():
            sign = "✓" if message.outcome is Outcome.OK else "✗"
            return [f"  {sign} {message.tool}: {message.text}"]
