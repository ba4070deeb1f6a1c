"""`farhand chat`: a conversation in the terminal, with an agent at a server or of this machine."""

from typing import Annotated

from cyclopts import Parameter

from farhand.cli.exits import Exit
from farhand.cli.extras import needing
from farhand.cli.objects import is_url
from farhand.cli.options import NOBODY, Json, Where, Who
from farhand.core.errors import UsageError

Several = Annotated[tuple[str, ...], Parameter(negative="")]


def chat(
    where: Where,
    message: str = "",
    /,
    *,
    thread: str = "",
    agent: str = "",
    tools: Several = (),
    plugin: Several = (),
    store: str = "",
    manual: Annotated[bool, Parameter(negative="")] = False,
    who: Who = NOBODY,
    as_json: Json = False,
) -> Exit:
    """Chat with an agent, at a server or of this machine.

    Parameters
    ----------
    message
        What you say; without it, lines are asked for until you leave.
    thread
        The conversation to go on with; without it, a new one.
    agent
        Which of the server's agents; without it, its first.
    tools
        Tools that run here, `module:tool` or `module:several`; may be given several times.
    plugin
        A plugin whose tools run here, `module:plugin`; may be given several times.
    store
        Of an agent of this machine: where its runs are kept; without it, nowhere.
    manual
        Of an agent of this machine: you play its model, see what it is asked, and type its reply.
    """
    if is_url(where) and (store or manual):
        raise UsageError("--store and --manual are for agents of this machine; a server has its own store and model")
    needing("client", "farhand.client")
    chatting = needing("client" if is_url(where) else "server", "farhand.cli.session.chat")
    wanted = chatting.Wanted(
        where=where,
        message=message,
        thread=thread,
        agent=agent,
        tools=tools,
        plugins=plugin,
        store=store,
        manual=manual,
        login=who,
        as_json=as_json,
    )
    return chatting.chat(wanted)
