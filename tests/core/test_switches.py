"""Calls that nobody runs: the model opens a group, takes a skill up, looks for tools, reads a document."""

import pytest
from msgspec import Raw, json

from farhand.core.call import CallState, Outcome
from farhand.core.definition import Approval, Place
from farhand.core.limits import Limits
from farhand.core.scene import Showing
from farhand.core.skill import Document
from farhand.core.updates import CallEnded, SceneChanged
from tests.core.stage import IDE, Stage, client_tool, group, make_tool, skill

DISCOVER = "__lazy__tool__discovery__"
SECRET = Raw(b'{"type":"object","properties":{"pin":{"type":"string","secret":true}}}')


# Groups


def test_a_group_opens_and_the_model_is_told_what_there_is() -> None:
    stage = Stage(groups=(IDE,))
    (call,) = stage.calls("IDE")
    assert stage.result(call) == "IDE expanded. Available functions: OpenFile, GetSelection, ShowMessage"
    assert stage.names == ["OpenFile", "GetSelection", "ShowMessage"]
    assert (stage.call(call).outcome, stage.call(call).state) == (Outcome.OK, CallState.OUTPUT_AVAILABLE)
    assert stage.scene.opened == {"IDE": "model"}


def test_the_note_is_told_once_after_a_blank_line() -> None:
    stage = Stage(groups=(group("IDE", "OpenFile", expansion_note="Lines count from 1."),))
    (call,) = stage.calls("IDE")
    assert stage.result(call) == "IDE expanded. Available functions: OpenFile\n\nLines count from 1."
    assert stage.last.source == "client"


def test_opening_never_asks_a_person_and_no_tool_of_the_group_is_called() -> None:
    danger = group("Danger", make_tool("wipe", approval=Approval.ALWAYS))
    stage = Stage(own=(danger,))
    (call,) = stage.calls("Danger")
    assert stage.call(call).outcome is Outcome.OK
    assert (stage.dispatched, stage.last.source) == ([], "")


def test_a_group_that_a_client_has_opened_stays_the_clients() -> None:
    stage = Stage(groups=(IDE,), expanded=("IDE",))
    stage.calls("IDE")
    assert stage.scene.opened == {"IDE": "client"}


def test_a_tool_of_a_closed_group_can_be_called_and_opens_its_group() -> None:
    stage = Stage(groups=(IDE,))
    (call,) = stage.calls("OpenFile")
    assert (stage.scene.opened, stage.dispatched) == ({"IDE": "model"}, [(call, 1)])
    assert len(stage.run.calls) == 1


@pytest.mark.parametrize("name", ["My Tools.OpenFile", "My_Tools.OpenFile"])
def test_a_tool_can_be_called_with_the_name_of_its_group(name: str) -> None:
    stage = Stage(groups=(group("My Tools", "OpenFile"), group("Other", "other")))
    (call,) = stage.calls(name)
    assert (stage.call(call).tool, stage.dispatched) == ("OpenFile", [(call, 1)])


@pytest.mark.parametrize("name", ["Other.OpenFile", "Nobody.OpenFile", "IDE.nothing"])
def test_a_tool_is_not_found_under_the_name_of_another_group(name: str) -> None:
    stage = Stage(groups=(IDE, group("Other", "other")))
    (call,) = stage.calls(name)
    assert stage.result(call) == f"Unknown tool: {name}"


def test_secrets_are_masked_also_when_the_group_is_named() -> None:
    stage = Stage(groups=(group("Bank", client_tool("pay", parameters=SECRET)),))
    (call,) = stage.calls(("Bank.pay", {"pin": "1234"}))
    assert "1234" not in stage.call(call).preview
    assert stage.call(call).preview


def test_a_hidden_tool_is_not_called() -> None:
    stage = Stage(groups=(IDE,), hidden=("OpenFile",))
    called, opened = stage.calls("OpenFile", "IDE")
    assert stage.result(called) == "Tool OpenFile is not available now."
    assert stage.result(opened) == "IDE expanded. Available functions: GetSelection, ShowMessage"
    assert not stage.dispatched


def test_what_is_opened_in_a_reply_is_open_for_the_rest_of_it() -> None:
    stage = Stage(own=(group("Own", make_tool("a"), make_tool("b")),))
    stage.calls("Own", "a", "b")
    assert stage.scene.opened == {"Own": "model"}
    changes = [update for update in stage.told if isinstance(update, SceneChanged)]
    assert [update.expanded for update in changes] == [(), ("Own",)]


def test_at_the_limit_nothing_opens() -> None:
    stage = Stage(groups=(IDE,), limits=Limits(max_turns=1))
    stage.calls("nobody")
    (call,) = stage.calls("IDE")
    assert stage.result(call).startswith("Tool IDE was not run: the limit")


# Skills

CHECKOUT = group(
    "Shop",
    "ValidateCart",
    "ProcessPayment",
    "ConfirmOrder",
    skills=(
        skill(
            "Complete Checkout",
            "ValidateCart",
            "ProcessPayment",
            "Shop/ConfirmOrder",
            note="Be kind.",
            documents=(
                Document(id="terms", description="What holds", content="All of it."),
                Document(id="more", url="https://shop.example"),
            ),
        ),
    ),
)


def test_a_skill_is_activated_with_its_tools_its_note_and_its_documents() -> None:
    stage = Stage(groups=(CHECKOUT,))
    (call,) = stage.calls("Complete_Checkout")
    assert stage.result(call) == (
        "Complete Checkout skill activated. Available functions: ValidateCart, ProcessPayment, ConfirmOrder\n\n"
        "Be kind.\n\n"
        "Documents, for read_skill_document:\n- terms: What holds\n- more"
    )
    assert (stage.scene.active, stage.scene.opened) == ({"Complete Checkout": "model"}, {"Shop": "model"})
    assert stage.names == ["ValidateCart", "ProcessPayment", "ConfirmOrder", "read_skill_document"]
    before = stage.scene
    stage.calls("Complete_Checkout")
    assert stage.scene == before


def test_a_skill_without_tools_is_activated_in_three_words() -> None:
    stage = Stage(skills=(skill("Calm down"),))
    (call,) = stage.calls("Calm_down")
    assert stage.result(call) == "Calm down skill activated."


def test_a_skill_shows_its_tools_although_their_group_is_closed() -> None:
    own = group("Own", make_tool("a"), make_tool("b"))
    stage = Stage(make_tool("rare", lazy=True), own=(own,), skills=(skill("Sum", "Own/a", "rare"),))
    stage.calls("Sum")
    assert stage.names == ["rare", "a", "Own"]
    (called,) = stage.calls("rare")
    assert stage.dispatched == [(called, 1)]
    assert not stage.scene.opened


def test_documents_of_an_active_skill_can_be_read() -> None:
    stage = Stage(groups=(CHECKOUT,))

    def read(**arguments: object) -> object:
        (call,) = stage.calls(("read_skill_document", arguments))
        return stage.result(call)

    given = {"skill": "Complete Checkout", "document": "terms"}
    assert read(**given) == "There is no active skill of that name."
    assert read() == "There is no active skill of that name."
    stage.calls("Complete_Checkout")
    assert read(**given) == "All of it."
    assert stage.last.source == "client"
    stage = Stage(groups=(CHECKOUT,))
    stage.calls("Complete_Checkout")
    assert read(**{**given, "document": "more"}) == "The document is at https://shop.example"
    assert read(**{**given, "document": "nothing"}) == "The skill has no such document; it has: terms, more"


# Lazy tools


def test_lazy_tools_are_called_only_after_they_were_discovered() -> None:
    stage = Stage(make_tool("a", lazy=True), client_tool("b", lazy=True))
    (early,) = stage.calls("a")
    assert stage.result(early) == (
        "Tool 'a' must be discovered first. Call __lazy__tool__discovery__ with toolNames: ['a'] to discover it."
    )
    (found,) = stage.calls((DISCOVER, {"toolNames": ["a", "a", "nope"]}))
    assert stage.result(found) == {
        "tools": [{"name": "a", "description": "Does a.", "inputSchema": {"type": "object"}}],
        "errors": ["Unknown tool: 'nope'. Available tools: ['b']"],
    }
    assert stage.names == ["a", DISCOVER]
    (again,) = stage.calls((DISCOVER, {"toolNames": ["b"]}))
    assert stage.result(again)["tools"][0]["name"] == "b"
    assert stage.names == ["a", "b"]
    (called,) = stage.calls("a")
    assert stage.dispatched == [(called, 1)]


def test_without_lazy_tools_an_unknown_name_has_none_beside_it() -> None:
    stage = Stage(groups=(IDE,))
    (call,) = stage.calls((DISCOVER, {"toolNames": ["nope"]}))
    assert stage.result(call) == {"tools": [], "errors": ["Unknown tool: 'nope'. Available tools: []"]}


def test_a_hidden_lazy_tool_is_not_discovered() -> None:
    stage = Stage(client_tool("a", lazy=True), client_tool("b", lazy=True), hidden=("a",))
    (call,) = stage.calls((DISCOVER, {"toolNames": ["a"]}))
    assert stage.result(call) == {"tools": [], "errors": ["Unknown tool: 'a'. Available tools: ['b']"]}


def test_a_model_that_asks_for_many_names_that_are_not_there_gets_a_short_answer() -> None:
    stage = Stage(*[make_tool(f"t{n}", lazy=True) for n in range(50)])
    (call,) = stage.calls((DISCOVER, {"toolNames": [f"x{n}" * 100 for n in range(5000)]}))
    assert len(stage.call(call).result) < 20_000


@pytest.mark.parametrize("arguments", ["", "[", "[]", '{"toolNames":"a"}', '{"toolNames":[1]}', "[" * 100_000])
def test_a_discovery_without_names_is_refused(arguments: str) -> None:
    stage = Stage(make_tool("a", lazy=True))
    (call,) = stage.calls((DISCOVER, arguments))
    assert stage.result(call) == "toolNames must be a list of names."
    assert stage.call(call).outcome is Outcome.INVALID


# Search


def test_a_search_finds_tools_that_are_out_of_sight_and_shows_them() -> None:
    tools = [make_tool(f"{verb}_invoice") for verb in ("create", "delete", "print")]
    stage = Stage(
        make_tool("read_invoice"),
        own=(group("Books", *tools, make_tool("paint")),),
        showing=Showing(search_above=1, found_at_once=2),
    )
    (call,) = stage.calls(("search_tools", {"query": "invoice"}))
    found = [tool["name"] for tool in stage.result(call)["tools"]]
    assert len(found) == 2
    assert {*found} <= {*stage.names} - {"read_invoice"}
    (again,) = stage.calls(("search_tools", {"query": "an invoice"}))
    assert len(stage.result(again)["tools"]) == 1
    (called,) = stage.calls("delete_invoice")
    assert stage.dispatched == [(called, 1)]
    assert not stage.scene.opened


def test_a_search_finds_no_hidden_tool_and_knows_new_groups() -> None:
    stage = Stage(groups=(IDE,), hidden=("OpenFile",), showing=Showing(search_above=1))
    (call,) = stage.calls(("search_tools", {"query": "open file"}))
    assert "OpenFile" not in json.encode(stage.result(call)).decode()
    other = Stage(groups=(group("Paint", "draw"), IDE), showing=Showing(search_above=1))
    (call,) = other.calls(("search_tools", {"query": "paint"}))
    assert [tool["name"] for tool in other.result(call)["tools"]] == ["draw"]


@pytest.mark.parametrize("arguments", ["{}", '{"query":" "}', '{"query":1}'])
def test_a_search_for_nothing_is_refused(arguments: str) -> None:
    stage = Stage(groups=(IDE,))
    (call,) = stage.calls(("search_tools", arguments))
    assert stage.result(call) == "query must say what the tool should do."


# Everybody


def test_such_calls_are_calls_like_all_others() -> None:
    stage = Stage(groups=(IDE,))
    stage.calls("IDE")
    (ended,) = [update for update in stage.told if isinstance(update, CallEnded)]
    assert (ended.tool, ended.outcome, ended.source) == ("IDE", Outcome.OK, "client")
    assert stage.run.calls[ended.call_id].place is Place.SERVER
    assert stage.replayed() == stage.run


def test_without_a_scene_these_names_are_names_of_tools() -> None:
    stage = Stage(make_tool("search_tools"))
    (call,) = stage.calls("search_tools")
    assert stage.dispatched == [(call, 1)]
    assert stage.run.scene is None
