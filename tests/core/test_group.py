"""Groups are taken whole or refused with every reason; a tool belongs to one owner, and a group to one name."""

import json

import pytest
from msgspec import json as msgjson
from msgspec import structs

from farhand.core.admission import OUTSIDE
from farhand.core.definition import InvalidToolDefinitions, Place
from farhand.core.errors import UsageError
from farhand.core.group import ToolGroup, dump_group, function_name, register, validate_tool_groups
from farhand.core.skill import Document, Reference, Skill
from tests.core.story import make_tool
from tests.core.test_definition import IDE, NAME, tool


def group(name="IDE", **fields):
    return {"name": name, "description": "Work in the editor.", "tools": IDE, **fields}


def made(name="IDE", *tools, **fields):
    chosen = tuple(make_tool(one, place=Place.CLIENT) for one in tools or ("open",))
    return ToolGroup(name=name, tools=chosen, description="d", **fields)


def problems(work, *args, **options):
    with pytest.raises(InvalidToolDefinitions) as refused:
        work(*args, **options)
    return [(problem.path, problem.message) for problem in refused.value.problems]


def test_everything_a_group_may_say_arrives():
    given = [
        group(expansionNote="Lines count from 1.", instructions="Save first.", collapsed=False),
        group("B", tools=[tool("b")]),
    ]
    for document in (given, json.dumps(given), json.dumps(given).encode()):
        first, second = validate_tool_groups(document)
        assert [one.name for one in first.tools] == ["OpenFile", "GetSelection", "ShowMessage"]
        assert (first.expansion_note, first.instructions, first.collapsed) == (
            "Lines count from 1.",
            "Save first.",
            False,
        )
        assert (second.expansion_note, second.instructions, second.collapsed) == (None, None, True)
    assert validate_tool_groups([]) == ()
    assert msgjson.decode(msgjson.encode(first), type=ToolGroup) == first


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ([{**group(), "name": None}], "/0/name", "Group name is required"),
        ([group(" ")], "/0/name", "Group name is required"),
        ([group(3)], "/0/name", "Invalid input: expected string, received number"),
        ([group("x" * 65)], "/0/name", "Too big: expected string to have <=64 characters"),
        ([group("a\u202eb")], "/0/name", "has the invisible or direction-changing character U+202E"),
        ([group(tools=[])], "/0/tools", "Group must contain at least one tool"),
        ([{"name": "A", "description": "d"}], "/0/tools", "Group must contain at least one tool"),
        ([group(tools={})], "/0/tools", "Invalid input: expected array, received object"),
        ([group(tools=[tool("a\n")])], "/0/tools/0/name", NAME),
        (
            [group(description="")],
            "/0/description",
            "Group 'IDE' starts collapsed: it needs a description that tells the model when to expand it",
        ),
        ([group(description="x" * 1025)], "/0/description", "Too big: expected string to have <=1024 characters"),
        ([group(instructions=3)], "/0/instructions", "Invalid input: expected string, received number"),
        ([group(collapsed=1)], "/0/collapsed", "Invalid input: expected boolean, received number"),
        ([group(execute="rm")], "/0/execute", 'Unrecognized key: "execute"'),
        (["x"], "/0", "Invalid input: expected object, received string"),
        ({}, "", "Invalid input: expected array, received object"),
        ("[", "", "is not JSON: it ends too early"),
        ([{1, 2}.__class__], "", "is not a JSON value"),
        ([group(), group("ide", tools=[tool("b")])], "/1/name", "There is a group 'IDE' already"),
        (
            [group(), group("B", tools=[tool("b"), tool("openfile")])],
            "/1/tools/1/name",
            "Tool 'openfile' of group 'B' is named like a tool of group 'IDE'",
        ),
    ],
)  # fmt: skip
def test_every_refusal_has_its_path_and_its_text(value, path, message):
    assert problems(validate_tool_groups, value) == [(path, message)]


def test_one_bad_group_registers_nothing_and_hides_no_other():
    bad = [group(tools=[tool("a b")]), group("B", tools=[tool("b")]), group("C", description="")]
    assert [path for path, _ in problems(validate_tool_groups, bad)] == ["/0/tools/0/name", "/2/description"]
    with pytest.raises(InvalidToolDefinitions, match=r"^Invalid client tool groups: /0/tools/0/name: "):
        validate_tool_groups(bad)


def test_groups_do_not_widen_what_one_client_may_bring():
    halves = [group(name, tools=[tool(f"{name}{at}") for at in range(33)]) for name in "ab"]
    assert problems(validate_tool_groups, halves) == [("", "Too big: all groups together have more than 64 tools")]
    long = [group(name, tools=[tool(name)], instructions="x" * 9000) for name in "ab"]
    assert problems(validate_tool_groups, long) == [("", "Too big: all texts together have more than 16384 characters")]
    assert len(validate_tool_groups(long, structs.replace(OUTSIDE, client_text=1 << 20))) == 2
    assert validate_tool_groups([group("\u200b")], structs.replace(OUTSIDE, plain_text=False))


def test_an_author_is_told_the_same_rules():
    for fields, message in (
        ({"name": ""}, "Group name is required"),
        ({"tools": ()}, "Group must contain at least one tool"),
        ({"description": ""}, "starts collapsed"),
    ):
        with pytest.raises(UsageError, match=message):
            ToolGroup(**{"name": "A", "tools": (make_tool(),), "description": "d"} | fields)
    assert ToolGroup(name="A", tools=(make_tool(),), collapsed=False).description == ""


def test_a_group_of_a_known_name_comes_only_when_it_is_to_replace_it():
    known = (made("A", "a"), made("B", "b"))
    again = made("a", "c")
    assert problems(register, known, [again]) == [("/0/name", "There is a group 'A' already")]
    assert register(known, [again], replace=True) == (again, known[1])
    assert register(known, [made("A", "a")], replace=True) == known
    assert problems(register, known, [made("C", "c"), made("C", "d")], replace=True) == [
        ("/1/name", "There is a group 'C' already")
    ]
    assert register((), known) == known


def test_a_tool_has_one_owner_and_a_clash_names_both():
    known = (made("A", "a"),)
    assert problems(register, known, [made("B", "A")]) == [
        ("/0/tools/0/name", "Tool 'A' of group 'B' is named like a tool of group 'A'")
    ]
    assert problems(register, known, [made("B", "b", "sql")], reserved=["SQL"]) == [
        ("/0/tools/1/name", "Tool 'sql' of group 'B' is named like a tool of the server")
    ]
    assert problems(register, (), [made("B", "b", "b")]) == [
        ("/0/tools/1/name", "Tool 'b' of group 'B' is named like a tool of group 'B'")
    ]


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("IDE", "IDE"),
        ("Complete Checkout", "Complete_Checkout"),
        ("3D", "group_3D"),
        ("日本", "group"),
        ("x" * 70, "x" * 64),
    ],
)
def test_a_free_name_has_a_function_name(name, called):
    assert function_name(name) == called


# Skills

DOCUMENT = {"id": "terms", "description": "What holds", "content": "All of it."}
SKILL = {
    "name": "Complete Checkout",
    "description": "When the cart is full.",
    "note": "Be kind.",
    "instructions": "Validate first.",
    "tools": ["OpenFile", {"tool": "other", "group": "B"}],
    "documents": [DOCUMENT, {"id": "more", "url": "https://shop.example"}],
}


def test_everything_a_skill_may_say_arrives():
    (taken,) = validate_tool_groups([group(skills=[SKILL, {**SKILL, "name": "Bare", "tools": [], "documents": []}])])
    first, second = taken.skills
    assert first == Skill(
        name="Complete Checkout",
        description="When the cart is full.",
        note="Be kind.",
        instructions="Validate first.",
        tools=(Reference("OpenFile"), Reference("other", "B")),
        documents=(
            Document(id="terms", description="What holds", content="All of it."),
            Document(id="more", url="https://shop.example"),
        ),
    )
    assert (second.tools, second.documents) == ((), ())


@pytest.mark.parametrize(
    ("skills", "path", "message"),
    [
        ({}, "", "Invalid input: expected array, received object"),
        (["x"], "/0", "Invalid input: expected object, received string"),
        ([{**SKILL, "system": "x"}], "/0/system", 'Unrecognized key: "system"'),
        ([{**SKILL, "name": None}], "/0/name", "Skill name is required"),
        ([{**SKILL, "name": 1}], "/0/name", "Invalid input: expected string, received number"),
        (
            [{**SKILL, "description": " "}],
            "/0/description",
            "Skill 'Complete Checkout' needs a description that tells the model when to activate it",
        ),
        ([{**SKILL, "tools": "OpenFile"}], "/0/tools", "Invalid input: expected array, received string"),
        ([{**SKILL, "tools": [1]}], "/0/tools/0", "Invalid input: expected object, received number"),
        ([{**SKILL, "tools": [{"group": "B"}]}], "/0/tools/0/tool", "Tool name is required"),
        ([{**SKILL, "documents": [{"id": "a"}]}], "/0/documents/0/content", "Document must have either content or url"),
        ([{**SKILL, "documents": [{"content": "a"}]}], "/0/documents/0/id", "Document id is required"),
        (
            [{**SKILL, "documents": [{"id": "a", "content": 1}]}],
            "/0/documents/0/content",
            "Invalid input: expected string, received number",
        ),
        (
            [{**SKILL, "documents": [{"id": "a", "content": "x" * 51_201}]}],
            "/0/documents/0/content",
            "Too big: a document has 51200 bytes at most",
        ),
    ],
)
def test_what_is_wrong_with_a_skill_is_told_with_its_place(skills, path, message):
    assert (f"/0/skills{path}", message) in problems(validate_tool_groups, [group(skills=skills)])


def test_a_group_is_written_as_it_is_read():
    given = [group(expansionNote="n", instructions="i", collapsed=False, skills=[SKILL]), group("B", tools=[tool("b")])]
    groups = validate_tool_groups(given)
    assert validate_tool_groups([dump_group(each) for each in groups]) == groups
    assert dump_group(groups[1]) == given[1]
