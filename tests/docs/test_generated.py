"""The generated parts of the docs are fresh, and nothing that users meet is missing from the docs."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from docs_src.generate import MARKED, PARTS, load_everything, renewed
from farhand import Agent, LiveRun
from farhand.agent import Shelves
from farhand.cli.store import store
from farhand.core.errors import FarhandError, ToolError
from farhand.core.limits import Limits
from farhand.core.updates import Update
from farhand.durable import Runner, StoredRun, Thread
from farhand.groups import Scenery
from farhand.stores.base import Store
from farhand.tool import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
MAKERS = {"Failure", "ToolError", "ModelError", "__init__"}
SOURCE = sorted((ROOT / "src" / "farhand").rglob("*.py"))


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def exceptions(kind: type[Exception] = FarhandError) -> Iterator[str]:
    load_everything()
    yield kind.__name__
    for below in kind.__subclasses__():
        yield from exceptions(below)


def codes_in(source: str) -> Iterator[str]:
    """The codes that a module gives to failures: the first argument of `Failure`, `code=` of the errors."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            named = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            for value in [*(node.args[:1] if name == "Failure" else []), *named] if name in MAKERS else []:
                if isinstance(value, ast.Constant):
                    yield str(value.value)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_generated_part_is_what_the_code_says_now(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert renewed(text) == text, "stale: run `.venv/bin/python -m docs_src.generate --write`"


def test_every_part_stands_on_exactly_one_page() -> None:
    found = [name for path in PAGES for _, name, *_ in MARKED.findall(path.read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(PARTS)


def test_every_exception_is_documented() -> None:
    assert [name for name in {*exceptions(), ToolError.__name__} if f"`{name}`" not in page("errors.md")] == []


def test_every_update_limit_and_setting_is_documented() -> None:
    names = [update.__name__ for update in get_args(Update)] + list(Limits.__struct_fields__)
    assert [name for name in names if f"`{name}`" not in page("runs.md")] == []
    assert [name for name in get_type_hints(Settings) if f"`{name}`" not in page("tools.md")] == []


def test_every_parameter_of_an_agent_and_every_member_of_a_run_is_documented() -> None:
    known = list(inspect.signature(Agent.__init__).parameters)[1:]
    parameters = [*[name for name in known if name != "shelves"], *Shelves.__annotations__]
    members = [f"run.{name}" for name in vars(LiveRun) if not name.startswith("_")]
    text = page("runs.md")
    assert [name for name in parameters if f"| `{name}` |" not in text] == []
    assert [name for name in members if not re.search(rf"`(await |async for update in )?{name}\b", text)] == []


def test_every_verb_and_parameter_of_a_runner_is_documented() -> None:
    text = page("durable.md")
    members = {name: found for kind in Runner.__mro__ for name, found in vars(kind).items() if not name.startswith("_")}
    said = {name: rf"\.{name}`" if isinstance(found, property) else rf"\.{name}\(" for name, found in members.items()}
    assert [name for name, form in said.items() if not re.search(rf"`(await )?(runner|office){form}", text)] == []
    known = [*inspect.signature(Runner.start).parameters, *inspect.signature(Runner.__init__).parameters]
    parameters = [*[name for name in known if name != "scenery"], *Scenery.__annotations__]
    assert [name for name in parameters if f"`{name}`" not in text and f"`*{name}`" not in text] == ["self", "self"]
    of_run = [name for name in vars(StoredRun) if not name.startswith("_")]
    assert [name for name in of_run if not re.search(rf"`(await |async for update in )?run\.{name}\b", text)] == []
    assert [name for name in Thread.__struct_fields__ if f"`{name}`" not in text] == []


def test_every_method_of_a_store_and_every_command_for_stores_is_documented() -> None:
    methods = [name for kind in Store.__mro__ for name in vars(kind) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}`" not in page("stores.md")] == []
    commands = [name for name in store if not name.startswith("-")]
    assert [name for name in commands if f"`farhand store {name} URL" not in page("durable.md")] == []


def test_every_failure_code_is_documented_and_every_documented_one_exists() -> None:
    written = {code for path in SOURCE if path.name != "demo.py" for code in codes_in(path.read_text("utf-8"))}
    documented = set(re.findall(r"^\| `(\w+)` \|", page("errors.md").partition("## Failure codes")[2], re.MULTILINE))
    assert documented == written | {"tool_failed", "model_failed"}


def test_every_test_that_a_page_names_is_there() -> None:
    named = {found for path in PAGES for found in re.findall(r"(tests/[\w/]+\.py)::(\w+)", path.read_text("utf-8"))}
    assert named
    assert [f"{file}::{test}" for file, test in named if not re.search(rf"\b{test}\b", (ROOT / file).read_text())] == []


# The checker itself.


def test_a_marked_part_is_replaced_and_the_rest_is_left() -> None:
    before = "one\n<!-- generated: limits -->\nstale words\n<!-- end -->\ntwo\n"
    after = renewed(before)
    assert "stale words" not in after
    assert "| `max_turns` |" in after
    assert after.startswith("one\n<!-- generated: limits -->\n")
    assert after.endswith("<!-- end -->\ntwo\n")


def test_codes_are_found_where_failures_are_made() -> None:
    source = 'Failure("a", "x"); ToolError("x", code="b"); ModelError("x", code="c"); other("d", code="e")'
    assert list(codes_in(source)) == ["a", "b", "c"]
