"""A stream from the side of whoever reads it."""

import asyncio
from typing import Any

import pytest

from farhand import manual
from farhand.client import stream as streams
from farhand.core.errors import NotAuthenticated, UsageError
from farhand.core.updates import RunEnded, RunStarted, TextStreamed
from farhand.models import Turn
from tests.client.story import Heard, app_of, cabled, client_of, office, served_by


async def test_whoever_reads_slowly_gets_everything_and_the_server_is_not_asked_for_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "AHEAD", 5)
    words = [f"{number} " for number in range(5000)]
    async with office(script=[Turn(words)]) as client:
        text = ""
        async for update in client.thread("t").stream("hi"):
            if isinstance(update, RunStarted):
                async for other in client.thread("t").watch():
                    if isinstance(other, RunEnded):
                        break
            text += update.text if isinstance(update, TextStreamed) else ""
    assert text == "".join(words)


async def test_an_error_is_raised_where_the_stream_is_read_and_where_its_result_is() -> None:
    async with served_by(app_of()) as url, client_of(url, token="nobody-has-this-token-at-all") as client:
        stream = client.thread().stream("hi")
        for _ in range(2):
            with pytest.raises(NotAuthenticated):
                await stream


async def test_a_stream_that_was_left_before_its_run_had_begun_has_no_result() -> None:
    async with cabled(app_of()) as (client, cable):
        await cable.cut()
        heard = Heard(client, "auto_retry")
        stream = client.thread("t").stream("hi")
        updates = aiter(stream)
        reading = asyncio.create_task(anext(updates))  # type: ignore[arg-type]
        await heard.until(len)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        with pytest.raises(UsageError, match="left before its run had begun"):
            await stream
        await cable.mend()


async def test_a_result_may_be_awaited_while_somebody_reads() -> None:
    model = manual()
    async with office(script=model) as client:
        stream = client.thread().stream("hi")
        updates = aiter(stream)
        assert isinstance(await anext(updates), RunStarted)

        async def until_done() -> Any:
            return await stream

        waiting = asyncio.create_task(until_done())
        await model.asked()
        model.say("both")
        seen = [update async for update in updates]
        assert (await waiting).output == "both"
        assert len(seen) == 4
