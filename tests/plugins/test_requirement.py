"""What one plugin needs of another."""

import pytest

from farhand.core.errors import UsageError
from farhand.plugins.requirement import Requirement


@pytest.mark.parametrize(
    ("text", "version", "will_do"),
    [
        ("files", "0", True),
        ("files>=1", "1", True),
        ("files>=1", "1.0.0", True),
        ("files>=1.10", "1.9", False),
        ("files >= 1.2, < 2", "1.2.7", True),
        ("files>=1,<2", "2.0", False),
        ("files==1", "1.0", True),
        ("files!=1", "1.0", False),
        ("files>1", "1.0.1", True),
        ("files<=1", "1.0.1", False),
        ("files>=1", "1.1-beta", True),
        ("files>=1", "unknown", False),
    ],
)
def test_versions_are_compared_number_by_number(text: str, version: str, will_do: bool) -> None:
    assert Requirement.parse(text).accepts(version) is will_do


@pytest.mark.parametrize("text", ["", ">=1", "files>=", "files>=one", "files 1", "files>=1;x", "files\n>=x"])
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no requirement"):
        Requirement.parse(text)


def test_a_requirement_is_written_as_it_is_read() -> None:
    assert str(Requirement.parse("files >= 1.2, <2")) == "files>=1.2,<2"
