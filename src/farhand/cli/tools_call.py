"""`farhand tools call`: one tool by itself, with all that an agent does around it: checks, deadline, approval."""

import asyncio
import sys
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec import DecodeError, json

from farhand.agent import Agent
from farhand.calls import Call
from farhand.cli.exits import Exit
from farhand.cli.objects import is_url, load_agent, load_tools
from farhand.cli.options import Json, JsonText
from farhand.cli.output import pretty, write, write_json
from farhand.cli.printable import printable, printable_line
from farhand.core.call import Outcome
from farhand.core.errors import InvalidInput, NotFound, UsageError
from farhand.core.updates import CallProgress, Update
from farhand.models.scripted import Use, scripted
from farhand.runner.decision import Deny
from farhand.tool import Tool


def call(
    where: Annotated[str, Parameter(help="An agent or a tool of this machine, `module:name`.")],
    name: str,
    arguments: JsonText = "{}",
    /,
    *,
    yes: Annotated[bool, Parameter(negative="")] = False,
    as_json: Json = False,
) -> Exit:
    """Run one tool, as an agent would.

    Parameters
    ----------
    name
        The name of the tool.
    arguments
        JSON, as a model would write it; `-` reads it from the standard input.
    yes
        Agree to a call that needs approval, without being asked.
    """
    if is_url(where):
        raise UsageError("a server runs tools for its agents only; name the agent as `module:name`, or use `chat`")
    tool = _tool(where, name)
    text = sys.stdin.read() if arguments == "-" else arguments
    made = asyncio.run(_run(tool, _arguments(text), yes=yes, quiet=as_json))
    record = made.record
    if as_json:
        write_json({"tool": tool.name, "outcome": record.outcome, "result": record.result, "failure": record.failure})
    elif record.failure is not None:
        problems = "".join(f"\n  {problem}" for problem in record.failure.problems)
        print(printable(f"{record.outcome}: {record.failure.message}{problems}"), file=sys.stderr)
    else:
        write(pretty(bytes(record.result)))
    return Exit.OK if record.outcome is Outcome.OK else Exit.NO


def _tool(where: str, name: str) -> Tool[Any, Any]:
    try:
        tools = tuple(load_agent(where).tools.values())
    except UsageError:
        tools = load_tools(where)
    for tool in tools:
        if tool.name == name:
            if tool.function is None:
                raise UsageError(f"tool {name!r} has no function here: a client runs it")
            return tool
    raise NotFound(f"there is no tool {name!r}; there are: {', '.join(tool.name for tool in tools) or 'none at all'}")


def _arguments(text: str) -> dict[str, Any]:
    try:
        return json.decode(text, type=dict[str, Any])
    except DecodeError as error:
        raise InvalidInput(f"the arguments are no JSON object: {error}") from None


async def _run(tool: Tool[Any, Any], arguments: dict[str, Any], *, yes: bool, quiet: bool) -> Call[Any, Any]:
    """The tool in a run of its own, whose model asks for nothing else."""
    agent = Agent(scripted([Use(tool.name, arguments), "done"]), tools=[tool], show_errors=True)

    def watch(update: Update) -> None:
        if isinstance(update, CallProgress) and not quiet:
            print(printable_line(json.encode(update.value).decode()), file=sys.stderr)

    def agree(asked: Call[Any, Any]) -> bool | Deny:
        if yes:
            return True
        if not sys.stdin.isatty():
            return Deny("nobody is here to be asked; --yes agrees")
        print(printable(f"{asked.tool} {asked.record.arguments}"), file=sys.stderr)
        return input("Run it? [y/N] ").strip().lower() in {"y", "yes"}

    run = await agent.run("call", on_approval=agree, on_update=watch)
    [made] = run.calls
    return made
