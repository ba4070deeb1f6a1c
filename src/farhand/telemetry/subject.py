"""What the work at hand is about, as ids: on every line of the log that is written meanwhile, also by tools."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from farhand.runner.activity import Activity, Answering, Running, Working
from farhand.runner.observer import Observer

FIELDS: Final[Mapping[str, str]] = {
    "request": "The request that is answered: what its answer has in the header `farhand-request`.",
    "run": "The run that is worked on.",
    "thread": "Its thread, as it is called in the store; never the name that a client gave it.",
    "call": "The call that is run.",
    "agent": "The name of the agent.",
}

_NOTHING: Mapping[str, str] = {}
_subject: ContextVar[Mapping[str, str]] = ContextVar("farhand.subject", default=_NOTHING)


def subject() -> Mapping[str, str]:
    """The ids that belong to what is being done here."""
    return _subject.get()


class Subjects(Observer):
    """Notes what the work is about, as long as it lasts."""

    kinds = (Answering, Working, Running)

    def began(self, activity: Activity) -> None:
        """From here on it is about this."""
        match activity:
            case Answering():
                more = {"request": activity.id}
            case Working():
                more = {"run": activity.run.id, "thread": activity.thread, "agent": activity.agent}
            case Running():
                more = {"call": activity.call.id}
            case _:
                return
        activity.notes[self] = _subject.set({**_subject.get(), **more})

    def ended(self, activity: Activity, error: BaseException | None) -> None:
        """From here on it is about what it was about before."""
        token = activity.notes.get(self)
        if token is not None and not isinstance(activity, Answering):  # a stream goes on, in a task of its own
            _subject.reset(token)
