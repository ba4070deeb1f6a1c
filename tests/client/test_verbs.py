"""What a client says by itself, and the exceptions that a server's refusals come back as."""

from typing import Any

import pytest

from farhand.core.call import CallState
from farhand.core.errors import (
    AnswerConflict,
    CallGone,
    InvalidAnswer,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    NotExpected,
    UnknownCall,
)
from farhand.core.messages import Text
from tests.client.story import ANN, BEN, app_of, client_of, office, served_by


async def waiting(client: Any, thread: str = "t", said: str = "pick") -> Any:
    await client.thread(thread).run(said, run_tools=False)
    [call] = await client.pending(thread)
    return call


async def test_a_client_asks_what_there_is() -> None:
    async with office() as client:
        server = await client.server()
        tools = await client.tools()
        call = await waiting(client)
        [run] = await client.runs("waiting")
        found = await client.get_run(run.id)
        assert (server.agents, server.principal, "claims" in server.capabilities) == (("agent",), "ann", True)
        assert [(each.name, each.place) for each in tools] == [("pick", "client"), ("pay", "server")]
        assert (call.tool, call.thread_id, call.state) == ("pick", "t", CallState.EXECUTING)
        assert (run.thread_id, found.state, found.calls[0].id) == ("t", "waiting", call.id)
        assert (await client.get_call(call.id)).id == call.id
        assert len(await client.runs(limit=1)) == 1
        assert await client.runs("done") == ()


async def test_a_call_is_taken_up_once_and_the_same_client_may_say_so_again() -> None:
    async with served_by(app_of()) as url, client_of(url) as one, client_of(url) as two:
        call = await waiting(one)
        first, again = await one.claim(call.id), await one.claim(call.id)
        assert (first.repeated, again.repeated, first.attempt) == (False, True, 1)
        with pytest.raises(AnswerConflict):
            await two.claim(call.id)
        with pytest.raises(AnswerConflict):
            await two.answer(call.id, {})
        await one.progress(call.id, {"done": 1})
        assert not (await one.answer(call.id, {"x": 1}, attempt=1)).repeated
        assert (await one.answer(call.id, {"x": 1})).repeated
        with pytest.raises(AnswerConflict):
            await one.answer(call.id, {"x": 2})
        other = await waiting(one, "u")
        await one.cancel_call(other.id)
        with pytest.raises(CallGone) as raised:
            await one.answer(other.id, {"x": 2})
        assert raised.value.outcome == "cancelled"


async def test_a_call_is_given_back_for_another_client() -> None:
    async with served_by(app_of()) as url, client_of(url) as one, client_of(url) as two:
        call = await waiting(one)
        await one.claim(call.id)
        with pytest.raises(AnswerConflict):
            await two.release(call.id)
        assert not (await one.release(call.id)).repeated
        assert (await one.release(call.id)).repeated
        assert (await two.claim(call.id)).attempt == 1
        with pytest.raises(AnswerConflict):
            await one.release(call.id)
        await two.answer(call.id, {"x": 1})
        assert (await one.thread("t").resume()).output == 'so: {"x":1}'


async def test_refusals_are_the_exceptions_of_one_process() -> None:
    async with served_by(app_of()) as url, client_of(url) as ann, client_of(url, token=BEN) as ben:
        call = await waiting(ann)
        with pytest.raises(InvalidAnswer) as raised:
            await ann.answer(call.id, "no object")
        assert raised.value.problems[0].rule == "type"
        assert raised.value.__notes__ == ["Mend what `problems` names and answer again; the call is still open."]
        with pytest.raises(UnknownCall):
            await ben.answer(call.id, {})
        with pytest.raises(UnknownCall):
            await ann.get_run("nothing")
        with pytest.raises(NotExpected):
            await ann.approve(call.id)
        with pytest.raises(InvalidInput):
            await ann.runs(limit=0)


async def test_a_call_fails_with_all_that_its_client_says() -> None:
    async with office() as client:
        call = await waiting(client)
        await client.fail(call.id, "no window", code="no_window", path="/x", retryable=False, details={"open": 0})
        result = await client.thread("t").resume()
    failure = result.calls[0].failure
    assert failure is not None
    assert (failure.code, failure.message, failure.path, failure.details) == (
        "no_window",
        "no window",
        "/x",
        {"open": 0},
    )


async def test_a_call_is_answered_with_parts() -> None:
    async with office() as client:
        call = await waiting(client)
        with pytest.raises(InvalidAnswer):  # its schema wants an object
            await client.answer(call.id, [Text("a"), Text("b")])
        await client.answer(call.id, {"a": 1})


async def test_a_call_is_taken_on_and_reported_by_hand() -> None:
    async with office() as client:
        call = await waiting(client)
        await client.accept(call.id, "tomorrow")
        assert "tomorrow" in (await client.thread("t").resume()).output
        await client.report(call.id, {"x": 1}, outcome="ok")


async def test_one_call_is_called_off_and_the_run_goes_on() -> None:
    async with office() as client:
        call = await waiting(client)
        assert not (await client.cancel_call(call.id, "changed my mind")).repeated
        assert "changed my mind" in (await client.thread("t").resume()).output


async def test_who_asks_is_said_in_every_request() -> None:
    tokens = iter([ANN, BEN])

    async def next_token() -> str:
        return next(tokens)

    async with served_by(app_of()) as url:
        async with client_of(url, token=next_token) as client:
            assert [(await client.server()).principal for _ in range(2)] == ["ann", "ben"]
        async with client_of(url, token={"Authorization": f"Bearer {BEN}"}) as client:
            assert (await client.server()).principal == "ben"
        for token in (None, "nobody-has-this-token-at-all", lambda: None):
            async with client_of(url, token=token) as client:
                with pytest.raises(NotAuthenticated):
                    await client.server()


async def test_what_a_token_does_not_allow_is_refused_by_name() -> None:
    from farhand.asgi.access.principal import Principal
    from farhand.asgi.access.tokens import Tokens

    eve = "eve-may-answer-and-nothing-else"
    app = app_of(authenticate=Tokens({eve: Principal("eve", frozenset({"answer"}))}))
    async with served_by(app) as url, client_of(url, token=eve) as client:
        with pytest.raises(NotAllowed, match="chat"):
            await client.thread().run("hi")
