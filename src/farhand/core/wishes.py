"""How a run's scene changes: by calls that the model makes for that, and by what clients ask for with their results."""

from collections.abc import Iterator, Mapping

from msgspec import UNSET, json, structs

from farhand.core.augmentation import Augmentation, augmented
from farhand.core.call import Call, Change, Outcome, settle, state_after
from farhand.core.definition import Definition, InvalidToolDefinitions, Place
from farhand.core.failure import Failure
from farhand.core.flow import UNTRUSTED
from farhand.core.run import Run, still_needed
from farhand.core.scene import OWNER, Scene
from farhand.core.switches import switched, uncovered
from farhand.core.work import Work

_OK = Outcome.OK


def switch(work: Work, call: Call) -> bool:
    """Answer a call that opens something or looks for something; false if it is none."""
    scene = work.scene
    assert scene is not None
    done = switched(scene, work.run.tools, call.tool, call.arguments)
    if done is None:
        return False
    if done.failure is not None:
        work.settle(call, Outcome.INVALID, done.failure)
        return True
    if done.scene is not scene:
        work.fields["scene"] = done.scene
    source = "" if done.source == OWNER else done.source
    touched = work.fields.get("touched", work.run.touched)
    if source and UNTRUSTED not in touched:
        work.fields["touched"] = (*touched, UNTRUSTED)
    call = structs.replace(call, state=state_after(call, Change.COMPLETE), place=Place.SERVER, source=source)
    call = structs.replace(call, state=state_after(call, Change.DISPATCH), attempt=1)
    work.put(settle(call, _OK, work.at, None, done.result))
    return True


def uncover(work: Work, tool: str) -> Failure | None:
    """Open the group of a tool that was called although the model was not shown it; or why it is not called."""
    scene = work.scene
    assert scene is not None
    after, failure = uncovered(scene, tool)
    if after is not scene:
        work.fields["scene"] = after
    return failure


def foreseen(run: Run, call_id: str) -> tuple[Scene, Mapping[str, Definition]]:
    """The scene and the tools as they will be when it is this call's turn, as far as is known."""
    scene, tools = run.scene or Scene(), run.tools
    for call in map(run.calls.__getitem__, run.order[: run.order.index(call_id)]):
        if call.augmentation is not None:
            try:
                scene, tools = augmented(scene, tools, call.augmentation)
            except InvalidToolDefinitions:
                continue
    return scene, tools


def grant(work: Work) -> None:
    """Once a turn is over, do what clients wished for with their results: in the order of the calls, each whole."""
    before = work.scene or Scene()
    scene, tools, said = before, work.run.tools, dict[str, tuple[str, bytes]]()
    for call in [work.calls[call_id] for call_id in work.order]:
        wish = call.augmentation
        if wish is None:
            continue
        try:
            scene, tools = augmented(scene, tools, wish)
        except InvalidToolDefinitions as refusal:
            work.put(structs.replace(call, augmentation=None, refused=str(refusal)))
            continue
        mine = dict(_says(wish))
        undone = [f"{what}: {said[what][0]}, then {to[0]}" for what, to in mine.items() if said.get(what, to) != to]
        work.put(structs.replace(call, augmentation=None, conflict="; ".join(undone)))
        said |= mine
    if scene != before:
        work.fields["scene"] = scene
    if tools != work.run.tools:
        work.fields["tools"] = tools
        work.fields["pinned"] = still_needed(structs.replace(work.run, calls=work.calls), tools)
    work.fields["wishes"] = ()


def _says(wish: Augmentation) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """What becomes of what; two wishes that say different things of one contradict each other."""
    for kind, names, how in (
        ("group", wish.expand, "expanded"),
        ("group", wish.collapse, "collapsed"),
        ("tool", wish.hide, "hidden"),
        ("tool", wish.show, "shown"),
    ):
        yield from ((f"{kind} {name!r}", (how, b"")) for name in names)
    yield from ((f"context {item.name!r}", ("told", json.encode(item.value))) for item in wish.add_context)
    yield from ((f"context {name!r}", ("removed", b"")) for name in wish.remove_context)
    if wish.update_state is not UNSET:
        yield "state", ("replaced", bytes(wish.update_state))
