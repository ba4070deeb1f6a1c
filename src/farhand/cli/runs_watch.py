"""`farhand runs watch`: one run from its beginning to its end, whatever becomes of the connection."""

import asyncio
from contextlib import aclosing

from farhand.cli.exits import Exit
from farhand.cli.options import NOBODY, Json, Login, Server, Who
from farhand.cli.remote import reached
from farhand.cli.session.display import Display
from farhand.cli.session.screen import display_for
from farhand.cli.session.story import Story
from farhand.core.run import Ending
from farhand.core.updates import RunEnded, RunStarted


def watch(server: Server, run: str, /, *, who: Who = NOBODY, as_json: Json = False) -> Exit:
    """Watch a run from its beginning until it ends.

    Parameters
    ----------
    run
        The id of the run.
    """
    return asyncio.run(_shown(server, run, who, display_for(Story(), as_json=as_json)))


async def _shown(server: str, run: str, who: Login, display: Display) -> Exit:
    try:
        return await _watch(server, run, who, display)
    finally:
        display.hold()


async def _watch(server: str, run: str, who: Login, display: Display) -> Exit:
    async with reached(server, who) as client:
        thread = (await client.get_run(run)).thread_id
    mine = False
    async with reached(server, who, patient=True) as client, aclosing(aiter(client.thread(thread).watch())) as updates:
        async for update in updates:
            if isinstance(update, RunStarted):
                mine = update.run_id == run
            if mine:
                display.hear((update,))
            if mine and isinstance(update, RunEnded):
                return Exit.OK if update.ending is Ending.DONE else Exit.NO
    return Exit.NO
