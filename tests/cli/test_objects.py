"""What `module:name` stands for, and what is said if it stands for nothing."""

from pathlib import Path

import pytest

from farhand.cli.objects import load_agent, load_plugin, load_tools
from farhand.core.errors import UsageError
from tests.cli import house
from tests.cli.command import HOUSE, bad, good


def test_an_agent_is_found_by_its_name_by_the_usual_one_and_by_what_makes_it() -> None:
    assert load_agent(HOUSE) is load_agent("tests.cli.house") is load_agent("tests.cli.house:make") is house.agent


def test_tools_are_one_several_or_those_of_an_agent() -> None:
    assert load_tools("tests.cli.house:pick_here") == load_tools("tests.cli.house") == (house.pick_here,)
    assert load_tools(HOUSE) == tuple(house.agent.tools.values())
    assert load_plugin("tests.cli.house:drawing") is house.drawing


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nowhere:agent", "there is no module 'nowhere' here or among what is installed"),
        ("farhand.nowhere:agent", "there is no module 'farhand.nowhere' here or among what is installed"),
        ("tests.cli.house:nothing.at.all", "module 'tests.cli.house' has no 'nothing.at.all'"),
        ("farhand.demo:TRY", "'farhand.demo:TRY' is a tuple, not an Agent"),
        ("tests.cli.house:agnt", "module 'tests.cli.house' has no 'agnt'; it has agent"),
        ("tests.cli.house:break_down", "'tests.cli.house:break_down' makes nothing: house.py, line"),
        ("", "'' is no `module:name`"),
        (":agent", "':agent' is no `module:name`"),
        ("./house.py", "is no `module:name`"),
    ],
)
def test_what_is_no_agent_is_told(path: str, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_agent(path)
    assert why in str(raised.value)


def test_what_is_no_tool_and_no_plugin_is_told() -> None:
    with pytest.raises(UsageError, match=r"'farhand\.demo:NOTES' is a list, neither a tool nor several"):
        load_tools("farhand.demo:NOTES")
    with pytest.raises(UsageError, match=r"'farhand\.demo:ZONES' is a dict, neither a tool nor several"):
        load_tools("farhand.demo:ZONES")
    with pytest.raises(UsageError, match=r"is a Agent, not a Plugin"):
        load_plugin(HOUSE)


def test_a_module_of_the_current_folder_is_found_and_one_that_fails_says_where(tmp_path: Path) -> None:
    (tmp_path / "cabin.py").write_text("from farhand import Agent, scripted\nagent = Agent(scripted([]))\n")
    assert good("tools", "list", "cabin", folder=tmp_path)
    for text, why in [
        ("1 / 0", "cabin.py, line 1: ZeroDivisionError: division by zero"),
        ("def", "cabin.py, line 1: SyntaxError: invalid syntax"),
        ("import nowhere", "cabin.py, line 1: ModuleNotFoundError: No module named 'nowhere'"),
    ]:
        (tmp_path / "cabin.py").write_text(text)
        assert bad(2, "tools", "list", "cabin", folder=tmp_path) == f"module 'cabin' cannot be loaded: {why}"
