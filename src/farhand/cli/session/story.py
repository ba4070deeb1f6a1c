"""What is to be seen of a thread: updates in, what has come about out. Pure; `screen` and `plain` show it."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from msgspec import Raw, Struct, field, structs

from farhand.core.call import CallState, Outcome
from farhand.core.definition import Place
from farhand.core.failure import Failure
from farhand.core.updates import (
    CallApproved,
    CallAttended,
    CallClaimed,
    CallEnded,
    CallExecuting,
    CallNamed,
    CallProgress,
    CallReady,
    CallReleased,
    CallReported,
    CallStreamed,
    CallUnattended,
    CallWaiting,
    ReplyEnded,
    RunEnded,
    RunStarted,
    RunWaiting,
    TextStreamed,
    TurnStarted,
    Update,
    Warned,
)


class Card(Struct, frozen=True, kw_only=True):
    """One call, as far as it is known."""

    call_id: str
    tool: str = ""
    place: Place | None = None
    state: CallState = CallState.AWAITING_INPUT
    arguments: str = ""
    since: int = 0
    attempt: int = 0
    holder: str = ""
    """The client that works on it."""
    until: int | None = None
    """Nobody is there for it; somebody may come until then."""
    progress: Any = None
    outcome: Outcome | None = None
    result: Raw = Raw(b"null")
    failure: Failure | None = None
    took: int = 0

    @property
    def fraction(self) -> float | None:
        """How far it is, where its progress can be read as that."""
        return fraction(self.progress)


class Began(Struct, frozen=True):
    """A run has begun."""

    run_id: str


class Words(Struct, frozen=True):
    """More of what the agent says."""

    text: str


class Paragraph(Struct, frozen=True):
    """What the agent said is complete, or void; what comes next is something else."""


class Moved(Struct, frozen=True):
    """A call is not where it was."""

    card: Card
    before: Card | None
    """As it was; None: it is new."""


class Note(Struct, frozen=True):
    """Something that is told in a line."""

    text: str
    bad: bool = False


class Waits(Struct, frozen=True):
    """Nothing happens until these calls are answered."""

    call_ids: tuple[str, ...]


class Over(Struct, frozen=True):
    """The run has ended."""

    end: RunEnded


Told: TypeAlias = Began | Words | Paragraph | Moved | Note | Waits | Over


class Story(Struct):
    """What is known of the open run. Feed it every update in order; what it gives is to be shown in order."""

    run_id: str = ""
    text: str = ""
    """Of the reply that is under way."""
    thinks: bool = False
    """The model is being asked, and has said nothing yet."""
    cards: dict[str, Card] = field(default_factory=dict[str, Card])
    seq: int = 0
    me: str = ""
    """The client that this process is; what it takes up itself is no news."""

    @property
    def open_cards(self) -> tuple[Card, ...]:
        """Calls without an outcome."""
        return tuple(card for card in self.cards.values() if card.outcome is None)

    def hear(self, update: Update) -> list[Told]:
        """The next update, and what it brings about."""
        self.seq = max(self.seq, update.seq)
        call_id = getattr(update, "call_id", "")
        if call_id and not isinstance(update, Warned | CallReported):
            return self._hear_of_call(call_id, update)
        match update:
            case RunStarted():
                self.run_id, self.text, self.cards = update.run_id, "", {}
                return [Began(update.run_id)]
            case TurnStarted():
                void = update.again and bool(self.text)
                self.text, self.thinks = "", True
                return [Paragraph(), Note("the model is asked again; what it said before is void")] if void else []
            case TextStreamed():
                return self._hear_words(update)
            case ReplyEnded():
                return self._hear_reply(update)
            case RunWaiting():
                self.thinks = False
                return [Waits(update.call_ids)]
            case RunEnded():
                self.thinks = False
                return [Over(update)]
            case Warned():
                return [Note(update.message, bad=True)]
            case CallReported():
                how = update.failure.message if update.failure is not None else bytes(update.result).decode()
                return [Note(f"{update.tool} in the background: {update.outcome}: {how}")]
            case _:
                return []

    def _hear_words(self, update: TextStreamed) -> list[Told]:
        known = len(self.text)
        more = update.text[max(0, known - update.offset) :] if update.offset < known else update.text
        self.text, self.thinks = self.text + more, False
        return [Words(more)] if more else []

    def _hear_reply(self, update: ReplyEnded) -> list[Told]:
        rest = update.text[len(self.text) :] if update.text.startswith(self.text) else ""
        said = bool(update.text)
        self.text, self.thinks = "", False
        return [*([Words(rest)] if rest else []), *([Paragraph()] if said else [])]

    def _hear_of_call(self, call_id: str, update: Any) -> list[Told]:
        before = self.cards.get(call_id)
        card = _moved(before or Card(call_id=call_id, since=update.at), update)
        if card.holder and card.holder == self.me:
            card = structs.replace(card, holder="")
        if card == before:
            return []
        self.thinks = False
        self.cards[call_id] = card
        return [Moved(card, before)]


_TAKES: Mapping[type[Struct], tuple[str, ...]] = {
    CallNamed: ("tool",),
    CallReady: ("tool", "place", "arguments"),
    CallWaiting: ("tool", "arguments"),
    CallApproved: ("arguments",),
    CallExecuting: ("tool", "place", "arguments", "attempt"),
    CallClaimed: ("holder",),
    CallUnattended: ("until",),
    CallEnded: ("tool", "outcome", "result", "failure", "took"),
}
"""What a card takes from an update as it is, beside the state."""

_CLEARS: Mapping[type[Struct], tuple[str, ...]] = {
    CallExecuting: ("holder", "until", "progress"),
    CallClaimed: ("until",),
    CallAttended: ("until",),
    CallReleased: ("holder", "until", "progress"),
    CallEnded: ("holder", "until"),
}
"""What does not hold any more after it."""

_EMPTY = Card(call_id="")


def _moved(card: Card, update: Any) -> Card:
    """A call after an update about it."""
    kind = cast("type[Struct]", type(update))
    changes: dict[str, Any] = {name: getattr(_EMPTY, name) for name in _CLEARS.get(kind, ())}
    changes |= {name: getattr(update, name) for name in ("state", *_TAKES.get(kind, ()))}
    if kind is CallExecuting and card.state is not CallState.INPUT_STREAMING and card.arguments:
        del changes["arguments"]  # a client that runs the call gets secrets with it, which are not for showing
    elif kind is CallStreamed:
        changes["arguments"] = card.arguments[: update.offset] + update.text
    elif kind is CallProgress:
        changes["progress"] = update.value
    return structs.replace(card, **changes)


_PARTS = (("done", "of"), ("done", "total"), ("current", "total"), ("loaded", "total"), ("progress", "total"))
_WHOLE = ("fraction", "progress")


def fraction(value: Any) -> float | None:
    """Progress as a part of one: a number up to one, `{"done": 1, "of": 4}` and its like, `{"percent": 25}`."""
    if _is_number(value):
        return float(value) if 0 <= value <= 1 else None
    if not isinstance(value, dict):
        return None
    said: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
    for part, whole in _PARTS:
        if _is_number(said.get(part)) and _is_number(said.get(whole)) and said[whole] > 0:
            return min(1.0, max(0.0, said[part] / said[whole]))
    if _is_number(said.get("percent")):
        return min(1.0, max(0.0, said["percent"] / 100))
    return next((float(said[name]) for name in _WHOLE if _is_number(said.get(name)) and 0 <= said[name] <= 1), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
