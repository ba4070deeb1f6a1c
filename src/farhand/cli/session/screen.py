"""A conversation on a terminal: text as it streams, open calls below it with their state, and ended ones above."""

import asyncio
from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from farhand.cli.printable import printable, printable_line
from farhand.cli.session import cards
from farhand.cli.session.display import Display, JsonLines, Lines
from farhand.cli.session.story import Card, Moved, Note, Over, Paragraph, Story, Told, Words
from farhand.core.call import CallState
from farhand.core.updates import Update

TICK = 0.1
FRAME = 0.03
"""Seconds between two drawings of what is under way; what comes in between is drawn with the next one."""
BAR = 24
LONG = 2_000
"""Characters of a result; `farhand runs show` has the rest."""


def display_for(story: Story, *, as_json: bool = False) -> Display:
    """What fits the standard output: JSON, a screen that moves, or lines."""
    if as_json:
        return JsonLines(story)
    console = Console(highlight=False, markup=False, emoji=False)
    return Screen(story, console) if console.is_terminal and not console.is_dumb_terminal else Lines(story)


class Screen:
    """Shows a story. What is final scrolls up; what is under way stays at the bottom and moves."""

    def __init__(self, story: Story, console: Console) -> None:
        self._story = story
        self._console = console
        self._line = ""
        """The last line of what the agent says, as long as it is not whole."""
        self._live: Live | None = None
        self._held: list[Told] | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._drawn = 0.0
        self._spinner = Spinner("dots")
        self._thinking = Spinner("dots", Text("…", style="dim"))

    def hear(self, updates: Iterable[Update]) -> None:
        """What has happened."""
        told = [each for update in updates for each in self._story.hear(update)]
        if self._held is not None:
            self._held += told
            return
        for each in told:
            self._show(each)
        if told or self._live is None:
            self._draw()

    def say(self, text: str, style: str = "") -> None:
        """A line of our own."""
        self._flush()
        self._console.print(Text(printable(text), style=style))

    def hold(self) -> None:
        """Be still: what is under way is taken off the screen."""
        self._held = []
        self._flush()
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def go_on(self) -> None:
        """Show what came meanwhile, and go on."""
        held, self._held = self._held or [], None
        for each in held:
            self._show(each)
        self._draw()

    def _show(self, told: Told) -> None:
        match told:
            case Words(text=text):
                self._words(printable(text))
            case Moved(card=card) if card.outcome is not None:
                self._flush()
                self._console.print(_ended(card))
            case Note(text=text, bad=bad):
                self.say(f"{'! ' if bad else ''}{text}", "yellow" if bad else "dim")
            case Over(end=end) if cards.over(end):
                self.say(cards.over(end), "yellow")
            case Paragraph() | Over():
                self._flush()
            case _:
                pass

    def _words(self, text: str) -> None:
        """Whole lines scroll up; the last one stays below until it is whole."""
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            self._console.print(Text(line))
        width = self._console.width - 1
        if cell_len(self._line) > width:
            *full, last = Text(self._line).wrap(self._console, width, overflow="fold")
            for line in full:
                self._console.print(line)
            self._line = last.plain

    def _flush(self) -> None:
        if self._line:
            self._console.print(Text(self._line))
            self._line = ""

    def _draw(self) -> None:
        """What is under way, now or with the next tick. With nothing under way, nothing is drawn."""
        now = asyncio.get_running_loop().time()
        if self._ticking is not None and not self._ticking.done() and now - self._drawn < FRAME:
            return
        self._drawn = now
        parts = self._parts()
        if self._live is None:
            if not parts:
                return
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Group(*parts), refresh=True)
        if parts and (self._ticking is None or self._ticking.done()):
            self._ticking = asyncio.ensure_future(self._tick())

    def _parts(self) -> list[RenderableType]:
        parts: list[RenderableType] = [Text(self._line)] if self._line else []
        open_cards = self._story.open_cards
        room = max(1, self._console.height - 3)
        parts += [self._row(card) for card in open_cards[:room]]
        if self._story.thinks and not open_cards and not self._line:
            parts.append(self._thinking)
        return parts

    def _row(self, card: Card) -> RenderableType:
        row = Table.grid(padding=(0, 1))
        row.add_column(width=2)
        row.add_column(no_wrap=True, overflow="ellipsis")
        working = card.state is CallState.EXECUTING and card.until is None
        sign = self._spinner.render(asyncio.get_running_loop().time()) if working else Text("·")
        text = Text(cards.standing(card, most=self._console.width), style="" if working else "dim")
        cells: list[RenderableType] = [sign, text]
        if card.fraction is not None:
            row.add_column(width=BAR)
            cells.append(ProgressBar(total=1.0, completed=card.fraction, width=BAR))
        elif card.progress is not None:
            row.add_column(no_wrap=True, overflow="ellipsis")
            cells.append(Text(printable_line(cards.progress(card.progress), 40), style="dim"))
        row.add_row(*cells)
        return row

    async def _tick(self) -> None:
        """Have it move, as long as there is something. `hold` ends this."""
        parts = self._parts()
        while parts:
            await asyncio.sleep(TICK)
            parts = self._parts()
            if self._live is not None:
                self._live.update(Group(*parts), refresh=True)


def _ended(card: Card) -> Text:
    """A call that is over: with which arguments, how, and after what time."""
    took = f" ({card.took / 1000:.1f} s)" if card.took >= 1000 else ""
    sign = (cards.mark(card), cards.colour(card))
    arguments = (f" {printable_line(card.arguments, cards.SHORT)}", "dim")
    name, _, rest = cards.ending(card, most=LONG).partition(": ")
    return Text.assemble("  ", sign, f" {name}", arguments, f": {rest}", (took, "dim"))
