"""Reading a tool in any of its forms."""

from farhand import tool
from farhand.plugins.rules import read_tool

PICK = tool.define("pick", input={"type": "object"}, output={"type": "integer"}, description="Pick.")


def test_a_tool_its_definition_and_their_json_are_one_tool() -> None:
    forms = [PICK, PICK.definition, PICK.dump(), PICK.dump(wrapped=True)]
    assert {(one.name, bytes(one.definition.output or b"")) for one in map(read_tool, forms)} == {
        ("pick", b'{"type":"integer"}')
    }
