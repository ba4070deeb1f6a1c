"""The tools of agents as the native protocol shows them, and the way back to their definitions. No call is here."""

from collections.abc import Iterable, Iterator

from msgspec import structs

from farhand.core.definition import Approval, Definition, Policy, SideEffect, make_definition
from farhand.protocols.native import ToolView


def tool_views(agent: str, definitions: Iterable[Definition]) -> Iterator[ToolView]:
    """The tools of an agent."""
    for definition in definitions:
        yield ToolView(
            name=definition.name,
            description=definition.description,
            parameters=definition.parameters,
            output=definition.output_json,
            agent=agent,
            place=definition.place,
            approval=definition.policy.approval,
            effect=definition.policy.effect,
            title=definition.title,
            version=definition.version,
            deprecated=definition.deprecated,
            tags=definition.tags,
            pin=definition.pin,
        )


def definition_of(view: ToolView) -> Definition:
    """A tool's definition as far as a server shows it; what it does not show is as usual."""
    policy = Policy(approval=Approval(view.approval), effect=SideEffect(view.effect))
    shown = {name: getattr(view, name) for name in ("name", "description", "parameters", "output", "place")}
    told = {name: getattr(view, name) for name in ("title", "version", "deprecated", "tags")}
    return structs.replace(make_definition({**shown, **told, "policy": policy, "source": "owner"}), pin=view.pin)
