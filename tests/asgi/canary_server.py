"""The server of `test_canaries`: everything that can go wrong goes wrong with the caller's words, traced and at DEBUG.

`python -m tests.asgi.canary_server FOLDER STORE [planted] [configured]`: spans go to a file in the folder, the log to
the standard error. `planted` makes it leak on purpose, `configured` sets the log up as Farhand does it.
"""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from farhand import Agent, CallContext, ToolError, tool
from farhand.asgi import create_app
from farhand.asgi.access.base import Connection
from farhand.asgi.access.principal import EVERYTHING, Principal
from farhand.asgi.access.tokens import Tokens
from farhand.core.errors import ModelError, UnknownCall
from farhand.core.messages import ToolMessage, UserMessage
from farhand.core.pieces import Done, Piece, ReasoningDelta, TextDelta, ToolArgsDelta, ToolEnd, ToolStart, Usage
from farhand.models import Request
from farhand.runner.activity import Activity, Answering, Running
from farhand.runner.observer import Observer
from farhand.stopping import StopWhen
from farhand.telemetry import OpenTelemetry, configure_logs
from farhand.testing.server import served
from farhand.tool import Secret

logger = logging.getLogger("farhand.planted")


class ToFile(SpanExporter):
    """Writes spans down, one a line."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            self._file.write(span.to_json(indent=None) + "\n")
        self._file.flush()
        return SpanExportResult.SUCCESS


class Parrot:
    """A model that does what the user says: the words after `say`, or a call for each `tool=JSON`."""

    name = "parrot"

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        last = request.messages[-1]
        if isinstance(last, ToolMessage):
            yield TextDelta(f"it gave {len(last.text)} characters")
            yield Done()
            return
        assert isinstance(last, UserMessage)
        text = last.text.replace("@secret@", os.environ["CANARY_SECRET"])
        word, _, rest = text.replace("@client@", os.environ["CANARY_CLIENTS_SECRET"]).partition(" ")
        if word == "raise":
            yield TextDelta(rest)
            raise KeyError(rest)
        if word == "refuse":
            raise ModelError(rest, code="overloaded")
        if word == "break":
            yield ToolArgsDelta(7, rest)
        yield ReasoningDelta(last.text if word in ("say", "call") else "")
        yield Usage(input=3, output=4)
        if word == "call":
            for index, use in enumerate(rest.split("|")):
                name, _, arguments = use.partition("=")
                yield ToolStart(index, name, f"label-{last.text[:60]}")
                yield ToolArgsDelta(index, arguments[:9])
                yield ToolArgsDelta(index, arguments[9:])
                yield ToolEnd(index, arguments)
        else:
            yield TextDelta(rest if word == "say" else "understood")
        yield Done()


@tool
async def echo(text: str, key: Secret[str] = "", context: CallContext = None) -> str:  # type: ignore[assignment]
    """Give it back."""
    context.progress(text)
    if "planted" in sys.argv:
        logger.info("echoing %s", text)
    return text


@tool(needs_approval=True)
async def vault(user: str, key: Secret[str]) -> str:
    """Open the vault."""
    return f"{user} is in"


@tool
async def crash(text: str) -> None:
    """Raise."""
    try:
        raise KeyError(text)
    except KeyError as error:
        raise RuntimeError(f"while handling {text}") from error


@tool
async def regret(text: str) -> None:
    """Fail in words."""
    raise ToolError(text, code="regrets", details={"text": text})


async def stop_when(run: Any) -> bool:
    last = run.messages[-1]
    if isinstance(last, ToolMessage) and last.tool == "stop":
        raise LookupError(last.text)
    return False


@tool
async def stop(text: str) -> str:
    """The condition to stop raises."""
    return text


def judge(text: str) -> bool:
    raise ValueError(text)


@tool(needs_approval=judge)
async def judged(text: str) -> str:
    """Judged by somebody who fails."""
    return text


@tool
async def odd(text: str) -> object:
    """Give what is no JSON."""
    return Odd(text)


class Odd:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"<Odd {self.text}>"


pick = tool.define(
    "pick",
    input={"type": "object", "properties": {"text": {"type": "string"}, "key": {"type": "string", "secret": True}}},
    output={
        "type": "object",
        "properties": {"n": {"type": "integer"}, "key": {"type": "string", "secret": True}, "text": {}},
        "additionalProperties": False,
    },
)


class Planted(Observer):
    """Leaks on purpose, so that the test can be seen to find it."""

    def __init__(self, metrics: Any) -> None:
        self._metrics = metrics

    def ended(self, activity: Activity, error: BaseException | None) -> None:
        if isinstance(activity, Running):
            self._metrics.calls.add(activity.call.arguments, "server", "ok")
        if isinstance(activity, Answering):
            logger.info("headers %s", activity.headers)


class Doorman:
    """Knows people by their tokens, and raises for whoever asks him to."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def __call__(self, connection: Connection) -> Principal | None:
        if "x-break" in connection.headers:
            raise LookupError(connection.headers["x-break"])
        return await self._tokens(connection)


async def main(folder: Path, store: str) -> None:
    planted = "planted" in sys.argv
    if "configured" in sys.argv:
        configure_logs(json=True, level=logging.DEBUG)
    else:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ToFile(folder / "spans.jsonl")))
    agent = Agent(
        Parrot(),
        tools=[echo, vault, crash, regret, judged, odd, stop, pick],
        stop_when=StopWhen(stop_when),
        instructions=os.environ["CANARY_INSTRUCTIONS"],
    )
    tokens = Tokens(
        {
            os.environ["CANARY_TOKEN"]: Principal("ann", EVERYTHING),
            os.environ["CANARY_OTHER_TOKEN"]: Principal("ben", frozenset({"chat"})),
        }
    )
    app = create_app(
        agent,
        store=store,
        authenticate=Doorman(tokens),
        observers=[OpenTelemetry(provider, content=planted)],
        max_body=20_000,
    )
    if planted:
        app.runner.observe(Planted(app.metrics))
        app.door.onlookers = type(app.door.onlookers)([Planted(app.metrics)])
        original = app.desk.answers["get-call"]

        async def tell(asked: Any) -> Any:
            try:
                return await original(asked)
            except UnknownCall as error:
                raise type(error)(f"no call {asked.ids['call']}") from None

        app.desk.answers = {**app.desk.answers, "get-call": tell}
    async with served(app) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
