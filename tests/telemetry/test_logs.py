"""Lines of the log: what happened and to which ids, one line each, and no text of an exception."""

import io
import logging
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import httpx2
import pytest
from msgspec import json

from farhand import Agent, CallContext, scripted, tool
from farhand.durable import Runner
from farhand.models import Use
from farhand.telemetry.logs import QUIET, RECORD_FIELDS, JsonLines, PlainLines, configure_logs
from farhand.telemetry.subject import FIELDS, Subjects, subject


@pytest.fixture
def root() -> Generator[logging.Logger]:
    """The root logger, as it was before when the test is over."""
    logger = logging.getLogger()
    handlers, level = list(logger.handlers), logger.level
    levels = {name: logging.getLogger(name).level for name in QUIET}
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def failing() -> None:
    raise KeyError("canary")


def line_of(formatter: logging.Formatter, message: str = "it is %d", *more: Any, **extra: Any) -> str:
    try:
        failing()
    except KeyError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("farhand.asgi", logging.WARNING, "file", 1, message, more or (3,), info)
    record.created = 0.25
    record.__dict__.update(extra)
    return formatter.format(record)


def test_a_line_for_programs_is_one_json_object() -> None:
    said = json.decode(line_of(JsonLines(), farhand={"error": "e1"}))
    assert said.pop("exception").startswith("KeyError in failing, line ")
    assert said == {
        "time": "1970-01-01T00:00:00.250Z",
        "level": "warning",
        "logger": "farhand.asgi",
        "message": "it is 3",
        "error": "e1",
    }


def test_a_line_for_people_is_one_line_whatever_is_in_it() -> None:
    line = line_of(PlainLines(), "two\r\nlines%s", "", farhand={"error": "e1"})
    assert line.startswith("1970-01-01T00:00:00Z warning farhand.asgi: two\\r\\nlines error=e1 (KeyError in failing")
    assert "\n" not in line


def test_neither_has_the_text_of_an_exception_nor_what_others_hang_on_a_record() -> None:
    for formatter in (JsonLines(), PlainLines()):
        assert "canary" not in line_of(formatter, payload="canary", farhand="canary")


def test_setting_up_logs_twice_writes_each_line_once(root: logging.Logger) -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logs(json=True, out=first)
    configure_logs(json=True, level="DEBUG", out=second)
    logging.getLogger("mine").debug("hello")
    assert first.getvalue() == ""
    assert json.decode(second.getvalue())["message"] == "hello"


def test_libraries_beneath_do_not_write_what_they_send_and_receive(root: logging.Logger) -> None:
    out = io.StringIO()
    configure_logs(level=logging.DEBUG, out=out)
    for name in (*QUIET, "uvicorn.error", "websockets.server"):
        logging.getLogger(name).debug("canary")
    assert out.getvalue() == ""


async def test_every_line_that_is_written_meanwhile_bears_the_ids_of_the_work(root: logging.Logger) -> None:
    out = io.StringIO()
    configure_logs(json=True, out=out)

    @tool
    async def look(context: CallContext) -> str:
        """Look."""
        logging.getLogger("mine").info("looking")
        return context.call_id

    agent = Agent(scripted([Use("look"), "done"]), tools=[look], name="looker")
    async with Runner(agent, store="memory:", observers=[Subjects()]) as runner:
        run = await runner.run("hi", thread="canary")
    [line] = [json.decode(line) for line in out.getvalue().splitlines() if "looking" in line]
    assert line["run"] == run.state.id
    assert line["call"] == run.calls[0].id
    assert line["agent"] == "looker"
    assert len(line["thread"]) == 32
    assert "canary" not in out.getvalue()
    assert subject() == {}


def test_a_server_writes_its_log_when_it_is_told_to() -> None:
    program = (
        "from farhand import Agent, scripted, serve; serve(Agent(scripted([])), port=0, store='memory:', log='json')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        url, *_, token = process.stdout.readline().split()
        answer = httpx2.get(f"{url}/v1/server", headers={"authorization": f"Bearer {token}"})
        process.terminate()
        _, written = process.communicate(timeout=20)
    lines = [json.decode(line) for line in written.splitlines()]
    [line] = [line for line in lines if line["logger"] == "farhand.requests"]
    assert (line["endpoint"], line["request"]) == ("get-server", answer.headers["farhand-request"])
    assert token not in written


def test_every_field_is_explained() -> None:
    assert set(json.decode(line_of(JsonLines()))) <= set(RECORD_FIELDS)
    assert all(text.endswith(".") for text in (*FIELDS.values(), *RECORD_FIELDS.values()))
