"""What a run asks the person: whether a call may run, and the result of one that nobody else is there to run."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec import UNSET, DecodeError, UnsetType, json

from farhand.cli.output import pretty
from farhand.cli.session.person import Person
from farhand.cli.session.story import Card, Story
from farhand.cli.session.terminal import Interrupted
from farhand.client import Client
from farhand.core.call import CallState
from farhand.core.definition import Place
from farhand.core.errors import AnswerConflict, FarhandError, InvalidAnswer
from farhand.core.updates import CallExecuting, CallUnattended, CallWaiting, Update

ALONE = 1.0
"""Seconds after which a call that no other client has taken up is the person's."""
LEFT = "the person who could have done this has left"
CHOICES = "[y]es, [a]lways, [e]dit, [n]o, or a reason to deny: "


class Questions:
    """Every open question of the runs that are followed."""

    def __init__(self, client: Client, person: Person, story: Story, runs: Callable[[str], bool]) -> None:
        self._client = client
        self._person = person
        self._story = story
        self._runs = runs
        """Whether a function here runs a tool."""
        self._open: dict[str, asyncio.Task[None]] = {}
        self._settling: set[str] = set()
        """Calls that the person has said something about, which is on its way."""
        self.interrupted: Callable[[], None] = lambda: None
        """Is called when a question is answered by Ctrl-C."""
        self.left: Callable[[], None] = lambda: None
        """And when the input has ended."""

    def hear(self, update: Update) -> None:
        """An update that the story knows already."""
        match update:
            case CallWaiting(call_id=call_id, arguments_hash=shown):
                self._ask(call_id, partial(self._decision, call_id, shown))
            case CallExecuting(call_id=call_id, place=Place.CLIENT, tool=tool) if not self._runs(tool):
                self._ask(call_id, partial(self._result, call_id, ALONE))
            case CallUnattended(call_id=call_id) if not self._runs(self._card(call_id).tool):
                self._ask(call_id, partial(self._result, call_id, 0))
            case _:
                call_id = getattr(update, "call_id", "")
                if call_id in self._open and not self._is_open(call_id) and call_id not in self._settling:
                    self._open.pop(call_id).cancel()

    def take_up(self, cards: list[Card], shown: Callable[[str], str]) -> None:
        """The same for calls that waited before: `shown` gives the hash of what a person has to decide about."""
        for card in cards:
            if card.state is CallState.APPROVAL_REQUESTED:
                self._ask(card.call_id, partial(self._decision, card.call_id, shown(card.call_id)))
            elif card.state is CallState.EXECUTING and card.place is Place.CLIENT and not self._runs(card.tool):
                self._ask(card.call_id, partial(self._result, card.call_id, ALONE))

    async def close(self) -> None:
        """Take back what is open."""
        tasks = list(self._open.values())
        self._open.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # How one is asked

    def _ask(self, call_id: str, question: Callable[[], Awaitable[None]]) -> None:
        earlier = self._open.pop(call_id, None)
        if earlier is not None:
            earlier.cancel()
        self._open[call_id] = asyncio.ensure_future(self._asking(question))

    async def _asking(self, question: Callable[[], Awaitable[None]]) -> None:
        try:
            await question()
        except FarhandError as error:
            self._person.say(str(error), "red")
        except Interrupted:
            self.interrupted()
        except EOFError:
            self.left()

    async def _decision(self, call_id: str, shown: str) -> None:
        async with self._person.asked():
            while self._is_open(call_id):
                card = self._card(call_id)
                self._person.say(f"? {card.tool} {_shown(card.arguments)}", "yellow")
                said = (await self._person.line(CHOICES, fresh=True)).strip()
                arguments = await self._edited(card) if said.lower() in {"e", "edit"} else UNSET
                if await self._settled(call_id, self._decide(card, said, arguments, shown)):
                    return

    async def _settled(self, call_id: str, saying: Awaitable[Any]) -> bool:
        """Whether what was said counts; if it does not fit, the person is told why."""
        self._settling.add(call_id)
        try:
            await saying
        except InvalidAnswer as error:
            self._person.say(str(error), "red")
            return False
        finally:
            self._settling.discard(call_id)
        return True

    async def _decide(self, card: Card, said: str, arguments: Any | UnsetType, shown: str) -> None:
        match said.lower():
            case "y" | "yes" | "e" | "edit":
                await self._client.approve(card.call_id, arguments=arguments, shown=shown or None)
            case "a" | "always":
                await self._client.approve(card.call_id, remember="tool", shown=shown or None)
                self._person.say(f"{card.tool} is not asked about any more, until its definition changes", "dim")
            case "n" | "no":
                await self._client.deny(card.call_id)
            case _:
                await self._client.deny(card.call_id, said)

    async def _edited(self, card: Card) -> Any | UnsetType:
        """Other arguments; what is no JSON is given back to be mended, and an empty text changes nothing."""
        text = _shown(card.arguments)
        editor = bool(self._person.terminal.editor)
        while True:
            try:
                if editor:
                    text = await self._person.terminal.edit(text)
                else:
                    text = await self._person.line("arguments: ", text=_compact(text))
                return json.decode(text) if text.strip() else UNSET
            except OSError as error:
                self._person.say(f"{self._person.terminal.editor}: {error}", "red")
                editor = False
            except DecodeError as error:
                self._person.say(f"the arguments are not JSON: {error}", "red")
                if editor:
                    await self._person.line("Enter opens the editor again: ")

    async def _result(self, call_id: str, after: float) -> None:
        """A call that nobody else takes up. It is taken up before it is done only if it would end without a client."""
        await asyncio.sleep(after)
        if not self._is_open(call_id) or self._card(call_id).holder:
            return
        holds = self._card(call_id).until is not None
        try:
            attempt = (await self._client.claim(call_id)).attempt if holds else self._card(call_id).attempt
        except AnswerConflict:
            return  # somebody was quicker
        async with self._person.asked():
            try:
                while self._is_open(call_id):
                    card = self._card(call_id)
                    self._person.say(f"? nobody runs {card.tool} {_shown(card.arguments)}", "yellow")
                    said = await self._person.line("its result as JSON, or `fail` and a reason: ", fresh=True)
                    if await self._answered(call_id, said.strip(), attempt):
                        return
            except EOFError:
                if not holds:
                    raise
                await self._client.fail(call_id, LEFT, attempt=attempt)  # nobody has done it, and nobody will

    async def _answered(self, call_id: str, said: str, attempt: int) -> bool:
        word, _, reason = said.partition(" ")
        if word == "fail":
            why = reason or "it could not be done"
            return await self._settled(call_id, self._client.fail(call_id, why, attempt=attempt))
        try:
            value = json.decode(said)
        except DecodeError as error:
            self._person.say(f"that is not JSON: {error}", "red")
            return False
        return await self._settled(call_id, self._client.answer(call_id, value, attempt=attempt))

    def _card(self, call_id: str) -> Card:
        return self._story.cards.get(call_id) or Card(call_id=call_id)

    def _is_open(self, call_id: str) -> bool:
        """Whether it is still asked for: as it stands, no one has decided, and nobody else works on it."""
        card = self._card(call_id)
        if card.state is CallState.APPROVAL_REQUESTED:
            return True
        return card.state is CallState.EXECUTING and not card.holder


def _shown(arguments: str) -> str:
    """Arguments as a person reads them: on one line if they are short."""
    try:
        return arguments if len(arguments) <= 60 else pretty(arguments.encode())
    except DecodeError:
        return arguments


def _compact(text: str) -> str:
    try:
        return json.format(text, indent=-1)
    except DecodeError:
        return text
