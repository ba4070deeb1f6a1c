"""`farhand tools`: what an agent offers its model, and what a tool's author should know."""

import importlib
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from farhand.agent import Agent
from farhand.lint import lint_tools


def tools(agent: str, /) -> None:
    """List an agent's tools and hints for their authors.

    Parameters
    ----------
    agent
        Where the agent is, or a function that makes it: `module:name`.
    """
    console = Console()
    found = load_agent(agent)
    table = Table("tool", "place", "approval", "effect", "description", box=None)
    for tool in found.tools.values():
        policy = tool.definition.policy
        table.add_row(
            tool.name, str(tool.place), str(policy.approval), str(policy.effect), escape(tool.definition.description)
        )
    console.print(table)
    for hint in lint_tools([tool.definition for tool in found.tools.values()]):
        console.print(f"[yellow]{hint.tool}[/] {escape(hint.path)} {escape(hint.message)}")


def load_agent(where: str) -> Agent[Any]:
    """The agent that `module:name` says; the current folder counts as a place for modules."""
    module, _, name = where.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name or "agent")
    except (ImportError, AttributeError, ValueError) as error:
        sys.exit(f"no agent at {where!r}: {error}")
    if callable(found) and not isinstance(found, Agent):
        found = found()
    if not isinstance(found, Agent):
        sys.exit(f"{where!r} is a {type(found).__name__}, not an Agent")
    return found  # pyright: ignore[reportUnknownVariableType]
