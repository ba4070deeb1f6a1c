"""`farhand thread replay`: what happened in a conversation, once more: from a server, or from a file of `export`."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter
from msgspec import DecodeError, Struct, json

from farhand.cli.objects import is_url
from farhand.cli.options import NOBODY, Json, Login, Who
from farhand.cli.output import moment, write_json
from farhand.cli.remote import reached
from farhand.cli.session import cards
from farhand.cli.session.display import Display, Lines
from farhand.cli.session.screen import display_for
from farhand.cli.session.story import Story
from farhand.cli.thread import lines_of
from farhand.cli.thread_export import HOLDS, First, Happened, Last, Said, stored
from farhand.core.errors import InvalidInput, UsageError
from farhand.core.messages import AssistantMessage, Message, UserMessage
from farhand.core.updates import ReplyEnded, RunStarted, Update

Where: TypeAlias = Annotated[str, Parameter(name="URL|FILE", help="A server, or a file that `export` has written.")]


class Kept(Struct, frozen=True):
    """A conversation with its story."""

    messages: tuple[Message, ...]
    updates: tuple[Update, ...]


def replay(
    where: Where,
    name: str = "",
    /,
    *,
    speed: float = 1.0,
    pause: float = 3.0,
    at: int | None = None,
    who: Who = NOBODY,
    as_json: Json = False,
) -> None:
    """Show again what happened, with its timing, or one moment of it.

    Parameters
    ----------
    name
        At a server: what you call the conversation.
    speed
        How many times as fast as it was; 0 is at once.
    pause
        Seconds, the longest wait between two updates, however long it was.
    at
        The number of an update: show how everything stood after it, and nothing else.
    """
    if speed < 0 or pause < 0:
        raise UsageError("--speed and --pause are 0 or more")
    if is_url(where):
        if not name:
            raise UsageError("which conversation? farhand thread replay URL NAME")
        kept = asyncio.run(_fetch(where, name, who))
    else:
        kept = read(Path(where))
    if at is not None:
        _show_moment(kept, at, as_json=as_json)
        return
    asyncio.run(_play(kept, display_for(Story(), as_json=as_json), speed, pause, silent=as_json))


def read(path: Path) -> Kept:
    """A file of `export`."""
    messages: list[Message] = []
    updates: list[Update] = []
    with path.open("rb") as file:
        first, *lines = file.read().splitlines() or [b""]
    try:
        head = json.decode(first, type=First)
        if head.holds != HOLDS or head.format != 1 or not lines:
            raise InvalidInput(f"{path} is no conversation that `farhand thread export` has written")
        last = json.decode(lines[-1], type=Last)
        for line in lines[:-1]:
            if line.startswith(b'{"message"'):
                messages.append(json.decode(line, type=Said).message)
            else:
                updates.append(json.decode(line, type=Happened).update)
    except DecodeError as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if (len(messages), len(updates)) != (last.messages, last.updates):
        raise InvalidInput(f"{path} is not whole")
    return Kept(tuple(messages), tuple(updates))


async def _fetch(url: str, name: str, who: Login) -> Kept:
    async with reached(url, who) as client:
        state = await client.thread(name).state()
        async with aclosing(stored(client, name, state.seq)) as updates:
            return Kept(state.messages, tuple([update async for update in updates]))


async def _play(kept: Kept, display: Display, speed: float, pause: float, *, silent: bool) -> None:
    before = kept.updates[0].at if kept.updates else 0
    try:
        for update, said in zip(kept.updates, said_before(kept), strict=True):
            if speed:
                await asyncio.sleep(min(pause, max(0, update.at - before) / 1000 / speed))
            before = update.at
            for message in () if silent else said:
                for line in lines_of(message):
                    display.say(line)
            display.hear((update,))
    finally:
        display.hold()


def said_before(kept: Kept) -> Sequence[Sequence[Message]]:
    """What the user has said before each update: updates tell of replies and calls only."""
    waiting = deque(kept.messages)
    return [list(_users(waiting, update)) for update in kept.updates]


def _users(waiting: deque[Message], update: Update) -> Iterable[Message]:
    if isinstance(update, RunStarted):
        while waiting and not isinstance(waiting[0], UserMessage):
            waiting.popleft()
        if waiting:
            yield waiting.popleft()
    elif isinstance(update, ReplyEnded):  # it has one message; what stands before it was said while calls ran
        while waiting and not isinstance(waiting[0], AssistantMessage):
            message = waiting.popleft()
            if isinstance(message, UserMessage):
                yield message
        if waiting:
            waiting.popleft()


class Moment(Struct, frozen=True, kw_only=True):
    """How a conversation stood after one update."""

    seq: int
    at: int
    run_id: str
    messages: tuple[Message, ...]
    calls: tuple[cards.Card, ...]
    update: Update


def _show_moment(kept: Kept, number: int, *, as_json: bool) -> None:
    past = [update for update in kept.updates if update.seq <= number]
    if not past or number < 0:
        last = kept.updates[-1].seq if kept.updates else 0
        raise InvalidInput(f"there is no update {number}; they are numbered 1 to {last}")
    story = Story()
    for update in past:
        story.hear(update)
    waiting = deque(kept.messages)
    for update in past:
        list(_users(waiting, update))
    said = kept.messages[: len(kept.messages) - len(waiting)]
    now = Moment(
        seq=past[-1].seq,
        at=past[-1].at,
        run_id=story.run_id,
        messages=said,
        calls=tuple(story.cards.values()),
        update=past[-1],
    )
    if as_json:
        write_json(now)
        return
    show = Lines(Story())
    show.say(f"after update {now.seq} ({type(now.update).__name__}), {moment(now.at)}")
    for message in said:
        for line in lines_of(message):
            show.say(line)
    for card in now.calls:
        ended = card.outcome is not None
        show.say(f"  {cards.mark(card)} {cards.ending(card) if ended else cards.standing(card)}")
