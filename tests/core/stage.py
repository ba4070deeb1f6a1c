"""Tools, groups and scenes for the tests of what a model is shown."""

from typing import Any

from msgspec import Raw, json

from farhand.core.answers import answer
from farhand.core.definition import Definition, Place, make_definition
from farhand.core.group import ToolGroup
from farhand.core.limits import Limits
from farhand.core.messages import ToolMessage
from farhand.core.opening import NOTHING, Bring, ClientState, client_state, opening, owners_scene
from farhand.core.scene import Scene, Showing
from farhand.core.shown import Shown, shown
from farhand.core.skill import Reference, Skill
from tests.core.story import Story, make_tool


def client_tool(name: str, **fields: Any) -> Definition:
    """A tool as a client sends it."""
    given = {"description": f"Does {name}.", "parameters": Raw(b'{"type":"object"}'), **fields}
    return make_definition(name=name, place=Place.CLIENT, source="client", **given)


def group(name: str, *tools: str | Definition, **fields: Any) -> ToolGroup:
    """A group of a client."""
    made = tuple(client_tool(each) if isinstance(each, str) else each for each in tools)
    return ToolGroup(name=name, tools=made, **{"description": f"For {name}.", **fields})


def skill(name: str, *tools: str, **fields: Any) -> Skill:
    """A skill that takes these tools."""
    references = tuple(Reference(*reversed(each.split("/"))) for each in tools)
    return Skill(name=name, description=f"How to {name}.", tools=references, **fields)


DEFAULTS = Showing()
MANY_TURNS = Limits(max_turns=50)
IDE = group("IDE", "OpenFile", "GetSelection", "ShowMessage")


class Stage(Story):
    """A story whose run has a scene: the owner's groups, and what a client brings."""

    def __init__(
        self,
        *tools: Definition,
        own: tuple[ToolGroup, ...] = (),
        skills: tuple[Skill, ...] = (),
        showing: Showing = DEFAULTS,
        before: ClientState | None = None,
        limits: Limits = MANY_TURNS,
        memory: Any = (),
        **brings: Any,
    ) -> None:
        all_tools = (*tools, *(tool for each in own for tool in each.tools))
        mine = owners_scene(own, skills, all_tools, showing)
        scene, offered = opening(mine, all_tools, before, Bring(**brings) if brings else NOTHING)
        super().__init__(*offered, scene=scene, limits=limits, memory=memory)

    @property
    def scene(self) -> Scene:
        assert self.run.scene is not None
        return self.run.scene

    @property
    def shown(self) -> Shown:
        return shown(self.run.tools, self.scene)

    @property
    def names(self) -> list[str]:
        """What the model is shown."""
        return [tool.name for tool in self.shown.tools]

    @property
    def last(self) -> ToolMessage:
        return self.tool_messages[-1]

    def describes(self, name: str) -> str:
        return next(tool.description for tool in self.shown.tools if tool.name == name)

    def calls(self, *calls: str | tuple[str, Any]) -> list[str]:
        """The model calls these tools."""
        return self.reply(*[(each, {}) if isinstance(each, str) else each for each in calls])

    def result(self, call_id: str) -> Any:
        """What the model is told of a call that went well, or why it did not."""
        call = self.call(call_id)
        return json.decode(call.result) if call.failure is None else call.failure.message

    def wish(self, call_id: str, augmentation: Any = None, result: Any = "done", *, raw: bytes | None = None) -> str:
        """A client answers, and wishes for something; returns why that is refused."""
        given = json.encode(augmentation) if raw is None else raw
        event = answer(self.run, "ann", call_id, json.encode(result), at=self.at, augmentation=given)
        assert event is not None
        self.take(event)
        return self.call(call_id).refused

    def left(self) -> ClientState | None:
        """What the next run of the thread begins with."""
        return client_state(self.run.scene, self.run.tools)


__all__ = ["IDE", "Stage", "client_tool", "group", "make_tool", "skill"]
