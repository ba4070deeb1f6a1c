"""Tools as an author writes them: what the signature and the settings say, and how a call reaches the function."""

import dataclasses
import functools
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from msgspec import json
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from farhand import Agent, Binary, Call, CallContext, scripted, tool
from farhand.core.admission import OWNER
from farhand.core.call import Outcome
from farhand.core.definition import (
    Absent,
    Approval,
    InvalidToolDefinitions,
    Place,
    Policy,
    SideEffect,
    validate_tool_definitions,
)
from farhand.core.errors import UsageError
from farhand.core.messages import Text, ToolMessage
from farhand.models import Use
from farhand.tool import Tool

OPEN = {"type": "object"}


def schema_of(made: Tool[Any, Any]) -> dict[str, Any]:
    return json.decode(made.definition.parameters)


def properties_of(made: Tool[Any, Any]) -> dict[str, Any]:
    return schema_of(made)["properties"]


async def call(made: Tool[Any, Any], arguments: Any = None, **options: Any) -> Call[Any, Any]:
    agent = Agent(scripted([Use(made.name, arguments), "ok"]), tools=[made], show_errors=True)
    run = await agent.run("hi", **options)
    (made_call,) = run.calls_of(made)
    return made_call


class Point(BaseModel):
    """Where something is."""

    x: int
    y: int = 0


@dataclasses.dataclass
class Size:
    width: int


class Options(TypedDict, total=False):
    deep: bool


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


# Where a tool runs


def test_a_decorated_function_is_a_server_tool_named_and_described_by_itself() -> None:
    @tool
    async def get_weather(city: str) -> str:
        """The weather in a city."""
        return city

    definition = get_weather.definition
    assert (get_weather.name, get_weather.place) == ("get_weather", Place.SERVER)
    assert (definition.description, definition.source) == ("The weather in a city.", "owner")
    assert get_weather.__doc__ == "The weather in a city."
    assert repr(get_weather) == "<Tool 'get_weather' at the server>"


def test_name_and_description_can_be_given_instead() -> None:
    @tool(name="weather", description="Weather now.")
    async def get_weather(city: str) -> str:
        """The weather in a city."""
        return city

    assert (get_weather.name, get_weather.definition.description) == ("weather", "Weather now.")


def test_a_bare_definition_is_the_clients_and_has_no_function() -> None:
    bare = tool.define("pick")
    assert (bare.place, bare.function, bare.definition.description) == (Place.CLIENT, None, "")
    assert bytes(bare.definition.parameters) == b'{"type":"object"}'
    assert bare.definition.output is None


async def test_one_definition_has_a_place_for_each_function_and_stays_as_it_was() -> None:
    bare = tool.define("where", description="Say where.", output=str)
    server = bare.server(lambda value: "server")
    client = bare.client(lambda value: "client")
    assert [made.place for made in (bare, server, client)] == [Place.CLIENT, Place.SERVER, Place.CLIENT]
    assert ((await call(server)).output, (await call(client)).output) == ("server", "client")
    assert bare.function is None
    assert server.definition.pin != client.definition.pin == bare.definition.pin


async def test_a_hybrid_tool_keeps_its_settings_and_its_approval_function_at_each_place() -> None:
    bare = tool.define("pay", input=Point, needs_approval=lambda point: point.x > 9, timeout=3.0, tags=["money"])
    for made in (bare.server(lambda point: point.x), bare.client(lambda point: point.x)):
        assert made.definition.policy == Policy(approval=Approval.JUDGED, timeout=3.0)
        assert made.definition.tags == ("money",)
        assert (await call(made, {"x": 1})).output == 1
        assert (await call(made, {"x": 10}, on_approval=lambda call: False)).outcome is Outcome.DENIED


async def test_a_placed_function_takes_the_whole_input_and_a_context_if_it_asks() -> None:
    async def move(point: Point, context: CallContext) -> str:
        return f"{point.x} {context.tool}"

    made = tool.define("move", input=Point, output=str).server(move)
    assert (await call(made, {"x": 4})).output == "4 move"


def test_the_docstring_of_the_input_type_describes_a_definition_without_description() -> None:
    assert tool.define("go", input=Point).definition.description == "Where something is."
    assert tool.define("go", input=Point, description="Go there.").definition.description == "Go there."
    assert tool.define("go", input=OPEN).definition.description == ""


# What the signature says


def test_the_schema_says_types_defaults_choices_and_descriptions() -> None:
    @tool
    def search(
        text: Annotated[str, Field(description="What to look for", min_length=1)],
        limit: int = 10,
        order: Literal["newest", "oldest"] = "newest",
        near: Point | None = None,
    ) -> str:
        """Search."""
        return text

    schema = schema_of(search)
    assert schema["properties"]["text"] == {"type": "string", "description": "What to look for", "minLength": 1}
    assert schema["properties"]["limit"] == {"type": "integer", "default": 10}
    assert schema["properties"]["order"] == {"type": "string", "enum": ["newest", "oldest"], "default": "newest"}
    assert schema["properties"]["near"] == {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}], "default": None}
    assert (schema["required"], schema["additionalProperties"]) == (["text"], False)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Point, {"$ref": "#/$defs/Point"}),
        (Size, {"$ref": "#/$defs/Size"}),
        (Options, {"$ref": "#/$defs/Options"}),
        (Colour, {"$ref": "#/$defs/Colour"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (datetime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (Any, {}),
    ],
)
def test_a_type_becomes_its_json_schema(kind: Any, expected: Any) -> None:
    def take(value):
        """Take it."""

    take.__annotations__["value"] = kind
    assert properties_of(tool(take)) == {"value": expected}


def test_nested_types_are_defined_once_and_say_what_their_author_said() -> None:
    @tool
    def draw(start: Point, end: Point, size: Size, options: Options, colour: Colour) -> None:
        """Draw."""

    assert schema_of(draw)["$defs"] == {
        "Point": {
            "type": "object",
            "description": "Where something is.",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
            "required": ["x"],
        },
        "Size": {
            "type": "object",
            "properties": {"width": {"type": "integer"}},
            "required": ["width"],
            "additionalProperties": False,
        },
        "Options": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "additionalProperties": False},
        "Colour": {"type": "string", "enum": ["red", "blue"]},
    }


def test_no_title_is_made_up_and_a_parameter_may_be_called_title() -> None:
    @tool
    def rename(title: str, book: Point) -> list[Point]:
        """Rename."""
        return [book]

    assert b'"title":{"type":"string"}' in bytes(rename.definition.parameters)
    assert bytes(rename.definition.parameters).count(b'"title"') == 2  # the property, and that it is required
    assert b'"title"' not in bytes(rename.definition.output or b"")


def test_arguments_can_be_checked_without_a_call() -> None:
    book = tool.define("book", input=b'{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}')
    assert book.check({"n": 2}) == ()
    assert [(problem.path, problem.message) for problem in book.check({"n": 2.5})] == [
        ("/n", "Parameter n must be an integer, got: 2.5")
    ]
    for value in (None, [], "x"):
        assert [problem.message for problem in book.check(value)] == ["Arguments are not valid: must be an object."]


def test_a_tool_without_parameters_takes_none() -> None:
    @tool
    def ping() -> None:
        """Ping."""

    assert schema_of(ping) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_the_context_is_not_an_argument() -> None:
    @tool
    def move(x: int, context: CallContext) -> None:
        """Move."""

    assert list(properties_of(move)) == ["x"]


@pytest.mark.parametrize(
    "docstring",
    [
        "Move it.\n\n    Args:\n        x: How far.\n    ",
        "Move it.\n\n    Parameters\n    ----------\n    x : int\n        How far.\n    ",
        "Move it.\n\n    :param int x: How far.\n    :return: nothing\n    ",
    ],
)
def test_the_docstring_describes_the_parameters_in_any_of_three_styles(docstring: str) -> None:
    def move(x: int) -> None: ...

    move.__doc__ = docstring
    made = tool(move)
    assert made.definition.description == "Move it."
    assert properties_of(made) == {"x": {"type": "integer", "description": "How far."}}


async def test_parameters_may_have_names_that_pydantic_keeps_for_itself() -> None:
    @tool
    async def odd(schema: str, copy: int, model_config: bool, json: str, self: int, _hidden: int = 7) -> list[Any]:
        """Take odd names."""
        return [schema, copy, model_config, json, self, _hidden]

    arguments = {"schema": "s", "copy": 1, "model_config": True, "json": "j", "self": 2}
    assert list(properties_of(odd)) == [*arguments, "_hidden"]
    assert (await call(odd, arguments)).output == ["s", 1, True, "j", 2, 7]


def positional(x: int, /) -> None: ...


def many(*x: int) -> None: ...


def named(**x: int) -> None: ...


@pytest.mark.parametrize("function", [positional, many, named])
def test_parameters_without_a_name_of_their_own_are_refused(function: Any) -> None:
    with pytest.raises(UsageError, match=rf"tool '{function.__name__}': parameter 'x' must be one that has a name"):
        tool(function)


def test_annotations_that_cannot_be_read_are_refused() -> None:
    def lost(x: "Nowhere") -> None: ...  # noqa: F821  # type: ignore[name-defined]

    with pytest.raises(UsageError, match=r"lost.*Nowhere"):
        tool(lost)


def test_types_without_a_json_schema_are_refused_wherever_they_stand() -> None:
    class Foreign: ...

    def takes(x: Foreign) -> None: ...

    def gives() -> Foreign: ...

    with pytest.raises(UsageError, match="tool 'takes': its parameters have no JSON Schema"):
        tool(takes)
    with pytest.raises(UsageError, match=r"Foreign.* has no JSON Schema"):
        tool(gives)
    with pytest.raises(UsageError, match=r"Foreign.* has no JSON Schema"):
        tool.define("x", input=Foreign)


def test_functions_that_yield_are_refused() -> None:
    async def stream() -> AsyncIterator[int]:
        yield 1

    def count() -> Iterator[int]:
        yield 1

    for function in (stream, count):
        with pytest.raises(UsageError, match="yields"):
            tool(function)
        with pytest.raises(UsageError, match="yields"):
            tool.define("x").server(function)


# What the author gave


def test_a_json_schema_stays_byte_for_byte_what_its_author_wrote() -> None:
    written = b'{ "type" : "object",\n "properties": {"n": {"type": "number", "multipleOf": 0.10}} }'
    assert bytes(tool.define("x", input=written).definition.parameters) == written
    assert bytes(tool.define("x", input=written.decode()).definition.parameters) == written
    assert bytes(tool.define("x", output=b'{"type" :"string"}').definition.output or b"") == b'{"type" :"string"}'
    assert bytes(tool.define("x", input=written).server(lambda value: 1).definition.parameters) == written


def test_a_schema_given_as_an_object_keeps_its_order_and_its_titles() -> None:
    made = tool.define("x", input={"type": "object", "title": "T", "properties": {"b": {}, "a": {"title": "A"}}})
    expected = b'{"type":"object","title":"T","properties":{"b":{},"a":{"title":"A"}}}'
    assert bytes(made.definition.parameters) == expected


@pytest.mark.parametrize("wrapped", [False, True])
def test_both_written_forms_of_a_definition_can_be_read_again(wrapped: bool) -> None:
    made = tool.define(
        "pick",
        input={"type": "object", "properties": {"n": {"type": "integer"}}},
        output={"type": "string"},
        description="Pick.",
        needs_approval=True,
        effect="pure",
        timeout=3.0,
        title="Pick one",
        version="2",
        deprecated="use choose",
        tags=["a", "b"],
        examples=[{"n": 1}],
    )
    written = made.dump(wrapped=wrapped)
    (read,) = validate_tool_definitions([written], source="owner")
    assert ("function" in written) is wrapped
    assert read == made.definition
    assert validate_tool_definitions(json.encode([written]), source="owner") == (read,)


def test_a_definition_made_of_types_can_be_read_again_by_its_owner() -> None:
    made = tool.define("draw", input=Point, output=list[Point])
    (read,) = validate_tool_definitions([made.dump()], OWNER, source="owner")
    assert read == made.definition


@pytest.mark.parametrize(
    ("settings", "read"),
    [
        ({"effect": "idempotent"}, lambda made: (made.policy.effect, SideEffect.IDEMPOTENT)),
        ({"timeout": 2.5}, lambda made: (made.policy.timeout, 2.5)),
        ({"approval_timeout": 60.0}, lambda made: (made.policy.approval_timeout, 60.0)),
        ({"retries": 3, "effect": "pure"}, lambda made: (made.policy.retries, 3)),
        ({"absent": "fail"}, lambda made: (made.policy.absent, Absent.FAIL)),
        ({"fallback": "no {tool}"}, lambda made: (made.policy.fallback, "no {tool}")),
        ({"title": "Move it"}, lambda made: (made.title, "Move it")),
        ({"version": "1.2"}, lambda made: (made.version, "1.2")),
        ({"deprecated": "use go"}, lambda made: (made.deprecated, "use go")),
        ({"tags": ["a", "b"]}, lambda made: (made.tags, ("a", "b"))),
        ({"examples": [{"x": 1}]}, lambda made: ([bytes(one) for one in made.examples], [b'{"x":1}'])),
        ({"needs_approval": True}, lambda made: (made.policy.approval, Approval.ALWAYS)),
        ({"needs_approval": lambda: True}, lambda made: (made.policy.approval, Approval.JUDGED)),
    ],
)
def test_every_setting_lands_in_the_definition(settings: Any, read: Any) -> None:
    def move() -> None:
        """Move."""

    for made in (tool(**settings)(move), tool.define("move", **settings)):
        found, expected = read(made.definition)
        assert found == expected


def test_settings_that_are_not_said_have_their_defaults() -> None:
    definition = tool.define("x").definition
    assert definition.policy == Policy()
    assert (definition.policy.effect, definition.policy.approval) == (SideEffect.ONCE, Approval.NEVER)
    assert (definition.title, definition.tags, definition.examples) == (None, (), ())


def test_a_misspelt_setting_is_refused_and_never_passes_for_no_approval() -> None:
    with pytest.raises(UsageError, match="tool 'wipe' has no setting need_approval"):
        tool.define("wipe", need_approval=True)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="need_approval"):
        tool(need_approval=True)(lambda: None)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "settings",
    [
        {"timeout": 0},
        {"timeout": -1.0},
        {"approval_timeout": 0},
        {"effect": "pure", "retries": -1},
        {"retries": 1},
        {"effect": "often"},
        {"absent": "perhaps"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: Any) -> None:
    with pytest.raises(UsageError, match=list(settings)[-1]):
        tool.define("x", **settings)


@pytest.mark.parametrize(
    ("name", "fields", "path"),
    [
        ("a b", {}, "/name"),
        ("", {}, "/name"),
        ("x" * 65, {}, "/name"),
        ("x", {"description": "d" * 65_537}, "/description"),
        ("x", {"input": {"type": "string"}}, "/parameters/type"),
        ("x", {"input": {}}, "/parameters/type"),
        ("x", {"input": b"[]"}, "/parameters"),
        ("x", {"input": int}, "/parameters/type"),
        ("x", {"input": OPEN | {"properties": {"a": {"type": "banana"}}}}, "/parameters/properties/a/type"),
        ("x", {"output": {"type": "banana"}}, "/output/type"),
        ("x", {"input": "{nonsense"}, ""),
        ("x", {"output": b""}, ""),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_its_name_and_the_path(name: str, fields: Any, path: str) -> None:
    with pytest.raises(InvalidToolDefinitions, match=f"definition of tool '{name}'") as refused:
        tool.define(name, **fields)
    assert [problem.path for problem in refused.value.problems] == [path]


# How a call reaches the function


async def test_calling_the_tool_calls_its_function() -> None:
    @tool
    async def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    @tool(name="sub")
    def subtract(a: int, b: int = 1) -> int:
        """Subtract."""
        return a - b

    assert await add(2, b=3) == 5
    assert subtract(2) == 1


async def test_arguments_arrive_as_the_types_of_the_signature() -> None:
    seen: dict[str, Any] = {}

    @tool
    async def take(n: int, day: date, point: Point, size: Size, colour: Colour, options: Options) -> None:
        """Take."""
        seen.update(n=n, day=day, point=point, size=size, colour=colour, options=options)

    arguments = {"n": 2.0, "day": "2026-07-01", "point": {"x": 1}, "size": {"width": 3}, "colour": "blue"}
    assert (await call(take, arguments | {"options": {"deep": True}})).outcome is Outcome.OK
    assert seen == {
        "n": 2,
        "day": date(2026, 7, 1),
        "point": Point(x=1),
        "size": Size(3),
        "colour": Colour.BLUE,
        "options": {"deep": True},
    }
    assert type(seen["n"]) is int


async def test_a_whole_number_is_an_int_also_when_only_plain_types_are_taken() -> None:
    @tool
    async def kinds(n: int, text: str = "t", flag: bool = False) -> list[str]:
        """Say the types."""
        return [type(value).__name__ for value in (n, text, flag)]

    expected = ["int", "str", "bool"]
    for arguments in ({"n": 2.0}, {"n": 2}, {"n": 2.0, "text": "a", "flag": True}, {"n": 2, "text": "a", "flag": True}):
        assert (await call(kinds, arguments)).output == expected


async def test_a_mutable_default_is_not_shared_between_calls() -> None:
    @tool
    async def collect(item: str, items: list[str] = []) -> list[str]:  # noqa: B006  that is the question
        """Collect."""
        items.append(item)
        return items

    assert [(await call(collect, {"item": "a"})).output for _ in range(2)] == [["a"], ["a"]]


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        (Point, Point(x=1), {"x": 1, "y": 0}),
        (Size, Size(2), {"width": 2}),
        (list[Point], [Point(x=1)], [{"x": 1, "y": 0}]),
        (dict[str, Size], {"a": Size(1)}, {"a": {"width": 1}}),
        (Point | None, None, None),
        (datetime, datetime(2026, 7, 1, tzinfo=UTC), "2026-07-01T00:00:00Z"),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (set[int], {1}, [1]),
        (Colour, Colour.RED, "red"),
        (bool, False, False),
        (str, "", ""),
    ],
)
async def test_a_result_is_written_as_json_and_read_back_as_its_type(kind: Any, value: Any, written: Any) -> None:
    async def give():
        """Give it."""
        return value

    give.__annotations__["return"] = kind
    made = await call(tool(give))
    assert made.record.outcome is Outcome.OK, made.failure
    assert json.decode(made.record.result) == written
    assert made.output == value
    assert type(made.output) is type(value)


async def test_a_function_that_returns_nothing_gives_null_and_has_no_output_schema() -> None:
    @tool
    async def ping() -> None:
        """Ping."""

    assert ping.definition.output is None
    assert (await call(ping)).output is None


async def test_a_result_that_is_not_of_its_type_is_told_as_invalid() -> None:
    @tool
    async def wrong() -> Point:
        """Be wrong."""
        return {"y": 1}  # type: ignore[return-value]

    made = await call(wrong)
    assert made.failure is not None
    assert (made.failure.code, made.failure.path) == ("invalid_result", "/x")
    with pytest.raises(ValueError, match="has no output: failed"):
        _ = made.output


@pytest.mark.parametrize("kind", [Any, float | None, dict[str, Any], list[float | None]])
async def test_infinity_is_refused_whatever_type_the_result_has(kind: Any) -> None:
    async def give():
        """Give it."""
        return {"a": float("inf")} if kind is dict[str, Any] else [float("nan")] if kind != float | None else -1e999

    give.__annotations__["return"] = kind
    made = await call(tool(give))
    assert made.failure is not None
    assert made.failure.message == "NaN and Infinity are not JSON"


@pytest.mark.parametrize("kind", [Binary, Text | Binary, list[Text | Binary], tuple[Text, ...], list[Binary] | None])
async def test_a_function_may_say_that_it_returns_parts(kind: Any) -> None:
    async def shot():
        """Take a picture."""
        return [Text("here"), Binary("image/png", data=b"\x89PNG")]

    shot.__annotations__["return"] = kind
    made = await call(tool(shot))
    assert made.output == (Text("here"), Binary("image/png", data=b"\x89PNG"))
    assert tool(shot).definition.output is None


async def test_a_validator_that_refuses_is_told_as_invalid_arguments_and_not_retried() -> None:
    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("must be even")
            return value

    async def halve(even: Even) -> int:
        raise AssertionError

    spread = tool(name="halve", effect="pure", retries=3)(halve)
    whole = tool.define("halve", input=Even, effect="pure", retries=3).server(lambda even: 1)
    for made, arguments in ((spread, {"even": {"n": 1}}), (whole, {"n": 1})):
        refused = await call(made, arguments)
        assert refused.failure is not None
        assert (refused.failure.code, refused.record.attempt) == ("invalid_arguments", 1)
        assert "must be even" in refused.failure.message


async def test_a_value_error_of_the_tool_itself_is_no_question_of_arguments() -> None:
    @tool
    async def parse(text: str) -> int:
        """Parse."""
        return int(text)

    made = await call(parse, {"text": "x"})
    assert made.failure is not None
    assert made.failure.code == "tool_failed"


async def test_an_approval_function_of_a_definition_takes_the_input_value() -> None:
    seen: list[Any] = []

    async def far(point: Point) -> bool:
        seen.append(point)
        return point.x > 9

    def ask(call: Call[Any, Any]) -> bool:
        seen.append("asked")
        return True

    made = tool.define("move", input=Point, needs_approval=far).server(lambda point: point.x)
    await call(made, {"x": 1}, on_approval=ask)
    await call(made, {"x": 10}, on_approval=ask)
    assert seen == [Point(x=1), Point(x=10), "asked"]


async def test_an_approval_function_of_a_raw_schema_takes_the_json_object() -> None:
    made = tool.define("move", input=OPEN, needs_approval=lambda value: value["x"] > 9).server(lambda value: value["x"])
    assert (await call(made, {"x": 1})).output == 1


async def test_a_callable_object_is_a_tool_once_it_has_a_name() -> None:
    class Adder:
        """Add one."""

        async def __call__(self, n: int) -> int:
            return n + 1

    made = tool(name="add_one")(Adder())
    assert (made.definition.description, properties_of(made)) == ("Add one.", {"n": {"type": "integer"}})
    assert (await call(made, {"n": 1})).output == 2
    with pytest.raises(InvalidToolDefinitions, match="/name"):
        tool(Adder())


async def test_a_bound_method_is_a_tool() -> None:
    class Counter:
        def __init__(self, start: int) -> None:
            self.value = start

        def add(self, n: int) -> int:
            """Add to the counter."""
            self.value += n
            return self.value

    made = tool(Counter(40).add)
    assert list(properties_of(made)) == ["n"]
    assert (await call(made, {"n": 2})).output == 42


async def test_a_wrapped_function_keeps_its_signature() -> None:
    def twice(function: Any) -> Any:
        @functools.wraps(function)
        async def run(*args: Any, **keywords: Any) -> Any:
            return 2 * await function(*args, **keywords)

        return run

    @tool
    @twice
    async def double(n: int) -> int:
        """Double it."""
        return n

    assert properties_of(double) == {"n": {"type": "integer"}}
    assert (await call(double, {"n": 2})).output == 4


async def test_the_model_reads_the_result_of_a_sync_function() -> None:
    @tool
    def greet(name: str) -> str:
        """Greet."""
        return f"hello {name}"

    run = await Agent(scripted([Use("greet", {"name": "Ann"}), "ok"]), tools=[greet]).run("hi")
    assert [message.text for message in run.messages if isinstance(message, ToolMessage)] == ["hello Ann"]
