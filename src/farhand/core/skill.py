"""A skill: a way of working with some tools that the model takes up when it is needed. Its documents come along."""

from collections.abc import Iterator

from msgspec import Struct

from farhand.core.errors import UsageError
from farhand.core.problem import Problem

DOCUMENT_BYTES = 51_200
"""Of one document that is brought along."""


class Document(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Something to read for a skill: its text, or where the client finds it."""

    id: str
    description: str = ""
    content: str | None = None
    url: str | None = None
    """Is never fetched by the server."""

    def __post_init__(self) -> None:
        _raise(document_problems(self.id, self.content, self.url))


class Reference(Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool that a skill works with; with a group, only if it is that group's."""

    tool: str
    group: str = ""


class Skill(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What it is for, what to know when it begins, what holds while it is active, and the tools it takes."""

    name: str
    description: str
    note: str | None = None
    """Told once, when it is activated."""
    instructions: str | None = None
    """Hold as long as it is active."""
    tools: tuple[Reference, ...] = ()
    documents: tuple[Document, ...] = ()

    def __post_init__(self) -> None:
        _raise(skill_problems(self.name, self.description))


def skill_problems(name: str, description: str) -> Iterator[Problem]:
    """What every skill has to have."""
    if not name.strip():
        yield Problem("/name", "Skill name is required", "name")
    if not description.strip():
        message = f"Skill {name!r} needs a description that tells the model when to activate it"
        yield Problem("/description", message, "description")


def document_problems(name: str, content: str | None, url: str | None) -> Iterator[Problem]:
    """What every document has to have."""
    if not name.strip():
        yield Problem("/id", "Document id is required", "id")
    if (content is None) == (url is None):
        yield Problem("/content", "Document must have either content or url", "content")
    if content is not None and len(content.encode(errors="replace")) > DOCUMENT_BYTES:
        yield Problem("/content", f"Too big: a document has {DOCUMENT_BYTES} bytes at most", "content")


def _raise(problems: Iterator[Problem]) -> None:
    told = "; ".join(problem.message for problem in problems)
    if told:
        raise UsageError(told)
