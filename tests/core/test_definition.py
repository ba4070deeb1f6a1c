"""Definitions from outside are taken whole or refused with every reason; a pin changes with what a person approved."""

import json
import timeit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, structs

from farhand.core import definition as definition_module
from farhand.core.admission import OUTSIDE, OWNER, STRICT
from farhand.core.content_cache import ContentCache
from farhand.core.definition import (
    Approval,
    InvalidToolDefinitions,
    Place,
    Policy,
    SideEffect,
    check_definition,
    dump_definition,
    make_definition,
    safe_validate_tool_definitions,
    validate_tool_definitions,
)

# The example of document 004: an IDE brings three tools.
IDE = [
    {
        "name": "OpenFile",
        "description": "Open a file in the editor",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
            "required": ["path"],
        },
    },
    {"name": "GetSelection", "description": "Get the selected text", "parameters": {"type": "object"}},
    {
        "name": "ShowMessage",
        "description": "Show a message",
        "parameters": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "severity": {"type": "string", "enum": ["info", "warning", "error"]},
            },
            "required": ["message"],
        },
    },
]


NAME = "Tool name must contain only alphanumeric characters, underscores, and hyphens"


@pytest.fixture(autouse=True)
def cache(monkeypatch):
    cache = ContentCache(1 << 20)
    monkeypatch.setattr(definition_module, "_cache", cache)
    return cache


def tool(name="get_weather", **fields):
    return {"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}, **fields}


def wrapped(name="get_weather", **fields):
    return {"type": "function", "function": tool(name, **fields)}


def without(key):
    return {word: value for word, value in tool().items() if word != key}


def problems(value, limits=OUTSIDE, **options):
    check = safe_validate_tool_definitions(value, limits, **options)
    assert check.success is (check.data is not None) is not bool(check.errors)
    return [(problem.path, problem.message) for problem in check.errors]


def test_definitions_are_taken_in_their_order():
    for document in (IDE, json.dumps(IDE), json.dumps(IDE, indent=2).encode()):
        definitions = validate_tool_definitions(document)
        assert [definition.name for definition in definitions] == ["OpenFile", "GetSelection", "ShowMessage"]
        assert all(definition.place is Place.CLIENT and definition.pin for definition in definitions)


def test_plain_and_wrapped_forms_may_be_mixed():
    mixed = [tool("a"), wrapped("b"), {"type": "function", **tool("c")}]
    assert [definition.name for definition in validate_tool_definitions(mixed)] == ["a", "b", "c"]
    assert validate_tool_definitions([tool("a")]) == validate_tool_definitions([wrapped("a")])


def test_an_empty_list_is_a_list():
    assert validate_tool_definitions([]) == ()
    assert validate_tool_definitions(b"[]") == ()


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ([without("name")], "/0/name", "Invalid input: expected string, received undefined"),
        ([tool("")], "/0/name", "Too small: expected string to have >=1 characters"),
        ([tool("a" * 65)], "/0/name", "Too big: expected string to have <=64 characters"),
        ([tool("name\n")], "/0/name", NAME),
        ([without("description")], "/0/description", "Invalid input: expected string, received undefined"),
        ([tool(description=None)], "/0/description", "Invalid input: expected string, received null"),
        ([tool(description="")], "/0/description", "Too small: expected string to have >=1 characters"),
        ([tool(description="x" * 1025)], "/0/description", "Too big: expected string to have <=1024 characters"),
        ([tool(description="a\u202eb")], "/0/description", "has the invisible or direction-changing character U+202E"),
        ([without("parameters")], "/0/parameters", "Invalid input: expected object, received undefined"),
        ([tool(parameters=[])], "/0/parameters", "Invalid input: expected object, received array"),
        ([tool(parameters={})], "/0/parameters/type", 'Invalid input: expected "object"'),
        ([tool(parameters={"type": "banana"})], "/0/parameters/type", 'Invalid input: expected "object"'),
        ([wrapped("a b")], "/0/function/name", NAME),
        ([tool(type="retrieval")], "/0/type", 'Invalid input: expected "function"'),
        ([{"function": tool()}], "/0/type", 'Invalid input: expected "function"'),
        ([{"type": "function", "function": 3}], "/0/function", "Invalid input: expected object, received number"),
        ([{**wrapped(), "id": 1}], "/0/id", 'Unrecognized key: "id"'),
        ([tool(execute="rm")], "/0/execute", 'Unrecognized key: "execute"'),
        ([tool(effect="twice")], "/0/effect", 'Invalid option: expected one of "pure"|"idempotent"|"once"'),
        ([tool(lazy=1)], "/0/lazy", "Invalid input: expected boolean, received number"),
        ([tool(sendsOut="no")], "/0/sendsOut", "Invalid input: expected boolean, received string"),
        ([tool(effect=[])], "/0/effect", 'Invalid option: expected one of "pure"|"idempotent"|"once"'),
        ([tool(needsApproval="yes")], "/0/needsApproval", "Invalid input: expected boolean, received string"),
        ([tool(timeout=0)], "/0/timeout", "must be a number of seconds above 0, 2592000 at most"),
        ([tool(timeout=True)], "/0/timeout", "must be a number of seconds above 0, 2592000 at most"),
        ([tool(tags="x")], "/0/tags", "must be a list of strings"),
        ([tool(tags=[1])], "/0/tags", "must be a list of strings"),
        ([tool(examples={})], "/0/examples", "Invalid input: expected array, received object"),
        ([tool(title=3)], "/0/title", "must be a string of <=1024 characters"),
        ([tool(output=3)], "/0/output", "Invalid input: expected object, received number"),
        ([tool(tags=["a", "\u200b"])], "/0/tags/1", "has the invisible or direction-changing character U+200B"),
        (["x"], "/0", "Invalid input: expected object, received string"),
        ({"tools": []}, "", "Invalid input: expected array, received object"),
        (None, "", "Invalid input: expected array, received null"),
        ("[", "", "is not JSON: it ends too early"),
        (b"[\xff]", "", "is not JSON: invalid character (byte 1)"),
        (b'[{"name":"\xff"}]', "/0", "is not JSON as it is accepted here: not valid UTF-8"),
        (b'[{"name":"a","name":"b"}]', "/0", "is not JSON as it is accepted here: the same key twice in one object"),
        ("\ud800", "", "is not a JSON value"),
        ([{1, 2}.__class__], "", "is not a JSON value"),
    ],
)  # fmt: skip
def test_every_refusal_has_its_path_and_its_text(value, path, message):
    assert problems(value) == [(path, message)]


class Hostile(Exception):
    """What an object raises that only looks like a value."""


def hostile(*_):
    raise Hostile


LOOKS_LIKE = [
    type("Text", (str,), {"encode": hostile})("[]"),
    type("Bytes", (bytes,), {"__len__": hostile, "__bytes__": hostile})(b"[]"),
    type("List", (list,), {"__iter__": hostile, "__len__": hostile})([1]),
    type("Dict", (dict,), {"__iter__": hostile, "items": hostile})(a=1),
    type("Class", (), {"__class__": property(hostile)})(),
    type("Record", (), {"__dataclass_fields__": property(hostile)})(),
    type("Fields", (), {"__dataclass_fields__": 5})(),
    type("Number", (float,), {"__float__": hostile})("nan"),
]


def test_no_object_makes_the_safe_function_raise():
    text, data, *others = LOOKS_LIKE
    assert safe_validate_tool_definitions(text).success
    assert safe_validate_tool_definitions(data).success
    for value in (*others, (item for item in [1]), bytearray(b"[]"), 10**5000, [float("inf")]):
        for taken in (value, [value], [tool(parameters=value)]):
            assert not safe_validate_tool_definitions(taken).success


def test_the_problems_of_one_definition_are_bounded_in_number_and_in_text():
    many = [{**tool(), **{f"extra{at}": 0 for at in range(900)}}]
    assert len(problems(many)) == 100
    long = {"type": "object", "properties": {"k" * 7000: {"type": "object", "properties": {}}}}
    long["properties"]["k" * 7000]["properties"] = {f"p{at}": {"type": "x", "y": 1} for at in range(20)}
    found = problems([tool(parameters=long)])
    assert 1 < len(found) < 10
    assert len(problems([tool(parameters={"type": "object", "k" * 15_000: 1})])) == 1


def test_a_refusal_takes_as_much_of_the_cache_as_its_problems(cache):
    long = {"type": "object", "properties": {"k" * 7000: {"type": "x"}}}
    assert problems([tool(parameters=long)])
    assert cache.bytes > 2 * 7000
    before = cache.bytes
    assert problems([tool(parameters={"type": "object", "enum": ["x" * 17_000]})])
    assert cache.bytes - before < 10_000


def test_a_list_of_more_bytes_than_all_its_definitions_may_have_is_not_taken_apart():
    assert problems(b"[" + b"0," * 600_000 + b"0]") == [("", "Too big: expected array to have <=1048576 bytes")]


def test_problems_of_a_schema_lie_under_its_parameters():
    bad = tool(
        parameters={"type": "object", "properties": {"x": {"type": "text"}}, "not": {}},
        outputSchema={"type": "object", "$ref": "http://x.invalid"},
    )
    assert [path for path, _ in problems([bad])] == [
        "/0/parameters/not",
        "/0/parameters/properties/x/type",
        "/0/outputSchema/$ref",
    ]
    # C2 of the peers' cases.
    wanted = ("/0/function/parameters/properties/n/type", 'Invalid option: expected one of "string"|"number"|')
    ((path, message),) = problems([wrapped(parameters={"type": "object", "properties": {"n": {"type": "banana"}}})])
    assert (path, message[: len(wanted[1])]) == wanted


def test_the_errors_of_one_tool_do_not_hide_those_of_another():
    bad = [tool("a b", description=""), tool("ok"), tool("c", parameters={"type": "object", "properties": {"n": {}}})]
    assert [path for path, _ in problems(bad)] == ["/0/name", "/0/description", "/2/parameters/properties/n/type"]


def test_the_exception_begins_as_the_dialect_says_and_holds_the_list():
    with pytest.raises(InvalidToolDefinitions) as caught:
        validate_tool_definitions([tool("a b"), tool(description="")])
    assert str(caught.value) == (
        "Invalid client tool definitions: "
        "/0/name: Tool name must contain only alphanumeric characters, underscores, and hyphens; "
        "/1/description: Too small: expected string to have >=1 characters"
    )
    assert [problem.path for problem in caught.value.problems] == ["/0/name", "/1/description"]


def test_repeated_names_are_counted_and_located():
    repeated = [tool("t"), wrapped("t"), tool("x"), tool("t", description="")]
    assert problems(repeated) == [
        ("/3/description", "Too small: expected string to have >=1 characters"),
        ("", "Duplicate tool names: t, t"),
        ("/1/function/name", "has the same name as /0/name"),
        ("/3/name", "has the same name as /0/name"),
    ]
    with pytest.raises(InvalidToolDefinitions, match=r"^Invalid client tool definitions: Duplicate tool names: t; "):
        validate_tool_definitions([tool("t"), tool("t")])


def test_names_that_look_alike_are_the_same_name():
    assert problems([tool("Open"), tool("open")])[0] == ("", "Duplicate tool names: open")
    assert ("", "Duplicate tool names: \uff41") in problems([tool("a"), tool("\uff41")])


def test_a_name_of_the_server_is_refused_and_the_list_stays_in_the_cache(cache):
    wanted = [("/1/name", "Tool name 'Sql_Query' belongs to a tool of the server")]
    assert problems([tool("mine"), tool("Sql_Query")], reserved=["sql_query", "x"]) == wanted
    assert problems([tool("mine"), tool("Sql_Query")], reserved={"x"}) == []
    assert problems([tool("mine"), tool("Sql_Query")], reserved=("sql_query",)) == wanted


def test_64_tools_pass_and_65_do_not():
    many = [tool(f"tool_{at}") for at in range(65)]
    assert problems(many[:64]) == []
    assert problems(many) == [("", "Too big: expected array to have <=64 items")]
    assert problems(many[:11], STRICT) == [("", "Too big: expected array to have <=10 items")]


def test_1024_characters_of_description_pass():
    assert problems([tool(description="é" * 1024)]) == []


def test_a_definition_has_a_limit_of_bytes():
    large = tool(parameters={"type": "object", "properties": {"a": {"type": "string", "enum": ["x" * 17_000]}}})
    assert problems([large]) == [("/0", "Too big: expected definition to have <=16384 bytes")]


def test_all_texts_of_one_list_have_a_limit():
    many = [tool(f"tool_{at}", description="x" * 1000) for at in range(17)]
    assert problems(many[:16]) == []
    assert problems(many) == [("", "Too big: all texts together have more than 16384 characters")]
    assert problems(many, structs.replace(OUTSIDE, client_text=1 << 20)) == []


def test_the_strict_preset_wants_properties():
    bare = tool(parameters={"type": "object"})
    assert problems([bare]) == []
    assert problems([bare], STRICT) == [
        ("/0/parameters/properties", "Invalid input: expected record, received undefined")
    ]


def test_everything_a_definition_may_say_arrives():
    (definition,) = validate_tool_definitions(
        [
            tool(
                title="T",
                version="1",
                deprecated=None,
                tags=["a"],
                examples=[{"x": 1}],
                output={"type": "string"},
                outputSchema=None,
                needs_approval=True,
                effect="pure",
                timeout=5,
                strict=True,
            )
        ],
        source="mcp:files",
        place=Place.MCP,
    )
    assert definition.policy == Policy(approval=Approval.ALWAYS, effect=SideEffect.PURE, timeout=5.0)
    assert (definition.title, definition.version, definition.deprecated, definition.tags) == ("T", "1", None, ("a",))
    assert (definition.source, definition.place) == ("mcp:files", Place.MCP)
    assert [bytes(example) for example in definition.examples] == [b'{"x":1}']
    (plain,) = validate_tool_definitions([tool(needsApproval=False)])
    assert plain.policy.approval is Approval.NEVER


def test_the_schema_of_the_author_is_kept_byte_for_byte():
    schema = b'{ "type":"object",\n "properties" : {"n":{"type":"number","multipleOf":0.010}} }'
    for text in (
        b'[ {"parameters":' + schema + b',"name":"a","description":"d"} ]',
        b'[{"function":{"name":"a","description":"d","parameters":' + schema + b'} , "type":"function"}]',
    ):
        (definition,) = validate_tool_definitions(text)
        assert bytes(definition.parameters) == schema


def test_a_list_sent_again_comes_from_the_cache(monkeypatch):
    document = json.dumps(IDE).encode()
    first = validate_tool_definitions(document)
    monkeypatch.setattr(definition_module, "_read_list", None)
    assert validate_tool_definitions(document) is first


def test_a_known_tool_in_a_new_list_comes_from_the_cache(monkeypatch):
    first = validate_tool_definitions([tool("a"), tool("b")])
    monkeypatch.setattr(definition_module, "_read_one", None)
    assert validate_tool_definitions([tool("b")])[0] is first[1]


def test_refusals_are_remembered_and_profiles_kept_apart(monkeypatch):
    bad = json.dumps([tool("a", parameters={"type": "object", "not": {}})]).encode()
    first = problems(bad)
    assert problems(bad, OWNER) == []
    monkeypatch.setattr(definition_module, "_read_list", None)
    assert problems(bad) == first != []


def test_a_list_sent_again_costs_less_than_parsing_it():
    document = json.dumps([{**IDE[0], "name": f"open_{at}"} for at in range(20)]).encode()
    validate_tool_definitions(document)

    def best(work):
        return min(timeit.repeat(work, number=50, repeat=20)) / 50 * 1e6

    cached, parsed = best(lambda: validate_tool_definitions(document)), best(lambda: msgspec.json.decode(document))
    assert cached <= 2 * parsed, (cached, parsed)


def test_the_pin_ignores_the_order_of_keys():
    one = make_definition(**tool(parameters=b'{"type":"object","properties":{"a":{"type":"string","title":"A"}}}'))
    two = make_definition(tool(parameters=b'{"properties": {"a":{"title":"A", "type":"string"}}, "type":"object"}'))
    assert one.pin == two.pin
    assert len(one.pin) == 64


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"description": "D"},
        {"title": "t"},
        {"parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {"parameters": {"type": "object", "required": []}},
        {"output": {}},
        {"source": "mcp:x"},
        {"place": Place.SERVER},
        {"policy": Policy(approval=Approval.ALWAYS)},
        {"policy": Policy(effect=SideEffect.PURE)},
    ],
)
def test_the_pin_changes_with_what_a_person_approved(change):
    assert make_definition(tool()).pin != make_definition({**tool(), **change}).pin


def test_the_pin_does_not_change_with_what_nobody_approves():
    for change in ({"policy": Policy(timeout=3)}, {"tags": ("a",)}, {"version": "2"}, {"pin": "x"}):
        assert make_definition(tool()).pin == make_definition({**tool(), **change}).pin


def test_a_definition_can_be_made_of_values_bytes_and_raw():
    for schema in ({"type": "object"}, b'{"type":"object"}', Raw(b'{"type":"object"}')):
        made = make_definition(name="a", description="d", parameters=schema, output=None, examples=[schema])
        assert bytes(made.parameters) == bytes(made.examples[0]) == b'{"type":"object"}'
        assert made.output is None
    assert bytes(make_definition(name="a", description="d").parameters) == b'{"type":"object"}'


FULL = {
    "title": "T",
    "version": "1",
    "deprecated": "use b",
    "tags": ["x"],
    "examples": [{"a": 1}],
    "timeout": 2.5,
    "needsApproval": True,
    "effect": "pure",
    "output": {"type": "array"},
    "lazy": True,
    "readsPrivate": True,
    "takesUntrusted": True,
    "sendsOut": True,
}


@pytest.mark.parametrize("fields", [{}, FULL])
@pytest.mark.parametrize("in_function", [False, True])
def test_a_dumped_definition_is_read_back_as_it_was(fields, in_function):
    (definition,) = validate_tool_definitions([tool(**fields)])
    dumped = dump_definition(definition, wrapped=in_function)
    assert (dumped == wrapped(**fields)) if in_function else (dumped == tool(**fields))
    compact = json.dumps([dumped], separators=(",", ":"))
    assert validate_tool_definitions(compact) == (definition,)


def test_a_definition_survives_being_stored():
    definition = make_definition(tool(output={}, examples=[1]))
    for kept in (definition, make_definition(tool())):
        again = msgspec.json.decode(msgspec.json.encode(kept), type=type(kept))
        assert again == kept
        assert again.output == kept.output or bytes(again.output) == bytes(kept.output)
    assert definition != make_definition(tool(output={}, examples=[2]))
    assert definition != "definition"
    assert make_definition(structs.asdict(definition)) == definition


def test_the_owners_definition_is_checked_by_the_owners_limits():
    recursive = {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"not": {}}}}
    made = make_definition(name="a", description="", parameters=recursive, output={"if": {}})
    check_definition(made, OWNER)
    with pytest.raises(InvalidToolDefinitions, match=r"^Invalid definition of tool 'a': /description: ") as caught:
        check_definition(made)
    assert [problem.path for problem in caught.value.problems] == [
        "/description",
        "/parameters/properties/a/$ref",
        "/parameters/properties/a/type",
        "/parameters/properties/b/not",
        "/parameters/properties/b/type",
        "/output/if",
        "/output/type",
    ]
    with pytest.raises(InvalidToolDefinitions, match="expected object, received array"):
        check_definition(make_definition(name="a", description="d", parameters=[]), OWNER)
    check_definition(make_definition(tool()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*tool(), "type", "function"]), inner),
    max_leaves=10,
)


@given(st.lists(JSON, max_size=3) | JSON | st.binary() | st.text())
def test_no_value_makes_the_safe_form_raise(value):
    check = safe_validate_tool_definitions(value)
    assert check.success is not bool(check.errors)


def test_a_document_of_100_000_levels_is_refused():
    assert problems(b"[" * 100_000)[0][1] == "is not JSON: nested too deeply"
    assert problems(b"[" + b"[" * 500 + b"]" * 500 + b"]")[0][0] == "/0"
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert problems(deep) == [("", "is not a JSON value")]
