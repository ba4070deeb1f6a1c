"""Warnings of the program itself, shown in the conversation: a log that went to the terminal would tear it."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager, suppress

from farhand.cli.session.person import Person
from farhand.telemetry.logs import PlainLines


class Shown(logging.Handler):
    """Says each record to the person."""

    def __init__(self, person: Person) -> None:
        super().__init__(logging.WARNING)
        self._person = person
        self._loop = asyncio.get_running_loop()
        self.setFormatter(PlainLines())

    def emit(self, record: logging.LogRecord) -> None:
        """One record, from whichever thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody looks any more
            self._loop.call_soon_threadsafe(self._person.say, self.format(record), "dim")


@contextmanager
def shown(person: Person) -> Generator[None]:
    """In here warnings are shown."""
    handler = Shown(person)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
