"""What a run begins with: the owner's groups, what the thread has of its client, and what the client brings now."""

from typing import Any

import pytest
from msgspec import Raw, json, structs

from farhand.core.admission import OUTSIDE
from farhand.core.augmentation import CONTEXT_ITEMS, STATE_BYTES
from farhand.core.definition import InvalidToolDefinitions
from farhand.core.events import Recovered
from farhand.core.opening import Bring, client_state, leaves_something, opening, owners_scene
from farhand.core.run import Run
from farhand.core.scene import TRUSTING, ContextItem, Showing
from farhand.core.updates import SceneChanged, current
from tests.core.stage import IDE, Stage, client_tool, group, make_tool, skill

OPEN = {"expanded": ("IDE",)}


def refusals(**brings: Any) -> list[str]:
    tools = brings.pop("tools", ())
    with pytest.raises(InvalidToolDefinitions) as refused:
        Stage(*tools, **brings)
    return [f"{problem.path} {problem.message}".strip() for problem in refused.value.problems]


# The owner


def test_an_agent_without_any_of_this_has_no_scene() -> None:
    assert owners_scene((), (), [make_tool("a")], Showing()) is None
    assert opening(None, (make_tool("a"),)) == (None, (make_tool("a"),))
    assert opening(None, (), None, Bring(reset=True)) == (None, ())
    assert client_state(None, {}) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"groups": (group("Own", make_tool("a")),)},
        {"skills": (skill("Sum"),)},
        {"tools": (make_tool("a", lazy=True),)},
        {"showing": Showing(lasting="thread")},
    ],
)
def test_a_group_a_skill_a_lazy_tool_or_a_setting_makes_a_scene(fields: dict[str, Any]) -> None:
    given = {"groups": (), "skills": (), "tools": (), "showing": Showing(), **fields}
    given["tools"] = (*given["tools"], *(tool for each in given["groups"] for tool in each.tools))
    assert owners_scene(**given) is not None


def test_what_the_owners_skills_refer_to_must_be_there() -> None:
    with pytest.raises(InvalidToolDefinitions) as refused:
        owners_scene(
            (group("Own", make_tool("a")),),
            (skill("S", "nobody", "Own/b", "Q/a", "Own/a"), skill("s")),
            (make_tool("a"),),
            Showing(),
        )
    assert [problem.message for problem in refused.value.problems] == [
        "Skill 'S' references tool 'nobody' which does not exist",
        "Skill 'S' references tool 'b' which does not exist in group 'Own'",
        "Skill 'S' references group 'Q' which is not registered",
        "There are two skills 's'",
    ]


# What a client brings


def test_groups_come_in_all_or_none_with_every_reason() -> None:
    assert refusals(
        tools=(make_tool("add"),),
        groups=(IDE, group("ide", "x"), group("B", "add", "openfile")),
    ) == [
        "/groups/1/name There is a group 'IDE' already",
        "/groups/2/tools/0/name Tool 'add' of group 'B' is named like a tool of the server",
        "/groups/2/tools/1/name Tool 'openfile' of group 'B' is named like a tool of group 'IDE'",
    ]


def test_references_of_skills_are_checked_when_all_groups_are_there() -> None:
    first = group("A", "a", skills=(skill("Work", "B/b", "add"),))
    stage = Stage(make_tool("add"), groups=(first, group("B", "b")))
    assert [group.name for group in stage.scene.groups] == ["A", "B"]
    assert refusals(tools=(make_tool("add"),), groups=(first,)) == [
        "/groups Skill 'Work' references group 'B' which is not registered"
    ]
    assert refusals(tools=(make_tool("add"),), groups=(first, group("B", "other"))) == [
        "/groups Skill 'Work' references tool 'b' which does not exist in group 'B'"
    ]


def test_no_client_takes_the_name_of_a_group_of_the_agent() -> None:
    own = (group("Own", make_tool("a")),)
    assert refusals(own=own, groups=(group("OWN", "b"),)) == ["/groups There is a group 'Own' of the server already"]
    assert refusals(own=own, groups=(group("B", "Own"),)) == [
        "/groups/0/tools/0/name Tool 'Own' of group 'B' is named like a tool of the server"
    ]
    assert refusals(own=own, tools=(client_tool("oWN"),)) == [
        "Tool 'oWN' is named like what opens a group or a skill, or finds tools"
    ]


def test_what_is_opened_or_hidden_at_the_beginning_must_be_there_and_the_clients() -> None:
    assert refusals(
        tools=(make_tool("add"),), groups=(IDE,), expanded=("IDE", "Nobody"), hidden=("OpenFile", "nobody", "add")
    ) == [
        "/expanded/1 There is no group 'Nobody'",
        "/hidden/1 There is no tool 'nobody'",
        "/hidden/2 Tool 'add' is not the client's",
    ]


def test_context_and_state_have_a_size() -> None:
    many = tuple(ContextItem(f"c{n}", n) for n in range(CONTEXT_ITEMS + 1))
    assert refusals(context=many) == [f"/context Too many: {CONTEXT_ITEMS} context items at most"]
    assert refusals(context=(ContextItem("c", "x" * STATE_BYTES),), state=Raw(b'"' + b"x" * STATE_BYTES + b'"')) == [
        f"/context Too big: all context has {STATE_BYTES} bytes at most",
        f"/state Too big: the state has {STATE_BYTES} bytes at most",
    ]
    stage = Stage(context=many[1:], state=Raw(b'{"a":1}'))
    assert (len(stage.scene.context), stage.scene.state) == (CONTEXT_ITEMS, Raw(b'{"a":1}'))


def test_declared_groups_could_come_in() -> None:
    assert refusals(tools=(make_tool("add"),), declared=(group("B", "add"),)) == [
        "/declared/0/tools/0/name Tool 'add' of group 'B' is named like a tool of the server"
    ]
    stage = Stage(declared=(IDE,))
    assert (stage.names, [each.name for each in stage.scene.declared]) == ([], ["IDE"])


def test_what_a_client_brings_does_not_grow_with_its_requests() -> None:
    stage = Stage(groups=(group("A", *[f"a{n}" for n in range(40)]),))
    more = group("B", *[f"b{n}" for n in range(40)])
    told = ["Too big: all groups together have more than 64 tools"]
    assert refusals(before=stage.left(), groups=(more,)) == told
    assert refusals(before=stage.left(), declared=(more,)) == told
    wide = structs.replace(OUTSIDE, tools=100)
    _, tools = opening(None, (), stage.left(), Bring(groups=(more,)), wide)
    assert len(tools) == 80


# The thread


def test_groups_context_and_state_stay_with_the_thread() -> None:
    stage = Stage(
        groups=(IDE,), expanded=("IDE",), hidden=("OpenFile",), context=(ContextItem("page", 1),), state=Raw(b"[1]")
    )
    after = Stage(before=stage.left())
    assert after.scene == stage.scene
    assert after.names == stage.names == ["GetSelection", "ShowMessage"]
    assert Stage(before=after.left(), reset=True).run.scene is None


def test_a_group_of_a_known_name_takes_its_place_only_if_that_is_said() -> None:
    before = Stage(groups=(IDE,), expanded=("IDE",), hidden=("GetSelection",)).left()
    new = group("ide", "OpenFile", "SaveFile")
    assert refusals(before=before, groups=(new,))[0] == "/groups/0/name There is a group 'IDE' already"
    stage = Stage(before=before, groups=(new,), replace=True)
    assert [*stage.run.tools] == ["OpenFile", "SaveFile"]
    assert (stage.scene.opened, stage.scene.hidden, stage.names) == ({}, (), ["ide"])


@pytest.mark.parametrize(
    ("lasting", "opened", "active", "found"),
    [("run", {"IDE": "client"}, {}, ()), ("thread", {"IDE": "client", "B": "model"}, {"Work": "model"}, ("seldom",))],
)
def test_what_the_model_has_opened_lasts_a_run_or_the_thread_by_a_setting(
    lasting: Any, opened: dict[str, str], active: dict[str, str], found: tuple[str, ...]
) -> None:
    showing = Showing(lasting=lasting)
    seldom = make_tool("seldom", lazy=True)
    stage = Stage(seldom, showing=showing, groups=(IDE, group("B", "b", skills=(skill("Work"),))), **OPEN)
    stage.calls("B", "Work", ("__lazy__tool__discovery__", {"toolNames": ["seldom"]}))
    after = Stage(seldom, showing=showing, before=stage.left())
    assert (after.scene.opened, after.scene.active, after.scene.found) == (opened, active, found)


def test_what_a_client_has_closed_is_closed_in_the_next_run_although_the_model_opened_it() -> None:
    stage = Stage(groups=(group("Wiki", "read", collapsed=False),))
    (call,) = stage.calls("read")
    stage.wish(call, {"collapse": ["Wiki"]})
    stage.calls("Wiki")
    assert stage.names == ["read"]
    assert Stage(before=stage.left()).names == ["Wiki"]


def test_a_group_is_left_behind_when_the_agent_has_its_names_now() -> None:
    stage = Stage(
        groups=(
            group("A", "a", skills=(skill("Both", "B/b"),)),
            group("B", "b"),
            group("C", "c", skills=(skill("Own work", "c"),)),
        ),
        expanded=("A", "B", "C"),
        hidden=("b",),
    )
    after = Stage(make_tool("b"), before=stage.left())
    assert [group.name for group in after.scene.groups] == ["A", "C"]
    assert [each.skill.name for each in after.scene.skills] == []
    assert (after.scene.opened, after.scene.hidden) == ({"A": "client", "C": "client"}, ())
    assert after.names == ["b", "a", "c"]
    other = Stage(make_tool("c"), before=stage.left())
    assert [group.name for group in other.scene.groups] == ["A", "B"]
    assert [each.skill.name for each in other.scene.skills] == ["Both"]


def test_groups_whose_skills_need_each_other_stay() -> None:
    stage = Stage(
        groups=(group("A", "a", skills=(skill("One", "B/b"),)), group("B", "b", skills=(skill("Two", "A/a"),)))
    )
    assert Stage(before=stage.left()).scene == stage.scene


def test_a_group_whose_tools_are_gone_is_gone() -> None:
    left = Stage(groups=(IDE,), hidden=("OpenFile",), **OPEN).left()
    assert left is not None
    scene, tools = opening(None, (), structs.replace(left, tools=()))
    assert (scene, tools) == (None, ())


# Everything of it is data


def test_a_stored_run_has_its_scene() -> None:
    stage = Stage(
        make_tool("seldom", lazy=True),
        own=(group("Own", make_tool("a"), skills=(skill("Sum", "a"),)),),
        groups=(IDE,),
        declared=(group("Later", "later"),),
        context=(ContextItem("page", {"n": [1]}),),
        state=Raw(b'{"a":1}'),
        showing=Showing(changes=TRUSTING),
        **OPEN,
    )
    stage.calls("Own", "Sum")
    stored = json.decode(json.encode(stage.run), type=Run)
    assert stored.scene == stage.scene
    assert stage.replayed() == stage.run


def test_after_a_redeploy_a_scene_knows_only_what_is_there_and_the_clients() -> None:
    own = group("Own", make_tool("a"), make_tool("b"))
    stage = Stage(own=(own,), groups=(IDE,), hidden=("OpenFile", "ShowMessage"))
    before = stage.scene
    stage.take(Recovered(stage.at, tuple(stage.run.tools.values())))
    assert stage.scene is before
    tools = [tool for name, tool in stage.run.tools.items() if name not in ("b", "OpenFile")]
    stage.take(Recovered(stage.at, (*tools, make_tool("OpenFile"))))
    assert [each.tools for each in stage.scene.groups] == [("a",), ("GetSelection", "ShowMessage")]
    assert stage.scene.hidden == ("ShowMessage",)
    assert stage.names == ["OpenFile", "Own", "IDE"]


def test_who_watches_is_told_the_scene_at_the_beginning_and_when_coming_later() -> None:
    stage = Stage(groups=(IDE,), context=(ContextItem("page", 1),), **OPEN)
    (first,) = [update for update in stage.told if isinstance(update, SceneChanged)]
    (later,) = [update for update in current(stage.run, 9) if isinstance(update, SceneChanged)]
    assert (first.groups, first.expanded, first.context) == (("IDE",), ("IDE",), ("page",))
    assert (later.groups, later.seq, [update.seq for update in stage.told]) == (first.groups, 9, [1, 2, 3])


def test_nothing_at_all_is_no_scene() -> None:
    assert Stage(before=Stage(groups=(IDE,)).left(), reset=True, hidden=()).run.scene is None


@pytest.mark.parametrize(
    "brings",
    [
        {"groups": (IDE,)},
        {"declared": (IDE,)},
        {"context": (ContextItem("page", 1),)},
        {"state": Raw(b"0")},
        {"own": (group("Own", make_tool("a")),), "expanded": ("Own",)},
    ],
)
def test_a_run_leaves_something_when_its_client_has_told_something(brings: dict[str, Any]) -> None:
    assert leaves_something(Stage(**brings).run.scene)


def test_a_run_leaves_nothing_of_what_the_model_has_opened_only_for_itself() -> None:
    own = (group("Own", make_tool("a")),)
    stage = Stage(own=own)
    stage.calls("Own")
    assert not leaves_something(stage.run.scene)
    stage = Stage(own=own, showing=Showing(lasting="thread"))
    assert not leaves_something(stage.run.scene)
    stage.calls("Own")
    assert leaves_something(stage.run.scene)
    assert not leaves_something(None)
