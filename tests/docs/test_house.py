"""The rules of the house: names, sizes, docstrings, dependencies and what an import may load."""

import ast
import fnmatch
import graphlib
import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "farhand"
MODULES = sorted(SOURCE.rglob("*.py"))

# Names that are drawers: everything fits, so nothing is found.
DRAWERS = {
    *("manager", "managers", "handler", "handlers", "service", "services", "context", "registry", "dispatcher"),
    *("orchestrator", "resolver", "util", "utils", "utilities", "helper", "helpers", "common", "shared", "misc"),
    *("types", "impl", "internal", "internals", "stuff", "lib"),
}

# What `import farhand` must leave alone: whoever needs one of these imports it in its one place.
NOT_AT_IMPORT = {
    *("pydantic", "httpx", "httpx2", "starlette", "uvicorn", "openai", "anthropic", "mcp", "a2a", "rich", "cyclopts"),
    *("asyncpg", "wasmtime", "cryptography", "opentelemetry", "prometheus_client"),
}

# Traces of one machine. Written in parts, so that this page does not find itself.
TRACES = [
    r"(?<![\w.])/(root|work|Users|opt)" + "/",
    r"(?<![\w.])/home" + r"/\w",
    r"[A-Z]:\\" + "Users",
    r"pypi\.org/" + "simple",
    r"files\.python" + "hosted",
    r"registry\." + r"(npmjs|yarnpkg)",
    "arti" + "factory",
    r"index" + "-url",
    "find" + "-links",
]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def files() -> Iterator[Path]:
    """The files of the repository: all that .gitignore does not name."""
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines() if line.strip()]

    def walk(folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            names = {path.name, relative(path)}
            if path.name == ".git" or any(fnmatch.fnmatch(name, rule) for name in names for rule in ignored):
                continue
            if path.is_dir():
                yield from walk(path)
            else:
                yield path

    return walk(ROOT)


def distributions_needed_by(requirement: str) -> set[str]:
    """The names of everything that an installation brings, itself included."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(requirement)]
    while waiting:
        wanted = waiting.pop()
        for extra in {"", *wanted.extras}:
            name = wanted.name.lower().replace("_", "-")
            if (name, extra) in found:
                continue
            found.add((name, extra))
            further = [Requirement(line) for line in metadata.requires(name) or []]
            waiting += [each for each in further if each.marker is None or each.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


# Files.


def test_no_file_or_folder_is_named_like_a_drawer() -> None:
    folders = [ROOT / name for name in ("src/farhand", "tests", "bench", "docs_src", "examples")]
    named = [path for folder in folders for path in folder.rglob("*") if path.suffix in {"", ".py", ".js"}]
    bad = [
        relative(path)
        for path in named
        if any(word in DRAWERS or re.fullmatch(r"v\d+", word) for word in re.split(r"[_.-]", path.stem.lower()))
    ]
    assert bad == []


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_a_module_says_what_it_is_and_stays_below_600_lines(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    purpose = ast.get_docstring(ast.parse(text)) or ""
    assert len(purpose.split()) >= 4, "its docstring does not say what it is"
    assert len(text.splitlines()) <= 600, "these are two modules"


def test_no_file_names_a_machine_or_a_package_index() -> None:
    found: list[str] = []
    for path in files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{relative(path)}:{number}: {trace[0]}"
            for number, line in enumerate(lines, 1)
            if (trace := re.search("|".join(f"(?:{one})" for one in TRACES), line))
        ]
    assert found == []


# Names.


def test_the_package_exports_at_most_fifteen_names_and_each_is_there() -> None:
    farhand = importlib.import_module("farhand")
    assert 3 <= len(farhand.__all__) <= 15
    assert [name for name in farhand.__all__ if not hasattr(farhand, name)] == []
    assert len(set(farhand.__all__)) == len(farhand.__all__)


def test_every_exported_name_has_a_docstring_of_its_own() -> None:
    farhand = importlib.import_module("farhand")
    objects = {name: getattr(farhand, name) for name in farhand.__all__ if not name.startswith("__")}
    assert [name for name, found in objects.items() if not docstring_of(found)] == []


def docstring_of(found: object) -> str:
    """The docstring that somebody wrote for this object, or for its class where it is a value."""
    if inspect.isclass(found) or inspect.isroutine(found) or inspect.ismodule(found):
        written = vars(found).get("__doc__") or "" if inspect.isclass(found) else inspect.getdoc(found) or ""
        generated = inspect.isclass(found) and written.startswith(f"{found.__name__}(")
        return "" if generated else written
    return docstring_of(type(found)) if type(found).__module__.startswith("farhand") else ""


# Versions.


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[?(\d+\.\d+\.\d+\S*?)\]?(?: |$)", changelog, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert newest is not None
    assert newest[1] == project["version"] == metadata.version("farhand")


def test_the_constraints_name_every_distribution_exactly_as_installed() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w-]+==[\w.]+", line)] == []
    given = {name.lower().replace("_", "-"): version for name, version in (line.split("==") for line in lines)}
    needed = distributions_needed_by("farhand[test]") - {"farhand"}
    assert {name: metadata.version(name) for name in needed} == {name: given.get(name) for name in needed}


# Dependencies.


def test_an_installation_brings_at_most_eight_distributions() -> None:
    needed = distributions_needed_by("farhand")
    assert len(needed) <= 8, sorted(needed)


def test_importing_farhand_loads_nothing_that_it_may_not_need() -> None:
    program = "import farhand, json, sys; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, encoding="utf-8", timeout=30)
    assert ran.returncode == 0, ran.stderr
    assert NOT_AT_IMPORT & set(json.loads(ran.stdout)) == set()


def test_imports_go_inward_only() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--no-logo"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph("farhand", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


# The Makefile.


def test_the_makefile_has_the_targets_of_the_house_and_tells_about_each() -> None:
    ran = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=30)
    assert ran.returncode == 0, ran.stderr
    told = {line.split()[0] for line in ran.stdout.splitlines() if line.startswith("  ")}
    assert told == {"run", "test", "check", "proof", "bench", "format", "clean", "help"}
