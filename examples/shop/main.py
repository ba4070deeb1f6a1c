"""A shop in three files of tools: run it with `python examples/shop/main.py`. It needs no key.

The same `add_to_cart` runs on the server in the first conversation and in the client in the second.
"""

import asyncio
from typing import Any

from tools import client, server

from farhand import Agent, Approve, Call, scripted
from farhand.models import Model, Use
from farhand.tool import Tool


def model() -> Model:
    """Says what a model might say."""
    return scripted(
        [
            Use("find_products", {"word": "milk"}),
            Use("add_to_cart", {"product": "oat milk", "count": 12}),
            Use("show_notice", {"text": "The cart has changed."}),
            "There is oat milk in your cart.",
        ]
    )


def approve(call: Call[Any, Any]) -> Approve:
    """A person who never lets more than two of anything through."""
    count = min(call.arguments["count"], 2)
    print(f"[person] {call.tool} {call.arguments}: yes, but {count}")
    return Approve(arguments=call.arguments | {"count": count})


async def converse(tools: list[Tool[Any, Any]]) -> None:
    """One conversation, and how each of its calls ended."""
    run = await Agent(model(), tools=tools).run("Get me a lot of oat milk", on_approval=approve)
    for call in run.calls:
        print(f"{call.tool} at the {call.place}: {call.outcome}, {call.output!r}")
    print(run.output)


async def main() -> None:
    """With the server's cart, then with the client's."""
    await converse([*server.TOOLS, *client.TOOLS])
    print("-- offline --")
    await converse([server.find, *client.OFFLINE_TOOLS])


if __name__ == "__main__":
    asyncio.run(main())
