"""Links between pages lead somewhere, and every page of the docs can be reached."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

Anchors = Callable[[Path], set[str]]

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "docs_src", "examples", "tests", "bench")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])


def links_of(page: Path) -> Iterator[str]:
    """The targets of the links and pictures of a page; code is not looked at."""
    for block in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        for part in block.children or []:
            target = part.attrs.get("href") or part.attrs.get("src")
            if target:
                yield str(target)


def is_outside(target: str) -> bool:
    """Whether a link leaves the repository; these are not followed."""
    return target.startswith(("http://", "https://", "mailto:"))


def problem_of_link(page: Path, target: str, anchors: Anchors) -> str | None:
    """Why a relative link leads nowhere, or nothing."""
    path, _, anchor = unquote(target).partition("#")
    goal = (page.parent / path).resolve() if path else page
    if path.startswith("/"):
        return f"{target}: not relative"
    if not goal.exists():
        return f"{target}: no such file"
    if anchor and (goal.suffix != ".md" or anchor not in anchors(goal)):
        return f"{target}: no such heading"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path, anchors: Anchors) -> None:
    targets = [target for target in links_of(page) if not is_outside(target)]
    problems = [problem for target in targets if (problem := problem_of_link(page, target, anchors))]
    assert not problems, "\n".join(problems)


def test_every_page_of_the_docs_is_reached_from_their_index() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "docs" / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        targets = [target.partition("#")[0] for target in links_of(page) if not is_outside(target)]
        waiting.extend((page.parent / unquote(target)).resolve() for target in targets if target)
    lonely = {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - reached
    assert not lonely, f"no link leads to {sorted(str(page.relative_to(ROOT)) for page in lonely)}"


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, anchors: Anchors) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n[here](#a-page) [gone](other.md) [lost](#nothing) ![no](no.png) [root](/etc)\n\n"
        "```\n[not](a-link.md)\n```\n\n| cell |\n| --- |\n| [cell](cell.md) |\n"
    )
    problems = [problem for target in links_of(page) if (problem := problem_of_link(page, target, anchors))]
    assert problems == [
        "other.md: no such file",
        "#nothing: no such heading",
        "no.png: no such file",
        "/etc: not relative",
        "cell.md: no such file",
    ]


def test_headings_get_the_anchors_that_github_gives_them(tmp_path: Path, anchors: Anchors) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `tool`, defined once\n\n## Why?\n\n## Why?\n\n```\n# not a heading\n```\n")
    assert anchors(page) == {"a-tool-defined-once", "why", "why-1"}
