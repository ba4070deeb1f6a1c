"""What is open, hidden and told is one value; who has opened something decides how long it stays open."""

import pytest
from msgspec import structs

from farhand.core.definition import InvalidToolDefinitions
from farhand.core.errors import UsageError
from farhand.core.scene import (
    CLIENT,
    MODEL,
    ContextItem,
    Group,
    Scene,
    Showing,
    collapsed,
    expanded,
    placed,
    with_context,
    with_hidden,
)
from farhand.core.shown import open_groups
from tests.core.stage import IDE, Stage, group, make_tool, skill

WIKI = group("Wiki", "read_page", collapsed=False)


def test_settings_that_make_no_sense_are_refused() -> None:
    for fields in ({"search_above": -1}, {"found_at_once": 0}, {"found_at_once": 65}):
        with pytest.raises(UsageError, match="search_above is 0 at least, found_at_once 1 to 64"):
            Showing(**fields)
    with pytest.raises(UsageError, match="unknown in changes: everything"):
        Showing(changes=frozenset({"everything", "hide"}))  # pyright: ignore[reportArgumentType]


def test_groups_begin_closed_and_some_begin_open() -> None:
    assert open_groups(Stage(groups=(IDE, WIKI)).scene) == {"Wiki": "start"}


def test_by_a_setting_the_groups_of_clients_begin_open() -> None:
    stage = Stage(own=(group("Own", "own_tool"),), showing=Showing(collapse_client_tools=False), groups=(IDE,))
    assert open_groups(stage.scene) == {"IDE": "start"}
    assert not open_groups(collapsed(stage.scene, ["IDE"]))


def test_what_is_closed_again_has_no_skills_and_no_tools_of_its_own() -> None:
    scene = Stage(groups=(group("IDE", "OpenFile", skills=(skill("Edit"),)), WIKI)).scene
    scene = structs.replace(expanded(scene, ["IDE"], CLIENT), active={"Edit": MODEL}, found=("OpenFile",))
    after = collapsed(scene, ["IDE", "Wiki"])
    assert (after.opened, after.closed, after.active, after.found) == ({}, ("Wiki",), {}, ())
    assert not open_groups(after)


def test_what_a_client_closes_stays_closed_until_it_opens_it() -> None:
    scene = collapsed(Stage(groups=(WIKI,)).scene, ["Wiki"])
    by_model, by_client = expanded(scene, ["Wiki"], MODEL), expanded(scene, ["Wiki"], CLIENT)
    assert open_groups(by_model) == {"Wiki": "model"}
    assert (by_model.closed, by_client.closed) == (("Wiki",), ())


def test_a_context_item_takes_the_place_of_the_one_of_its_name() -> None:
    scene = with_context(Scene(), [ContextItem("user", "ann"), ContextItem("page", 1, "p"), ContextItem("user", "bob")])
    assert [(item.name, item.value) for item in scene.context] == [("user", "bob"), ("p", 1)]
    assert [item.name for item in with_context(scene, [], ["p", "nobody"]).context] == ["user"]


def test_what_is_shown_again_is_not_hidden() -> None:
    assert with_hidden(Scene(hidden=("a",)), ["b", "c"], ["a", "c"]).hidden == ("b",)


def test_things_are_found_by_their_names() -> None:
    scene = Stage(groups=(group("IDE", "OpenFile", skills=(skill("Edit"),)),)).scene
    there = scene.group("IDE"), scene.group_of("OpenFile"), scene.skill("Edit")
    assert [getattr(each, "function", None) for each in there] == ["IDE", "IDE", "Edit"]
    assert (scene.group("x"), scene.group_of("x"), scene.skill("x")) == (None, None, None)


def test_no_two_things_that_a_model_can_call_have_one_name() -> None:
    owners = group("Own", make_tool("Complete_Checkout"), make_tool("Shop"))
    stage = Stage(
        own=(owners,),
        groups=(
            group("Shop", "buy", skills=(skill("Complete Checkout"), skill("Shop!"), skill("Shop?"))),
            group("search tools", "look"),
        ),
    )
    names = [group.function for group in stage.scene.groups] + [each.function for each in stage.scene.skills]
    assert names == ["Own", "Shop_group", "search_tools_group", "Complete_Checkout_skill", "Shop_skill", "Shop_skill_2"]
    assert not {*names} & {*stage.run.tools}


def test_who_has_a_name_keeps_it_when_more_comes_in() -> None:
    known = Scene(groups=(Group("Shop", "Shop_group", ("buy",)),))
    groups, _ = placed([group("Shop", "buy"), group("Wiki", "read")], (), CLIENT, set(), known)
    assert [each.function for each in groups] == ["Shop_group", "Wiki"]


def test_a_tool_cannot_be_named_like_what_opens_or_finds_something() -> None:
    with pytest.raises(InvalidToolDefinitions, match="Tool 'Search_Tools' is named like what opens a group or a skill"):
        Stage(make_tool("Search_Tools"), own=(group("Own", "a"),))
    with pytest.raises(InvalidToolDefinitions, match="Tool 'own' of group 'IDE' is named like a tool of the server"):
        Stage(own=(group("Own", "a"),), groups=(group("IDE", "own"),))
    with pytest.raises(InvalidToolDefinitions, match=r"'__lazy__tool__discovery__'.*like a tool of the server"):
        Stage(groups=(group("IDE", "__lazy__tool__discovery__"),))
