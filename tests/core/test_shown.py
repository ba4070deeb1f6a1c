"""What the model is shown: what is open, one name for each that is closed, and the words of clients apart from all."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json, structs

from farhand.core.scene import CLIENT, ContextItem, Scene, Showing, expanded, with_context, with_hidden
from farhand.core.shown import FOREIGN, has_foreign_words, is_shown, shown
from tests.core.stage import IDE, Stage, client_tool, group, make_tool, skill


def test_a_closed_group_is_one_tool_without_parameters() -> None:
    stage = Stage(make_tool("add"), groups=(IDE,))
    assert stage.names == ["add", "IDE"]
    container = stage.shown.tools[1]
    assert container.description == "For IDE. Contains 3 functions: OpenFile, GetSelection, ShowMessage"
    assert json.decode(container.parameters) == {"type": "object", "properties": {}}
    assert (container.source, container.policy.approval) == ("client", "never")
    assert stage.shown.hidden == 3


def test_a_container_names_ten_tools_and_says_how_many_more_there_are() -> None:
    names = [f"t{n}" for n in range(13)]
    ten = ", ".join(names[:10])
    stage = Stage(groups=(group("Ten", *names[:10]), group("More", *[f"m{n}" for n in range(13)])))
    assert stage.describes("Ten") == f"For Ten. Contains 10 functions: {ten}"
    assert stage.describes("More").endswith("m9 and 3 more")
    assert "Contains 13 functions: m0, " in stage.describes("More")


def test_a_group_that_begins_open_and_is_closed_later_may_have_no_description() -> None:
    stage = Stage(groups=(group("Wiki", "read", description="", collapsed=False),))
    assert stage.names == ["read"]
    stage = Stage(before=stage.left(), showing=Showing())
    (call,) = stage.calls("read")
    assert stage.wish(call, {"collapse": ["Wiki"]}) == ""
    assert stage.describes("Wiki") == "Contains 1 functions: read"


def test_a_hidden_tool_is_nowhere_and_a_group_of_hidden_tools_is_not_there() -> None:
    stage = Stage(groups=(IDE, group("Shop", "buy")), hidden=("GetSelection", "buy"))
    assert stage.names == ["IDE"]
    assert stage.describes("IDE") == "For IDE. Contains 2 functions: OpenFile, ShowMessage"
    assert shown(stage.run.tools, expanded(stage.scene, ["IDE", "Shop"], CLIENT)).hidden == 0


def test_a_skill_can_be_taken_up_while_its_group_is_open_and_one_of_the_agent_always() -> None:
    shop = group("Shop", "buy", skills=(skill("Complete Checkout", "buy"),))
    stage = Stage(make_tool("add"), skills=(skill("Sum up", "add"),), groups=(shop,))
    assert stage.names == ["add", "Shop", "Sum_up"]
    stage = Stage(make_tool("add"), skills=(skill("Sum up", "add"),), groups=(shop,), expanded=("Shop",))
    assert stage.names == ["add", "buy", "Sum_up", "Complete_Checkout"]
    assert stage.describes("Complete_Checkout") == "How to Complete Checkout."


def test_lazy_tools_are_named_in_one_tool_that_describes_them() -> None:
    tools = [client_tool(name, lazy=True, description=f"Does {name}. And more.") for name in ("a", "b")]
    said = {
        detail: Stage(*tools, showing=Showing(lazy_detail=detail)).describes("__lazy__tool__discovery__")
        for detail in ("none", "first-sentence", "full")
    }
    assert said == {
        "none": "Describes tools that you can call once you have discovered them: a, b",
        "first-sentence": "Describes tools that you can call once you have discovered them: a (Does a), b (Does b)",
        "full": "Describes tools that you can call once you have discovered them: "
        "a (Does a. And more.), b (Does b. And more.)",
    }


def test_many_tools_out_of_sight_can_be_searched() -> None:
    for away, names in ((3, ["IDE"]), (2, ["IDE", "search_tools"])):
        assert Stage(groups=(IDE,), showing=Showing(search_above=away)).names == names
    assert Stage(groups=(IDE,), showing=Showing(search_above=2)).describes("search_tools") == (
        "Find tools among 3 that are not shown to you."
    )


def test_the_words_of_the_owner_and_of_clients_are_told_apart() -> None:
    own = group("Own", make_tool("a"), instructions="Be quick.", skills=(skill("Hurry", instructions="Run."),))
    theirs = group("IDE", "OpenFile", instructions="Obey\nme.", skills=(skill("Edit", instructions="Save first."),))
    showing = Showing(client_tools_instructions="The user sees these tools at work.")
    stage = Stage(own=(own,), groups=(theirs,), showing=showing, context=(ContextItem("page", {"n": 1}),))
    assert stage.shown.instructions == "The user sees these tools at work."
    assert stage.shown.told == FOREIGN + '\n{"context":"page","value":{"n":1}}'
    stage.calls("Own", "Hurry", "IDE", "Edit")
    assert stage.shown.instructions == "The user sees these tools at work.\n\nBe quick.\n\nRun."
    assert stage.shown.told.splitlines() == [
        FOREIGN,
        '{"group":"IDE","instructions":"Obey\\nme."}',
        '{"skill":"Edit","instructions":"Save first."}',
        '{"context":"page","value":{"n":1}}',
    ]


def test_without_words_of_clients_nothing_is_told() -> None:
    stage = Stage(own=(group("Own", make_tool("a")),), showing=Showing(client_tools_instructions="x"))
    assert (stage.shown.instructions, stage.shown.told, has_foreign_words(stage.scene)) == ("", "", False)
    assert has_foreign_words(with_context(stage.scene, [ContextItem("a", 1)]))


def test_while_nothing_changes_the_catalog_of_a_thousand_tools_is_not_made_again() -> None:
    stage = Stage(*[make_tool(f"t{n}") for n in range(1000)], groups=(IDE,))
    first = stage.shown
    assert stage.shown is first
    stage.calls("t1")
    assert stage.shown is first
    for _ in range(300):  # others come by
        shown(stage.run.tools, Scene(hidden=("t1",)))
    again = stage.shown
    assert again == first
    assert again is not first


NAMES = ("OpenFile", "GetSelection", "ShowMessage", "add", "seldom")


@given(
    hidden=st.lists(st.sampled_from(NAMES)),
    found=st.lists(st.sampled_from(NAMES)),
    opened=st.booleans(),
    active=st.booleans(),
)
def test_a_model_is_never_shown_a_hidden_tool_and_all_others_are_shown_or_can_be(
    hidden: list[str], found: list[str], opened: bool, active: bool
) -> None:
    editing = group("IDE", "OpenFile", "GetSelection", "ShowMessage", skills=(skill("Edit", "GetSelection"),))
    stage = Stage(make_tool("add"), make_tool("seldom", lazy=True), groups=(editing,))
    scene = with_hidden(expanded(stage.scene, ["IDE"] if opened else [], CLIENT), hidden)
    scene = structs.replace(scene, found=tuple(found), active={"Edit": CLIENT} if active else {})
    seen = shown(stage.run.tools, scene)
    names = {tool.name for tool in seen.tools}
    assert not names & {*hidden}
    assert len(names & {*NAMES}) + seen.hidden == len({*NAMES} - {*hidden})
    for name in {*NAMES} - {*hidden}:
        assert is_shown(scene, name) is (name in names)
