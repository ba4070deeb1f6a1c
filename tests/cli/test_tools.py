"""`farhand tools list`, `show` and `check`: of an agent of this machine, and of a server's."""

from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec import json

from farhand.protocols.native import ToolList
from tests.cli.command import HOUSE, Served, bad, farhand, good, serving, told

NEAT = '''
from farhand import Agent, scripted, tool

@tool(effect="pure")
def ping() -> str:
    """Ping."""
    return "pong"

agent = Agent(scripted([]), tools=[ping])
other = Agent(scripted([]), tools=[tool.define("pick")])
'''


@pytest.fixture(scope="module")
def server() -> Generator[Served]:
    with serving("serve", HOUSE, "--store", "memory:") as served:
        yield served


@pytest.fixture(params=["here", "there"])
def where(request: pytest.FixtureRequest) -> str:
    """The house, on this machine and at a server."""
    return HOUSE if request.param == "here" else request.getfixturevalue("server").url


def test_the_tools_of_an_agent_are_listed(where: str) -> None:
    head, *rows = good("tools", "list", where).splitlines()
    assert head.split() == ["tool", "place", "approval", "effect", "description"]
    assert rows[0].split(maxsplit=4) == ["add", "server", "never", "pure", "Add two numbers."]
    assert rows[1].split()[:4] == ["pay", "server", "always", "once"]
    assert rows[5].split()[:2] == ["pick", "client"]


def test_for_programs_they_are_what_the_protocol_sends(where: str) -> None:
    listed = json.decode(good("tools", "list", where, "--json"), type=ToolList)
    assert [tool.name for tool in listed.tools] == ["add", "pay", "count", "hang", "fail", "pick"]
    assert told("tools", "show", where, "pay") == json.decode(json.encode(listed.tools[1]))


def test_one_tool_is_shown_with_its_schemas(where: str) -> None:
    shown = good("tools", "show", where, "pay")
    assert shown.startswith("pay: Pay somebody.\nagent:      house\nplace:      server\napproval:   always\n")
    assert '"description": "How much."' in shown
    assert 'result:\n{\n  "type": "string"\n}\n' in shown
    assert "result:" not in good("tools", "show", where, "hang")
    assert f"pin:        {told('tools', 'show', where, 'pay')['pin']}" in shown


def test_a_tool_that_is_not_there_is_told_with_those_that_are(where: str) -> None:
    said = bad(1, "tools", "show", where, "fly")
    assert said == "there is no tool 'fly'; there are: add, pay, count, hang, fail, pick"


def test_hints_for_authors_end_with_1_if_every_provider_is_concerned(where: str, tmp_path: Path) -> None:
    ran = farhand("tools", "check", where)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "add /parameters all properties must be required in strict mode, also b (OpenAI strict mode)" in ran.stdout
    (tmp_path / "neat.py").write_text(NEAT)
    assert good("tools", "check", "neat", folder=tmp_path) == ""
    ran = farhand("tools", "check", "neat:other", "--json", folder=tmp_path)
    assert ran.returncode == 1
    assert json.decode(ran.stdout)["hints"][0] == {
        "tool": "pick",
        "path": "/description",
        "message": "has no description: the model cannot know when to use it",
        "provider": None,
    }


def test_tools_of_several_agents_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "neat.py").write_text(NEAT.replace("tools=[tool", 'name="other", tools=[tool'))
    with serving("serve", "neat", "neat:other", "--store", "memory:", folder=tmp_path) as served:
        head, first, second = good("tools", "list", served.url).splitlines()
    assert (head.split()[0], first.split()[:2], second.split()[:2]) == ("agent", ["agent", "ping"], ["other", "pick"])
