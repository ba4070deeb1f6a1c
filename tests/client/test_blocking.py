"""The client for programs without an event loop: the same one, waited for."""

import inspect
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from farhand.client import BlockingClient, Client, Plugin, Stream, Thread
from farhand.client.blocking import BlockingStream, BlockingThread, BlockingWatch
from farhand.client.watch import Watch
from farhand.core.errors import AnswerConflict, UnknownCall
from farhand.core.updates import RunEnded, RunStarted
from farhand.testing.server import serving
from tests.client.story import ANN, QUICK, app_of
from tests.client.test_pool import define


@contextmanager
def office(**settings: Any) -> Generator[BlockingClient]:
    with serving(app_of(**settings)) as url, BlockingClient(url, token=ANN, patience=QUICK) as client:
        yield client


@pytest.mark.parametrize(
    ("inner", "blocking"),
    [(Client, BlockingClient), (Thread, BlockingThread), (Stream, BlockingStream), (Watch, BlockingWatch)],
)
def test_nothing_of_the_async_client_is_missing(inner: type, blocking: type) -> None:
    elsewhere = {"position"} if blocking is BlockingStream else set()
    public = {name for name in dir(inner) if not name.startswith("_")} - elsewhere
    assert public <= set(dir(blocking))
    for name in public & set(dir(blocking)):
        assert inspect.getdoc(getattr(blocking, name)), name


def test_a_conversation_without_an_event_loop() -> None:
    with office() as client:

        @client.tool
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        thread = client.thread("t")
        result = thread.run('add:{"a":1,"b":2}')
        assert (result.output, thread.id, thread.state().messages[-1].text) == ("so: 3", "t", "so: 3")
        assert [call.output for call in result.calls_of(add)] == [3]


def test_updates_come_one_by_one_and_the_result_at_the_end() -> None:
    with office() as client:
        stream = client.thread("t").stream("hi")
        updates = list(stream)
        assert (type(updates[0]), type(updates[-1])) == (RunStarted, RunEnded)
        assert (stream.result().output, stream.run_id) == ("you said: hi", stream.result().id)
        assert client.thread("t").stream("hi").result().status == "done"
        watch = client.thread("t").watch()
        for update in watch:
            if isinstance(update, RunEnded):
                break
        assert watch.position == stream.result().position


def test_leaving_a_loop_early_leaves_the_run() -> None:
    with office() as client:
        stream = client.thread("t").stream("pick")
        for _ in stream:
            break
        client.implement("pick", lambda given: {"x": 1})
        assert client.thread("t").resume().result().output == 'so: {"x":1}'


def test_callbacks_may_block_and_plugins_and_events_work() -> None:
    seen: list[str] = []
    with office() as client:
        client.on("tool_end", lambda event: seen.append(event.outcome))
        client.use(Plugin("shop", "1", tools=[define("buy")], executors={"buy": lambda given: "bought"}))
        assert client.has_plugin("shop")
        assert [each.name for each in client.tools_offered] == ["buy"]
        result = client.thread().run('buy pay:{"amount":5}', on_approval=lambda call: True)
        assert result.output == "so: bought, paid 5"
        client.unuse("shop")
        assert client.plugin_names == ()
    assert seen == ["ok"]


def test_what_goes_wrong_is_raised_here() -> None:
    with office() as client:
        with pytest.raises(UnknownCall):
            client.get_run("nothing")
        result = client.thread("t").run("pick", run_tools=False)
        client.answer(result.pending[0].id, {"x": 1})
        with pytest.raises(AnswerConflict):
            client.answer(result.pending[0].id, {"x": 2})
        assert client.pending("t") == ()


def test_a_provider_without_an_event_loop() -> None:
    with serving(app_of()) as url, BlockingClient(url, token=ANN) as chat, BlockingClient(url, token=ANN) as editor:
        editor.implement("pick", lambda given: {"by": "editor"})
        assert editor.tools_implemented == ("pick",)
        with editor.providing():
            assert chat.thread().run("pick").output == 'so: {"by":"editor"}'


def test_its_thread_ends_with_it() -> None:
    before = threading.active_count()
    client = BlockingClient("http://127.0.0.1:9")
    assert threading.active_count() == before + 1
    assert repr(client) == f"<Blocking <Client {client.id!r} of http://127.0.0.1:9/v1>>"
    client.close()
    assert threading.active_count() == before
