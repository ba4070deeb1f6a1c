"""How a run's scene changes: by calls that the model makes for that, and by what clients ask for with their results."""

from msgspec import structs

from farhand.core.augmentation import augmented
from farhand.core.call import Call, Change, Outcome, settle, state_after
from farhand.core.definition import InvalidToolDefinitions, Place
from farhand.core.failure import Failure
from farhand.core.scene import Scene
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
    source = "" if done.source == "server" else done.source
    call = structs.replace(call, state=state_after(call, Change.COMPLETE), place=Place.SERVER, source=source)
    call = structs.replace(call, state=state_after(call, Change.DISPATCH), attempt=1)
    work.put(settle(call, _OK, work.at, None, done.result))
    return True


def uncover(work: Work, call: Call) -> Failure | None:
    """Open the group of a tool that was called although the model was not shown it; or why it is not called."""
    scene = work.scene
    assert scene is not None
    after, failure = uncovered(scene, call.tool)
    if after is not scene:
        work.fields["scene"] = after
    return failure


def grant(work: Work) -> None:
    """Once a turn is over, do what clients wished for with their results: in the order of the calls, each whole."""
    for call in [work.calls[call_id] for call_id in work.order]:
        if call.augmentation is None:
            continue
        tools = work.fields.get("tools", work.run.tools)
        try:
            scene, after = augmented(work.scene or Scene(), tools, call.augmentation)
        except InvalidToolDefinitions as refusal:
            work.put(structs.replace(call, augmentation=None, refused=str(refusal)))
            continue
        work.put(structs.replace(call, augmentation=None))
        work.fields["scene"] = scene
        if after != tools:
            work.fields["tools"] = after
    work.fields["wishes"] = ()
