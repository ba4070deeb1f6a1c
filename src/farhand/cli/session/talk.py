"""A conversation: lines of a person become runs, what the runs tell is shown, what they ask is asked."""

import asyncio
from typing import Any

from farhand.cli.exits import Exit, said
from farhand.cli.session.person import Person
from farhand.cli.session.questions import Questions
from farhand.cli.session.slash import Slash
from farhand.cli.session.story import Card, Story
from farhand.cli.session.terminal import Interrupted
from farhand.client import Client
from farhand.core.errors import FarhandError, NotAllowed, NotAuthenticated, UnknownCall
from farhand.core.run import Ending
from farhand.core.updates import RunEnded, Update
from farhand.protocols.native import CallView

PRESENT = "a person at a terminal"
"""No tool is called so. A client that offers it is there, and may take a call up that nobody else runs."""


ANSWER = 2.0
"""Seconds to hear that a run was called off, when there is nothing else to wait for."""


class Talk:
    """Reads lines until the person has had enough."""

    def __init__(self, client: Client, person: Person, story: Story, thread: str, agent: str) -> None:
        self.client = client
        self.person = person
        self.thread = client.thread(thread)
        self.ended: RunEnded | None = None
        """How the last run ended; None if it goes on without us, or there was none."""
        self.left_open = ""
        """The run that goes on without us."""
        self._agent = agent
        self._story = story
        self._following: asyncio.Task[None] | None = None
        self._cancelling: asyncio.Task[None] | None = None
        self._left = False
        self._calls_off = 0
        self._slash = Slash(client, person, self.runs)
        self._questions = Questions(client, person, story, self.runs)
        self._questions.interrupted = self.interrupt
        self._questions.left = self.leave
        person.terminal.on_interrupt = self.interrupt
        client.on("auto_retry", self._retried)
        client.on("reconnected", lambda _: person.say("connected again", "green"))

    def runs(self, tool: str) -> bool:
        """Whether a function of this process runs a tool."""
        return tool in self.offers

    @property
    def offers(self) -> tuple[str, ...]:
        """The tools that run here."""
        return (*(each.name for each in self.client.tools_offered), *self.client.tools_implemented)

    async def converse(self, message: str = "") -> Exit:
        """Go on until the person leaves; with a message, say that and be done."""
        await self._look_back()
        if message:
            await self.say(message)
        hints = 0
        while not message and not self._left:
            try:
                async with self.person.asked():
                    line = await self.person.line("you> ", colour="cyan")
            except EOFError:
                break
            except Interrupted:
                hints += 1
                if hints > 1:
                    break
                self.person.say("Ctrl-C once more leaves, and so do Ctrl-D and /quit", "dim")
                continue
            hints = 0
            if line.strip():
                await self._take(line)
        await self._questions.close()
        return self._exit(lasting=not message)

    async def say(self, message: str) -> None:
        """One run, to its end or to ours."""
        offers = (*self.offers, PRESENT)
        await self.follow(self.thread.stream(message, agent=self._agent, offers=offers, hold=True))

    async def go_on(self) -> None:
        """Follow the run that is open in the thread."""
        await self.follow(self.thread.resume(offers=(*self.offers, PRESENT), hold=True))

    async def follow(self, stream: Any) -> None:
        """Show a run until it ends, or until the person leaves it."""
        self.ended, self._calls_off = None, 0
        self._following = asyncio.ensure_future(self._show(stream))
        try:
            await self._following
        except asyncio.CancelledError:
            if not self._left:
                raise
        except (NotAuthenticated, NotAllowed):
            raise
        except FarhandError as error:
            if not self.person.terminal.interactive:
                raise
            self.person.say(said(error).line(), "red")
        finally:
            self.left_open = "" if self.ended is not None else self._story.run_id
            self._following = None
            await self._questions.close()
            if self._cancelling is not None:
                await asyncio.wait((self._cancelling,), timeout=ANSWER)
                self._cancelling.cancel()

    async def _show(self, stream: Any) -> None:
        async for update in stream:
            self._hear(update)

    def _hear(self, update: Update) -> None:
        self.person.display.hear((update,))
        self._questions.hear(update)
        if isinstance(update, RunEnded):
            self.ended = update

    # What the person wants

    def interrupt(self) -> None:
        """Ctrl-C while a run is followed: call it off; the second time leave it."""
        self._calls_off += 1
        if self._following is None:
            return
        if self._calls_off > 1:
            self.leave()
            return
        self.person.say("calling it off; Ctrl-C once more leaves it", "dim")
        self._cancelling = asyncio.ensure_future(self._cancel())

    def leave(self) -> None:
        """Follow nothing any more. The run is the server's and stays as it is."""
        self._left = True
        if self._following is not None:
            self._following.cancel()

    async def _cancel(self) -> None:
        try:
            await self.thread.cancel()
        except FarhandError as error:
            self.person.say(said(error).line(), "red")

    async def _take(self, line: str) -> None:
        if line.startswith("/") and not line.startswith("//"):
            try:
                then = await self._slash.take(line[1:], self.thread)
            except FarhandError as error:
                self.person.say(said(error).line(), "red")
            else:
                self.thread, self._left = then.thread, then.leaves
        else:
            await self.say(line[1:] if line.startswith("//") else line)

    def _retried(self, event: Any) -> None:
        if event.attempt == 1:
            self.person.say(f"no connection: {event.error}; trying again", "yellow")

    # Where things stood

    async def _look_back(self) -> None:
        """A run that is open in the thread is gone on with."""
        try:
            state = await self.thread.state()
        except UnknownCall:
            return
        if state.run_id:
            self.person.say("a run is open here", "dim")
            # Not before it is followed: an answer may end the run, and then its last words would be missed.
            forget = self.client.on("stream_start", lambda _: self._take_up(state.run_id))
            try:
                await self.go_on()
            finally:
                forget()

    async def _take_up(self, run_id: str) -> None:
        """What waits in a run already."""
        view = await self.client.get_run(run_id)
        self._story.run_id = view.id
        self._story.cards = {call.id: _card(call) for call in view.calls}
        shown = {call.id: call.arguments_hash for call in view.calls}
        self._questions.take_up(list(self._story.open_cards), lambda call_id: shown.get(call_id, ""))

    def _exit(self, *, lasting: bool) -> Exit:
        """A person who leaves has had what was wanted; a script wants to know how the last run ended."""
        if self.person.terminal.interactive and lasting:
            return Exit.OK
        well = self.ended is None or self.ended.ending is Ending.DONE
        return Exit.OK if well and not self.left_open else Exit.NO


def _card(call: CallView) -> Card:
    return Card(
        call_id=call.id,
        tool=call.tool,
        place=call.place,
        state=call.state,
        arguments=call.arguments,
        since=call.created,
        attempt=call.attempt,
        holder=call.held_by,
        outcome=call.outcome,
        result=call.result,
        failure=call.failure,
    )
