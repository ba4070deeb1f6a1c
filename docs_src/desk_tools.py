"""Tools and a plugin for a chat in the terminal: they run on the machine of whoever chats."""

import platform

from farhand import tool
from farhand.client import Plugin


@tool(effect="pure")
def what_machine() -> str:
    """The system that the user sits at."""
    return platform.system()


tools = [what_machine]

read_clipboard = tool.define("read_clipboard", description="What the user has copied.")
plugin = Plugin(
    name="desk",
    version="1.0",
    tools=[read_clipboard],
    executors={"read_clipboard": lambda _: "forty-two"},
)

if __name__ == "__main__":
    print([each.name for each in tools], plugin.name)
