"""How a call reaches a Python function: in the loop or in a thread, with its context, and with nothing guessed."""

import asyncio
import contextvars
import functools
import subprocess
import sys
import threading
from datetime import date
from typing import Annotated, Any

import pytest
from msgspec import Raw, json
from pydantic import BaseModel, Field

from farhand import CallContext, ToolError
from farhand.core.errors import UsageError
from farhand.places.functions import Judge, Signature, bind, bind_signature, in_thread, is_async, takes_two
from farhand.places.running import Accepted
from farhand.places.values import codec

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
OPEN = codec({"type": "object"})


def make_context() -> CallContext:
    return CallContext(
        call_id="c1",
        tool="t",
        attempt=1,
        run_id="r",
        thread_id="th",
        principal="ann",
        payload=None,
        on_progress=lambda *said: None,
    )


class Point(BaseModel):
    x: int


async def test_an_async_function_runs_in_the_loop_and_a_sync_one_in_a_thread() -> None:
    async def here(value: Any) -> bool:
        return threading.current_thread() is threading.main_thread()

    def there(value: Any) -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await bind(here, OPEN, None).run({}, None) == (b"true", False)
    assert await bind(there, OPEN, None).run({}, None) == (b"false", False)


async def test_a_thread_has_the_context_variables_of_the_task() -> None:
    WHO.set("ann")
    assert await in_thread(WHO.get) == "ann"


async def test_what_a_sync_function_gives_to_await_is_awaited() -> None:
    async def later() -> int:
        return 1

    assert await in_thread(lambda: later()) == 1
    assert await in_thread(int, "10", base=2) == 2


async def test_a_function_that_raises_in_its_thread_raises_here() -> None:
    def fail() -> None:
        raise ToolError("no", code="nope")

    with pytest.raises(ToolError, match="no"):
        await in_thread(fail)


async def test_a_function_that_ends_the_program_ends_only_itself() -> None:
    with pytest.raises(RuntimeError, match="SystemExit"):
        await in_thread(sys.exit, 3)


FORKS = """
import asyncio, os, signal
from farhand.places.functions import in_thread

asyncio.run(in_thread(int))
child = os.fork()
if child == 0:
    signal.alarm(5)
    asyncio.run(in_thread(int))
    os._exit(0)
raise SystemExit(os.waitpid(child, 0)[1] != 0)
"""


def test_a_forked_process_has_threads_of_its_own() -> None:
    assert subprocess.run([sys.executable, "-c", FORKS], timeout=30).returncode == 0


async def test_the_signature_spreads_the_arguments_and_fills_in_defaults() -> None:
    def move(x: int, point: Point, y: int = 5) -> list[int]:
        return [x, point.x, y]

    signature = Signature(move)
    function = bind_signature(move, signature, signature.output)
    assert not function.wants_context
    assert await function.run({"x": 1, "point": {"x": 2}}, None) == (b"[1,2,5]", False)


async def test_a_strict_parameter_takes_a_date_as_json_has_it() -> None:
    async def year(day: Annotated[date, Field(strict=True)]) -> int:
        return day.year

    function = bind_signature(year, Signature(year), None)
    assert await function.run({"day": "2026-07-01"}, None) == (b"2026", False)
    with pytest.raises(ToolError, match="day"):
        await function.run({"day": "2026-13-01"}, None)


async def test_a_field_may_stand_where_a_default_does() -> None:
    async def forecast(city: str = Field(min_length=2), days: int = Field(3, ge=1, description="How many")) -> int:
        return days

    signature = Signature(forecast)
    schema = json.decode(signature.input.schema)
    assert schema["properties"]["days"] == {"default": 3, "description": "How many", "minimum": 1, "type": "integer"}
    assert schema["required"] == ["city"]
    assert await bind_signature(forecast, signature, None).run({"city": "Oslo"}, None) == (b"3", False)


async def test_what_the_program_gave_a_function_is_not_shown_to_the_model() -> None:
    async def send(server: str, to: int, *, key: str) -> str:
        """Send it."""
        return f"{server} {to} {key}"

    bound = functools.partial(send, "mail.example", key="hunter2")
    signature = Signature(bound)
    assert (signature.name, signature.description) == ("send", "Send it.")
    assert json.decode(signature.input.schema)["properties"] == {"to": {"type": "integer"}}
    assert await bind_signature(bound, signature, None).run({"to": 1}, None) == (b'"mail.example 1 hunter2"', False)


async def test_a_context_goes_to_the_parameter_of_its_type_whatever_its_name() -> None:
    async def whole(value: Any, who: CallContext) -> str:
        return who.principal

    async def spread(me: CallContext, x: int) -> str:
        return f"{me.principal} {x}"

    signature = Signature(spread)
    assert list(json.decode(signature.input.schema)["properties"]) == ["x"]
    for function, arguments, told in (
        (bind(whole, OPEN, None), {}, b'"ann"'),
        (bind_signature(spread, signature, None), {"x": 1}, b'"ann 1"'),
    ):
        assert function.wants_context
        assert (await function.run(arguments, make_context()))[0] == told


def test_arguments_are_written_as_json() -> None:
    def move(x: int) -> None: ...

    assert Signature(move).input.dump({"x": 1}) == b'{"x":1}'


def test_no_parameters_need_no_type_and_take_nothing() -> None:
    def ping() -> None: ...

    signature = Signature(ping)
    assert isinstance(signature.input.schema, Raw)
    assert (signature.input.load({}), signature.output) == ({}, None)


def test_loaded_arguments_are_the_callers_own() -> None:
    def move(x: int) -> None: ...

    given = {"x": 1}
    loaded = Signature(move).input.load(given)
    loaded["x"] = 2
    assert given == {"x": 1}


@pytest.mark.parametrize(("value", "kind"), [(1, int), (2.0, int)])
def test_exact_arguments_and_converted_ones_look_the_same(value: Any, kind: type) -> None:
    def move(x: int, name: str = "a") -> None: ...

    for arguments in ({"x": value}, {"x": value, "name": "a"}):
        loaded = Signature(move).input.load(arguments)
        assert loaded == {"x": int(value), "name": "a"}
        assert type(loaded["x"]) is kind


def test_true_is_not_taken_for_a_number_on_the_short_way() -> None:
    def move(x: int) -> None: ...

    assert Signature(move).input.load({"x": True}) == {"x": 1}
    assert type(Signature(move).input.load({"x": True})["x"]) is int


async def test_an_approval_function_takes_the_arguments_it_names() -> None:
    def pay(amount: int, note: str = "none") -> None: ...

    reads = Signature(pay).input
    seen: list[Any] = []

    def of_one(amount: int) -> bool:
        return amount > 1

    async def of_all(**everything: Any) -> int:
        seen.append(everything)
        return 0

    def of_person(note: str, who: CallContext) -> bool:
        return note == "none" and who.principal == "ann"

    answers = [
        await Judge(judge, reads, spread=True).needed({"amount": 2}, make_context())
        for judge in (of_one, of_all, of_person, lambda: "yes")
    ]
    assert answers == [True, False, True, True]
    assert seen == [{"amount": 2, "note": "none"}]


async def test_an_approval_function_of_one_value_takes_that_value() -> None:
    judge = Judge(lambda point: point.x > 1, codec(Point), spread=False)
    assert [await judge.needed({"x": x}, make_context()) for x in (1, 2)] == [False, True]


def test_async_functions_methods_and_objects_are_recognised() -> None:
    class Async:
        async def __call__(self) -> None: ...

    class Sync:
        def __call__(self) -> None: ...

    async def function() -> None: ...

    assert all(map(is_async, (function, Async(), Async().__call__, functools.partial(function))))
    assert not any(map(is_async, (Sync(), lambda: None, functools.partial(lambda: None))))


def test_a_function_of_the_whole_input_may_not_yield_either() -> None:
    async def stream(value: Any) -> Any:
        yield value

    with pytest.raises(UsageError, match="yields"):
        bind(stream, OPEN, None)


async def test_cancelling_stops_to_wait_for_a_thread() -> None:
    started, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def block() -> None:
        loop.call_soon_threadsafe(started.set)
        assert go_on.wait(5)

    task = asyncio.ensure_future(in_thread(block))
    async with asyncio.timeout(5):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    go_on.set()


def test_whether_a_callback_wants_a_second_value_is_read_off_its_parameters() -> None:
    class Asker:
        def ask(self, call: object, context: object) -> None:
            """Two."""

        def __call__(self, call: object) -> None:
            """One."""

    assert takes_two(Asker().ask)
    assert takes_two(lambda call, context, /, more=1: None)
    for one in (Asker(), lambda call: None, lambda call, store=1: None, lambda call, *rest, x: None, print, type):
        assert not takes_two(one)


async def test_the_second_parameter_of_a_function_of_the_whole_input_is_the_context() -> None:
    def tell(given: dict[str, int], about: Any) -> list[Any]:
        return [given, about.call_id]

    result, parts = await bind(tell, OPEN, None).run({"a": 1}, make_context())
    assert (result, parts) == (b'[{"a":1},"c1"]', False)


async def test_what_a_function_gives_can_be_looked_at_before_it_is_written() -> None:
    function = bind(lambda given: given["a"], OPEN, None)
    result = await function.begin({"a": 1}, None)
    assert (result, function.write(result)) == (1, (b"1", False))


def test_what_a_function_gives_instead_of_a_result_is_not_in_its_schema() -> None:
    def later() -> Accepted:
        """Only begun."""
        return Accepted()

    def perhaps() -> int | str | Accepted:
        """Now or later."""
        return 1

    assert Signature(later).output is None
    output = Signature(perhaps).output
    assert output is not None
    assert json.decode(output.schema) == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
