"""What is optional may be missing: the command says how to get it, and the library does not load it."""

import subprocess
import sys

import pytest

BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def python(program: str, *blocked: str) -> subprocess.CompletedProcess[str]:
    source = BLOCKER.format(blocked=blocked) + program
    return subprocess.run([sys.executable, "-c", source], capture_output=True, encoding="utf-8", timeout=30)


@pytest.mark.parametrize("missing", ["cyclopts", "rich"])
def test_without_its_packages_the_command_says_what_to_install(missing: str) -> None:
    ran = python("from farhand.cli import main; main()", missing)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "the command line needs two more packages: pip install 'farhand[cli]'\n"


def test_another_missing_module_is_not_mistaken_for_them() -> None:
    words = "['farhand', 'tools', 'list', 'farhand.demo:demo_agent']"
    ran = python(f"import sys; sys.argv = {words}; from farhand.cli import main; main()", "zoneinfo")
    assert ran.returncode == 2
    assert "No module named 'zoneinfo'" in ran.stderr
    assert "farhand[cli]" not in ran.stderr


@pytest.mark.parametrize(
    ("words", "missing", "extra"),
    [
        (["runs", "list", "http://127.0.0.1:1"], "httpx2", "client"),
        (["chat", "http://127.0.0.1:1", "hi"], "httpx2", "client"),
        (["chat", "farhand.demo:demo_agent", "hi"], "starlette", "server"),
        (["demo"], "uvicorn", "server"),
        (["serve", "farhand.demo:demo_agent"], "starlette", "server"),
    ],
)
def test_a_command_that_needs_an_extra_says_which(words: list[str], missing: str, extra: str) -> None:
    ran = python(f"import sys; sys.argv = ['farhand', *{words!r}]; from farhand.cli import main; main()", missing)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"farhand: this needs {missing} to ")
    assert ran.stderr.endswith(f"pip install 'farhand[{extra}]'\n")


def test_the_library_loads_neither_pydantic_nor_the_command_line() -> None:
    ran = python("import farhand, farhand.testing\nprint({'pydantic', 'rich', 'cyclopts'} & set(sys.modules))")
    assert (ran.returncode, ran.stdout.strip()) == (0, "set()")


def test_an_agent_whose_tools_are_schemas_runs_without_pydantic() -> None:
    program = """
import asyncio
from farhand import Agent, scripted, tool
from farhand.models import Use

@tool
def ping():
    "Ping."
    return {"pong": 1}

pick = tool.define("pick", input={"type": "object"}, output={"type": "integer"}).client(lambda value: value["n"])

async def main():
    model = scripted([Use("ping"), Use("pick", {"n": 7}), "done"])
    run = await Agent(model, tools=[ping, pick]).run("hi")
    print(run.output, *[call.output for call in run.calls])

asyncio.run(main())
"""
    ran = python(program, "pydantic", "pydantic_core")
    assert (ran.stdout.strip(), ran.stderr) == ("done {'pong': 1} 7", "")
