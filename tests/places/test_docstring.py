"""What a docstring says of a function and its parameters."""

import pytest

from farhand.places.docstring import read_docstring

GOOGLE = """Move it.

    A longer text
    over two lines.

    Args:
        x (int): How far
            it goes.
        *names: Which ones.

        **more: The rest.

    Returns:
        int: x: not a parameter
    """

NUMPY = """Move it.

    A longer text
    over two lines.

    Parameters
    ----------
    x : int
        How far

        it goes.
    names
        Which ones.
    more : {'a', 'b'}, optional
        The rest.
    silent : int

    Returns
    -------
    int
        Not a parameter.
    """

SPHINX = """Move it.

    A longer text
    over two lines.

    :param int x: How far
        it goes.
    :type x: int
    :param names: Which ones.
    :param more: The rest.
    :returns: Not a parameter.
    :raises ValueError: neither
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_three_styles_say_the_same(text: str) -> None:
    description, parameters = read_docstring(text)
    assert description == "Move it.\n\nA longer text\nover two lines."
    assert parameters == {"x": "How far it goes.", "names": "Which ones.", "more": "The rest."}


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_no_docstring_says_nothing(text: str | None) -> None:
    assert read_docstring(text) == ("", {})


def test_a_docstring_without_sections_is_the_description() -> None:
    assert read_docstring("Move it.\n\n    Note: this is text, not a section.") == (
        "Move it.\n\nNote: this is text, not a section.",
        {},
    )


def test_a_section_that_tells_of_no_parameters_is_left_out() -> None:
    assert read_docstring("Move.\n\nExample:\n    move: 1\n\nArgs:\n    x: a") == ("Move.", {"x": "a"})


def test_a_description_may_begin_on_the_next_line_and_hold_a_colon() -> None:
    text = "Move.\n\nArgs:\n    x:\n        How far.\n        Note: not too far.\n    y: Up: or down."
    assert read_docstring(text)[1] == {"x": "How far. Note: not too far.", "y": "Up: or down."}


def test_a_type_may_hold_brackets_of_its_own() -> None:
    text = "Move.\n\nArgs:\n    x (tuple(int, str)): a\n    y (Callable[[int], str]): b (c): d"
    assert read_docstring(text)[1] == {"x": "a", "y": "b (c): d"}


def test_text_after_the_parameters_belongs_to_none_of_them() -> None:
    assert read_docstring("Move.\n\nArgs:\n    x: a\n\nThat is all, as everybody knows.")[1] == {"x": "a"}
    assert read_docstring("Move.\n\n:param x: a\n\nThat is all.") == ("Move.", {"x": "a"})


def test_a_parameter_without_words_has_no_description() -> None:
    assert read_docstring("Move.\n\nParameters\n----------\nx : int\ny : int\n    Up.")[1] == {"y": "Up."}
    assert read_docstring("Move.\n\nArgs:\n    x:")[1] == {}
