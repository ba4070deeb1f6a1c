"""Every Python block of the pages runs, prints what its page says, and equals the file that it is taken from.

A ```python block is a complete program. A comment on the line before it says otherwise:
`<!-- snippet: fragment -->` is only compiled, `<!-- snippet: docs_src/a.py -->` equals that file, and
`<!-- snippet: docs_src/a.py#part -->` what stands between `# region part` and `# endregion` in it.
A line that ends with `prints:` or `output:` makes the ```text block that follows the printed output.
"""

import ast
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")])
PROGRAMS = sorted(
    path for folder in ("docs_src", "examples") for path in (ROOT / folder).rglob("*.py") if path.name != "__init__.py"
)
SECONDS = 30


class Snippet(NamedTuple):
    """One Python block of a page."""

    page: str
    line: int
    code: str
    marker: str
    output: str | None

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> Path:
        return ROOT / self.marker.partition("#")[0]


def blocks_of(text: str) -> Iterator[tuple[int, str, str, str]]:
    """The fenced blocks of a page: line number, language, text, and the last line of prose before it."""
    lines = text.splitlines()
    prose, position = "", 0
    while position < len(lines):
        opening = re.match(r"( *)(`{3,}|~{3,})(.*)", lines[position])
        if opening is None:
            prose = lines[position].strip() or prose
            position += 1
            continue
        indent, fence, language = opening.groups()
        start = position = position + 1
        while position < len(lines) and lines[position].strip() != fence:
            position += 1
        assert position < len(lines), f"the block of line {start} has no end"
        inside = "\n".join(line.removeprefix(indent) for line in lines[start:position])
        yield start, language.strip(), inside + "\n", prose
        prose = ""
        position += 1


def snippets_of(page: str, text: str) -> list[Snippet]:
    """The Python blocks of a page with their markers and the output that the page states."""
    found: list[Snippet] = []
    previous = ""
    for line, language, inside, prose in blocks_of(text):
        if language == "python":
            marker = re.fullmatch(r"<!-- snippet: (\S+) -->", prose)
            found.append(Snippet(page, line, inside, marker[1] if marker else "", None))
        elif language == "text" and previous == "python" and re.search(r"(prints|output):\W*$", prose, re.IGNORECASE):
            found[-1] = found[-1]._replace(output=inside)
        previous = language
    return found


def region_of(text: str, name: str) -> str:
    """What stands between `# region name` and the next `# endregion`, without its indentation."""
    found = re.search(rf"^ *# region {re.escape(name)}\n(.*?)^ *# endregion", text, re.MULTILINE | re.DOTALL)
    assert found, f"no region {name!r}"
    return textwrap.dedent(found[1])


def same_text(text: str) -> str:
    """Text without trailing blanks, for comparing."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def printed_by(program: Path, folder: Path) -> str:
    """What a program prints when it runs in this folder; its warnings are errors, as in the tests."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # for the parts of docs_src/generate.py
    )
    assert ran.returncode == 0, f"{program.name} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def check(snippet: Snippet, folder: Path) -> None:
    """Fail when a snippet does not do what its page says."""
    if snippet.marker == "fragment":
        compile(snippet.code, snippet.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        return
    if snippet.marker:
        check_taken_from_file(snippet, folder)
        return
    program = folder / "snippet.py"
    program.write_text("\n" * snippet.line + snippet.code, encoding="utf-8")
    printed = printed_by(program, folder)
    if snippet.output is not None:
        assert same_text(printed) == same_text(snippet.output)


def check_taken_from_file(snippet: Snippet, folder: Path) -> None:
    """Fail when a snippet is not the text of its file, or when that file does not print what the page says."""
    text = snippet.file.read_text(encoding="utf-8")
    region = snippet.marker.partition("#")[2]
    assert same_text(snippet.code) == same_text(region_of(text, region) if region else text)
    if snippet.output is not None:
        printed, said = same_text(printed_by(snippet.file, folder)), same_text(snippet.output)
        assert said in printed if region else said == printed


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


SNIPPETS = [
    snippet for page in PAGES if page.exists() for snippet in snippets_of(relative(page), page.read_text("utf-8"))
]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_every_snippet_of_the_pages_does_what_its_page_says(snippet: Snippet, tmp_path: Path) -> None:
    check(snippet, tmp_path)


def test_the_readme_shows_a_program_that_runs() -> None:
    assert [snippet for snippet in SNIPPETS if snippet.page == "README.md" and snippet.marker != "fragment"]


@pytest.mark.parametrize("program", PROGRAMS, ids=relative)
def test_every_program_of_the_docs_and_examples_runs(program: Path, tmp_path: Path) -> None:
    printed_by(program, tmp_path)


@pytest.mark.parametrize("program", PROGRAMS, ids=relative)
def test_a_program_with_a_main_calls_it(program: Path) -> None:
    tree = ast.parse(program.read_text(encoding="utf-8"))
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    calls = [call for node in tree.body if isinstance(node, ast.If | ast.Expr) for call in ast.walk(node)]
    assert "main" not in functions or any(isinstance(name, ast.Name) and name.id == "main" for name in calls)


@pytest.mark.parametrize("program", PROGRAMS, ids=relative)
def test_every_program_of_the_docs_and_examples_is_mentioned_on_a_page(program: Path) -> None:
    above = [folder for folder in program.parents if folder.is_relative_to(ROOT)]
    folders = [f"{relative(folder)}/" for folder in above if len(folder.relative_to(ROOT).parts) > 1]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert any(name in text for name in [relative(program), *folders])


# The checker itself.

PAGE = """\
# A page

```python
print("one")
```

It prints:

```text
one
```

<!-- snippet: fragment -->
```python
await undefined(...)
```

1. In a list:

   ```python
   print("two")
   ```

```text
not its output
```

```bash
exit 1
```
"""


def test_blocks_are_found_with_marker_output_and_line() -> None:
    assert snippets_of("page.md", PAGE) == [
        Snippet("page.md", 3, 'print("one")\n', "", "one\n"),
        Snippet("page.md", 14, "await undefined(...)\n", "fragment", None),
        Snippet("page.md", 20, 'print("two")\n', "", None),
    ]


def test_a_fragment_is_compiled_and_not_run(tmp_path: Path) -> None:
    check(Snippet("page.md", 1, "await undefined(...)\n", "fragment", None), tmp_path)
    with pytest.raises(SyntaxError):
        check(Snippet("page.md", 1, "def\n", "fragment", None), tmp_path)


@pytest.mark.parametrize(
    ("code", "output", "complaint"),
    [
        ("raise ValueError('broken')", None, "ValueError: broken"),
        ("print('one')", "two", "one"),
        ("import warnings; warnings.warn('old', DeprecationWarning)", None, "DeprecationWarning: old"),
        ("input()", None, "EOFError"),
    ],
)
def test_a_snippet_that_does_something_else_fails(
    code: str, output: str | None, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check(Snippet("page.md", 1, code, "", output), tmp_path)


def test_a_traceback_names_the_line_of_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="line 42, in <module>"):
        check(Snippet("page.md", 41, "1 / 0\n", "", None), tmp_path)


def test_a_snippet_must_equal_the_file_that_it_is_taken_from(tmp_path: Path) -> None:
    taken = Snippet("page.md", 1, "SAMPLE = 1\n", f"{relative(Path(__file__))}#sample", None)
    check(taken, tmp_path)
    with pytest.raises(AssertionError):
        check(taken._replace(code="SAMPLE = 2\n"), tmp_path)
    with pytest.raises(AssertionError, match="no region"):
        check(taken._replace(marker=taken.marker + "-no"), tmp_path)


# region sample
SAMPLE = 1
# endregion
