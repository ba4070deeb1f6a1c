"""Python values as JSON and back: nothing is lost, nothing is made up, and what JSON does not have is refused."""

import dataclasses
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any, Generic, TypeVar

import pytest
from msgspec import Struct, json
from pydantic import BaseModel, ConfigDict, Field, field_serializer

from farhand.core.errors import UsageError
from farhand.core.messages import Binary, Json, Text
from farhand.places.values import RawCodec, TypedCodec, codec, dump, dump_result, strip_titles

Item = TypeVar("Item")


class Box(BaseModel, Generic[Item]):
    content: Item


class Named(BaseModel):
    name: str = Field(alias="fullName")


class Number(BaseModel):
    n: float = 0.0


@dataclasses.dataclass
class Measure:
    n: float


class Packed(Struct):
    n: float


def test_a_schema_is_a_mapping_or_text_and_anything_else_is_a_type() -> None:
    written = b'{"type":"object"}'
    for kind in ({"type": "object"}, written, written.decode()):
        made = codec(kind)
        assert isinstance(made, RawCodec)
        assert bytes(made.schema) == written
    assert isinstance(codec(int), TypedCodec)
    assert isinstance(codec(list[int]), TypedCodec)


def test_raw_values_stay_as_they_are() -> None:
    value = {"b": [1, 2.0, None], "a": "x"}
    made = codec({"type": "object"})
    assert made.load(value) is value
    assert made.dump(value) == b'{"b":[1,2.0,null],"a":"x"}'


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (int, 1, 1),
        (int, 2.0, 2),
        (date, "2026-07-01", date(2026, 7, 1)),
        (datetime, "2026-07-01T00:00:00Z", datetime(2026, 7, 1, tzinfo=UTC)),
        (Measure, {"n": 1.5}, Measure(1.5)),
        (list[Number], [{"n": 1.0}], [Number(n=1)]),
        (int | None, None, None),
        (tuple[int, ...], [1, 2], (1, 2)),
    ],
)
def test_a_typed_value_goes_to_json_and_comes_back(kind: Any, written: Any, value: Any) -> None:
    made = codec(kind)
    assert made.load(written) == value
    assert made.load(json.decode(made.dump(value))) == value


class Colour(Enum):
    RED = "red"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    colour: Colour
    day: date
    numbers: set[int]


def test_a_strict_type_takes_from_json_what_json_has_no_type_for() -> None:
    made, value = codec(Strict), Strict(colour=Colour.RED, day=date(2026, 7, 1), numbers={1})
    assert made.load(json.decode(made.dump(value))) == value
    with pytest.raises(ValueError, match="numbers"):
        made.load({"colour": "red", "day": "2026-07-01", "numbers": ["1"]})


def test_properties_go_by_their_alias_in_the_schema_and_in_both_directions() -> None:
    made = codec(Named)
    assert list(json.decode(made.schema)["properties"]) == ["fullName"]
    assert made.load({"fullName": "Ann"}).name == "Ann"
    assert made.dump(Named(fullName="Ann")) == b'{"fullName":"Ann"}'


def test_what_is_written_has_the_schema_of_what_is_written() -> None:
    assert "required" not in json.decode(codec(Number).schema)
    assert json.decode(codec(Number, output=True).schema)["properties"] == {"n": {"type": "number", "default": 0.0}}


def test_a_value_of_another_type_is_written_as_it_is_for_the_schema_to_judge() -> None:
    assert codec(Number).dump({"m": 1}) == b'{"m":1}'
    assert codec(int).dump("one") == b'"one"'
    assert codec(Number).dump(Measure(1.5)) == b'{"n":1.5}'


@pytest.mark.parametrize("value", ["", 0, 1, -1, 2**63, True, False, None, "ü"])
def test_scalars_are_written_whatever_the_type_says(value: Any) -> None:
    assert json.decode(codec(list[int]).dump(value)) == value


@pytest.mark.parametrize("error", [RuntimeError("boom"), ValueError("boom"), KeyError("boom")])
def test_an_error_of_the_types_own_serializer_is_not_swallowed(error: Exception) -> None:
    class Strange(BaseModel):
        n: int = 1

        @field_serializer("n")
        def write(self, value: int) -> int:
            raise error

    with pytest.raises(Exception, match="boom"):
        codec(Strange).dump(Strange())


def test_a_type_without_a_schema_is_refused_by_its_name() -> None:
    class Foreign: ...

    with pytest.raises(UsageError, match=r"Foreign'> has no JSON Schema"):
        codec(Foreign)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_refused_wherever_it_hides(number: float) -> None:
    hidden = [number, [number], {"x": (number,)}, {number}, Measure(number), Number(n=number), Packed(number)]
    for value in hidden:
        with pytest.raises(ValueError, match="not JSON"):
            dump(value)
    typed = [
        (float, number),
        (float | None, number),
        (list[float | None], [number]),
        (dict[str, Any], {"x": number}),
        (Measure, Measure(number)),
        (Number, Number(n=number)),
        (Number, {"n": number}),
    ]
    for kind, value in typed:
        with pytest.raises(ValueError, match="not JSON"):
            codec(kind).dump(value)


def test_null_and_finite_numbers_are_no_infinity() -> None:
    assert dump({"a": None, "b": [1.5, None, {"null"}]}) == b'{"a":null,"b":[1.5,null,["null"]]}'
    assert codec(list[float | None]).dump([1.5, None]) == b"[1.5,null]"


def test_models_and_dates_are_written_at_any_depth_of_an_untyped_value() -> None:
    value = {"at": date(2026, 7, 1), "who": [Named(fullName="Ann")], "how": Measure(1.0), "raw": Packed(2.0)}
    assert json.decode(dump(value)) == {
        "at": "2026-07-01",
        "who": [{"fullName": "Ann"}],
        "how": {"n": 1.0},
        "raw": {"n": 2.0},
    }


def test_a_value_that_is_no_json_is_refused_by_the_name_of_its_type() -> None:
    with pytest.raises(UsageError, match="a value of type object cannot be written as JSON"):
        dump([object()])


def test_generated_titles_go_and_properties_of_that_name_stay() -> None:
    schema = {
        "title": "Point",
        "$defs": {"title": {"title": "Title", "type": "string"}},
        "properties": {"title": {"title": "Title"}, "far_off": {"anyOf": [{"title": "Far Off"}, True]}},
        "default": {"title": "data"},
        "examples": [{"title": "data"}],
        "enum": [{"title": "data"}],
        "const": {"title": "data"},
    }
    assert strip_titles(schema, "Point") == {
        "$defs": {"title": {"type": "string"}},
        "properties": {"title": {}, "far_off": {"anyOf": [{}, True]}},
        "default": {"title": "data"},
        "examples": [{"title": "data"}],
        "enum": [{"title": "data"}],
        "const": {"title": "data"},
    }


def test_a_title_that_an_author_gave_reaches_the_model() -> None:
    class Inner(BaseModel):
        model_config = ConfigDict(title="The inner one")

    class Outer(BaseModel):
        far_off: int = Field(title="How far")
        inner: Inner
        box: Box[int]
        plain_text: str

    schema = json.decode(TypedCodec(Outer).schema)
    assert schema["properties"] == {
        "far_off": {"title": "How far", "type": "integer"},
        "inner": {"$ref": "#/$defs/Inner"},
        "box": {"$ref": "#/$defs/Box_int_"},
        "plain_text": {"type": "string"},
    }
    assert [one.get("title") for one in (schema, schema["$defs"]["Inner"], schema["$defs"]["Box_int_"])] == [
        *(None, "The inner one"),
        None,
    ]


def test_parts_are_told_from_values() -> None:
    picture = Binary("image/png", data=b"1")
    for parts in (Text("a"), [Text("a"), picture], (Json({"x": 1}),)):
        raw, multipart = dump_result(parts, dump)
        assert multipart
        assert isinstance(json.decode(raw), list)
    for value in ([], (), [Text("a"), "b"], "a", None, {"parts": [Text("a")]}):
        assert dump_result(value, dump) == (dump(value), False)
