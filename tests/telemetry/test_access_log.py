"""One line for every request, over HTTP and over a socket: which endpoint, by whom, how, how long; and no payload."""

import logging
from typing import Any

import pytest

from farhand.telemetry.access_log import FIELDS
from farhand.telemetry.logs import ABOUT
from tests.asgi.story import office


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [getattr(record, ABOUT) for record in caplog.records if record.name == "farhand.requests"]


async def test_a_request_has_one_line_with_the_id_that_its_answer_bears(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "farhand.requests")
    async with office() as place:
        response = await place.ask("GET", "/threads/canary/updates?after=canary", headers={"x-mine": "canary"})
    [line] = lines(caplog)
    assert line.pop("ms") >= 0
    assert line == {
        "endpoint": "watch-thread",
        "method": "GET",
        "status": response.status_code,
        "principal": "ann",
        "code": "invalid_input",
        "request": response.headers["farhand-request"],
    }
    assert "canary" not in caplog.text


async def test_an_address_where_nothing_is_and_a_method_that_there_is_not_are_not_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "farhand.requests")
    async with office() as place:
        await place.ask("PURGE", "/canary")
    [line] = lines(caplog)
    assert (line["endpoint"], line["method"], line["status"]) == ("none", "_OTHER", 404)
    assert "principal" not in line
    assert "canary" not in caplog.text.lower()


async def test_where_nobody_reads_it_no_line_is_made(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "farhand.requests")
    async with office() as place:
        await place.ask("GET", "/server")
    assert lines(caplog) == []


def test_every_field_is_explained() -> None:
    assert all(text.endswith(".") for text in FIELDS.values())
