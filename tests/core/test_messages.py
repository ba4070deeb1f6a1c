"""How messages read, above all what the model is told of a call."""

import pytest
from msgspec import Raw, json

from farhand.core.call import Outcome
from farhand.core.failure import Failure
from farhand.core.messages import Binary, Json, Text, ToolMessage, UserMessage, decode_parts


def result(value: object) -> ToolMessage:
    return ToolMessage("c1", "label", "t", Outcome.OK, Raw(json.encode(value)))


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (False, "false"), ("", ""), (None, "null"), ([], "[]"), ({}, "{}")]
)
def test_a_falsy_result_reaches_the_model_as_it_is(value: object, text: str) -> None:
    assert result(value).text == text
    assert result(value).parts == ((Text(""),) if value == "" else (Json(value),))


def test_a_string_result_is_told_without_quotes() -> None:
    assert result("sunny").text == "sunny"


def test_a_failure_is_told_as_an_error() -> None:
    message = ToolMessage("c1", "label", "t", Outcome.FAILED, failure=Failure("x", "no such file"))
    assert message.text == "Error: no such file"


def test_a_failure_without_words_is_an_unknown_error() -> None:
    message = ToolMessage("c1", "label", "t", Outcome.FAILED, failure=Failure("x", ""))
    assert message.text == "Error: Unknown error"


def test_parts_of_a_result_stay_parts() -> None:
    parts = (Text("see"), Binary("image/png", data=b"\x89PNG", filename="a.png"), Binary("image/png", url="data:,"))
    message = ToolMessage("c1", "label", "t", Outcome.OK, Raw(json.encode(parts)), multipart=True)
    assert message.parts == parts
    assert decode_parts(json.encode(parts)) == parts
    assert message.text == "see\n[image/png a.png]\n[image/png]"


def test_no_parts_at_all_are_null() -> None:
    message = ToolMessage("c1", "label", "t", Outcome.OK, Raw(b"[]"), multipart=True)
    assert (message.parts, message.text) == ((Json(None),), "null")


def test_a_note_comes_before_the_result() -> None:
    message = ToolMessage("c1", "label", "t", Outcome.OK, Raw(b"1"), note="The arguments were changed.")
    assert message.text == "The arguments were changed.\n1"


@pytest.mark.parametrize("sources", [{}, {"data": b"x", "url": "y"}, {"url": "y", "id": "z"}])
def test_binary_content_has_exactly_one_source(sources: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Binary("image/png", **sources)


def test_the_text_of_a_user_message_leaves_files_out() -> None:
    assert UserMessage((Text("look: "), Binary("image/png", id="f1"), Text("there"))).text == "look: there"
