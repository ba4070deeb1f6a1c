"""The tools of a client: what is sent, and which names are whose."""

from typing import Any

import pytest
from msgspec import json
from pydantic import BaseModel

from farhand import tool
from farhand.client.toolbox import Toolbox, added, picked, sent
from farhand.core.definition import InvalidToolDefinitions, validate_tool_definitions
from farhand.core.errors import DuplicateToolName, UsageError
from farhand.core.group import ToolGroup
from farhand.plugins import Plugin

PLAIN = {"name": "plain", "description": "Plain.", "parameters": {"type": "object"}}


class Node(BaseModel):
    name: str
    nodes: "list[Node]" = []


def test_an_authors_schema_is_sent_as_it_was_written() -> None:
    schema = b'{"type" : "object",  "properties": {"n": {"minimum": 1.0, "type": "number"}}}'
    mine = tool.define("mine", input=schema, output={"type": "null"}, description="Mine.", effect="pure", timeout=3.0)
    raw = bytes(sent({"mine": mine}))
    assert schema in raw
    [definition] = validate_tool_definitions(raw)
    assert (definition.name, definition.policy.effect, definition.policy.timeout) == ("mine", "pure", 3.0)
    assert definition.output is not None


def test_a_type_that_holds_itself_cannot_be_sent() -> None:
    @tool
    def grow(node: Node) -> None:
        """Grow."""

    with pytest.raises(UsageError, match="tool 'grow': its schema refers to itself"):
        sent({"grow": grow})


def test_all_tools_of_a_group_come_or_none() -> None:
    toolbox = Toolbox()
    toolbox.add({**PLAIN, "name": "taken"})
    open_file, close_file = (tool.define(name, description=name).definition for name in ("open_file", "close_file"))
    taken = tool.define("taken", description="Taken.").definition
    with pytest.raises(DuplicateToolName, match="'taken'"):
        toolbox.add_group(ToolGroup(name="IDE", description="x", tools=(open_file, taken)), {})
    with pytest.raises(UsageError, match="group 'IDE' has no tool paint"):
        toolbox.add_group(ToolGroup(name="IDE", description="x", tools=(open_file,)), {"paint": print})
    assert list(toolbox.brought) == ["taken"]
    group = ToolGroup(name="IDE", description="x", tools=(open_file, close_file))
    toolbox.add_group(group, {"open_file": lambda given: 1})
    assert list(toolbox.brought) == ["taken", "open_file", "close_file"]
    assert [each.function is not None for each in toolbox.brought.values()] == [False, True, False]
    assert toolbox.groups == (group,)
    with pytest.raises(InvalidToolDefinitions, match="There is a group 'IDE' already"):
        toolbox.add_group(group, {})
    toolbox.remove("open_file")
    assert toolbox.groups == ()


async def test_tools_of_plugins_and_of_the_client_share_their_names() -> None:
    toolbox = Toolbox()
    plugin = Plugin("files", "1", tools=[PLAIN])
    await toolbox.use(plugin, None)
    with pytest.raises(DuplicateToolName, match='there is tool from plugin "files"'):
        toolbox.add(PLAIN)
    await toolbox.unuse("files")
    toolbox.add(PLAIN)
    with pytest.raises(UsageError, match="conflicts with the client's own tool 'plain'"):
        await toolbox.use(plugin, None)


def test_tools_are_picked_by_name() -> None:
    tools = added({}, [PLAIN, {**PLAIN, "name": "other"}])
    assert list(picked(tools, None, ())) == ["plain", "other"]
    assert list(picked(tools, ["other", "nothing"], ())) == ["other"]
    assert list(picked(tools, None, ["other"])) == ["plain"]
    assert list(picked(tools, ["other"], ["other"])) == []


def test_what_is_no_definition_is_refused_with_its_path() -> None:
    bad: list[Any] = [{"name": "x"}, {**PLAIN, "name": "no name"}, {**PLAIN, "parameters": {"type": "text"}}]
    for definition in bad:
        with pytest.raises(InvalidToolDefinitions, match="/0/"):
            Toolbox().add(definition)
    assert json.decode(bytes(sent({}))) == []
