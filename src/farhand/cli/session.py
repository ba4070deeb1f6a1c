"""A conversation in the terminal: text as it streams, calls as cards, questions to the person. Speaks to any agent."""

import asyncio
from typing import Any

from msgspec import DecodeError, json
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.text import Text

from farhand.agent import Agent
from farhand.calls import Call
from farhand.core.call import Outcome
from farhand.core.errors import RefusedAnswer
from farhand.core.messages import Message
from farhand.core.run import Ending
from farhand.core.updates import (
    CallEnded,
    CallExecuting,
    CallProgress,
    RunEnded,
    TextStreamed,
    Update,
    Warned,
)
from farhand.demo import show_message
from farhand.runner.decision import Approve, Deny
from farhand.runner.live import LiveRun

MARKS = {Outcome.OK: "[green]✓[/]", Outcome.DENIED: "[yellow]✗[/]", Outcome.CANCELLED: "[yellow]✗[/]"}
COLOURS = {"info": "blue", "warning": "yellow", "error": "red"}


class Session:
    """Reads lines, runs the agent, and asks the person whatever the run waits for."""

    def __init__(self, agent: Agent[Any], console: Console) -> None:
        self._agent = agent
        self._console = console
        self._history: tuple[Message, ...] = ()
        self._in_text = False

    async def talk(self) -> None:
        """Go on until the person has had enough."""
        while True:
            try:
                line = await self._read("[bold cyan]you>[/] ")
                if not line.strip():
                    return
                await self._turn(line)
            except (EOFError, KeyboardInterrupt):
                return

    async def _turn(self, line: str) -> None:
        run = self._agent.start(line, history=self._history)
        run.watch(self._show)
        await run.wait()
        while run.status == "waiting":
            for call in run.pending:
                await self._settle(run, call)
            await run.wait()
        self._line()
        self._history = run.messages

    def _show(self, update: Update) -> None:
        match update:
            case TextStreamed(text=text):
                self._console.print(Text(text), end="")
                self._in_text = True
            case CallExecuting(tool=tool, place=place, arguments=arguments):
                self._line(f"  [dim]→ {tool} at the {place}[/]", Text(arguments, style="dim"))
            case CallProgress(value=value):
                self._line("   ", Text(str(value), style="dim"))
            case CallEnded():
                said = update.failure.message if update.failure is not None else bytes(update.result).decode()
                self._line(f"  {MARKS.get(update.outcome, '[red]✗[/]')} {escape(update.tool)}:", Text(said))
            case RunEnded(ending=ending, failure=failure) if ending is not Ending.DONE:
                self._line(f"[yellow]{ending}[/]", Text(failure.message if failure else ""))
            case Warned(message=message):
                self._line("[yellow]![/]", Text(message))
            case _:
                pass

    def _line(self, *parts: RenderableType) -> None:
        """Print on a line of its own, also in the middle of streamed text."""
        if self._in_text:
            self._console.print()
            self._in_text = False
        if parts:
            self._console.print(*parts)

    async def _settle(self, run: LiveRun[Any], call: Call[Any, Any]) -> None:
        if call.needs_approval:
            await self._decide(run, call)
        elif call.tool == show_message.name and call.record.pin == show_message.definition.pin:
            said = call.arguments
            self._line(Panel(Text(said["message"]), border_style=COLOURS[said.get("severity", "info")]))
            run.answer(call.id, "shown")
        else:
            text = await self._read(escape(f"  result of {call.tool}({call.record.arguments}) as JSON: "))
            self._answer(run, call, text)

    def _answer(self, run: LiveRun[Any], call: Call[Any, Any], text: str) -> None:
        try:
            run.answer(call.id, json.decode(text))
        except (DecodeError, RefusedAnswer) as error:
            self._line(Text(str(error), style="red"))

    async def _decide(self, run: LiveRun[Any], call: Call[Any, Any]) -> None:
        self._line(f"  [yellow]?[/] {call.tool}", Text(call.record.preview or call.record.arguments))
        text = await self._read(escape("  [y]es, [a]lways, [e]dit, or a reason to deny: "))
        verdict = await self._verdict(text.strip(), call)
        try:
            if isinstance(verdict, Approve):
                run.approve(call.id, arguments=verdict.arguments, remember=verdict.remember)
            else:
                run.deny(call.id, verdict.reason)
        except RefusedAnswer as error:
            self._line(Text(str(error), style="red"))

    async def _verdict(self, text: str, call: Call[Any, Any]) -> Approve | Deny:
        match text.lower():
            case "y" | "yes":
                return Approve()
            case "a" | "always":
                return Approve(remember="tool")
            case "e" | "edit":
                shown = call.record.preview or call.record.arguments
                edited = await self._read(escape(f"  arguments [{shown}]: "))
                try:
                    return Approve(arguments=json.decode(edited)) if edited.strip() else Approve()
                except DecodeError:
                    return await self._verdict("e", call)
            case "n" | "no":
                return Deny()
            case _:
                return Deny(text)

    async def _read(self, prompt: str) -> str:
        self._line()
        return await asyncio.to_thread(self._console.input, prompt)
