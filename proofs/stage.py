"""The agent of the simulated world: a model that follows a plan, tools of every kind, and a record of what happened.

Tools and models belong to no process. What they do is noted outside of all of them, as an effect on the world would be.
"""

import asyncio
from collections import Counter
from random import Random
from typing import Any

from msgspec import Struct

from farhand import Agent, CallContext, ToolError, tool
from farhand.core.errors import ModelError
from farhand.core.limits import Limits
from farhand.core.messages import UserMessage
from farhand.models.base import Request
from farhand.models.scripted import Scripted, Turn, Use

LIMITS = Limits(
    max_turns=4, client_timeout=6.0, approval_timeout=5.0, server_timeout=3.0, retry_delay=0.3, max_losses=20
)


class Stage:
    """What one world's tools and models do, and what they did."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.entered: Counter[tuple[str, int]] = Counter()
        """How often the body of a call was entered, by attempt."""
        self.tools: dict[str, str] = {}
        self.given: dict[str, set[Any]] = {}
        """What bodies returned, by call."""
        self.asked: Counter[tuple[str, int]] = Counter()
        """How often the model was asked, by run and turn."""

    def chance(self, *key: object) -> Random:
        """Chance that does not depend on when it is asked."""
        return Random(f"{self.seed}:{key}")  # noqa: S311

    async def work(self, context: CallContext) -> int:
        """The body of every tool on the server: it takes a while, and sometimes fails."""
        self.entered[context.call_id, context.attempt] += 1
        self.tools[context.call_id] = context.tool
        chance = self.chance(context.call_id, context.attempt)
        if chance.random() < 0.6:
            await asyncio.sleep(chance.random() * 1.5)
        if chance.random() < 0.03:
            await asyncio.Event().wait()  # it hangs
        if chance.random() < 0.2:
            raise ToolError("not this time")
        value = self.entered[context.call_id, context.attempt] * 1000 + context.attempt
        self.given.setdefault(context.call_id, set()).add(value)
        return value

    def reply(self, request: Request) -> Turn:
        """What the model says: a function of the request."""
        self.asked[request.run_id, request.turn] += 1
        said = [message.text for message in request.messages if isinstance(message, UserMessage)][-1]
        chance = self.chance(said, request.turn)
        delay = chance.choice((0.0, 0.0, 0.05, 0.5))
        if chance.random() < 0.02:
            return Turn("I", error=ModelError("no reply"), delay=delay)
        if not request.tools or request.turn > 3 or chance.random() < 0.15:
            return Turn([f"answer {said} ", "in ", "pieces"], delay=delay)
        names = chance.choices(list(WEIGHTS), weights=list(WEIGHTS.values()), k=chance.choice((1, 1, 2, 3)))
        uses = [Use(name, {"n": chance.randrange(100)}) for name in names]
        return Turn([f"turn {request.turn} ", "of ", said], *uses, delay=delay)

    def agents(self) -> list[Agent[Any]]:
        """For one life of a process."""
        return [Agent(Scripted(self.reply), tools=TOOLS, limits=LIMITS)]


class On(Struct):
    """The stage that is played on; there is one at a time."""

    stage: Stage


ON = On(Stage(0))


@tool
async def charge(n: int, context: CallContext) -> int:
    """Once."""
    return await ON.stage.work(context)


@tool(effect="pure", retries=1)
async def look(n: int, context: CallContext) -> int:
    """Pure."""
    return await ON.stage.work(context)


@tool(effect="idempotent", retries=2, timeout=1.0)
async def send(n: int, context: CallContext) -> int:
    """Idempotent."""
    return await ON.stage.work(context)


@tool(needs_approval=True)
async def wire(n: int, context: CallContext) -> int:
    """Once, when a person has said yes."""
    return await ON.stage.work(context)


@tool(needs_approval=lambda n: n > 50)
async def pay(n: int, context: CallContext) -> int:
    """Once; much of it when a person has said yes."""
    return await ON.stage.work(context)


NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
pick = tool.define("pick", input=NUMBER, output=int, description="For the client.")
show = tool.define("show", input=NUMBER, description="For the client, again and again.", effect="pure", retries=1)
sign = tool.define("sign", input=NUMBER, description="For the client, after a yes.", needs_approval=True)
TOOLS = (charge, look, send, wire, pay, pick, show, sign)
WEIGHTS = {"charge": 3, "look": 2, "send": 2, "wire": 2, "pay": 1, "pick": 4, "show": 1, "sign": 1}
ONCE = frozenset({"charge", "wire", "pay"})
