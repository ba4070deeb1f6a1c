"""Tools that providers bring: what they have to pass, and how they stand beside those of a run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from farhand.agent import Agent
from farhand.core.admission import AdmissionLimits
from farhand.core.definition import (
    Definition,
    encoded,
    readable_text,
    safe_validate_tool_definitions,
    skeleton,
    validate_tool_definitions,
)
from farhand.core.errors import DuplicateToolName, InvalidInput
from farhand.core.events import Started
from farhand.durable.attachment import ALL, definitions_of
from farhand.stores.presence import ClientRow

NAME = 128
"""Characters that a client's name, or that of a tool it offers, may have."""


def admitted(tools: object, agents: Mapping[str, Agent[Any]]) -> bytes:
    """Definitions as they are kept. They pass the limits of an agent, and no agent has a tool of such a name."""
    if tools in ((), b"", ""):
        return b""
    checks = [safe_validate_tool_definitions(tools, agent.admission) for agent in agents.values()]
    if not any(check.success for check in checks):
        validate_tool_definitions(tools, next(iter(agents.values())).admission)
    definitions = next(check.data for check in checks if check.data is not None)
    names = {skeleton(definition.name): definition.name for definition in definitions}
    for agent in agents.values():
        for own in agent.definitions:
            if skeleton(own.name) in names:
                name = names[skeleton(own.name)]
                raise DuplicateToolName(f"the tool {name!r} of a provider has the name of one of agent {agent.name!r}")
    return encoded(tools) if definitions else b""


def offered(client: str, offers: Iterable[str], tools: bytes) -> tuple[str, ...]:
    """The names that a client offers beside definitions of its own; those it runs only as it has defined them."""
    names = tuple(dict.fromkeys(offers))
    for name in (client, *names):
        if not 0 < len(name) <= NAME or not name.isprintable():
            raise InvalidInput(f"a client, and a tool that it offers, has a name of 1 to {NAME} characters")
    own = {definition.name for definition in _definitions(tools)}
    return (ALL,) if ALL in names else tuple([name for name in names if name not in own])


def with_provided(started: Started, providers: Sequence[ClientRow], admission: AdmissionLimits) -> Started:
    """A start with the tools of providers. Of equal names the run's own counts, then the one of the oldest provider."""
    if not providers:
        return started
    taken = {skeleton(definition.name): definition for definition in started.tools}
    foreign = [definition for definition in started.tools if definition.source == "client"]
    room, text = admission.tools - len(foreign), admission.client_text - sum(map(readable_text, foreign))
    added: list[Definition] = []
    refused: list[str] = []
    for provider in providers:
        fits = safe_validate_tool_definitions(provider.tools, admission).success
        for definition in definitions_of(provider):
            known = taken.get(skeleton(definition.name))
            if known is not None:
                if known.pin != definition.pin:
                    refused.append(_refused(definition, provider, f"there is another {known.name!r} before it"))
            elif not fits or len(added) == room or (size := readable_text(definition)) > text:
                refused.append(_refused(definition, provider, "it is beyond the limits of this agent"))
            else:
                text -= size
                taken[skeleton(definition.name)] = definition
                added.append(definition)
    return structs.replace(started, tools=(*started.tools, *added), refused=(*started.refused, *refused))


def _refused(definition: Definition, provider: ClientRow, why: str) -> str:
    return f"tool {definition.name!r} of provider {provider.client!r} was refused: {why}"


def _definitions(tools: bytes) -> tuple[Definition, ...]:
    return definitions_of(ClientRow(connection="", client="", principal="", worker="", tools=tools, since=0))
