"""`farhand tools`: what an agent offers its model, what its authors should know, and one tool by itself."""

import asyncio

from cyclopts import App

from farhand.agent import Agent
from farhand.cli.exits import Exit
from farhand.cli.objects import is_url, load_agent
from farhand.cli.options import NOBODY, Json, Login, Where, Who
from farhand.cli.output import pretty, write, write_json, write_table
from farhand.cli.remote import reached
from farhand.core.errors import NotFound
from farhand.lint import Hint, lint_tools
from farhand.protocols.native import ToolList, ToolView
from farhand.protocols.offer import definition_of, tool_views

tools = App(name="tools", help="The tools of an agent, here or at a server.")
tools.command(
    "farhand.cli.tools_call:call",
    name="call",
    help="Run one tool, as an agent would.\n\nArguments, deadline, retries and result are checked. "
    "It ends with 1 unless the outcome is `ok`.",
)


@tools.command(name="list")
def list_(where: Where, /, *, who: Who = NOBODY, as_json: Json = False) -> None:
    """List the tools of an agent."""
    found = tools_at(where, who)
    if as_json:
        write_json(found)
        return
    agents = len({tool.agent for tool in found.tools}) > 1
    head = ("tool", "place", "approval", "effect", "description")
    rows = [(tool.name, tool.place, tool.approval, tool.effect, _first(tool.description)) for tool in found.tools]
    write_table(
        ("agent", *head) if agents else head,
        [(tool.agent, *row) for tool, row in zip(found.tools, rows, strict=True)] if agents else rows,
    )


@tools.command
def show(where: Where, name: str, /, *, who: Who = NOBODY, as_json: Json = False) -> None:
    """Show all that is known of one tool, its schemas too.

    Parameters
    ----------
    name
        The name of the tool.
    """
    tool = tool_at(where, who, name)
    if as_json:
        write_json(tool)
        return
    write(f"{tool.name}: {tool.description}")
    facts = {
        "title": tool.title,
        "agent": tool.agent,
        "place": tool.place,
        "approval": tool.approval,
        "effect": tool.effect,
        "version": tool.version,
        "deprecated": tool.deprecated,
        "tags": ", ".join(tool.tags),
        "pin": tool.pin,
    }
    for fact, value in facts.items():
        if value:
            write(f"{fact + ':':<12}{value}")
    write(f"arguments:\n{pretty(bytes(tool.parameters))}")
    if bytes(tool.output) != b"null":
        write(f"result:\n{pretty(bytes(tool.output))}")


@tools.command
def check(where: Where, /, *, who: Who = NOBODY, as_json: Json = False) -> Exit:
    """Give hints to the authors of tools. It ends with 1 if there is one that every provider concerns."""
    hints = lint_tools([definition_of(view) for view in tools_at(where, who).tools])
    if as_json:
        write_json({"hints": hints})
    for hint in () if as_json else hints:
        write(_line_of(hint))
    return Exit.NO if any(hint.provider is None for hint in hints) else Exit.OK


def tools_at(where: str, who: Login) -> ToolList:
    """The tools of an agent, or of all agents of a server."""
    if is_url(where):
        return asyncio.run(_ask(where, who))
    agent: Agent[object] = load_agent(where)
    return ToolList(tools=tuple(tool_views(agent.name, agent.definitions)))


def tool_at(where: str, who: Login, name: str) -> ToolView:
    """One of them."""
    found = tools_at(where, who).tools
    for tool in found:
        if tool.name == name:
            return tool
    names = ", ".join(tool.name for tool in found) or "none at all"
    raise NotFound(f"there is no tool {name!r}; there are: {names}")


async def _ask(where: str, who: Login) -> ToolList:
    async with reached(where, who) as server:
        return ToolList(tools=await server.tools())


def _line_of(hint: Hint) -> str:
    about = " ".join(part for part in (hint.tool, hint.path) if part)
    return f"{about + ' ' if about else ''}{hint.message}" + (f" ({hint.provider})" if hint.provider else "")


def _first(description: str) -> str:
    return description.strip().split("\n", 1)[0]
