"""A chat as it was asked for: terminal, display, client, tools that run here, and the talk that joins them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from farhand.cli.exits import Exit
from farhand.cli.objects import is_url, load_plugin, load_tools
from farhand.cli.options import Login
from farhand.cli.remote import address, reached
from farhand.cli.session.display import Lines
from farhand.cli.session.log import shown
from farhand.cli.session.person import Person
from farhand.cli.session.screen import display_for
from farhand.cli.session.slash import new_thread
from farhand.cli.session.story import Story
from farhand.cli.session.talk import Talk
from farhand.cli.session.terminal import Terminal
from farhand.client import Client
from farhand.core.definition import Place
from farhand.core.errors import UsageError
from farhand.demo import Message, show_message


class Wanted(Struct, frozen=True, kw_only=True):
    """What was typed."""

    where: str
    message: str
    thread: str
    agent: str
    tools: tuple[str, ...]
    plugins: tuple[str, ...]
    store: str
    manual: bool
    login: Login
    as_json: bool


def chat(wanted: Wanted) -> Exit:
    """The whole conversation."""
    terminal = Terminal()
    story = Story()
    moves = terminal.interactive or wanted.as_json
    display = display_for(story, as_json=wanted.as_json) if moves else Lines(story)
    person = Person(terminal, display, silent=wanted.as_json)

    async def converse() -> Exit:
        with shown(person):
            return await _chat(wanted, person, story)

    return terminal.run(converse)


async def _chat(wanted: Wanted, person: Person, story: Story) -> Exit:
    async with _server(wanted, person) as (url, token), Client(url, token=token, max_tool_rounds=0) as client:
        story.me = client.id
        known = await _equip(client, wanted, person)
        thread = wanted.thread or new_thread()
        if person.terminal.interactive and not wanted.message:
            person.say(f"{', '.join(known)} - thread {thread} - /help tells what there is", "dim")
        talk = Talk(client, person, story, thread, wanted.agent)
        ended = await talk.converse(wanted.message)
        if talk.left_open and (is_url(wanted.where) or wanted.store):
            person.say(f"run {talk.left_open} goes on; `farhand chat … --thread {talk.thread.id}` comes back to it")
        return ended


@asynccontextmanager
async def _server(wanted: Wanted, person: Person) -> AsyncGenerator[tuple[str, str]]:
    if is_url(wanted.where):
        there = address(wanted.where, wanted.login)
        async with reached(wanted.where, wanted.login) as client:
            await client.server()  # who cannot be reached at first is not waited for
        yield there.url, there.token
        return
    from farhand.cli.session.here import served  # needs the extra `server`, which servers elsewhere do not

    async with served(wanted.where, person, store=wanted.store or "memory:", manual=wanted.manual) as given:
        yield given


async def _equip(client: Client, wanted: Wanted, person: Person) -> tuple[str, ...]:
    """Give the client what runs here: tools, plugins, and what a terminal can do by itself. Gives the agents' names."""
    view = await client.server()
    if wanted.agent and wanted.agent not in view.agents:
        raise UsageError(f"the server has no agent {wanted.agent!r}; it has {', '.join(view.agents)}")
    known = {tool.name: tool for tool in await client.tools()}
    for path in wanted.tools:
        for tool in load_tools(path):
            if tool.function is None:
                raise UsageError(f"tool {tool.name!r} of {path!r} has no function that could run it here")
            theirs = known.get(tool.name)
            if theirs is not None and theirs.place is Place.CLIENT:
                client.implement(tool)
            else:
                client.register(tool)
    for path in wanted.plugins:
        await client.use(load_plugin(path))
    theirs = known.get(show_message.name)
    here = (*client.tools_implemented, *(each.name for each in client.tools_offered))
    if theirs is not None and theirs.pin == show_message.definition.pin and show_message.name not in here:
        client.implement(show_message.client(_shows(person)))
    return view.agents


def _shows(person: Person) -> Any:
    """What the terminal does with a message for whoever looks at it."""
    styles = {"info": "blue", "warning": "yellow", "error": "red"}

    async def show(message: Message) -> str:
        person.say(f"  {message.severity}: {message.message}", styles[message.severity])
        return "shown"

    return show
