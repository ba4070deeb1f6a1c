"""What the core knows, as the native protocol shows it."""

from farhand.core.call import Call, CallState
from farhand.core.scene import CLIENT, Scene
from farhand.core.secrets import told_arguments, told_result
from farhand.core.shown import open_groups
from farhand.protocols.native import CallView, ClientStateView, GroupView


def call_view(call: Call, *, run: str, thread: str) -> CallView:
    """One call. `thread` is the name that its principal gave it."""
    asked = call.state is CallState.APPROVAL_REQUESTED and call.approval is not None
    return CallView(
        id=call.id,
        run_id=run,
        thread_id=thread,
        tool=call.tool,
        state=call.state,
        place=call.place,
        turn=call.turn,
        attempt=call.attempt,
        arguments=told_arguments(call),
        arguments_hash=call.approval.arguments_hash if asked and call.approval is not None else "",
        deadline=call.deadline,
        held_by=call.held_by,
        outcome=call.outcome,
        result=told_result(call),
        failure=call.failure,
        created=call.created,
    )


def client_state_view(scene: Scene) -> ClientStateView:
    """What of a scene is the client's. What the owner has set up is not told here."""
    groups = [group for group in scene.groups if group.source == CLIENT]
    names = {group.name for group in groups}
    tools = {name for group in groups for name in group.tools}
    return ClientStateView(
        groups=tuple(
            [
                GroupView(name=group.name, description=group.description, tools=group.tools, collapsed=group.collapsed)
                for group in groups
            ]
        ),
        expanded=tuple([name for name in open_groups(scene) if name in names]),
        active=tuple(
            [each.skill.name for each in scene.skills if each.source == CLIENT and each.skill.name in scene.active]
        ),
        hidden=scene.hidden,
        found=tuple([name for name in scene.found if name in tools]),
        declared=tuple([group.name for group in scene.declared]),
        context=scene.context,
        state=scene.state,
    )
