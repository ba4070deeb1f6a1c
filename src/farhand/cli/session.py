"""A conversation in the terminal: text as it streams, calls as cards, questions to the person. Speaks to any agent."""

import asyncio
from typing import Any

from msgspec import DecodeError, json
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from farhand.agent import Agent
from farhand.calls import Call
from farhand.core.call import Outcome
from farhand.core.errors import InvalidAnswer
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

    async def talk(self) -> None:
        """Go on until the person has had enough."""
        while True:
            try:
                line = await self._read("[bold cyan]you>[/] ")
            except (EOFError, KeyboardInterrupt):
                return
            if not line.strip():
                return
            await self._turn(line)

    async def _turn(self, line: str) -> None:
        run = self._agent.start(line, history=self._history)
        run.watch(self._show)
        await run.wait()
        while run.status == "waiting":
            for call in run.pending:
                await self._settle(run, call)
            await run.wait()
        self._history = run.messages

    def _show(self, update: Update) -> None:
        say = self._console.print
        match update:
            case TextStreamed(text=text):
                say(Text(text), end="")
            case CallExecuting(tool=tool, place=place, arguments=arguments):
                say(f"\n  [dim]→ {tool} at the {place}[/] ", Text(arguments, style="dim"), end="")
            case CallProgress(value=value):
                say(f"\n    [dim]{value}[/]", end="")
            case CallEnded():
                text = update.failure.message if update.failure is not None else bytes(update.result).decode()
                say(f"\n  {MARKS.get(update.outcome, '[red]✗[/]')} {update.tool}: ", Text(text), end="")
            case RunEnded(ending=ending, failure=failure):
                say("" if ending is Ending.DONE else f"\n[yellow]{ending}[/] {failure.message if failure else ''}")
            case Warned(message=message):
                say(f"\n[yellow]{message}[/]", end="")
            case _:
                pass

    async def _settle(self, run: LiveRun[Any], call: Call[Any, Any]) -> None:
        if call.needs_approval:
            await self._decide(run, call)
        elif call.tool == "show_message":
            self._console.print()
            said = call.arguments
            self._console.print(Panel(Text(said["message"]), border_style=COLOURS[said.get("severity", "info")]))
            run.answer(call.id, "shown")
        else:
            text = await self._read(f"\n  result of {call.tool}({call.record.arguments}) as JSON: ")
            self._answer(run, call, text)

    def _answer(self, run: LiveRun[Any], call: Call[Any, Any], text: str) -> None:
        try:
            run.answer(call.id, json.decode(text))
        except (DecodeError, InvalidAnswer) as error:
            self._console.print(f"[red]{error}[/]")

    async def _decide(self, run: LiveRun[Any], call: Call[Any, Any]) -> None:
        self._console.print(f"\n  [yellow]?[/] {call.tool} ", Text(call.record.arguments))
        text = await self._read("  [y]es, [a]lways, [e]dit, or a reason to deny: ")
        verdict = await self._verdict(text.strip(), call)
        try:
            if isinstance(verdict, Approve):
                run.approve(call.id, arguments=verdict.arguments, remember=verdict.remember)
            else:
                run.deny(call.id, verdict.reason)
        except InvalidAnswer as error:
            self._console.print(f"[red]{error}[/]")

    async def _verdict(self, text: str, call: Call[Any, Any]) -> Approve | Deny:
        match text.lower():
            case "y" | "yes":
                return Approve()
            case "a" | "always":
                return Approve(remember="tool")
            case "e" | "edit":
                edited = await self._read(f"  arguments [{call.record.arguments}]: ")
                try:
                    return Approve(arguments=json.decode(edited)) if edited.strip() else Approve()
                except DecodeError:
                    return await self._verdict("e", call)
            case "n" | "no":
                return Deny()
            case reason:
                return Deny(reason)

    async def _read(self, prompt: str) -> str:
        return await asyncio.to_thread(self._console.input, prompt)
