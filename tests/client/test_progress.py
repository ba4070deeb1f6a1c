"""Reports of progress: few, the newest, and never a reason to fail."""

import asyncio

import pytest
from msgspec import Raw

from farhand.client.progress import Progress


async def test_the_newest_value_of_each_name_is_told() -> None:
    told: list[tuple[str, bytes]] = []

    async def send(name: str, raw: Raw) -> None:
        told.append((name, bytes(raw)))

    progress = Progress(send)
    for number in range(10):
        progress.tell("progress", number)
        progress.tell("stage", f"step {number}")
    await progress.flush()
    assert told == [("progress", b"9"), ("stage", b'"step 9"')]


async def test_values_come_from_any_thread() -> None:
    told: list[bytes] = []

    async def send(name: str, raw: Raw) -> None:
        told.append(bytes(raw))

    progress = Progress(send)
    await asyncio.to_thread(progress.tell, "progress", 1)
    await progress.flush()
    assert told == [b"1"]


async def test_after_the_end_nothing_is_told() -> None:
    told: list[Raw] = []

    async def send(name: str, raw: Raw) -> None:
        told.append(raw)

    progress = Progress(send)
    progress.stop()
    progress.tell("progress", 1)
    await progress.flush()
    assert told == []


async def test_a_report_that_fails_is_followed_by_the_next(caplog: pytest.LogCaptureFixture) -> None:
    told: list[bytes] = []

    async def send(name: str, raw: Raw) -> None:
        if name == "bad":
            raise OSError("gone")
        told.append(bytes(raw))

    progress = Progress(send)
    progress.tell("bad", 1)
    progress.tell("good", 2)
    progress.tell("worse", object())
    await progress.flush()
    assert told == [b"2"]
    assert "progress that is no JSON value is not told: UsageError" in caplog.text


def test_a_thread_that_outlives_its_loop_reports_to_nobody() -> None:
    async def make() -> Progress:
        async def send(name: str, raw: Raw) -> None:
            """Nobody."""

        return Progress(send)

    asyncio.run(make()).tell("progress", 1)
