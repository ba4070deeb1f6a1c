"""The contract of whatever shows a conversation; and the ones for pipes and programs. `screen` is for terminals."""

import sys
from collections.abc import Iterable
from typing import Protocol

from msgspec import json

from farhand.cli.printable import printable
from farhand.cli.session import cards
from farhand.cli.session.story import Card, Moved, Note, Over, Paragraph, Story, Told, Words
from farhand.core.call import CallState
from farhand.core.updates import Update


class Display(Protocol):
    """Shows updates as they come. While it is still, it keeps what comes."""

    def hear(self, updates: Iterable[Update]) -> None:
        """What has happened."""
        ...

    def say(self, text: str, style: str = "") -> None:
        """A line of our own."""
        ...

    def hold(self) -> None:
        """Be still: the person is asked something."""
        ...

    def go_on(self) -> None:
        """Show what came meanwhile, and go on."""
        ...


class Lines:
    """Text as it streams, and a line for everything else. For pipes, and for terminals that can do no more."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._in_text = False
        self._held: list[Told] | None = None

    def hear(self, updates: Iterable[Update]) -> None:
        """What has happened."""
        for update in updates:
            told = self._story.hear(update)
            if self._held is not None:
                self._held += told
            else:
                self._show(told)
        sys.stdout.flush()

    def say(self, text: str, style: str = "") -> None:
        """A line of our own."""
        self._line(printable(text))
        sys.stdout.flush()

    def hold(self) -> None:
        """Be still."""
        self._held = []
        self._end_text()
        sys.stdout.flush()

    def go_on(self) -> None:
        """Show what came meanwhile."""
        held, self._held = self._held or [], None
        self._show(held)
        sys.stdout.flush()

    def _show(self, told: list[Told]) -> None:
        for each in told:
            match each:
                case Words(text=text):
                    print(printable(text), end="")
                    self._in_text = True
                case Paragraph():
                    self._end_text()
                case Moved():
                    self._show_call(each)
                case Note(text=text, bad=bad):
                    self._line(f"{'! ' if bad else ''}{printable(text)}")
                case Over(end=end) if cards.over(end):
                    self._line(cards.over(end))
                case _:
                    self._end_text()

    def _show_call(self, moved: Moved) -> None:
        card, before = moved.card, moved.before
        if card.outcome is not None:
            self._line(f"  {cards.mark(card)} {cards.ending(card)}")
        elif before is not None and card.progress != before.progress and card.progress is not None:
            self._line(f"    {cards.progress(card.progress)}")
        elif card.state is CallState.EXECUTING and (before is None or _elsewhere(card, before)):
            self._line(f"  → {cards.standing(card, most=0)}")

    def _line(self, text: str) -> None:
        self._end_text()
        print(text)

    def _end_text(self) -> None:
        if self._in_text:
            print()
            self._in_text = False


def _elsewhere(card: Card, before: Card) -> bool:
    """Whether a call that is with its place is so in another way than before."""
    begun = (card.state, card.attempt) != (before.state, before.attempt)
    taken = bool(card.holder) and card.holder != before.holder
    return begun or taken or (card.until is not None and before.until is None)


class JsonLines:
    """Every update as a line of JSON; lines of ours go to the standard error."""

    def __init__(self, story: Story) -> None:
        self._story = story

    def hear(self, updates: Iterable[Update]) -> None:
        """What has happened."""
        for update in updates:
            self._story.hear(update)
            sys.stdout.write(json.encode(update).decode() + "\n")
        sys.stdout.flush()

    def say(self, text: str, style: str = "") -> None:
        """A line of our own."""
        print(printable(text), file=sys.stderr, flush=True)

    def hold(self) -> None:
        """Updates are no questions: they go on."""

    def go_on(self) -> None:
        """They never stopped."""
