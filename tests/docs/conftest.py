"""What the tests of the documentation share: the repository's root and the anchors of a page."""

import itertools
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page, in its own spelling of them."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    for before, token in itertools.pairwise(tokens):
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', token.content))
        if before.type != "heading_open":
            continue
        shown = "".join(part.content for part in token.children or [] if part.type in {"text", "code_inline"})
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


@pytest.fixture
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture
def anchors() -> Callable[[Path], set[str]]:
    """The function that lists the anchors of a page."""
    return anchors_of
