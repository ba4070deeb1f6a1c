"""A skill says what it is for, and a document is either brought along or found by the client."""

import pytest

from farhand.core.errors import UsageError
from farhand.core.skill import DOCUMENT_BYTES, Document, Skill


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": " ", "description": "d"}, "Skill name is required"),
        ({"name": "S", "description": ""}, "Skill 'S' needs a description that tells the model when to activate it"),
    ],
)
def test_a_skill_without_a_name_or_a_description_is_refused(fields: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Skill(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": "", "content": "x"}, "Document id is required"),
        ({"id": "d"}, "Document must have either content or url"),
        ({"id": "d", "content": "x", "url": "https://x.example"}, "Document must have either content or url"),
        ({"id": "d", "content": "é" * (DOCUMENT_BYTES // 2 + 1)}, "Too big: a document has 51200 bytes at most"),
    ],
)
def test_a_document_has_an_id_and_either_its_text_or_its_address(fields: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Document(**fields)


def test_an_empty_text_and_a_text_of_just_the_right_size_are_documents() -> None:
    assert Document(id="d", content="").content == ""
    assert len(Document(id="d", content="x" * DOCUMENT_BYTES).content or "") == DOCUMENT_BYTES
