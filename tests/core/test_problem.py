"""A problem says where and what; its path is a JSON Pointer."""

from farhand.core.problem import Problem, json_type, pointer


def test_a_problem_reads_as_path_and_message():
    assert str(Problem("/a", "is wrong", "type")) == "/a: is wrong"
    assert str(Problem("", "is wrong", "type")) == "is wrong"


def test_a_pointer_escapes_slash_and_tilde():
    assert pointer(["a/b", 0, "m~n", ""]) == "/a~1b/0/m~0n/"
    assert pointer([]) == ""


def test_types_have_their_json_names():
    values = ["x", True, 1, 2.5, [], {}, None, object()]
    assert [json_type(value) for value in values] == [
        *("string", "boolean", "number", "number", "array", "object", "null", "undefined"),
    ]
