"""Promises of docs/features.md that no other test of the core holds: schema words, forms of answers, changed tools."""

import json
from typing import Any

import pytest
from msgspec import Raw, structs
from msgspec import json as msgjson

from farhand.core.admission import OUTSIDE, STRICT, AdmissionLimits
from farhand.core.call import CallState, Outcome
from farhand.core.definition import Approval, Place, SideEffect, safe_validate_tool_definitions
from farhand.core.definition import validate_tool_definitions as validated
from farhand.core.events import CallCancelled, Recovered, RunCancelled, TimerKind
from farhand.core.limits import Limits
from farhand.core.messages import Binary, Json, Text, ToolMessage
from farhand.core.schema import argument_problems, compile_schema
from farhand.core.updates import CallEnded, CallExecuting
from tests.core.story import ADD, Story, make_tool


def definition(name: str = "t", **schema: Any) -> dict[str, Any]:
    return {"name": name, "description": "d", "parameters": {"type": "object", "properties": {}, **schema}}


def texts(value: Any, **properties: Any) -> list[str]:
    """What a client's tool with these properties says of `value`; the schema itself has to be admitted."""
    return texts_of({"type": "object", "properties": properties}, value)


def texts_of(schema: dict[str, Any], value: Any) -> list[str]:
    problems = argument_problems(compile_schema(json.dumps(schema).encode(), OUTSIDE), value)
    return [problem.message for problem in problems]


# What a client's schema may say, and that it holds


def test_other_properties_are_let_through_unless_they_are_forbidden() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert texts_of(schema, {"a": "x", "b": 1}) == []
    assert texts_of({**schema, "additionalProperties": True}, {"b": 1}) == []
    assert texts_of({**schema, "additionalProperties": False}, {"b": 1}) == ["Unknown parameter: b"]


def test_other_properties_may_have_a_schema_at_the_top_and_below() -> None:
    integers = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}
    assert texts_of(integers, {"a": "x", "b": 1}) == []
    assert texts_of(integers, {"b": "x"}) == ["Parameter b has wrong type: expected integer, got string"]
    assert texts({"in": {"b": "x"}}, **{"in": integers}) == [
        "Parameter in.b has wrong type: expected integer, got string"
    ]


def test_a_required_property_need_not_be_declared() -> None:
    assert texts_of({"type": "object", "properties": {}, "required": ["n"]}, {}) == ["Missing required parameter: n"]
    assert texts_of({"type": "object", "properties": {}, "required": ["n"]}, {"n": None}) == []


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": ["string", "null"]}, ["x", None], [1, False]),
        ({"enum": [1, None, [1], {"x": 1}, "a"]}, [1, None, [1], {"x": 1}, "a", 1.0], [True, "1", [True], {}]),
        ({"const": False}, [False], [0, None, ""]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, [1, None], ["x", 1.5, True]),
        ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]}, [1, 5.5], [7, "x", 1.5]),
        ({"allOf": [{"type": "string"}, {"type": "string", "minLength": 2}]}, ["ab"], ["a", 1]),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "é漢字"], ["a", "abcd"]),
        ({"type": "string", "pattern": "^a+$"}, ["aa"], ["b", ""]),
        ({"type": "string", "format": "email"}, ["a@b.org"], ["a"]),
        ({"type": "string", "format": "uri"}, ["https://a.org/"], ["a b"]),
        ({"type": "string", "format": "date-time"}, ["2026-11-18T20:00:00Z"], ["today"]),
        ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3, 2.0], [0, 4, 2.5]),
        ({"type": "number", "multipleOf": 0.01}, [19.99, 0.07, 5], [0.005]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, [[1], [1, 2]], [[], [1, 2, 3]]),
        ({"type": "array", "items": {"type": "integer"}}, [[]], [["x"], [1, None], {}]),
        ({"type": "boolean"}, [True, False], [0, 1, "true", None]),
        ({"type": "null"}, [None], [0, False, ""]),
    ],
)
def test_every_admitted_word_is_checked(schema: dict[str, Any], right: list[Any], wrong: list[Any]) -> None:
    assert [texts({"x": value}, x=schema) for value in right] == [[]] * len(right)
    assert [bool(texts({"x": value}, x=schema)) for value in wrong] == [True] * len(wrong)


def test_a_fault_is_found_at_the_lowest_admitted_level() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(4):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    assert texts_of(schema, {"a": {"a": {"a": {"a": 1}}}}) == []
    assert texts_of(schema, {"a": {"a": {"a": {"a": "x"}}}}) == [
        "Parameter a.a.a.a has wrong type: expected integer, got string"
    ]
    assert texts_of(schema, {"a": {"a": {"a": {}}}}) == ["Parameter a.a.a.a is required"]


@pytest.mark.parametrize("word", ["exclusiveMinimum", "const", "title", "default", "examples"])
def test_a_word_that_others_strip_is_kept_and_one_that_is_not_taken_is_refused(word: str) -> None:
    value = [3] if word == "examples" else 3 if word != "title" else "T"
    given = json.dumps([definition(properties={"n": {"type": "integer", word: value}})])
    (kept,) = validated(given)
    assert json.loads(bytes(kept.parameters))["properties"]["n"][word] == value
    refused = safe_validate_tool_definitions(given.replace(word, "x-" + word))
    assert [problem.path for problem in refused.errors] == [f"/0/parameters/properties/n/x-{word}"]


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("tools", [definition(f"t{at}") for at in range(65)]),
        ("definition_bytes", [definition(properties={"a": {"type": "string", "const": " " * 16_400}})]),
        ("client_text", [{**definition(f"t{at}"), "description": "x" * 1000} for at in range(17)]),
        ("depth", [definition(properties={"a": {"type": "array", "items": {"type": "array", "items": ADD}}})]),
        ("properties", [definition(properties={f"p{at}": {"type": "string"} for at in range(21)})]),
        ("nodes", [definition(properties={"a": {"type": "array", "prefixItems": [{"type": "null"}] * 199}})]),
        ("enum", [definition(properties={"a": {"enum": list(range(101))}})]),
        ("pattern", [definition(properties={"a": {"type": "string", "pattern": "a" * 257}})]),
        ("name", [definition("a" * 65)]),
        ("description", [{**definition(), "description": "x" * 1025}]),
    ],
)
def test_every_limit_has_a_name_under_which_it_can_be_raised(limit: str, value: Any) -> None:
    tight = structs.replace(OUTSIDE, depth=3) if limit == "depth" else OUTSIDE
    raised = {"definition_bytes": 1 << 20, "client_text": 1 << 20} if limit == "definition_bytes" else {limit: 1 << 17}
    assert [problem.rule for problem in safe_validate_tool_definitions(value, tight).errors] == [limit]
    assert safe_validate_tool_definitions(value, structs.replace(tight, **raised)).success


def test_the_limits_are_the_promised_ones() -> None:
    limits = AdmissionLimits()
    assert (limits.tools, limits.definition_bytes, limits.client_text) == (64, 16 << 10, 16 << 10)
    assert (limits.depth, limits.properties, limits.nodes, limits.enum, limits.pattern) == (5, 20, 200, 100, 256)
    assert STRICT.tools == 10
    assert limits == OUTSIDE


def test_a_list_keeps_its_order_and_does_not_follow_what_it_was_made_of() -> None:
    given = [definition("b"), definition("a"), definition("c")]
    made = validated(given)
    given.reverse()
    given[0]["name"] = "changed"
    assert [one.name for one in made] == ["b", "a", "c"]
    assert isinstance(made, tuple)
    with pytest.raises(AttributeError):
        made[0].name = "changed"  # type: ignore[misc]


# What the model is told


def test_one_part_says_the_same_as_the_value_it_holds() -> None:
    def message(value: Any, *, multipart: bool = False) -> ToolMessage:
        return ToolMessage("c", "l", "t", Outcome.OK, Raw(msgjson.encode(value)), multipart)

    assert message([Text("x")], multipart=True).parts == message("x").parts == (Text("x"),)
    assert message([Json({"a": 0})], multipart=True).parts == message({"a": 0}).parts == (Json({"a": 0}),)
    assert message(None).parts == (Json(None),)
    mixed = [Text("see"), Binary("image/png", data=b"\x89PNG"), Json([1])]
    assert message(mixed, multipart=True).parts == tuple(mixed)


def test_denied_and_cancelled_share_a_state_and_are_told_apart_by_outcome_and_words() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS))
    denied, cancelled = story.reply(("t", {}), ("t", {}))
    story.deny(denied, reason="no")
    story.take(CallCancelled(story.at, cancelled, "no"))
    assert {story.call(call).state for call in (denied, cancelled)} == {CallState.CANCELLED}
    assert [story.call(call).outcome for call in (denied, cancelled)] == [Outcome.DENIED, Outcome.CANCELLED]
    first, second = (message.text for message in story.tool_messages)
    assert first.startswith("Error: The user denied")
    assert second.startswith("Error: Tool 't' was cancelled")


# Times


def test_each_place_and_each_tool_has_its_own_time_to_run() -> None:
    tools = (
        make_tool("server"),
        make_tool("client", place=Place.CLIENT),
        make_tool("own", timeout=7),
        make_tool("own_client", place=Place.CLIENT, timeout=8),
    )
    story = Story(*tools, limits=Limits(server_timeout=3, client_timeout=4))
    story.reply(*[(tool.name, {}) for tool in tools])
    seconds = [(update.deadline or 0) - update.at for update in story.told if isinstance(update, CallExecuting)]
    assert seconds == [3000, 4000, 7000, 8000]


def test_running_code_has_thirty_seconds_on_the_server_and_a_person_has_no_limit() -> None:
    assert (Limits().server_timeout, Limits().approval_timeout) == (30, None)
    story = Story(make_tool(), make_tool("asks", approval=Approval.ALWAYS))
    runs, asks = story.reply(("t", {}), ("asks", {}))
    assert story.call(runs).deadline == story.at + 30_000
    assert story.call(asks).deadline is None


def test_a_call_that_timed_out_is_closed_and_not_issued_again() -> None:
    pick = make_tool("pick", place=Place.CLIENT, timeout=5)
    story = Story(pick)
    (call,) = story.reply(("pick", {}))
    story.fire(call, after=5)
    assert story.call(call).outcome is Outcome.TIMED_OUT
    before = story.dispatched
    for kind in TimerKind:
        story.fire(call, kind, after=60)
    story.take(Recovered(story.at, (pick,)))
    story.take(RunCancelled(story.at))
    assert story.dispatched == before == [(call, 1)]
    assert sum(isinstance(update, CallEnded) for update in story.told) == 1


# Tools that change


def test_a_change_between_proposal_and_dispatch_stops_the_call_with_its_code() -> None:
    story = Story(make_tool(approval=Approval.ALWAYS, version="1"))
    (call,) = story.reply(("t", {}))
    story.take(Recovered(story.at, (make_tool(approval=Approval.ALWAYS, version="2", schema=ADD),)))
    failure = story.call(call).failure
    assert failure is not None
    assert (failure.code, story.dispatched) == ("tool_changed", [])


def test_a_call_can_be_cancelled_although_its_tool_has_changed_or_gone() -> None:
    for today in ((), (make_tool("pick", place=Place.CLIENT, schema=ADD),)):
        story = Story(make_tool("pick", place=Place.CLIENT))
        (call,) = story.reply(("pick", {}))
        story.take(Recovered(story.at, today))
        story.take(CallCancelled(story.at, call))
        assert story.call(call).outcome is Outcome.CANCELLED


# Settings


def test_limits_are_given_by_name_only() -> None:
    with pytest.raises(TypeError):
        Limits(5)  # type: ignore[misc]
    with pytest.raises(TypeError):
        AdmissionLimits(5)  # type: ignore[misc]
    assert Limits(max_turns=7, client_timeout=1.5, approval_timeout=60).max_turns == 7


def test_a_retry_is_for_tools_that_may_be_repeated_and_has_a_bound() -> None:
    story = Story(make_tool(effect=SideEffect.IDEMPOTENT, retries=1), limits=Limits(retry_delay=0))
    (call,) = story.reply(("t", {}))
    for _ in range(2):
        story.fault(call)
        if story.call(call).open:
            story.fire(call, TimerKind.BACKOFF)
    assert (story.call(call).outcome, story.dispatched) == (Outcome.FAILED, [(call, 1), (call, 2)])
