"""docs/features.md is true: every id has its row, and what a row names is there."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

COUNTS = {"G": 11, "L": 87, "T": 97, "R": 69, "P": 110, "H": 76}
CAPABILITIES = {
    "heart",
    "server & client",
    "durable runs",
    "groups",
    "models",
    "front doors",
    "A2A",
    "plugins",
    "browser",
}
NOTHING = {"", "-"}

Anchors = Callable[[Path], set[str]]


class Row(NamedTuple):
    """One promise as the table states it."""

    id: str
    what: str
    api: str
    test: str
    state: str


def rows_of(text: str) -> list[Row]:
    """The rows of all tables of a page that begin with an id."""
    rows: list[Row] = []
    for line in text.splitlines():
        if re.match(r"\|\s*[A-Z]\d+\s*\|", line):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            assert len(cells) == len(Row._fields), f"{len(cells)} cells where {len(Row._fields)} are due: {line}"
            rows.append(Row(*cells))
    return rows


def names_in(cell: str) -> list[str]:
    """The names of a cell, without backticks; none where the cell is empty or a dash."""
    return [name for part in cell.split(",") if (name := part.strip().strip("`").strip()) not in NOTHING]


def problems_of_ids(rows: list[Row]) -> Iterator[str]:
    """What is wrong with the list of ids: missing, doubled or invented ones."""
    given = Counter(row.id for row in rows)
    wanted = {f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)}
    yield from (f"{missing}: no row" for missing in sorted(wanted - given.keys()))
    yield from (f"{invented}: no such promise" for invented in sorted(given.keys() - wanted))
    yield from (f"{doubled}: {count} rows" for doubled, count in given.items() if count > 1)


def problems_of_row(row: Row, root: Path, anchors: Anchors) -> Iterator[str]:
    """What a row says that is not so."""
    if row.what in NOTHING:
        yield f"{row.id}: does not say what"
    yield from (f"{row.id}: {problem}" for problem in problems_of_state(row))
    for name in names_in(row.api):
        if problem := problem_of_api(name, root, anchors):
            yield f"{row.id}: {problem}"
    for name in names_in(row.test):
        if problem := problem_of_test(name, root):
            yield f"{row.id}: {problem}"


def problems_of_state(row: Row) -> Iterator[str]:
    """A state that is unknown, or that asks for what the row does not give."""
    word, _, capability = (part.strip() for part in row.state.partition(":"))
    has_api, has_test = bool(names_in(row.api)), bool(names_in(row.test))
    if word not in {"done", "partly", "planned", "decided"}:
        yield f"unknown state {row.state!r}"
    if word in {"partly", "planned"} and capability not in CAPABILITIES:
        yield f"{word} needs one of the capabilities, not {capability!r}"
    if word in {"done", "decided"} and capability:
        yield f"{word} names no capability"
    if word in {"done", "partly"} and not has_api:
        yield f"{word} without an API"
    if word in {"done", "partly"} and not has_test:
        yield f"{word} without a test"
    if word == "decided" and not row.api.strip("`").startswith("docs/"):
        yield "decided without the page that says why"


def problem_of_api(name: str, root: Path, anchors: Anchors) -> str | None:
    """Why a name of the API column cannot be found, or nothing."""
    if re.match(r"\S+\.md\b", name):
        return problem_of_anchor(name, root, anchors)
    if name.startswith("farhand "):
        return problem_of_command(name)
    return problem_of_name(name)


def problem_of_anchor(name: str, root: Path, anchors: Anchors) -> str | None:
    """Why a page or its heading is not there, or nothing."""
    path, _, anchor = name.partition("#")
    if not (root / path).is_file():
        return f"no page {path}"
    if anchor and anchor not in anchors(root / path):
        return f"no heading #{anchor} in {path}"
    return None


def problem_of_command(name: str) -> str | None:
    """Why the command line does not know a command, or nothing; its app is in `farhand.cli.app`."""
    try:
        level = importlib.import_module("farhand.cli.app").app
    except (ImportError, AttributeError) as error:
        return f"no command `{name}`: {error}"
    for word in name.split()[1:]:
        if not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        try:
            level = level[word]
        except KeyError:
            return f"no command `{name}`: {word!r} is not registered"
    return None


def problem_of_name(name: str) -> str | None:
    """Why a dotted name leads nowhere, or nothing. A function may carry the name of its module."""
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name):
        return f"{name!r} is neither a dotted name, a command nor a page"
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = module_named(".".join(parts[:length]))
        if module is not None and leads_on(module, parts[length:]):
            return None
    return f"{name} cannot be resolved"


def module_named(name: str) -> ModuleType | None:
    """The module of this name, or nothing where there is none; a module that fails to import fails the test."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise


def leads_on(found: object, parts: list[str]) -> bool:
    """Whether attributes, or the annotated fields of classes, lead from here to the end of the name."""
    for position, part in enumerate(parts):
        if hasattr(found, part):
            found = getattr(found, part)
        else:
            fields = {
                field for kind in getattr(found, "__mro__", ()) for field in vars(kind).get("__annotations__", {})
            }
            return position == len(parts) - 1 and part in fields
    return True


def problem_of_test(name: str, root: Path) -> str | None:
    """Why a test is not there, or nothing."""
    path, *inner = name.split("::")
    if not inner:
        return f"{name} names no function"
    if not (root / path).is_file():
        return f"no file {path}"
    body = ast.parse((root / path).read_text(encoding="utf-8")).body
    for word in inner:
        found = next((node for node in body if word in names_bound_by(node)), None)
        if found is None:
            return f"no {word} in {path}"
        body = getattr(found, "body", [])
    if not re.match("test|Test", inner[-1]):
        return f"{inner[-1]} in {path} is not collected as a test"
    return None


def names_bound_by(node: ast.stmt) -> set[str]:
    """The names that a statement defines: a function, a class, or a state machine's `TestX = X.TestCase`."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case _:
            return set()


def problems_of_page(text: str, root: Path, anchors: Anchors) -> list[str]:
    """Everything that is wrong with a page of promises."""
    rows = rows_of(text)
    return [*problems_of_ids(rows), *(problem for row in rows for problem in problems_of_row(row, root, anchors))]


# The page itself.


def test_every_promise_has_its_row_and_every_row_is_true(root: Path, anchors: Anchors) -> None:
    page = (root / "docs" / "features.md").read_text(encoding="utf-8")
    problems = problems_of_page(page, root, anchors)
    assert not problems, "\n".join(problems)


def test_every_row_stands_under_its_letter_in_order(root: Path) -> None:
    page = (root / "docs" / "features.md").read_text(encoding="utf-8")
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        ids = [row.id for row in rows_of(section)]
        assert ids == [f"{section[0]}{number}" for number in range(1, COUNTS[section[0]] + 1)]


# The checker: a table that is wrong is refused, each fault by its name.


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A small repository with one page and one test file."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "why.md").write_text("# Why\n\n## Not `once` more, ever\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text(
        "async def test_a_thing_holds(): ...\n"
        "def helper(): ...\n"
        "class TestKind:\n    def test_inner(self): ...\n"
        "TestRules = TestKind\n"
    )
    return tmp_path


GOOD_API = "`json.JSONDecoder.decode`"
GOOD_TEST = "`tests/test_x.py::test_a_thing_holds`"


@pytest.mark.parametrize(
    "row",
    [
        f"| G1 | x | {GOOD_API} | {GOOD_TEST} | done |",
        f"| G1 | x | {GOOD_API}, `json` | {GOOD_TEST}, `tests/test_x.py::TestKind::test_inner` | partly: models |",
        f"| G1 | x | docs/why.md#not-once-more-ever | {GOOD_TEST} | done |",
        "| G1 | x | `typing.NamedTuple` | `tests/test_x.py::TestRules` | done |",
        "| G1 | x | `docs/why.md` | - | decided |",
        "| G1 | x | - | - | planned: server & client |",
    ],
)
def test_a_true_row_has_no_problem(row: str, there: Path, anchors: Anchors) -> None:
    (parsed,) = rows_of(row)
    assert list(problems_of_row(parsed, there, anchors)) == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (f"| G1 | - | {GOOD_API} | {GOOD_TEST} | done |", "G1: does not say what"),
        (f"| G1 | x | {GOOD_API} | {GOOD_TEST} | finished |", "G1: unknown state 'finished'"),
        (f"| G1 | x | {GOOD_API} | {GOOD_TEST} | done: heart |", "G1: done names no capability"),
        ("| G1 | x | - | - | planned |", "G1: planned needs one of the capabilities, not ''"),
        ("| G1 | x | - | - | planned: soon |", "G1: planned needs one of the capabilities, not 'soon'"),
        (f"| G1 | x | - | {GOOD_TEST} | done |", "G1: done without an API"),
        (f"| G1 | x | {GOOD_API} | - | done |", "G1: done without a test"),
        (f"| G1 | x | {GOOD_API} | - | partly: models |", "G1: partly without a test"),
        ("| G1 | x | - | - | decided |", "G1: decided without the page that says why"),
        (f"| G1 | x | `json.nothing` | {GOOD_TEST} | done |", "G1: json.nothing cannot be resolved"),
        (f"| G1 | x | `json.loads.more` | {GOOD_TEST} | done |", "G1: json.loads.more cannot be resolved"),
        (f"| G1 | x | `no_package.name` | {GOOD_TEST} | done |", "G1: no_package.name cannot be resolved"),
        (
            f"| G1 | x | `json loads` | {GOOD_TEST} | done |",
            "G1: 'json loads' is neither a dotted name, a command nor a page",
        ),
        (f"| G1 | x | docs/no.md#why | {GOOD_TEST} | done |", "G1: no page docs/no.md"),
        (f"| G1 | x | docs/why.md#no | {GOOD_TEST} | done |", "G1: no heading #no in docs/why.md"),
        (f"| G1 | x | {GOOD_API} | `tests/test_x.py::test_no` | done |", "G1: no test_no in tests/test_x.py"),
        (f"| G1 | x | {GOOD_API} | `tests/test_no.py::test_x` | done |", "G1: no file tests/test_no.py"),
        (f"| G1 | x | {GOOD_API} | `tests/test_x.py` | done |", "G1: tests/test_x.py names no function"),
        (
            f"| G1 | x | {GOOD_API} | `tests/test_x.py::helper` | done |",
            "G1: helper in tests/test_x.py is not collected as a test",
        ),
        (
            f"| G1 | x | {GOOD_API} | `tests/test_x.py::TestKind::test_no` | done |",
            "G1: no test_no in tests/test_x.py",
        ),
    ],
)
def test_a_broken_row_is_named_with_its_fault(row: str, problem: str, there: Path, anchors: Anchors) -> None:
    (parsed,) = rows_of(row)
    assert list(problems_of_row(parsed, there, anchors)) == [problem]


def test_missing_doubled_and_invented_ids_are_named() -> None:
    page = "\n".join(
        f"| {letter}{number} | x | - | - | planned: heart |"
        for letter, count in COUNTS.items()
        for number in range(1, count + 1)
    )
    page = page.replace("| L7 |", "| L8 |").replace("| G2 |", "| X2 |")
    assert list(problems_of_ids(rows_of(page))) == ["G2: no row", "L7: no row", "X2: no such promise", "L8: 2 rows"]


def test_a_row_with_a_missing_cell_is_refused() -> None:
    with pytest.raises(AssertionError, match="4 cells where 5 are due"):
        rows_of("| G1 | x | - | done |")


def test_a_command_is_looked_up_in_the_command_line() -> None:
    assert problem_of_command("farhand demo") is None
    assert problem_of_command("farhand demo --seed N") is None
    assert problem_of_command("farhand no-such-command") == (
        "no command `farhand no-such-command`: 'no-such-command' is not registered"
    )


def test_a_module_that_fails_to_import_is_not_taken_for_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "breaks_on_import.py").write_text("import a_module_that_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_module_that_nobody_has"):
        problem_of_name("breaks_on_import.name")
