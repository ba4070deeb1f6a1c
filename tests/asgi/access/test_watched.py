"""A file that is read again when it has changed."""

import os
from pathlib import Path

import pytest

from farhand.asgi.access.watched import LARGEST, Watched
from farhand.core.errors import InvalidInput
from farhand.testing import VirtualClock


def read(data: bytes) -> str:
    if b"bad" in data:
        raise InvalidInput("this is bad")
    return data.decode()


def write(path: Path, text: str) -> Path:
    """As careful operators do it: another file takes the place of the first."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.chmod(0o600)
    fresh.replace(path)
    return path


def test_a_change_is_seen_within_a_second(tmp_path: Path) -> None:
    path, clock = write(tmp_path / "file", "one"), VirtualClock()
    watched = Watched(path, read, clock.now)
    write(path, "two")
    assert watched.value() == "one"
    clock.advance(1)
    assert watched.value() == "two"


def test_a_file_is_looked_at_once_a_second_and_read_only_when_it_has_changed(tmp_path: Path) -> None:
    path, clock, readings = write(tmp_path / "file", "one"), VirtualClock(), []
    watched = Watched(path, lambda data: readings.append(data), clock.now)
    for _ in range(10):
        clock.advance(1)
        watched.value()
    assert len(readings) == 1
    write(path, "two")
    for _ in range(10):
        clock.advance(0.5)
        watched.value()
    assert len(readings) == 2


@pytest.mark.parametrize("how", ["bad", "gone", "open to others"])
def test_a_fault_leaves_what_was_read_before_and_is_told_once(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = write(tmp_path / "file", "one"), VirtualClock()
    watched = Watched(path, read, clock.now, secret=True)
    if how == "bad":
        write(path, "bad")
    elif how == "gone":
        path.unlink()
    else:
        write(path, "two").chmod(0o644)
    for _ in range(5):
        clock.advance(1)
        assert watched.value() == "one"
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    write(path, "three")
    clock.advance(1)
    assert watched.value() == "three"


def test_a_fault_in_the_beginning_is_one_of_the_program(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        Watched(tmp_path / "none", read, VirtualClock().now)
    with pytest.raises(InvalidInput, match="this is bad"):
        Watched(write(tmp_path / "file", "bad"), read, VirtualClock().now)


@pytest.mark.skipif(os.name != "posix", reason="there are no such rights")
@pytest.mark.parametrize("mode", [0o604, 0o602, 0o620, 0o644, 0o666, 0o777])
def test_a_secret_that_others_may_read_or_change_is_refused(mode: int, tmp_path: Path) -> None:
    path = write(tmp_path / "file", "one")
    path.chmod(mode)
    with pytest.raises(InvalidInput, match=f"chmod 600 {path}"):
        Watched(path, read, VirtualClock().now, secret=True)
    assert Watched(path, read, VirtualClock().now).value() == "one"


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o640])
def test_a_secret_may_be_read_by_the_group_of_the_server(mode: int, tmp_path: Path) -> None:
    path = write(tmp_path / "file", "one")
    path.chmod(mode)
    assert Watched(path, read, VirtualClock().now, secret=True).value() == "one"


def test_a_file_of_any_size_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="more than"):
        Watched(write(tmp_path / "file", "a" * (LARGEST + 1)), read, VirtualClock().now)
